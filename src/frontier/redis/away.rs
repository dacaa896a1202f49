//! Which partitions are away. It is said once when the first one is, and once when none is any more.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tracing::{info, warn};

use crate::frontier::FrontierError;
use crate::patience::Notice;

/// The partitions that don't answer.
#[derive(Debug)]
pub(super) struct AwayPartitions {
    which: Mutex<BTreeSet<usize>>,
    notice: Notice<FrontierError>,
}

impl AwayPartitions {
    /// None is away yet.
    pub(super) fn new(shown: &str) -> Self {
        let frontier = shown.to_owned();
        let notice = Notice::new(
            |error| warn!(%error, "the frontier is away; what runs goes on, and is told when it is back"),
            move |after| info!(frontier, "the frontier is back after {:.1} s", after.as_secs_f64()),
        );
        Self { which: Mutex::default(), notice }
    }

    /// One is away.
    pub(super) fn begin(&self, partition: usize, error: &FrontierError) {
        let mut which = self.which.lock().unwrap_or_else(PoisonError::into_inner);
        which.insert(partition);
        self.notice.begin(error);
    }

    /// Whether this one is away.
    pub(super) fn has(&self, partition: usize) -> bool {
        self.which.lock().unwrap_or_else(PoisonError::into_inner).contains(&partition)
    }

    /// One answers.
    pub(super) fn end(&self, partition: usize) {
        let mut which = self.which.lock().unwrap_or_else(PoisonError::into_inner);
        which.remove(&partition);
        if which.is_empty() {
            self.notice.end();
        }
    }
}
