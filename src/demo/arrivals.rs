//! What a host saw of its visitors: each request's arrival, and the stalls of the host itself. Their judgement is in `gaps`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock;

/// One request as the host saw it. Times are `clock::since_boot()`, the same for every process of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// When its head had been read.
    pub at: Duration,
    /// When the last byte of the answer was handed over for sending, or the connection was dropped. None while it runs.
    pub done: Option<Duration>,
    /// Path and query.
    pub path: String,
    /// The status it was answered with; zero where there was no answer.
    pub status: u16,
    /// The connection it came over: 1, 2, … in the order of the host's connections.
    pub connection: u64,
}

impl Arrival {
    /// How long the answer took, where it is over.
    pub fn took(&self) -> Option<Duration> {
        Some(self.done?.saturating_sub(self.at))
    }
}

/// A time in which the host did not run: what arrived in it is stamped too late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// Its last sign of life before.
    pub from: Duration,
    /// Its first sign of life after.
    pub to: Duration,
}

impl Stall {
    /// How long it took.
    pub fn length(self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

/// The most requests that were in flight at one moment, as far as the host can tell: never more than the client had.
pub fn most_in_flight(arrivals: &[Arrival]) -> usize {
    let mut steps: Vec<(Duration, bool)> = arrivals.iter().map(|a| (a.at, true)).collect();
    steps.extend(arrivals.iter().filter_map(|a| Some((a.done?, false))));
    steps.sort_unstable();
    let mut running = 0_usize;
    let mut most = 0;
    for (_, starts) in steps {
        running = if starts { running + 1 } else { running.saturating_sub(1) };
        most = most.max(running);
    }
    most
}

/// What a server notes and others look at.
#[derive(Clone, Debug, Default)]
pub(super) struct Noted<T>(Arc<Mutex<Vec<T>>>);

impl<T: Clone> Noted<T> {
    pub(super) fn all(&self) -> Vec<T> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Noted<Arrival> {
    /// Notes a request; what is returned notes its end when dropped.
    pub(super) fn note(&self, arrival: Arrival) -> OpenArrival {
        let mut arrivals = self.lock();
        arrivals.push(arrival);
        OpenArrival { log: self.clone(), index: arrivals.len() - 1 }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct OpenArrival {
    log: Noted<Arrival>,
    index: usize,
}

impl Drop for OpenArrival {
    fn drop(&mut self) {
        if let Some(arrival) = self.log.lock().get_mut(self.index) {
            arrival.done = Some(clock::since_boot());
        }
    }
}

impl Noted<Stall> {
    const TICK: Duration = Duration::from_millis(1);
    /// Timers round a tick up to 2 ms; a gap above this is no rounding.
    const STALL: Duration = Duration::from_millis(5);

    /// Notes the stalls of a server for as long as it lives: a tick that comes late is one.
    pub(super) async fn watch(self) {
        let mut from = clock::since_boot();
        loop {
            tokio::time::sleep(Self::TICK).await;
            let to = clock::since_boot();
            if to.saturating_sub(from) > Self::STALL {
                self.lock().push(Stall { from, to });
            }
            from = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(at: u64, done: Option<u64>) -> Arrival {
        let ms = Duration::from_millis;
        Arrival { at: ms(at), done: done.map(ms), path: "/".to_owned(), status: 200, connection: 1 }
    }

    #[test]
    fn most_in_flight_counts_overlaps_and_an_end_before_a_start_of_the_same_moment() {
        for (arrivals, most) in [
            (vec![], 0),
            (vec![arrival(0, Some(10)), arrival(10, Some(20))], 1),
            (vec![arrival(0, Some(11)), arrival(10, Some(20))], 2),
            (vec![arrival(0, None), arrival(10, None), arrival(20, Some(30)), arrival(40, None)], 3),
        ] {
            assert_eq!(most_in_flight(&arrivals), most, "{arrivals:?}");
        }
    }
}
