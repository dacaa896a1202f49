//! `paced` crawls shops politely: request *starts* on a site keep one steady interval, whatever the site's response
//! time and however many workers and processes there are; nothing that was accepted is lost.
//!
//! The modules stand in the order of the data's way, and each may use those above it:
//!
//! * [`clock`], [`canonical_url`], [`page`], [`item`], [`task`], `quantity`: the words; [`forecast`]: what a pace allows;
//!   `batch`: waiting for company while company is expected; `patience`: trying again with pauses
//! * [`site`]: one file of `sites/` as a checked value; [`settings`]: `paced.toml`; [`manners`]: what an answer asks of us
//! * [`frontier`]: what is known, what is next, and when; [`mutex`]: its timed mutex for everybody
//! * [`robots`], [`fetch`], [`archive`]: asking a site, and keeping what it answers; [`audit`]: the proof of pace
//! * [`extract`], [`sink`]: what is on a page, and where it goes
//! * [`work`], [`run`]: the two straight lines, and a process that walks them: a crawl to its end, a worker until stopped
//! * [`look`]: one page tried; stored pages parsed again
//! * [`monitor`], [`demo`], [`cli`]: being watched, being tried, being run

pub mod archive;
pub mod audit;
mod batch;
pub mod canonical_url;
pub mod cli;
pub mod clock;
pub mod content_coding;
pub mod demo;
pub mod extract;
pub mod fetch;
pub mod forecast;
pub mod frontier;
pub mod item;
pub mod look;
pub mod manners;
pub mod monitor;
pub mod mutex;
pub mod page;
mod patience;
mod quantity;
pub mod robots;
pub mod run;
pub mod settings;
pub mod sink;
pub mod site;
pub mod task;
pub mod work;
