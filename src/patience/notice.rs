//! Says once that something is away, and once that it is back.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Whether something is away, and what is said of it.
pub(crate) struct Notice<E> {
    /// Since when it is.
    since: Mutex<Option<Instant>>,
    begins: Box<dyn Fn(&E) + Send + Sync>,
    ends: Box<dyn Fn(Duration) + Send + Sync>,
}

impl<E> Notice<E> {
    /// Nothing is away yet. `begins` says why it is, `ends` after how long it is back.
    pub(crate) fn new(
        begins: impl Fn(&E) + Send + Sync + 'static,
        ends: impl Fn(Duration) + Send + Sync + 'static,
    ) -> Self {
        Self { since: Mutex::default(), begins: Box::new(begins), ends: Box::new(ends) }
    }

    /// It is away: says so, unless that was said. Whether it was said now.
    pub(crate) fn begin(&self, error: &E) -> bool {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = since.is_none();
        if is_new {
            *since = Some(Instant::now());
            (self.begins)(error);
        }
        is_new
    }

    /// It is there: says so, if it was away.
    pub(crate) fn end(&self) {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(since) = since {
            (self.ends)(since.elapsed());
        }
    }

    /// Whether it is away.
    pub(crate) fn is_on(&self) -> bool {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl<E> fmt::Debug for Notice<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notice").field("is_on", &self.is_on()).finish_non_exhaustive()
    }
}
