//! Five processes take one timed mutex over one frontier file. Each then works for 1.5 s, and yet their starts are one
//! second apart: the mutex ends by its time, not with the work. Runs for some 5 seconds:
//!
//!     cargo run --example timed_mutex

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use paced::{Frontier, TimedMutex};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(url) => wait_and_work(&url).await,
        None => watch_five_waiters(),
    }
}

/// One waiter: the whole use of a timed mutex.
async fn wait_and_work(url: &str) -> Result<(), Box<dyn Error>> {
    let frontier = Frontier::open(url)?;
    let pace = TimedMutex::new(&frontier, "example").expire(Duration::from_secs(1)).auto_release(false);
    pace.synchronize(async |held| {
        println!("{}", held.taken_at().as_millis());
        tokio::time::sleep(Duration::from_millis(1500)).await;
    })
    .await?;
    Ok(())
}

/// Begins this program five times and prints who started when.
fn watch_five_waiters() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("frontier.db").display());
    let program = std::env::current_exe()?;
    let (started, starts) = mpsc::channel();
    for number in 1..=5 {
        let waiter = Command::new(&program).arg(&url).stdout(Stdio::piped()).spawn()?;
        let started = started.clone();
        thread::spawn(move || started.send((number, start_of(waiter))));
    }
    drop(started);
    let mut first = None;
    for (number, start) in starts {
        let start = start.ok_or(format!("waiter {number} never started"))?;
        println!("waiter {number} started at {:>4} ms", start - *first.get_or_insert(start));
    }
    Ok(())
}

/// The moment that a waiter prints when it starts.
fn start_of(mut waiter: Child) -> Option<i64> {
    let line = BufReader::new(waiter.stdout.take()?).lines().next()?;
    line.ok()?.parse().ok()
}
