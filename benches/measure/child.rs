//! Another process, watched to its end: the CPU time it took, and the most memory it held.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two looks at its memory; the kernel keeps the peak, so only the last moments can be missed.
const LOOK: Duration = Duration::from_millis(20);
/// How Linux counts the times in `/proc/<pid>/stat`, whatever its own ticks are.
const TICKS_A_SECOND: u64 = 100;

/// What a process took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// CPU time, that of the system for it included.
    pub cpu: Duration,
    /// The part of it that the system took.
    pub system: Duration,
    /// The most memory it had in RAM at once, in bytes.
    pub peak: u64,
    /// From its start to its end.
    pub wall: Duration,
}

/// A process that ended, and what it took.
#[derive(Debug)]
pub struct Measured {
    pub status: ExitStatus,
    pub cost: Cost,
}

impl Measured {
    /// Runs a command to its end. What it prints is not shown unless the command says so.
    pub fn run(command: &mut Command) -> Self {
        Self::watch(command, || false)
    }

    /// Runs a command and kills it (`kill -9`) when it is time, unless it ended before.
    pub fn killed_when(command: &mut Command, is_time: impl FnMut() -> bool) -> Self {
        Self::watch(command, is_time)
    }

    fn watch(command: &mut Command, mut is_time: impl FnMut() -> bool) -> Self {
        let began = Instant::now();
        let mut child = command.stdin(Stdio::null()).spawn().expect("it was built with the bench");
        let mut cost = Cost::default();
        loop {
            let ended = look(&child, &mut cost);
            if ended {
                break;
            }
            if is_time() {
                let _ = child.kill();
            }
            sleep(LOOK);
        }
        cost.wall = began.elapsed();
        Self { status: child.wait().expect("it is our child"), cost }
    }
}

/// Notes what it took so far; whether it ended. One that ended and isn't waited for yet still tells its times.
fn look(child: &Child, cost: &mut Cost) -> bool {
    let pid = child.id().to_string();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("nobody else waits for it");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    let ticks = |field: usize| fields[field].parse::<u64>().expect("a number");
    let time = |ticks: u64| Duration::from_millis(ticks * 1_000 / TICKS_A_SECOND);
    (cost.cpu, cost.system) = (time(ticks(11) + ticks(12)), time(ticks(12)));
    cost.peak = status(&pid, "VmHWM").unwrap_or(0).max(cost.peak);
    fields[0] == "Z"
}

/// A size that `/proc/<pid>/status` tells, in bytes.
pub fn status(pid: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}
