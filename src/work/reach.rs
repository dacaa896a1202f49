//! Whether the frontier can be reached: said once when it no longer can, and once when it can again.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::frontier::{FrontierError, FrontierErrorKind};
use crate::monitor::Monitor;

/// The first and the longest pause between two tries.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long what can't be ended is tried again once this process is to leave.
pub(super) const LAST_TRIES: Duration = Duration::from_secs(10);

/// What a process last met of its frontier.
#[derive(Debug)]
pub(super) struct Reach {
    is_lost: AtomicBool,
    leaving: CancellationToken,
    last_tries: Duration,
    monitor: Monitor,
}

impl Reach {
    /// Nothing is lost yet. Once `leaving`, nobody waits for long.
    pub(super) fn new(leaving: CancellationToken, monitor: Monitor) -> Self {
        Self { is_lost: AtomicBool::new(false), leaving, last_tries: LAST_TRIES, monitor }
    }

    /// A step failed that may work later.
    pub(super) fn lost(&self, error: &FrontierError) {
        if !self.is_lost.swap(true, Ordering::SeqCst) {
            self.monitor.hold_up();
            if error.kind == FrontierErrorKind::Full {
                warn!("nothing more can be asked for, as the frontier can't take it in: {error}");
            } else {
                warn!(%error, "the frontier does not answer; what runs goes on, and it is tried again");
            }
        }
    }

    /// A step worked.
    pub(super) fn found(&self) {
        if self.is_lost.load(Ordering::SeqCst) && self.is_lost.swap(false, Ordering::SeqCst) {
            self.monitor.go_on();
            info!("the frontier answers again");
        }
    }

    /// Does a step, again and again while the frontier does not answer; the step must bear being done twice. A frontier on a
    /// server that is away may leave a step without any answer: that one isn't waited for either once it is time to go.
    pub(super) async fn patiently<T, F>(&self, mut step: impl FnMut() -> F) -> Result<T, FrontierError>
    where
        F: Future<Output = Result<T, FrontierError>>,
    {
        let mut pauses = Pauses::default();
        let mut last_try = pin!(self.last_try());
        let mut last_error = None;
        loop {
            let done = tokio::select! {
                biased;
                done = step() => done,
                () = &mut last_try => return Err(last_error.unwrap_or_else(no_answer)),
            };
            match done {
                Err(error) if error.is_transient() => {
                    self.lost(&error);
                    tokio::select! {
                        () = tokio::time::sleep(pauses.next()) => {}
                        () = &mut last_try => return Err(error),
                    }
                    last_error = Some(error);
                }
                Err(error) => return Err(error),
                Ok(done) => {
                    self.found();
                    return Ok(done);
                }
            }
        }
    }

    /// Does a step once; its answer is waited for until it is time to go.
    pub(super) async fn in_time<T>(
        &self,
        step: impl Future<Output = Result<T, FrontierError>>,
    ) -> Result<T, FrontierError> {
        tokio::select! {
            biased;
            done = step => done,
            () = self.last_try() => Err(no_answer()),
        }
    }

    async fn last_try(&self) {
        last_try(&self.leaving, self.last_tries).await;
    }
}

fn no_answer() -> FrontierError {
    FrontierError::new(FrontierErrorKind::Away, "frontier")
        .because("no answer before this process had to end")
}

/// Ends when it is no longer worth while to try again: so long after this process was told to leave.
pub(super) async fn last_try(leaving: &CancellationToken, after: Duration) {
    leaving.cancelled().await;
    tokio::time::sleep(after).await;
}

/// Pauses that double, each with jitter, so that processes don't come back all at once.
#[derive(Debug)]
pub(super) struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pauses {
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
        pause.mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a process that is to leave soon.
    fn left() -> Reach {
        let leaving = CancellationToken::new();
        leaving.cancel();
        Reach { last_tries: Duration::from_millis(300), ..Reach::new(leaving, Monitor::default()) }
    }

    #[tokio::test]
    async fn a_step_without_an_answer_is_given_up_once_this_process_leaves() {
        let reach = left();
        let never = std::future::pending::<Result<(), FrontierError>>;
        assert!(reach.patiently(never).await.expect_err("no answer").is_transient());
        assert!(reach.in_time(never()).await.expect_err("no answer").is_transient());
    }

    #[tokio::test]
    async fn what_was_seen_last_is_told_where_the_next_try_gets_no_answer() {
        let mut tries = 0;
        let step = || {
            tries += 1;
            let is_first = tries == 1;
            async move {
                if is_first {
                    return Err::<(), _>(FrontierError::new(FrontierErrorKind::Busy, "here"));
                }
                std::future::pending().await
            }
        };
        let error = left().patiently(step).await.expect_err("no answer");
        assert_eq!(error.kind, FrontierErrorKind::Busy);
    }

    #[tokio::test]
    async fn an_answer_that_is_there_is_taken_however_late_it_is() {
        let reach = Reach { last_tries: Duration::ZERO, ..left() };
        assert_eq!(reach.patiently(|| async { Ok(1) }).await.expect("it was answered"), 1);
        assert_eq!(reach.in_time(async { Ok(2) }).await.expect("it was answered"), 2);
    }

    #[test]
    fn pauses_double_up_to_five_seconds_with_jitter() {
        let mut pauses = Pauses::default();
        let drawn: Vec<Duration> = (0..10).map(|_| pauses.next()).collect();
        for (n, pause) in drawn.iter().enumerate() {
            let most = (FIRST_PAUSE * 2_u32.pow(u32::try_from(n).expect("ten"))).min(LONGEST_PAUSE);
            assert!((most / 2..=most).contains(pause), "{n}: {pause:?}");
        }
    }
}
