//! The frontier's rules row by row: each row a test that states it.

mod at_once;
mod away;
mod departures;
mod forget;
mod groups;
mod known;
mod lanes;
mod leases;
mod letters;
mod marks;
mod order;
mod owners;
mod pace;
mod put;
mod queue;
mod rearm;
mod recrawl;
mod rename;
mod restarts;
mod robots;
mod runs;
mod settle;
mod stages;
mod tuned;
mod walls;
mod whereabouts;
