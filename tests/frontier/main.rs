//! The frontier's suite: every test on every backend, with one clock that stands still until it is moved.

mod bounded;
mod bytes;
mod claimers;
mod full_disk;
mod model;
mod month;
mod newer;
mod processes;
mod simulation;
#[path = "../support/mod.rs"]
mod support;
mod table;
mod upgrade;
mod world;
