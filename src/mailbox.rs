//! A queue to one thread, which says when it wants to be woken: to wake a thread costs the waker more than most of what is sent.
//! What is sent, and how long it may lie, is decided by those who use it.

use std::collections::VecDeque;
use std::fmt;
use std::mem::take;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Where things are put in, by as many as share it. Once it is dropped nothing more comes; what waits is still handed out.
pub(crate) struct Sender<T>(Arc<Mailbox<T>>);

/// Where they are taken out, by one thread. Once it is dropped nothing more is taken in, and what waits is dropped too.
pub(crate) struct Inbox<T>(Arc<Mailbox<T>>);

struct Mailbox<T> {
    state: Mutex<State<T>>,
    bell: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    /// One of the two ends is gone.
    closed: bool,
    /// While its owner sleeps: what it wants to be woken for.
    enough: Option<Enough<T>>,
}

/// It is asked after each thing that is added, and never after one was taken out.
type Enough<T> = Box<dyn FnMut(&VecDeque<T>) -> bool + Send>;

/// What waits, in the hands of the inbox's owner: meanwhile nobody else gets at it.
pub(crate) struct Opened<'a, T> {
    bell: &'a Condvar,
    state: MutexGuard<'a, State<T>>,
}

/// The two ends of an empty mailbox.
pub(crate) fn mailbox<T>() -> (Sender<T>, Inbox<T>) {
    let state = State { waiting: VecDeque::new(), closed: false, enough: None };
    let mailbox = Arc::new(Mailbox { state: Mutex::new(state), bell: Condvar::new() });
    (Sender(Arc::clone(&mailbox)), Inbox(mailbox))
}

impl<T> Sender<T> {
    /// Sends something, unless nobody can take it out any more: then it is given back.
    pub(crate) fn send(&self, thing: T) -> Result<(), T> {
        let mut guard = self.0.lock();
        let state = &mut *guard;
        if state.closed {
            return Err(thing);
        }
        state.waiting.push_back(thing);
        if state.enough.as_mut().is_some_and(|enough| enough(&state.waiting)) {
            self.0.wake(guard);
        }
        Ok(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        self.0.wake(state);
    }
}

impl<T> Inbox<T> {
    /// Opens it: for as long as that is in hand, who sends something waits.
    pub(crate) fn open(&self) -> Opened<'_, T> {
        Opened { bell: &self.0.bell, state: self.0.lock() }
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        let waiting = take(&mut state.waiting);
        drop(state);
        drop(waiting);
    }
}

impl<T> Mailbox<T> {
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

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("waiting", &self.0.lock().waiting.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const LATE: Duration = Duration::from_hours(1);

    fn filled(numbers: &[u8]) -> (Sender<u8>, Inbox<u8>) {
        let (sender, inbox) = mailbox();
        for number in numbers {
            sender.send(*number).expect("it is open");
        }
        (sender, inbox)
    }

    fn all(mut opened: Opened<'_, u8>) -> Vec<u8> {
        opened.waiting().drain(..).collect()
    }

    #[test]
    fn what_is_there_is_not_waited_for() {
        let (_sender, inbox) = filled(&[1, 2, 3]);
        let late = Instant::now() + LATE;
        assert_eq!(all(inbox.open().wait_for(Some(late), |waiting| waiting.len() >= 2)), [1, 2, 3]);
    }

    #[test]
    fn who_wants_too_much_wakes_when_the_time_is_over() {
        let (_sender, inbox) = filled(&[1]);
        let soon = Instant::now() + Duration::from_millis(20);
        assert_eq!(all(inbox.open().wait_for(Some(soon), |waiting| waiting.len() >= 2)), [1]);
    }

    #[test]
    fn who_sleeps_is_woken_by_what_makes_it_enough_or_by_the_end() {
        for last in [Some(3), None] {
            let (sender, inbox) = filled(&[1]);
            let owner = thread::spawn(move || all(inbox.open().wait_for(None, |waiting| waiting.len() >= 3)));
            while sender.0.lock().enough.is_none() {
                thread::yield_now();
            }
            sender.send(2).expect("it is open");
            assert!(sender.0.lock().enough.is_some(), "two are not enough");
            if let Some(last) = last {
                sender.send(last).expect("it is open");
            }
            drop(sender);
            let expected: Vec<u8> = [1, 2].into_iter().chain(last).collect();
            assert_eq!(owner.join().expect("no panic"), expected);
        }
    }

    #[test]
    fn what_was_sent_is_handed_out_after_the_sender_is_gone() {
        let (sender, inbox) = filled(&[1]);
        drop(sender);
        let opened = inbox.open().wait_for(None, |waiting| waiting.len() >= 2);
        assert!(opened.is_closed());
        assert_eq!(all(opened), [1]);
    }

    #[test]
    fn what_nobody_can_take_out_is_given_back_or_dropped() {
        let (sender, inbox) = mailbox();
        let thing = Arc::new(());
        sender.send(Arc::clone(&thing)).expect("it is open");
        drop(inbox);
        assert_eq!(Arc::strong_count(&thing), 1);
        assert!(sender.send(thing).is_err());
    }
}
