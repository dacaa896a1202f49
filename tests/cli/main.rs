//! The binary as people and their scripts meet it: what each verb prints, where, and how it ends.

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod campaigns;
mod crawls;
mod dead;
mod demo;
mod expected;
mod explain;
mod flow;
mod forget;
mod keys;
mod lane_workers;
mod lanes;
mod logs;
mod notify;
mod on_redis;
mod pauses;
mod pipes;
mod places;
mod plan;
mod put;
mod queue;
mod rename;
mod reparses;
mod rights;
mod schema;
mod sessions;
mod shell;
mod site_files;
mod terminal;
mod tries;
mod troubles;
mod usage;
mod views;
