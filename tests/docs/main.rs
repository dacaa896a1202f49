//! The documentation: what it says is run, its links lead somewhere, and it stays short.

#[path = "../support/mod.rs"]
mod support;

mod ids;
mod links;
mod markdown;
mod paths;
mod prose;
mod reader;
mod runs;
