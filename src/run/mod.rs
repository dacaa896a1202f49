//! One run, from its parts to its report: a crawl of named sites until they are done, or a worker until it is stopped.

mod campaigns;
mod crawl;
mod error;
mod feed;
mod noticed;
mod parts;
mod register;
mod report;
mod seed;
mod site_folder;
mod standstill;
mod telling;
mod turn;
mod watch;
mod worker;
mod worker_name;

pub use crawl::{CrawlOptions, crawl};
pub use error::RunError;
pub use parts::{ItemsTo, Outputs, RunParts};
pub use register::register;
pub(crate) use register::{agree, register_one};
pub use report::{CrawlReport, Ending, SiteReport};
pub use seed::{Seeded, seed};
pub use worker::{WorkOptions, WorkReport, work};
pub use worker_name::{WorkerName, WorkerNameError};
