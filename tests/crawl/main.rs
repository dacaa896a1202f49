//! Crawls from end to end: the binary, against sites on loopback, judged by what the sites saw and what was kept.

mod answers;
mod control;
mod ground;
mod robots;
mod runs;
mod secrets;
mod shops;
mod signatures;
#[path = "../support/mod.rs"]
mod support;
mod walls;
