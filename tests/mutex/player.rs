//! Other processes: this test binary again, playing a part on the same frontier, its moves told on its output.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use paced::internals::clock::Timestamp;
use paced::internals::frontier::Frontier;

use super::Backend;

/// The frontier that a player plays on.
const URL: &str = "PACED_TEST_PLAYER";
/// The folder of the test.
const FOLDER: &str = "PACED_TEST_PLAYER_FOLDER";
/// What a line begins with that a player tells.
const MARK: &str = "player: ";

/// In a player: the frontier to play on. Else none.
pub fn frontier() -> Option<Frontier> {
    let url = std::env::var(URL).ok()?;
    Some(Frontier::open(&url).expect("the frontier of the test"))
}

/// In a player: the folder of the test.
pub fn folder() -> PathBuf {
    std::env::var_os(FOLDER).expect("a player has one").into()
}

/// What a player tells the test.
pub fn tell(what: impl std::fmt::Display) {
    println!("\n{MARK}{what}");
}

/// A process that plays the part that a test has for it; ended with the test.
pub struct Player {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Player {
    /// Begins to play, by running the test of that name alone.
    pub fn begin(test: &str, backend: &Backend) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this test binary"))
            .args(["--exact", test, "--nocapture"])
            .env(URL, backend.url.as_ref().expect("a frontier that processes share"))
            .env(FOLDER, backend.folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test binary again");
        let lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Self { process, lines }
    }

    /// The next thing told; none when the player is done.
    pub fn next(&mut self) -> Option<String> {
        let mut lines = self.lines.by_ref().map(|line| line.expect("text from the player"));
        lines.find_map(|line| line.strip_prefix(MARK).map(str::to_owned))
    }

    /// The next moment told.
    pub fn moment(&mut self) -> Timestamp {
        read(&self.next().expect("the player goes on"))
    }

    /// All moments told until the player was done, as it should be.
    pub fn moments(mut self) -> Vec<Timestamp> {
        let told = std::iter::from_fn(|| self.next());
        let moments =
            told.map(|line| Timestamp::from_millis(line.parse().expect("a moment in ms"))).collect();
        let status = self.process.wait().expect("a player that ends");
        assert!(status.success(), "the player failed: {status}");
        moments
    }

    /// Ends it as `kill -9` does.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.end();
    }
}

fn read(told: &str) -> Timestamp {
    Timestamp::from_millis(told.parse().expect("a moment in ms"))
}
