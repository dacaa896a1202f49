//! Patience: what fails for a passing reason is tried again, with pauses that grow. Here are the pauses of one caller; many
//! callers share an [`Outage`], which tries for all of them, or a [`Notice`] of it alone.

mod notice;
mod outage;

pub(crate) use notice::Notice;
pub(crate) use outage::{Outage, Terms};

use std::thread;
use std::time::{Duration, Instant};

use crate::clock;

/// How long to pause between two tries, and for how long to try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    first: Duration,
    longest: Duration,
    most: Option<Duration>,
}

impl Patience {
    /// Tries for ever: after a pause of `first`, and then after twice as long each time, up to `longest`.
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, most: None }
    }

    /// Tries for no longer than that.
    pub(crate) const fn at_most(self, most: Duration) -> Self {
        Self { most: Some(most), ..self }
    }

    /// Begins: the first try is under way.
    pub(crate) fn begin(self) -> Tries {
        Tries { patience: self, next: self.first, began: Instant::now(), count: 1 }
    }
}

/// The tries of one caller.
#[derive(Debug)]
pub(crate) struct Tries {
    patience: Patience,
    next: Duration,
    began: Instant,
    count: u32,
}

impl Tries {
    /// Pauses before the next try. `false`, at once, where patience would be over by then.
    pub(crate) async fn again(&mut self) -> bool {
        let Some(pause) = self.pause() else { return false };
        clock::wait(pause).await;
        true
    }

    /// The same for a thread.
    pub(crate) fn again_here(&mut self) -> bool {
        let Some(pause) = self.pause() else { return false };
        thread::sleep(pause);
        true
    }

    /// How many there were so far.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The next pause, with jitter: up to a half shorter, so that callers don't come back all at once.
    pub(crate) fn pause(&mut self) -> Option<Duration> {
        let pause = self.next;
        if self.patience.most.is_some_and(|most| self.began.elapsed() + pause > most) {
            return None;
        }
        self.count = self.count.saturating_add(1);
        self.next = (pause * 2).min(self.patience.longest);
        Some(pause.mul_f64(0.5 + fastrand::f64() / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn pauses_double_up_to_the_longest_with_jitter() {
        let mut tries = Patience::new(MS(50), MS(5_000)).begin();
        for most in [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            let pause = tries.pause().expect("for ever");
            assert!((MS(most) / 2..=MS(most)).contains(&pause), "{most} ms: {pause:?}");
        }
    }

    #[tokio::test]
    async fn a_try_that_patience_has_no_time_for_is_not_waited_for() {
        let patience = Patience::new(MS(20), MS(3_600_000)).at_most(MS(60));
        let (began, mut tries) = (Instant::now(), patience.begin());
        assert!(tries.again().await);
        assert!(began.elapsed() >= MS(10));
        while tries.again_here() {}
        assert!(tries.pause().is_none() && !tries.again().await);
    }
}
