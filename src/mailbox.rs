//! A queue to one thread, which says when it wants to be woken: to wake a thread costs the waker more than most of what is sent.
//! What is sent, and how long it may lie, is decided by those who use it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Filled by many, emptied by one.
pub(crate) struct Mailbox<T> {
    state: Mutex<State<T>>,
    bell: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    /// Nothing more may be sent.
    closed: bool,
    /// While its owner sleeps: what it wants to be woken for.
    enough: Option<Enough<T>>,
}

/// It is asked after each thing that is added, and never after one was taken out.
type Enough<T> = Box<dyn FnMut(&VecDeque<T>) -> bool + Send>;

/// What waits, in the hands of the mailbox's owner: meanwhile nobody else gets at it.
pub(crate) struct Opened<'a, T> {
    bell: &'a Condvar,
    state: MutexGuard<'a, State<T>>,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self { state: Mutex::default(), bell: Condvar::new() }
    }
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), closed: false, enough: None }
    }
}

impl<T> Mailbox<T> {
    /// Sends something, unless the mailbox is closed: then it is given back.
    pub(crate) fn send(&self, thing: T) -> Result<(), T> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.closed {
            return Err(thing);
        }
        state.waiting.push_back(thing);
        if state.enough.as_mut().is_some_and(|enough| enough(&state.waiting)) {
            self.wake(guard);
        }
        Ok(())
    }

    /// From now on nothing is taken in; what waits already is still handed out.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.wake(state);
    }

    /// Closes it and drops what waits, as nobody will ever take that out.
    pub(crate) fn abandon(&self) {
        self.close();
        let waiting = std::mem::take(&mut self.lock().waiting);
        drop(waiting);
    }

    /// Opens it for its owner.
    pub(crate) fn open(&self) -> Opened<'_, T> {
        Opened { bell: &self.bell, state: self.lock() }
    }

    fn wake(&self, mut state: MutexGuard<'_, State<T>>) {
        let sleeps = state.enough.take().is_some();
        drop(state);
        if sleeps {
            self.bell.notify_one();
        }
    }

    /// A panic elsewhere leaves whole things, as each is put in or taken out in one step.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Opened<'_, T> {
    /// What waits, the oldest first.
    pub(crate) fn waiting(&mut self) -> &mut VecDeque<T> {
        &mut self.state.waiting
    }

    /// Whether nothing more comes.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.closed
    }

    /// Sleeps until there is enough, the mailbox is closed or `until` is there.
    pub(crate) fn wait_for(
        mut self,
        until: Option<Instant>,
        mut enough: impl FnMut(&VecDeque<T>) -> bool + Clone + Send + 'static,
    ) -> Self {
        while !self.state.closed && !enough(&self.state.waiting) {
            self.state.enough = Some(Box::new(enough.clone()));
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            self.state = match left {
                None => self.bell.wait(self.state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => break,
                Some(left) => {
                    self.bell.wait_timeout(self.state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        self.state.enough = None;
        self
    }
}

impl<T> fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("waiting", &self.lock().waiting.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    const LATE: Duration = Duration::from_hours(1);

    fn filled(numbers: &[u8]) -> Arc<Mailbox<u8>> {
        Arc::new(Mailbox {
            state: Mutex::new(State { waiting: numbers.iter().copied().collect(), ..State::default() }),
            ..Mailbox::default()
        })
    }

    fn send(mailbox: &Mailbox<u8>, number: u8) {
        mailbox.send(number).expect("it is open");
    }

    fn all(opened: &mut Opened<'_, u8>) -> Vec<u8> {
        opened.waiting().drain(..).collect()
    }

    #[test]
    fn what_is_there_is_not_waited_for() {
        let mailbox = filled(&[1, 2, 3]);
        let mut opened = mailbox.open().wait_for(Some(Instant::now() + LATE), |waiting| waiting.len() >= 2);
        assert_eq!(all(&mut opened), [1, 2, 3]);
    }

    #[test]
    fn who_wants_too_much_wakes_when_the_time_is_over() {
        let mailbox = filled(&[1]);
        let soon = Instant::now() + Duration::from_millis(20);
        let mut opened = mailbox.open().wait_for(Some(soon), |waiting| waiting.len() >= 2);
        assert_eq!(all(&mut opened), [1]);
    }

    #[test]
    fn who_sleeps_is_woken_by_what_makes_it_enough_or_by_the_end() {
        for last in [Some(3), None] {
            let mailbox = filled(&[1]);
            let owner = thread::spawn({
                let mailbox = Arc::clone(&mailbox);
                move || all(&mut mailbox.open().wait_for(None, |waiting| waiting.len() >= 3))
            });
            while mailbox.lock().enough.is_none() {
                thread::yield_now();
            }
            send(&mailbox, 2);
            assert!(mailbox.lock().enough.is_some(), "two are not enough");
            match last {
                Some(last) => send(&mailbox, last),
                None => mailbox.close(),
            }
            let expected: Vec<u8> = [1, 2].into_iter().chain(last).collect();
            assert_eq!(owner.join().expect("no panic"), expected);
        }
    }

    #[test]
    fn a_closed_one_takes_nothing_in_and_hands_out_what_it_has() {
        let mailbox = filled(&[1]);
        mailbox.close();
        assert_eq!(mailbox.send(2), Err(2));
        let mut opened = mailbox.open().wait_for(None, |waiting| waiting.len() >= 2);
        assert_eq!(all(&mut opened), [1]);
    }

    #[test]
    fn an_abandoned_one_drops_what_it_has() {
        let mailbox = filled(&[1]);
        mailbox.abandon();
        assert_eq!(mailbox.send(2), Err(2));
        assert!(mailbox.open().waiting().is_empty());
    }
}
