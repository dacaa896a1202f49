//! Processes that are killed, stopped, or work side by side on one data folder: nothing is lost, little is done twice, and
//! no start comes early.

#[path = "../support/mod.rs"]
mod support;

mod backed_up;
mod books;
mod chaos;
mod copied;
mod feeders;
mod fleet;
mod full_disk;
#[path = "../crawl/ground.rs"]
mod ground;
mod jumps;
mod kills;
mod phases;
mod side_by_side;
mod stops;
