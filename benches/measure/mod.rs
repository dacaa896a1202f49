//! What benches measure with: CPU time and memory of this process and of others, and a table of what came out.
#![allow(dead_code, unused_imports, reason = "each bench uses its own part of this")]

#[path = "../../tests/support/answered.rs"]
mod answered;
mod barest;
mod child;
mod kept;
mod pages;
mod queue;
mod shops;
mod spent;

pub use barest::{BarestClaim, barest_claims};
pub use child::{Cost, Measured};
pub use kept::{body, keep};
pub use pages::Shop;
pub use queue::{done, name, pairs_of, register, register_at, url};
pub use shops::{Plan, Seen, Yard, keep_open};
pub use spent::Spent;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of all threads of this process so far, those of the system for it included.
pub fn cpu() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let (secs, nanos) = (u64::try_from(spent.tv_sec), u32::try_from(spent.tv_nsec));
    Duration::new(secs.expect("not below zero"), nanos.expect("less than a second"))
}

/// CPU time since `cpu` told that.
pub fn since(began: Duration) -> Duration {
    cpu().saturating_sub(began)
}

/// Whole microseconds.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).expect("less than an age")
}

/// Memory of this process that is in RAM, in bytes.
pub fn resident() -> u64 {
    child::status("self", "VmRSS").expect("Linux tells it")
}

/// A number from the environment.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// How much of something there is for each of so many.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub fn share(all: u64, of: u64) -> f64 {
    all as f64 / of.max(1) as f64
}

/// Seconds for each thousand.
pub fn a_thousand(time: Duration, of: u64) -> f64 {
    time.as_secs_f64() * 1_000.0 / share(of, 1).max(1.0)
}

/// A table whose first column is words and whose others are figures.
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_BORDERS_ONLY).set_header(head.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for column in 1..head.len() {
        let column = table.column_mut(column).expect("as many as heads");
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    println!("{table}");
}

/// Ends the bench as failed when something came out wrong; how long it took is never wrong.
pub fn must_be<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, right: &T) {
    if found != right {
        eprintln!("wrong: {what}: {found:?} instead of {right:?}");
        std::process::exit(1);
    }
}
