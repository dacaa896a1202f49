//! The pace on the wire, measured by the servers that are asked: spacing of starts, and how many of the permitted ones are
//! used. One test after the other, as each wants the machine for itself.

#[path = "../crawl/ground.rs"]
mod ground;
#[path = "../support/mod.rs"]
mod support;

mod backlog;
mod fleet;
mod handshakes;
mod lateness;
mod machine;
mod many_sites;
mod proof;
#[path = "../network/tls_server.rs"]
#[allow(dead_code, reason = "each test needs a part of it")]
mod tls_server;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by the one test that runs.
static TURN: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
