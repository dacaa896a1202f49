//! The work: `download` and `parse` are the two straight lines that every URL walks; the pool grants them tasks.

mod crew;
mod download;
mod handover;
mod heartbeat;
mod membership;
mod outcome;
mod parse;
mod pool;
mod scaling;
mod verdicts;

pub use crew::{Crew, CrewOptions, Roster};
pub use download::Left;
pub use pool::{Pool, Workers, WorkersError};
