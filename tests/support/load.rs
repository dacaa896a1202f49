//! How busy this machine is while a test measures, as its kernel tells.

use std::fmt;
use std::fs;

/// The machine's load since a moment.
pub struct Load(Option<Jiffies>);

impl Load {
    /// From now on.
    pub fn watch() -> Self {
        Self(Jiffies::now())
    }
}

/// What went on until now; processes that the test started count as the test's once they were waited for.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let average = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let average = average.split(' ').take(3).collect::<Vec<_>>().join(" ");
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        write!(f, "load {average} on {processors} processors")?;
        let Some((before, now)) = self.0.as_ref().zip(Jiffies::now()) else { return Ok(()) };
        let all = (now.all - before.all).max(1.0);
        let idle = (now.idle - before.idle) / all;
        let own = (now.own - before.own) / all;
        let others = (1.0 - idle - own).max(0.0);
        write!(f, ", {:.0} % taken by others, {:.0} % idle", others * 100.0, idle * 100.0)
    }
}

/// Processor time in the kernel's ticks: all there was, what was idle, what went to this process and its children.
struct Jiffies {
    all: f64,
    idle: f64,
    own: f64,
}

impl Jiffies {
    /// `/proc/stat` and `/proc/self/stat`, as proc(5) lays them out.
    fn now() -> Option<Self> {
        let numbers =
            |text: &str| text.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<f64>>();
        let machine = fs::read_to_string("/proc/stat").ok()?;
        let all = numbers(machine.lines().next()?);
        let process = fs::read_to_string("/proc/self/stat").ok()?;
        let after_name = numbers(process.rsplit_once(')')?.1);
        // The state, a letter, is no number: user and system time are the 11th field after it, with the children's next.
        let own = after_name.get(10..14)?.iter().sum();
        Some(Self { all: all.iter().take(8).sum(), idle: all.get(3)? + all.get(4)?, own })
    }
}
