//! Where pages are taken apart: threads of their own, so that no parse holds up those that keep the pace, and none of one site
//! those of the others.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::nice;
use tokio::sync::oneshot;

use super::error::VisitError;

type ParseJob = Box<dyn FnOnce() + Send>;

/// Parse threads make way for those that keep the pace, with a third of their share of a core.
const NICE: i32 = 5;

/// Threads that wait for pages; they end when this is dropped and what is waited for is done. One site has half of them at most.
#[derive(Debug)]
pub(super) struct ParsePool(Arc<ParseQueue>);

/// What waits for a thread, and what runs.
#[derive(Debug, Default)]
struct ParseQueue {
    jobs: Mutex<Jobs>,
    brought: Condvar,
    /// Threads that one site may have.
    most_of_a_site: usize,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<(Arc<str>, ParseJob)>,
    /// By site, how many threads it has.
    running: HashMap<Arc<str>, usize>,
    is_closed: bool,
    /// The process ends: what hasn't begun isn't begun any more.
    is_leaving: bool,
}

impl ParsePool {
    /// As many threads for one site, and as many for all others.
    pub(super) fn new(of_a_site: usize) -> io::Result<Self> {
        let queue = Arc::new(ParseQueue { most_of_a_site: of_a_site, ..ParseQueue::default() });
        for _ in 0..2 * of_a_site {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name("parse".to_owned()).spawn(move || {
                // Of this thread alone. Where it may not be, pages are taken apart all the same.
                let _ = nice(NICE);
                queue.work();
            })?;
        }
        Ok(Self(queue))
    }

    /// Does the work of a site at the next thread that is free for it. Dropping the future doesn't stop it once it has begun.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        site: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, VisitError> {
        self.queued(work, |waiting, job| waiting.push_back((site.into(), job))).await
    }

    /// The same before all that waits: what a page was taken apart into leaves memory before another page is taken apart.
    pub(super) async fn run_next<T: Send + 'static>(
        &self,
        site: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, VisitError> {
        self.queued(work, |waiting, job| waiting.push_front((site.into(), job))).await
    }

    /// Begins nothing any more: what waits for a thread goes back.
    pub(super) fn leave(&self) {
        let given_back = {
            let mut jobs = self.0.lock();
            jobs.is_leaving = true;
            std::mem::take(&mut jobs.waiting)
        };
        // Whoever waits for one of them is woken, which may want the lock.
        drop(given_back);
    }

    async fn queued<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        queue: impl FnOnce(&mut VecDeque<(Arc<str>, ParseJob)>, ParseJob),
    ) -> Result<T, VisitError> {
        let (reply, done) = oneshot::channel();
        let job = move || {
            if reply.is_closed() {
                return;
            }
            // Nothing of the work is seen again after a panic.
            let _ = reply.send(catch_unwind(AssertUnwindSafe(work)));
        };
        {
            let mut jobs = self.0.lock();
            if jobs.is_leaving {
                return Err(VisitError::Leaving);
            }
            queue(&mut jobs.waiting, Box::new(job));
        }
        self.0.brought.notify_one();
        // A job goes unanswered only where it is given back.
        done.await.map_err(|_| VisitError::Leaving)?.map_err(|panic| VisitError::Parse(words(&*panic)))
    }
}

impl Drop for ParsePool {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.brought.notify_all();
    }
}

impl ParseQueue {
    fn work(&self) {
        let mut jobs = self.lock();
        loop {
            if let Some((site, job)) = jobs.next(self.most_of_a_site) {
                drop(jobs);
                job();
                jobs = self.lock();
                jobs.ended(&site);
            } else if jobs.is_closed && jobs.waiting.is_empty() {
                self.brought.notify_all();
                return;
            } else {
                jobs = self.brought.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// A panic of a job is caught, and nothing else is done behind the lock.
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs {
    /// The first job of a site that has not as many threads as it may; the job's site has one more then.
    fn next(&mut self, most: usize) -> Option<(Arc<str>, ParseJob)> {
        let may_run =
            |(site, _): &(Arc<str>, ParseJob)| self.running.get(site).is_none_or(|have| *have < most);
        let at = self.waiting.iter().position(may_run)?;
        let (site, job) = self.waiting.remove(at)?;
        *self.running.entry(Arc::clone(&site)).or_default() += 1;
        Some((site, job))
    }

    fn ended(&mut self, site: &Arc<str>) {
        if let Some(have) = self.running.get_mut(site) {
            *have -= 1;
            if *have == 0 {
                self.running.remove(site);
            }
        }
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waiting, running, is_closed, .. } = self;
        write!(f, "{} waiting, {running:?} running, closed: {is_closed}", waiting.len())
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_of_its_page_and_the_desk_goes_on() {
        let parse_pool = ParsePool::new(1).expect("a thread");
        let broken: Result<(), VisitError> = parse_pool.run("shop", || panic!("a page of {}", 7)).await;
        assert_eq!(broken.expect_err("it broke").to_string(), "the parse of a page broke: a page of 7");
        assert_eq!(parse_pool.run("shop", || 1 + 1).await.ok(), Some(2));
    }

    #[tokio::test]
    async fn what_was_taken_apart_goes_on_before_another_page_is_taken_apart() {
        let parse_pool = ParsePool::new(1).expect("threads");
        let go = Arc::new(Barrier::new(2));
        let held = {
            let go = Arc::clone(&go);
            parse_pool.run("shop", move || go.wait().is_leader())
        };
        let mut held = std::pin::pin!(held);
        assert!(futures_util::poll!(held.as_mut()).is_pending());
        let turn = Arc::new(AtomicUsize::new(0));
        let takes_a_turn = || {
            let turn = Arc::clone(&turn);
            move || turn.fetch_add(1, Ordering::SeqCst)
        };
        let mut page = std::pin::pin!(parse_pool.run("shop", takes_a_turn()));
        let mut links = std::pin::pin!(parse_pool.run_next("shop", takes_a_turn()));
        assert!(futures_util::poll!(page.as_mut()).is_pending());
        assert!(futures_util::poll!(links.as_mut()).is_pending());
        go.wait();
        assert!(held.await.is_ok());
        assert_eq!((links.await.ok(), page.await.ok()), (Some(0), Some(1)));
    }

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_is_not_begun() {
        let parse_pool = ParsePool::new(1).expect("threads");
        let (go, begun) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
        let held = {
            let go = Arc::clone(&go);
            parse_pool.run("shop", move || go.wait().is_leader())
        };
        let mut held = std::pin::pin!(held);
        assert!(futures_util::poll!(held.as_mut()).is_pending());
        {
            let begun = Arc::clone(&begun);
            let mut gone =
                std::pin::pin!(parse_pool.run("shop", move || begun.fetch_add(1, Ordering::SeqCst)));
            assert!(futures_util::poll!(gone.as_mut()).is_pending());
        }
        go.wait();
        assert!(held.await.is_ok());
        assert_eq!(parse_pool.run("shop", || 1).await.ok(), Some(1));
        assert_eq!(begun.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn what_has_not_begun_when_a_process_ends_goes_back() {
        let parse_pool = ParsePool::new(1).expect("threads");
        let (begun, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let held = {
            let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
            parse_pool.run("shop", move || begun.wait().is_leader() | go.wait().is_leader())
        };
        let (mut held, mut waiting) = (std::pin::pin!(held), std::pin::pin!(parse_pool.run("shop", || 1)));
        assert!(futures_util::poll!(held.as_mut()).is_pending());
        begun.wait();
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        parse_pool.leave();
        assert!(matches!(waiting.await, Err(VisitError::Leaving)));
        assert!(matches!(parse_pool.run("other", || 1).await, Err(VisitError::Leaving)));
        go.wait();
        assert!(held.await.is_ok(), "what has begun is brought to its end");
    }

    #[tokio::test]
    async fn a_site_whose_pages_take_long_leaves_half_of_the_threads_to_the_others() {
        let parse_pool = ParsePool::new(2).expect("threads");
        let (go, running) = (Arc::new(Barrier::new(3)), Arc::new(AtomicUsize::new(0)));
        let slow = |_| {
            let (go, running) = (Arc::clone(&go), Arc::clone(&running));
            parse_pool.run("slow", move || {
                let beside = running.fetch_add(1, Ordering::SeqCst) + 1;
                go.wait();
                running.fetch_sub(1, Ordering::SeqCst);
                beside
            })
        };
        let slow = join_all((0..4).map(slow));
        let others = async {
            for n in 0..20 {
                assert_eq!(parse_pool.run("other", move || n).await.ok(), Some(n));
            }
            for _ in 0..2 {
                let go = Arc::clone(&go);
                tokio::task::spawn_blocking(move || go.wait()).await.expect("they came");
            }
        };
        let (beside, ()) = tokio::join!(slow, others);
        assert!(beside.into_iter().all(|beside| beside.is_ok_and(|beside| beside <= 2)));
        // A thread answers before it has ended its job.
        let is_forgotten = || parse_pool.0.lock().running.is_empty();
        for _ in 0..1_000 {
            if !is_forgotten() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
        assert!(is_forgotten(), "nothing is kept of a site");
    }
}
