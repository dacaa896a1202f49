//! Several processes on one frontier, from end to end: the binary as `seed` and as `work`, against sites on loopback, judged
//! by what the sites saw and what was kept.

mod asked_again;
mod beside;
mod drained;
mod ends;
mod fleet;
#[path = "../crawl/ground.rs"]
mod ground;
mod hosts;
mod idle;
mod lanes;
mod left_alone;
mod load;
mod names;
mod recrawls;
mod rules;
mod seeds;
mod story;
#[path = "../support/mod.rs"]
mod support;
