//! Batches: what comes together is done together. Whoever does it waits for company while company is expected, and is woken only
//! for what changes that: to wake a thread costs the waker more than most of what is sent.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::mem::take;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Where things are sent from, by as many as share it. Once it is dropped nothing more comes; what waits is still handed out.
pub(crate) struct Sender<T>(Arc<BatchQueue<T>>);

/// Where batches are taken, by one thread or task. Once it is dropped nothing more is taken in, and what waits is dropped too.
pub(crate) struct Batches<T>(Arc<BatchQueue<T>>);

/// The two ends of a queue that is empty.
pub(crate) fn batches<T>() -> (Sender<T>, Batches<T>) {
    let shared = Arc::new(BatchQueue(Mutex::new(BatchState {
        waiting: VecDeque::new(),
        closed: false,
        holds: 0,
        hurried: false,
        sleeper: None,
    })));
    (Sender(Arc::clone(&shared)), Batches(shared))
}

/// Company is expected for as long as `time` says for what waits, from when something waits; zero: not at all.
pub(crate) fn linger<T>(
    time: impl Fn(&VecDeque<T>) -> Duration,
) -> impl FnMut(&VecDeque<T>) -> Option<Instant> {
    let mut began = None;
    move |waiting| {
        let time = time(waiting);
        (!time.is_zero()).then(|| *began.get_or_insert_with(Instant::now) + time)
    }
}

impl<T> Sender<T> {
    /// Sends something, unless nobody takes batches any more: then it is given back.
    pub(crate) fn send(&self, thing: T) -> Result<(), T> {
        let mut state = self.0.lock();
        if state.closed {
            return Err(thing);
        }
        state.waiting.push_back(thing);
        wake_if_due(state);
        Ok(())
    }
}

impl<T> Sender<T> {
    /// Nothing is handed out while this is held: what is sent meanwhile is there together.
    pub(crate) fn hold(&self) -> Hold<T> {
        self.0.lock().holds += 1;
        Hold(Arc::clone(&self.0))
    }

    /// What waits, and whatever comes, is handed out at once from now on.
    pub(crate) fn hurry(&self) {
        let mut state = self.0.lock();
        state.hurried = true;
        wake_if_due(state);
    }
}

/// Keeps what is sent from being handed out.
pub(crate) struct Hold<T>(Arc<BatchQueue<T>>);

impl<T> Drop for Hold<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.holds -= 1;
        wake_if_due(state);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        wake_if_due(state);
    }
}

impl<T> Batches<T> {
    /// Sleeps until something waits and no company is expected; then `take` takes out of what waits, the oldest first. `None` once
    /// nothing waits and nothing more comes.
    ///
    /// `expected` says until when company is expected for what waits, of which there is something; `None`: not at all. It is
    /// asked for what is added, never after something was taken out.
    pub(crate) fn next<R>(
        &mut self,
        expected: impl FnMut(&VecDeque<T>) -> Option<Instant> + Send + 'static,
        take: impl FnOnce(&mut VecDeque<T>) -> R,
    ) -> Option<R> {
        self.sleep(expected);
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            match self.look(&waker) {
                Rest::Over => return self.taken(take),
                Rest::Until(then) => thread::park_timeout(then.saturating_duration_since(Instant::now())),
                Rest::UntilMore => thread::park(),
            }
        }
    }

    /// The same for a task.
    pub(crate) async fn next_async<R>(
        &mut self,
        expected: impl FnMut(&VecDeque<T>) -> Option<Instant> + Send + 'static,
        take: impl FnOnce(&mut VecDeque<T>) -> R,
    ) -> Option<R> {
        self.sleep(expected);
        let mut timer = pin!(tokio::time::sleep(Duration::ZERO));
        poll_fn(|context| {
            loop {
                let pending = match self.look(context.waker()) {
                    Rest::Over => return Poll::Ready(()),
                    Rest::Until(then) => {
                        timer.as_mut().reset(then.into());
                        timer.as_mut().poll(context).is_pending()
                    }
                    Rest::UntilMore => true,
                };
                if pending {
                    return Poll::Pending;
                }
            }
        })
        .await;
        self.taken(take)
    }

    fn sleep(&self, expected: impl FnMut(&VecDeque<T>) -> Option<Instant> + Send + 'static) {
        self.0.lock().sleeper = Some(Sleeper { expected: Box::new(expected), rest: Rest::Over, waker: None });
    }

    /// How long to sleep now, and whom to wake then.
    fn look(&self, waker: &Waker) -> Rest {
        let mut state = self.0.lock();
        let rest = match state.rest() {
            Rest::Until(then) if then <= Instant::now() => Rest::Over,
            rest => rest,
        };
        if let Some(sleeper) = &mut state.sleeper {
            (sleeper.rest, sleeper.waker) = (rest, Some(waker.clone()));
        }
        rest
    }

    fn taken<R>(&self, take: impl FnOnce(&mut VecDeque<T>) -> R) -> Option<R> {
        let mut state = self.0.lock();
        state.sleeper = None;
        (!state.waiting.is_empty()).then(|| take(&mut state.waiting))
    }
}

impl<T> Drop for Batches<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        let waiting = take(&mut state.waiting);
        drop(state);
        drop(waiting);
    }
}

/// How long to sleep, the shortest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rest {
    /// A batch is due.
    Over,
    /// Company is expected until then.
    Until(Instant),
    /// Nothing waits.
    UntilMore,
}

/// Until when company is expected for what waits.
type Expected<T> = Box<dyn FnMut(&VecDeque<T>) -> Option<Instant> + Send>;

struct BatchQueue<T>(Mutex<BatchState<T>>);

struct BatchState<T> {
    waiting: VecDeque<T>,
    /// One of the two ends is gone.
    closed: bool,
    /// How many keep it from being handed out.
    holds: u32,
    /// No company is expected any more.
    hurried: bool,
    sleeper: Option<Sleeper<T>>,
}

/// Whoever waits for the next batch.
struct Sleeper<T> {
    expected: Expected<T>,
    /// How long it means to sleep.
    rest: Rest,
    /// None once it was woken.
    waker: Option<Waker>,
}

impl<T> BatchQueue<T> {
    /// A panic elsewhere leaves whole things, as each is put in or taken out in one step.
    fn lock(&self) -> MutexGuard<'_, BatchState<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> BatchState<T> {
    fn rest(&mut self) -> Rest {
        match &mut self.sleeper {
            Some(_) if !self.closed && (self.holds > 0 || self.waiting.is_empty()) => Rest::UntilMore,
            Some(sleeper) if !self.closed && !self.hurried => {
                (sleeper.expected)(&self.waiting).map_or(Rest::Over, Rest::Until)
            }
            _ => Rest::Over,
        }
    }
}

/// Wakes the sleeper, once, if it means to sleep for too long.
fn wake_if_due<T>(mut state: MutexGuard<'_, BatchState<T>>) {
    let Some(rest) = state.sleeper.as_ref().filter(|sleeper| sleeper.waker.is_some()).map(|known| known.rest)
    else {
        return;
    };
    let is_sooner = state.rest() < rest;
    let waker = state.sleeper.as_mut().and_then(|sleeper| sleeper.waker.take_if(|_| is_sooner));
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("waiting", &self.0.lock().waiting.len()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Batches<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("waiting", &self.0.lock().waiting.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: Duration = Duration::from_hours(1);
    const SOON: Duration = Duration::from_millis(20);

    fn filled(numbers: &[u8]) -> (Sender<u8>, Batches<u8>) {
        let (sender, batches) = batches();
        for number in numbers {
            sender.send(*number).expect("it is open");
        }
        (sender, batches)
    }

    fn all(waiting: &mut VecDeque<u8>) -> Vec<u8> {
        waiting.drain(..).collect()
    }

    /// Company is expected for so long, up to so many.
    fn up_to(most: usize, time: Duration) -> impl FnMut(&VecDeque<u8>) -> Option<Instant> + Send {
        linger(move |waiting: &VecDeque<u8>| if waiting.len() >= most { Duration::ZERO } else { time })
    }

    /// Whether somebody sleeps who was not woken yet.
    fn sleeps(sender: &Sender<u8>) -> bool {
        sender
            .0
            .lock()
            .sleeper
            .as_ref()
            .is_some_and(|sleeper| sleeper.waker.is_some() && sleeper.rest > Rest::Over)
    }

    fn until_it_sleeps(sender: &Sender<u8>) {
        while !sleeps(sender) {
            thread::yield_now();
        }
    }

    #[test]
    fn where_no_company_is_expected_what_is_there_is_a_batch() {
        for (numbers, most, time) in [(&[1, 2, 3][..], 2, LATE), (&[1], 2, Duration::ZERO)] {
            let (_sender, mut batches) = filled(numbers);
            assert_eq!(batches.next(up_to(most, time), all).as_deref(), Some(numbers));
        }
    }

    #[test]
    fn company_that_does_not_come_is_waited_for_no_longer_than_it_is_expected() {
        let (_sender, mut batches) = filled(&[1]);
        let began = Instant::now();
        assert_eq!(batches.next(up_to(2, SOON), all), Some(vec![1]));
        assert!(began.elapsed() >= SOON);
    }

    #[test]
    fn a_sleeper_is_woken_once_by_what_makes_it_enough_or_by_the_end() {
        for last in [Some(3), None] {
            let (sender, mut batches) = filled(&[1]);
            let owner = thread::spawn(move || batches.next(up_to(3, LATE), all));
            until_it_sleeps(&sender);
            sender.send(2).expect("it is open");
            assert!(sleeps(&sender), "two are not enough");
            if let Some(last) = last {
                sender.send(last).expect("it is open");
            }
            drop(sender);
            let expected: Vec<u8> = [1, 2].into_iter().chain(last).collect();
            assert_eq!(owner.join().expect("no panic"), Some(expected));
        }
    }

    #[test]
    fn a_sleeper_is_woken_for_company_that_is_expected_for_less_long_only() {
        for (first, second, woken) in [(LATE, LATE * 2, false), (LATE, Duration::ZERO, true)] {
            let (sender, mut batches) = filled(&[1]);
            let began = Instant::now();
            let expected =
                move |waiting: &VecDeque<u8>| Some(began + if waiting.len() > 1 { second } else { first });
            let owner = thread::spawn(move || batches.next(expected, all));
            until_it_sleeps(&sender);
            sender.send(2).expect("it is open");
            assert_eq!(sleeps(&sender), !woken, "{first:?} {second:?}");
            drop(sender);
            assert_eq!(owner.join().expect("no panic"), Some(vec![1, 2]));
        }
    }

    #[tokio::test]
    async fn a_task_waits_as_a_thread_does() {
        let (sender, mut batches) = filled(&[1]);
        assert_eq!(batches.next_async(up_to(2, SOON), all).await, Some(vec![1]));
        let (taken, ()) = tokio::join!(batches.next_async(up_to(2, LATE), all), async {
            assert!(sleeps(&sender));
            sender.send(2).expect("it is open");
            tokio::task::yield_now().await;
            sender.send(3).expect("it is open");
        });
        assert_eq!(taken, Some(vec![2, 3]));
        drop(sender);
        assert_eq!(batches.next_async(up_to(2, LATE), all).await, None);
    }

    #[test]
    fn what_is_sent_while_it_is_held_is_a_batch_and_a_sleeper_is_woken_for_it_at_the_end() {
        let (sender, mut batches) = filled(&[]);
        let hold = sender.hold();
        let owner = thread::spawn(move || batches.next(up_to(1, Duration::ZERO), all));
        until_it_sleeps(&sender);
        for number in [1, 2, 3] {
            sender.send(number).expect("it is open");
        }
        assert!(sleeps(&sender), "it is held");
        drop(hold);
        assert_eq!(owner.join().expect("no panic"), Some(vec![1, 2, 3]));
    }

    #[test]
    fn in_a_hurry_nothing_waits_for_company() {
        let (sender, mut batches) = filled(&[1]);
        let owner = thread::spawn(move || (batches.next(up_to(2, LATE), all), batches));
        until_it_sleeps(&sender);
        sender.hurry();
        let (first, mut batches) = owner.join().expect("no panic");
        assert_eq!(first, Some(vec![1]));
        sender.send(2).expect("it is open");
        assert_eq!(batches.next(up_to(2, LATE), all), Some(vec![2]));
    }

    #[test]
    fn what_was_sent_is_handed_out_after_the_sender_is_gone() {
        let (sender, mut batches) = filled(&[1]);
        drop(sender);
        assert_eq!(batches.next(up_to(2, LATE), all), Some(vec![1]));
        assert_eq!(batches.next(up_to(2, LATE), all), None);
    }

    #[test]
    fn what_nobody_can_take_is_given_back_or_dropped() {
        let (sender, batches) = batches();
        let thing = Arc::new(());
        sender.send(Arc::clone(&thing)).expect("it is open");
        drop(batches);
        assert_eq!(Arc::strong_count(&thing), 1);
        assert!(sender.send(thing).is_err());
    }
}
