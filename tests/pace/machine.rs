//! What else this machine does while a test measures: a start may only be blamed on the crawler where the machine had time
//! for it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use paced::clock::since_boot;

use crate::ground::ms;
use crate::support::*;

/// A thread that sleeps and wakes until it is asked what it saw.
pub struct Machine {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Stall>>,
    before: Option<Jiffies>,
}

/// What a machine did meanwhile.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Times in which a thread that wanted to run did not, as the servers note theirs.
    pub stalls: Vec<Stall>,
    /// The share of all processors' time that other programs took; none where it isn't known.
    others: Option<f64>,
}

impl Machine {
    const TICK: Duration = ms(2);
    const STALL: Duration = ms(5);

    pub fn watch() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut stalls = Vec::new();
            while !stopped.load(Ordering::SeqCst) {
                let (from, slept) = (since_boot(), Instant::now());
                std::thread::sleep(Self::TICK);
                if slept.elapsed() > Self::TICK + Self::STALL {
                    stalls.push(Stall { from, to: since_boot() });
                }
            }
            stalls
        });
        Self { stop, thread, before: Jiffies::now() }
    }

    /// What it did; processes that the test started count as the test's once they were waited for.
    pub fn seen(self) -> Seen {
        self.stop.store(true, Ordering::SeqCst);
        let stalls = self.thread.join().expect("it only sleeps");
        let others = self.before.zip(Jiffies::now()).map(|(before, now)| now.others_since(&before));
        Seen { stalls, others }
    }
}

impl Seen {
    /// Others may take so much before a measurement says more of them than of us.
    const OTHERS: f64 = 0.1;
    /// So long no thread that wants to run waits for threads of the test: the machine stood still.
    const STANDSTILL: Duration = ms(250);

    /// Why nothing can be said of a pace here, if so.
    pub fn is_busy(&self) -> Option<String> {
        let longest = self.stalls.iter().map(|stall| stall.to.saturating_sub(stall.from)).max();
        if let Some(longest) = longest.filter(|longest| *longest > Self::STANDSTILL) {
            return Some(format!("a thread that wanted to run did not for {longest:?}"));
        }
        let others = self.others.filter(|others| *others > Self::OTHERS)?;
        Some(format!("other programs took {:.0} % of this machine's processors", others * 100.0))
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

    fn others_since(&self, before: &Self) -> f64 {
        let all = (self.all - before.all).max(1.0);
        (all - (self.idle - before.idle) - (self.own - before.own)) / all
    }
}
