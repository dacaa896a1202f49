//! Downloads that wait, as people see them.

use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::task::{BatchNames, Priority};

/// A download that waits in a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The page.
    pub url: CanonicalUrl,
    /// How urgent.
    pub priority: Priority,
    /// When it was put.
    pub put_at: Timestamp,
    /// Links between a seed and this page.
    pub depth: u32,
    /// Its lane, unless that is the one that is always there.
    pub lane: Option<String>,
    /// Whom it is for, where that isn't whom its site is for.
    pub tenant: Option<String>,
    /// Its batches.
    pub batches: BatchNames,
}

impl Queued {
    /// Where it stands in its lane.
    pub fn place(&self) -> QueuePlace {
        QueuePlace { priority: self.priority, put_at: self.put_at }
    }
}

/// A place in a lane, where a page stands or stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePlace {
    /// How urgent.
    pub priority: Priority,
    /// When it was put.
    pub put_at: Timestamp,
}
