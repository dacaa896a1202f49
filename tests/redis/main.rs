//! The frontier on Redis when things break: the server, its clock, its memory, the way to it, and those who work on it.

mod answers;
mod away;
mod bounded;
mod campaigns;
mod clock;
mod company;
mod deploy;
mod deploy_files;
mod dropped;
mod far;
mod forgotten;
#[path = "../crawl/ground.rs"]
mod ground;
mod late_batches;
mod leaving;
mod many_claimers;
mod members;
mod memory;
mod refused;
mod steps;
#[path = "../support/mod.rs"]
mod support;
mod told;
mod workers;
