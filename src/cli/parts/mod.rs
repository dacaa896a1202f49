//! What verbs share: their global options, sites by name, results on stdout, prompts, signals, printing.

pub(super) mod account;
pub(super) mod act;
pub(super) mod ask;
pub(super) mod batches;
pub(super) mod campaigns;
pub(super) mod consent;
pub(super) mod equipment;
pub(super) mod events;
pub(super) mod explain_lanes;
pub(super) mod explain_url;
pub(super) mod fairness;
pub(super) mod fleet;
pub(super) mod flow;
mod frontier_url;
mod globals;
pub(super) mod lanes;
pub(super) mod lines;
pub(super) mod pauses;
pub(super) mod print_crawl;
pub(super) mod print_trial;
pub(super) mod refuse_while_busy;
pub(super) mod rename;
pub(super) mod results;
pub(super) mod sessions;
pub(super) mod signals;
pub(super) mod site_urls;
pub(super) mod sites;
pub(super) mod table;
mod trouble;
pub(super) mod unserved;
pub(super) mod url_list;
pub(super) mod waiting;
pub(super) mod when;

pub use globals::Globals;
pub(in crate::cli) use trouble::say;
pub use trouble::{Exit, Trouble};
