//! How late this machine wakes a thread, measured while a test runs: on a busy one every start is late by that much for
//! each of the wakings between a due time and the wire, whoever crawls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use paced::clock::since_boot;

use crate::ground::ms;
use crate::support::*;

/// A thread that sleeps and wakes until it is asked how late it was.
pub struct Machine {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Lateness>,
}

/// How late a thread was woken.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// On the average.
    pub mean: Duration,
    /// The long ones, as the servers note theirs.
    pub stalls: Vec<Stall>,
}

impl Machine {
    const TICK: Duration = ms(2);
    const STALL: Duration = ms(5);

    pub fn watch() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (mut late, mut ticks, mut stalls) = (Duration::ZERO, 0, Vec::new());
            while !stopped.load(Ordering::SeqCst) {
                let (from, slept) = (since_boot(), Instant::now());
                std::thread::sleep(Self::TICK);
                let over = slept.elapsed().saturating_sub(Self::TICK);
                (late, ticks) = (late + over, ticks + 1);
                if over > Self::STALL {
                    stalls.push(Stall { from, to: since_boot() });
                }
            }
            Lateness { mean: late / ticks.max(1), stalls }
        });
        Self { stop, thread }
    }

    pub fn lateness(self) -> Lateness {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().expect("it only sleeps")
    }
}
