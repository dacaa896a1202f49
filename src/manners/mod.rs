//! Pure rules of good manners: what an answer says about our pace, how long to back off, how late a start may be.
//! No sockets, no sleeping.

mod backoff;
mod breaker;
pub mod departure;
mod location;
mod retry_after;
mod signal;
pub mod slow_start;
pub mod wall;

pub use backoff::backoff;
pub use breaker::{Breaker, Health};
pub use departure::{ahead, ahead_ms, grace, grace_ms, is_early, lead_ms};
pub use location::{MOST_REDIRECTS, MOST_ROBOTS_REDIRECTS, location};
pub use retry_after::retry_after;
pub use signal::Signal;
