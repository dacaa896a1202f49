//! `paced` crawls shops politely: request *starts* on a site keep one steady interval, whatever the site's response
//! time and however many workers and processes there are; nothing that was accepted is lost.
//!
//! The modules stand in the order of the data's way, and each may use those above it:
//!
//! * [`clock`], [`canonical_url`], [`page`], [`item`], [`task`]: the words; [`forecast`]: what a pace allows;
//!   `mailbox`: a queue to one thread
//! * [`site`]: one file of `sites/` as a checked value; [`settings`]: `paced.toml`
//! * [`frontier`]: what is known, what is next, and when; [`mutex`]: its timed mutex for everybody
//! * [`manners`], [`robots`], [`fetch`], [`archive`]: asking a site, and keeping what it answers
//! * [`extract`], [`sink`]: what is on a page, and where it goes
//! * [`work`], [`crawl`], [`fleet`]: the two straight lines; one process that walks them to their end, and many that share
//!   a frontier
//! * [`trial`]: one page, looked at; [`reparse`]: stored pages, read by today's rules
//! * [`monitor`], [`demo`], [`cli`]: being watched, being tried, being run

pub mod archive;
pub mod canonical_url;
pub mod cli;
pub mod clock;
pub mod content_coding;
pub mod crawl;
pub mod demo;
pub mod extract;
pub mod fetch;
pub mod fleet;
pub mod forecast;
pub mod frontier;
pub mod item;
mod mailbox;
pub mod manners;
pub mod monitor;
pub mod mutex;
pub mod page;
pub mod reparse;
pub mod robots;
pub mod settings;
pub mod sink;
pub mod site;
pub mod task;
pub mod trial;
pub mod work;
