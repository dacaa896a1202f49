//! What the script is told of a step and answers to it, type by type: both as JSON values, which travel as `MessagePack`. Which
//! arguments a step has, and which answer, stands in `frontier/table.rs`.

mod answers;
mod args;
pub(super) mod mark;
mod reply;

pub(super) use args::{booked, registration};
pub(super) use reply::BatchReply;
pub use reply::redis_answers;
