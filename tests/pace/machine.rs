//! When this machine stood still while a test measured: a gap may only be blamed on the crawler where the machine had time
//! for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use paced::internals::clock::since_boot;

use crate::ground::ms;
use crate::support::*;

/// A thread that sleeps and wakes until it is asked what it saw.
pub struct Machine {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Stall>>,
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
        Self { stop, thread }
    }

    /// Times in which a thread that wanted to run did not, as the servers note theirs.
    pub fn stalls(self) -> Vec<Stall> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().expect("it only sleeps")
    }
}
