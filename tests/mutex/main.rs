//! The timed mutex, on every backend, by tasks, threads and processes (V1-V11, R1-R6).

mod keys;
mod late;
mod owner;
mod pace;
mod plain;
mod player;
mod shared_pace;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::Frontier;
use paced::internals::mutex::TimedMutex;
use support::RedisDb;
use tempfile::TempDir;

/// How long something may take that will happen in the end. Only a hang reaches it.
const PATIENCE: Duration = Duration::from_mins(1);

/// A frontier of one backend.
struct Backend {
    name: &'static str,
    frontier: Frontier,
    /// What other processes open it by; none where they can't.
    url: Option<String>,
    folder: TempDir,
    db: Option<RedisDb>,
}

impl Backend {
    fn model(clock: Option<Clock>) -> Self {
        let frontier = Frontier::model(clock.unwrap_or(Clock::wall()));
        Self { name: "model", frontier, url: None, folder: folder(), db: None }
    }

    fn sqlite(clock: Option<Clock>) -> Self {
        let folder = folder();
        let file = folder.path().join("frontier.db");
        let frontier = Frontier::sqlite(&file, clock).expect("a frontier");
        Self { name: "sqlite", frontier, url: Some(format!("sqlite:{}", file.display())), folder, db: None }
    }

    fn redis(clock: Option<Clock>) -> Option<Self> {
        let db = RedisDb::take()?;
        let frontier = Frontier::redis(&db.url(), clock).expect("a frontier");
        Some(Self { name: "redis", frontier, url: Some(db.url()), folder: folder(), db: Some(db) })
    }
}

/// A frontier of each backend, on its own time.
fn backends() -> Vec<Backend> {
    [Backend::model(None), Backend::sqlite(None)].into_iter().chain(Backend::redis(None)).collect()
}

/// Those that other processes can open too, and what by.
fn shared_backends() -> impl Iterator<Item = (Backend, String)> {
    backends().into_iter().filter_map(|backend| backend.url.clone().map(|url| (backend, url)))
}

/// A frontier of each backend, whose time moves only when told.
fn still_backends() -> Vec<(Backend, Clock)> {
    let still = |make: fn(Option<Clock>) -> Option<Backend>| {
        let clock = Clock::fake(Timestamp::from_millis(1_000_000));
        Some((make(Some(clock.clone()))?, clock))
    };
    let kinds: [fn(Option<Clock>) -> Option<Backend>; 3] =
        [|clock| Some(Backend::model(clock)), |clock| Some(Backend::sqlite(clock)), Backend::redis];
    kinds.into_iter().filter_map(still).collect()
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A mutex that only its time ends.
fn pace(frontier: &Frontier, interval: Duration) -> TimedMutex {
    TimedMutex::new(frontier, "pace").expire(interval).auto_release(false)
}

/// So many starts, all of whose consecutive gaps, none left out, are at least the interval.
#[track_caller]
fn assert_spaced(mut starts: Vec<Timestamp>, count: usize, interval: Duration, who: &str) {
    assert_eq!(starts.len(), count, "{who}: {starts:?}");
    starts.sort();
    let gaps: Vec<Duration> = starts.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.iter().all(|gap| *gap >= interval), "{who}: gaps below {interval:?} in {gaps:?}");
}
