//! The work: `download` and `parse` are the two straight lines that every URL walks; the pool grants them tasks.

mod breakers;
mod crew;
mod desks;
mod download;
mod error;
mod handover;
mod heartbeat;
mod hosts;
mod landing;
mod membership;
mod outages;
mod outcome;
mod parse;
mod pool;
mod robots_told;
mod role;
mod roster;
mod scaling;
mod slots;
mod workers;

pub use crew::{Crew, CrewOptions};
pub(crate) use download::sent_request;
pub use error::VisitError;
pub(crate) use outages::Outages;
pub(crate) use outcome::{RobotsFound, robots_found};
pub use pool::Pool;
pub use role::{Role, RoleError};
pub use roster::Roster;
pub(crate) use slots::cores;
pub use workers::{Workers, WorkersError};
