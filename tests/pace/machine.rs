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
    thread: JoinHandle<(Vec<Stall>, Vec<Idle>)>,
    before: Option<Jiffies>,
}

/// What a machine did meanwhile.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Times in which a thread that wanted to run did not, as the servers note theirs.
    pub stalls: Vec<Stall>,
    /// How much of its processors nobody used, look by look.
    idle: Vec<Idle>,
    /// The share of all processors' time that other programs took; none where it isn't known.
    others: Option<f64>,
}

/// The share of all processors' time that nobody used until then.
#[derive(Clone, Copy, Debug)]
struct Idle {
    to: Duration,
    share: f64,
}

impl Machine {
    const TICK: Duration = ms(2);
    const STALL: Duration = ms(5);
    /// The kernel counts in ticks of 10 ms.
    const LOOK: Duration = ms(250);

    pub fn watch() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (mut stalls, mut idle) = (Vec::new(), Vec::new());
            let (mut looked, mut before) = (Instant::now(), Jiffies::now());
            while !stopped.load(Ordering::SeqCst) {
                let (from, slept) = (since_boot(), Instant::now());
                std::thread::sleep(Self::TICK);
                if slept.elapsed() > Self::TICK + Self::STALL {
                    stalls.push(Stall { from, to: since_boot() });
                }
                if looked.elapsed() >= Self::LOOK {
                    let now = Jiffies::now();
                    let share = before.as_ref().zip(now.as_ref()).map(|(before, now)| now.idle_since(before));
                    idle.extend(share.map(|share| Idle { to: since_boot(), share }));
                    (looked, before) = (Instant::now(), now);
                }
            }
            (stalls, idle)
        });
        Self { stop, thread, before: Jiffies::now() }
    }

    /// What it did; processes that the test started count as the test's once they were waited for.
    pub fn seen(self) -> Seen {
        self.stop.store(true, Ordering::SeqCst);
        let (stalls, idle) = self.thread.join().expect("it only sleeps");
        let others = self.before.zip(Jiffies::now()).map(|(before, now)| now.others_since(&before));
        Seen { stalls, idle, others }
    }
}

impl Seen {
    /// Others may take so much before a measurement says more of them than of us.
    const OTHERS: f64 = 0.1;
    /// With less of the processors' time unused than this, a start waits for a processor: no number of workers suffices.
    const FREE: f64 = 0.2;

    /// Why nothing can be said of a pace here, if so.
    pub fn is_busy(&self) -> Option<String> {
        let others = self.others.filter(|others| *others > Self::OTHERS)?;
        Some(format!("other programs took {:.0} % of this machine's processors", others * 100.0))
    }

    /// Why nothing can be said of how many starts were used between two times since boot, if so.
    pub fn is_full(&self, from: Duration, to: Duration) -> Option<String> {
        let looks = || self.idle.iter().filter(|look| (from..to).contains(&look.to)).map(|look| look.share);
        #[expect(clippy::cast_precision_loss, reason = "a few hundred looks")]
        let free = looks().sum::<f64>() / looks().count().max(1) as f64;
        println!("{:.0} % of the processors' time was free meanwhile", free * 100.0);
        let is_full = looks().count() > 0 && free < Self::FREE;
        let why = || format!("only {:.0} % of this machine's processors was free", free * 100.0);
        self.is_busy().or_else(|| is_full.then(why))
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

    fn idle_since(&self, before: &Self) -> f64 {
        (self.idle - before.idle) / (self.all - before.all).max(1.0)
    }

    fn others_since(&self, before: &Self) -> f64 {
        let all = (self.all - before.all).max(1.0);
        (all - (self.idle - before.idle) - (self.own - before.own)) / all
    }
}
