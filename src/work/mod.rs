//! The work: `download` and `parse` are the two straight lines that every URL walks; the pool grants them tasks.

mod body_end;
mod breakers;
mod claim;
mod download;
mod error;
mod fresh_pages;
mod hosts;
mod lease;
mod links;
mod outages;
mod outcome;
mod parse;
mod parse_pool;
mod parts;
mod refusals;
mod role;
mod rules;
mod scaling;
mod settle;
mod slots;
mod under_way;
mod walls;
mod workers;

pub(crate) use breakers::Breakers;
pub use claim::Pool;
pub(crate) use download::visit_to_keep;
pub use error::VisitError;
pub(crate) use links::{LinkBudget, portions, put_of};
pub(crate) use outages::Outages;
pub(crate) use outcome::{RobotsFound, robots_found};
pub use parts::{PartsOptions, VisitParts};
pub use role::{Role, RoleError};
pub use rules::SiteRules;
pub(crate) use under_way::UnderWay;
pub(crate) use walls::{mark_of, told_again};
pub use workers::{MOST_WORKERS, Workers, WorkersError};
