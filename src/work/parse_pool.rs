//! Where pages are taken apart: a thread a core, so that one page's memory is the next one's, and no parse holds up the
//! threads that keep the pace.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

use super::error::VisitError;

type ParseJob = Box<dyn FnOnce() + Send>;

/// Threads that wait for pages; they end when this is dropped and what was asked for is done.
#[derive(Debug)]
pub(super) struct ParsePool(Sender<ParseJob>);

impl ParsePool {
    /// So many threads.
    pub(super) fn new(count: usize) -> io::Result<Self> {
        let (jobs, inbox) = mpsc::channel();
        let inbox = Arc::new(Mutex::new(inbox));
        for _ in 0..count {
            let inbox = Arc::clone(&inbox);
            thread::Builder::new().name("parse".to_owned()).spawn(move || work(&inbox))?;
        }
        Ok(Self(jobs))
    }

    /// Does the work at the next free desk. Dropping the future doesn't stop it.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, VisitError> {
        let (reply, done) = oneshot::channel();
        let job = move || {
            // Nothing of the work is seen again after a panic.
            let _ = reply.send(catch_unwind(AssertUnwindSafe(work)));
        };
        let gone = || VisitError::Parse("no thread takes pages apart any more".to_owned());
        self.0.send(Box::new(job)).map_err(|_| gone())?;
        done.await.map_err(|_| gone())?.map_err(|panic| VisitError::Parse(words(&*panic)))
    }
}

fn work(inbox: &Mutex<Receiver<ParseJob>>) {
    loop {
        let job = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        job();
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_of_its_page_and_the_desk_goes_on() {
        let parse_pool = ParsePool::new(1).expect("a thread");
        let broken: Result<(), VisitError> = parse_pool.run(|| panic!("a page of {}", 7)).await;
        assert_eq!(broken.expect_err("it broke").to_string(), "the parse of a page broke: a page of 7");
        assert_eq!(parse_pool.run(|| 1 + 1).await.ok(), Some(2));
    }
}
