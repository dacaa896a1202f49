//! The work: `download` and `parse` are the two straight lines that every URL walks; the pool grants them tasks.

mod body_end;
mod breakers;
mod claim;
mod download;
mod error;
mod fresh_pages;
mod hosts;
mod lease;
mod outages;
mod outcome;
mod parse;
mod parse_pool;
mod parts;
mod role;
mod rules;
mod scaling;
mod settle;
mod slots;
mod under_way;
mod workers;

pub(crate) use breakers::Breakers;
pub use claim::Pool;
pub(crate) use download::visit_to_keep;
pub use error::VisitError;
pub(crate) use outages::Outages;
pub(crate) use outcome::{RobotsFound, robots_found};
pub(crate) use parse::{PUTS, put_of};
pub use parts::{PartsOptions, VisitParts};
pub use role::{Role, RoleError};
pub use rules::SiteRules;
pub(crate) use slots::cores;
pub(crate) use under_way::UnderWay;
pub use workers::{Workers, WorkersError};
