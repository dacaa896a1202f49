//! What is fuzzed: a module a target, each with a function that takes any bytes and panics where something doesn't hold
//! that must always hold. `tests/fuzz.rs` runs the same functions without a fuzzer.

#[path = "../../tests/support/answered.rs"]
mod answered;
pub mod canonical_url;
mod cost;
pub mod foreign_warc;
pub mod headers;
pub mod page;
mod recipe;
pub mod redis_answers;
pub mod robots;
pub mod robots_links;
pub mod site_file;
pub mod structured;
pub mod warc_tail;
