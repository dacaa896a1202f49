//! The timed mutex, on both backends, by tasks, threads and processes (V1-V11, R1-R6).

mod owner;
mod pace;
mod plain;
mod player;
mod shared_pace;

use std::time::Duration;

use paced::clock::{Clock, Timestamp};
use paced::frontier::Frontier;
use paced::mutex::TimedMutex;
use tempfile::TempDir;

/// How long something may take that will happen in the end. Only a hang reaches it.
const PATIENCE: Duration = Duration::from_mins(1);

/// A frontier of each backend, on the machine's time.
struct Backend {
    name: &'static str,
    frontier: Frontier,
    _folder: Option<TempDir>,
}

fn backends() -> [Backend; 2] {
    let (folder, frontier) = sqlite(None);
    [
        Backend { name: "model", frontier: Frontier::model(Clock::wall()), _folder: None },
        Backend { name: "sqlite", frontier, _folder: Some(folder) },
    ]
}

/// A frontier of each backend, whose time moves only when told.
fn still_backends() -> [(Backend, Clock); 2] {
    let clocks = [(); 2].map(|()| Clock::fake(Timestamp::from_millis(1_000_000)));
    let [first, second] = clocks;
    let (folder, frontier) = sqlite(Some(second.clone()));
    [
        (Backend { name: "model", frontier: Frontier::model(first.clone()), _folder: None }, first),
        (Backend { name: "sqlite", frontier, _folder: Some(folder) }, second),
    ]
}

fn sqlite(clock: Option<Clock>) -> (TempDir, Frontier) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let frontier = Frontier::sqlite(&folder.path().join("frontier.db"), clock).expect("a frontier");
    (folder, frontier)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A mutex that only its time ends.
fn pace(frontier: &Frontier, interval: Duration) -> TimedMutex {
    TimedMutex::new(frontier, "pace").expire(interval).auto_release(false)
}

/// All consecutive gaps, none left out, are at least the interval.
fn assert_spaced(mut starts: Vec<Timestamp>, interval: Duration, who: &str) {
    starts.sort();
    let gaps: Vec<Duration> = starts.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.iter().all(|gap| *gap >= interval), "{who}: gaps below {interval:?} in {gaps:?}");
}
