//! Where pages or items can't be kept, as on a full disk: whoever has some waits with them in hand, one tries again for
//! all, and nothing more is claimed meanwhile. Said once when it begins and once when it is over.

use std::error::Error;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::reach::{LAST_TRIES, Pauses, last_try};
use crate::monitor::{Monitor, duration};

/// How it goes with one place where things are kept.
#[derive(Debug)]
pub(super) struct HoldUp {
    what: &'static str,
    leaving: CancellationToken,
    monitor: Monitor,
    /// Who wait, and since when the first of them.
    waiting: Mutex<(usize, Option<Instant>)>,
    /// Held by the one that tries again.
    turn: tokio::sync::Mutex<()>,
}

/// One that waits.
struct Waiting<'a>(&'a HoldUp);

impl HoldUp {
    /// `what` is kept there. Once `leaving`, nobody waits for long.
    pub(super) fn new(what: &'static str, leaving: CancellationToken, monitor: Monitor) -> Self {
        Self { what, leaving, monitor, waiting: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    /// Whether somebody waits.
    pub(super) fn is_on(&self) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).0 > 0
    }

    /// Keeps something, again and again while the place is to blame that it can't be; the step must bear being done twice.
    pub(super) async fn patiently<T, E, F>(
        &self,
        mut keep: impl FnMut() -> F,
        is_passing: impl Fn(&E) -> bool,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
        E: Error,
    {
        let error = match keep().await {
            Err(error) if is_passing(&error) => error,
            done => return done,
        };
        let _waiting = self.begin(&error);
        let again = async {
            let _turn = self.turn.lock().await;
            let mut pauses = Pauses::default();
            loop {
                tokio::time::sleep(pauses.next()).await;
                match keep().await {
                    Err(error) if is_passing(&error) => {}
                    done => break done,
                }
            }
        };
        tokio::select! {
            done = again => done,
            () = last_try(&self.leaving, LAST_TRIES) => Err(error),
        }
    }

    fn begin(&self, error: &impl Error) -> Waiting<'_> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.0 += 1;
        if waiting.1.is_none() {
            waiting.1 = Some(Instant::now());
            self.monitor.hold_up();
            warn!("{} can't be kept, and nothing more is asked for until they can: {error}", self.what);
        }
        Waiting(self)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.0 -= 1;
        if waiting.0 == 0
            && let Some(since) = waiting.1.take()
        {
            self.0.monitor.go_on();
            if !self.0.leaving.is_cancelled() {
                info!("{} can be kept again, after {}; it goes on", self.0.what, duration(since.elapsed()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn hold_up(leaving: &CancellationToken) -> (Arc<HoldUp>, Monitor) {
        let monitor = Monitor::default();
        (Arc::new(HoldUp::new("pages", leaving.clone(), monitor.clone())), monitor)
    }

    #[tokio::test]
    async fn one_tries_again_for_all_who_wait() {
        let (hold_up, monitor) = hold_up(&CancellationToken::new());
        let (tries, room) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
        let visits: Vec<_> = (0..50)
            .map(|n| {
                let (hold_up, tries, room) = (Arc::clone(&hold_up), Arc::clone(&tries), room.clone());
                tokio::spawn(async move {
                    let keep = || async {
                        tries.fetch_add(1, Ordering::SeqCst);
                        if room.is_cancelled() { Ok(n) } else { Err(io::Error::other("no space")) }
                    };
                    hold_up.patiently(keep, |_| true).await
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(hold_up.is_on() && monitor.is_held_up());
        let tried = tries.load(Ordering::SeqCst);
        assert!((52..60).contains(&tried), "{tried} tries of 50");
        room.cancel();
        for (n, visit) in visits.into_iter().enumerate() {
            assert_eq!(visit.await.expect("no panic").expect("kept"), n);
        }
        assert!(!hold_up.is_on() && !monitor.is_held_up());
    }

    #[tokio::test]
    async fn what_can_never_be_kept_is_not_waited_for() {
        let (hold_up, _) = hold_up(&CancellationToken::new());
        let keep = || async { Err::<(), _>(io::Error::other("a page of its own kind")) };
        assert!(hold_up.patiently(keep, |_| false).await.is_err());
    }
}
