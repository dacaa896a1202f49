//! One thing that may be away for a while: the frontier, the place for pages, the one for items. Said once when it begins and
//! once when it is over; meanwhile one tries again for all who wait.

use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Notice, Patience, Tries};
use crate::clock;

/// How long a step may take once another had no answer by the time that this process had to leave: enough for one that is back.
const GIVEN_UP: Duration = Duration::from_millis(250);

/// How an outage is told from other errors, and for how long it is waited out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<E> {
    /// Whether an error passes by itself.
    pub(crate) passes: fn(&E) -> bool,
    /// The error of a step that has no answer when this process must leave; `None` where each step ends by itself.
    pub(crate) unanswered: Option<fn() -> E>,
    /// The pauses.
    pub(crate) patience: Patience,
    /// How long it is tried once this process is told to leave.
    pub(crate) last_tries: Duration,
}

/// How it goes with one thing, for all who need it.
#[derive(Debug)]
pub(crate) struct Outage<E> {
    notice: Notice<E>,
    terms: Terms<E>,
    leaving: CancellationToken,
    waiting: Mutex<Waiters>,
    /// Held by the one that tries again.
    turn: tokio::sync::Mutex<()>,
    /// Tells those who wait that its try worked.
    worked: Notify,
    /// Cancelled once a step had no answer although this process must leave: none is waited for much longer.
    given_up: CancellationToken,
}

/// Those who wait.
#[derive(Debug, Default)]
struct Waiters {
    count: usize,
    /// Their tries, while it is away.
    tries: Option<Tries>,
}

/// One that waits.
struct Waiter<'a>(&'a Mutex<Waiters>);

impl<E> Outage<E> {
    /// Nothing is away yet. Once `leaving` is cancelled, nobody waits for long.
    pub(crate) fn new(notice: Notice<E>, terms: Terms<E>, leaving: CancellationToken) -> Self {
        let (waiting, turn, worked) = (Mutex::default(), tokio::sync::Mutex::default(), Notify::new());
        Self { notice, terms, leaving, waiting, turn, worked, given_up: CancellationToken::new() }
    }

    /// Whether it is away.
    pub(crate) fn is_on(&self) -> bool {
        self.notice.is_on()
    }

    /// It failed for a reason that passes.
    pub(crate) fn lost(&self, error: &E) {
        let mut waiting = lock(&self.waiting);
        if self.notice.begin(error) {
            waiting.tries = None;
        }
    }

    /// Whether it is away and somebody waits for it.
    pub(crate) fn is_waited_for(&self) -> bool {
        lock(&self.waiting).count > 0 && self.is_on()
    }

    /// It worked. While others wait, it is over only once they are through.
    pub(crate) fn found(&self) {
        let waiting = lock(&self.waiting);
        if waiting.count == 0 {
            self.notice.end();
        }
    }

    /// Does a step, again and again while it fails for a reason that passes; the step must bear being done twice. Given up once
    /// this process leaves, with the first error.
    pub(crate) async fn patiently<T, F>(&self, mut step: impl FnMut() -> F) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let mut last_try = pin!(self.last_try());
        let error = match self.answered(step(), last_try.as_mut()).await {
            Ok(Err(error)) if (self.terms.passes)(&error) => error,
            Ok(done) => {
                self.found();
                return done;
            }
            Err(unanswered) => {
                self.lost(&unanswered);
                return Err(unanswered);
            }
        };
        lock(&self.waiting).count += 1;
        let place = Waiter(&self.waiting);
        self.lost(&error);
        let done = tokio::select! {
            biased;
            done = self.until_it_works(step) => done,
            () = last_try => return Err(error),
        };
        drop(place);
        self.found();
        done
    }

    /// Does a step once, which may have no answer for as long as this process may wait.
    pub(crate) async fn in_time<T>(&self, step: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.answered(step, pin!(self.last_try())).await.unwrap_or_else(Err)
    }

    /// What a step comes to, or the error of one that has no answer by the last try.
    async fn answered<T>(
        &self,
        step: impl Future<Output = Result<T, E>>,
        last_try: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Result<T, E>, E> {
        let Some(unanswered) = self.terms.unanswered else { return Ok(step.await) };
        tokio::select! {
            biased;
            done = step => Ok(done),
            () = last_try => {
                self.given_up.cancel();
                Err(unanswered())
            }
        }
    }

    /// Tries in turn with all others who wait; once one of them got through, they all try at once.
    async fn until_it_works<T, F>(&self, mut step: impl FnMut() -> F) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        loop {
            let turn = tokio::select! {
                biased;
                () = self.worked.notified() => None,
                turn = self.turn() => Some(turn),
            };
            match step().await {
                Err(error) if (self.terms.passes)(&error) => self.lost(&error),
                done => {
                    if turn.is_some() {
                        self.worked.notify_waiters();
                    }
                    return done;
                }
            }
        }
    }

    /// The turn to try, after a pause.
    async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        let turn = self.turn.lock().await;
        let pause = lock(&self.waiting).tries.get_or_insert_with(|| self.terms.patience.begin()).pause();
        clock::wait(pause.unwrap_or_default()).await;
        turn
    }

    async fn last_try(&self) {
        tokio::select! {
            () = clock::wait_after(&self.leaving, self.terms.last_tries) => {}
            () = clock::wait_after(&self.given_up, GIVEN_UP) => {}
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        lock(self.0).count -= 1;
    }
}

fn lock(waiting: &Mutex<Waiters>) -> MutexGuard<'_, Waiters> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// An outage whose errors all pass but those of a broken pipe, and what is said of it.
    fn outage(
        leaving: &CancellationToken,
        last_tries: Duration,
    ) -> (Arc<Outage<io::Error>>, Arc<Mutex<Vec<&'static str>>>) {
        let said = Arc::new(Mutex::new(Vec::new()));
        let say = |what: &'static str| {
            let said = Arc::clone(&said);
            move || said.lock().expect("no panic").push(what)
        };
        let (begins, ends) = (say("begins"), say("ends"));
        let terms = Terms {
            passes: |error: &io::Error| error.kind() != io::ErrorKind::BrokenPipe,
            unanswered: Some(|| io::ErrorKind::TimedOut.into()),
            patience: Patience::new(MS(50), MS(5_000)),
            last_tries,
        };
        let notice = Notice::new(move |_| begins(), move |_| ends());
        (Arc::new(Outage::new(notice, terms, leaving.clone())), said)
    }

    fn said(said: &Mutex<Vec<&'static str>>) -> String {
        said.lock().expect("no panic").join(" ")
    }

    #[tokio::test]
    async fn one_tries_for_all_who_wait_and_it_is_said_once_when_it_begins_and_once_when_it_ends() {
        let (outage, told) = outage(&CancellationToken::new(), MS(10_000));
        let (tries, room) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
        let visits: Vec<_> = (0..50)
            .map(|n| {
                let (outage, tries, room) = (Arc::clone(&outage), Arc::clone(&tries), room.clone());
                tokio::spawn(async move {
                    let keep = || async {
                        tries.fetch_add(1, Ordering::SeqCst);
                        if room.is_cancelled() { Ok(n) } else { Err(io::Error::other("no space")) }
                    };
                    outage.patiently(keep).await
                })
            })
            .collect();
        clock::wait(MS(500)).await;
        let tried = tries.load(Ordering::SeqCst);
        assert!((52..60).contains(&tried), "{tried} tries of 50");
        outage.found();
        assert!(outage.is_on(), "what works elsewhere is no end for those who wait");
        room.cancel();
        for (n, visit) in visits.into_iter().enumerate() {
            assert_eq!(visit.await.expect("no panic").expect("kept"), n);
        }
        assert_eq!((outage.is_on(), said(&told).as_str()), (false, "begins ends"));
    }

    #[tokio::test]
    async fn all_who_wait_are_through_as_soon_as_one_is() {
        let (outage, _) = outage(&CancellationToken::new(), MS(10_000));
        let works_from = Instant::now() + MS(300);
        let keep = || async {
            if Instant::now() < works_from { Err(io::Error::other("no space")) } else { Ok(Instant::now()) }
        };
        let ends = futures_util::future::join_all((0..50).map(|_| outage.patiently(keep))).await;
        let ends: Vec<Instant> = ends.into_iter().map(|end| end.expect("it works by then")).collect();
        let (first, last) = (ends.iter().min().expect("fifty"), ends.iter().max().expect("fifty"));
        assert_eq!(ends.iter().filter(|end| **end - *first > MS(20)).count(), 0, "{:?}", *last - *first);
    }

    #[tokio::test]
    async fn an_error_that_does_not_pass_is_no_outage_and_ends_one() {
        let (outage, told) = outage(&CancellationToken::new(), MS(10_000));
        let broken = || async { Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)) };
        assert!(outage.patiently(broken).await.is_err());
        assert_eq!(said(&told), "");
        outage.lost(&io::Error::other("no space"));
        outage.lost(&io::Error::other("no space"));
        assert!(outage.is_on());
        assert!(outage.patiently(broken).await.is_err());
        assert_eq!((outage.is_on(), said(&told).as_str()), (false, "begins ends"));
    }

    #[tokio::test]
    async fn tries_are_given_up_when_this_process_must_leave_with_the_error_that_was_seen() {
        let leaving = CancellationToken::new();
        leaving.cancel();
        let (outage, told) = outage(&leaving, MS(200));
        let never = std::future::pending::<Result<(), io::Error>>;
        for answer in [outage.patiently(never).await, outage.in_time(never()).await] {
            assert_eq!(answer.expect_err("no answer").kind(), io::ErrorKind::TimedOut);
        }
        let tries = AtomicUsize::new(0);
        let once_full = || async {
            match tries.fetch_add(1, Ordering::SeqCst) {
                0 => Err(io::ErrorKind::StorageFull.into()),
                _ => never().await,
            }
        };
        assert_eq!(outage.patiently(once_full).await.expect_err("full").kind(), io::ErrorKind::StorageFull);
        assert_eq!(said(&told), "begins", "it is not over");
    }

    #[tokio::test]
    async fn a_step_without_an_answer_is_waited_for_once_when_this_process_must_leave() {
        let leaving = CancellationToken::new();
        leaving.cancel();
        let never = std::future::pending::<Result<(), io::Error>>;
        let (first, _) = outage(&leaving, MS(50));
        let began = Instant::now();
        assert!(first.patiently(never).await.is_err());
        assert!(began.elapsed() >= MS(50) && first.given_up.is_cancelled());
        let (outage, _) = outage(&leaving, Duration::from_hours(1));
        outage.given_up.cancel();
        assert!(outage.in_time(never()).await.is_err(), "the others have a short time left");
        assert!(outage.patiently(never).await.is_err());
        let late = async {
            clock::wait(MS(1)).await;
            Ok(1)
        };
        assert_eq!(outage.in_time(late).await.expect("it is back"), 1);
    }

    #[tokio::test]
    async fn a_visit_that_breaks_while_it_waits_waits_no_longer() {
        let (outage, _) = outage(&CancellationToken::new(), MS(10_000));
        let (waiting, tries) = (Arc::clone(&outage), AtomicUsize::new(0));
        let visit = tokio::spawn(async move {
            let keep = || async {
                assert_eq!(tries.fetch_add(1, Ordering::SeqCst), 0, "a visit that breaks");
                clock::wait(MS(10)).await;
                Err::<(), _>(io::Error::other("no space"))
            };
            waiting.patiently(keep).await
        });
        while !outage.is_waited_for() {
            assert!(!visit.is_finished(), "it waits");
            clock::wait(MS(1)).await;
        }
        assert!(visit.await.is_err(), "it broke");
        assert!(outage.is_on() && !outage.is_waited_for());
        outage.found();
        assert!(!outage.is_on());
    }

    #[tokio::test]
    async fn an_answer_that_is_there_is_taken_however_late_it_is() {
        let leaving = CancellationToken::new();
        leaving.cancel();
        let (outage, _) = outage(&leaving, Duration::ZERO);
        assert_eq!(outage.patiently(|| async { Ok(1) }).await.expect("it was answered"), 1);
        assert_eq!(outage.in_time(async { Ok(2) }).await.expect("it was answered"), 2);
    }
}
