//! Being watched: counters of this process, the pulse lines, the log's form, the progress bars. No work is done here.

mod bars;
mod counts;
mod limits;
pub mod log;
mod log_line;
mod pulse;
mod standing_out;
mod why;

pub use counts::{Monitor, Tally};
pub use pulse::{Pulse, Shown};
pub use why::{NO_WORKER, why};
