//! What a Redis spent, as it tells itself.

/// What one command took of a server since its counts began, and the server's own time.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    pub calls: u64,
    /// Microseconds on the clock.
    pub micros: u64,
    /// Microseconds of CPU since the server started, those of its reading and writing included.
    pub cpu: u64,
}

impl Spent {
    /// Asks for them; `say` sends a command.
    pub fn on(command: &str, mut say: impl FnMut(&[&str]) -> String) -> Self {
        let (counts, times) = (say(&["INFO", "commandstats"]), say(&["INFO", "cpu"]));
        let head = format!("cmdstat_{command}:");
        let line = counts.lines().find_map(|line| line.strip_prefix(&head)).unwrap_or_default();
        let count = |name: &str| {
            line.split(',').find_map(|field| field.strip_prefix(name)?.parse().ok()).unwrap_or(0)
        };
        let cpu = |name: &str| {
            times.lines().find_map(|line| line.trim().strip_prefix(name).map(micros)).unwrap_or(0)
        };
        Self {
            calls: count("calls="),
            micros: count("usec="),
            cpu: cpu("used_cpu_user:") + cpu("used_cpu_sys:"),
        }
    }

    /// What it spent since then.
    pub fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls - before.calls,
            micros: self.micros - before.micros,
            cpu: self.cpu - before.cpu,
        }
    }
}

/// Seconds, as they are told with six digits behind the point.
fn micros(seconds: &str) -> u64 {
    seconds.replace('.', "").parse().expect("a number")
}
