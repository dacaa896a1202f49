//! What is counted of a batch on one site.

use serde::{Deserialize, Serialize};

use super::is_default;

/// For how long a batch is remembered that ended, in ms.
pub const BATCH_KEPT_MS: i64 = 7 * 86_400_000;
/// Batches of a site that are remembered after their end, at most.
pub const BATCHES_KEPT: u64 = 1_000;

/// How a page joined a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchJoin {
    /// Its task was made.
    Created,
    /// Its task was there already.
    Coalesced,
    /// Its task ran: a further run joined.
    Deferred,
    /// It was dead.
    Revived,
    /// It takes the place of a page that was redirected to it.
    Target,
}

/// How a page ended in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchEnd {
    /// Its parse is done, its download without a parse, or it was redirected.
    Done,
    /// Nobody wants it, for a reason of its site's.
    Excluded,
    /// Somebody dropped it.
    Dropped,
    /// Its letter is kept.
    Dead,
    /// It goes on as another one of the same batch.
    Merged,
}

/// The books of a batch on one site. A page is in them from its put until its parse is settled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchCounts {
    /// Pages put that stood nowhere.
    #[serde(skip_serializing_if = "is_default")]
    pub created: u64,
    /// Pages that waited already.
    #[serde(skip_serializing_if = "is_default")]
    pub coalesced: u64,
    /// Pages that ran, of which a further run was asked.
    #[serde(skip_serializing_if = "is_default")]
    pub deferred: u64,
    /// Dead pages that came back with it.
    #[serde(skip_serializing_if = "is_default")]
    pub revived: u64,
    /// Pages that asked for nothing, as they are as new as was wanted. They didn't join.
    #[serde(skip_serializing_if = "is_default")]
    pub known: u64,
    /// Pages that took the place of one that was redirected to them, whichever site that is of.
    #[serde(skip_serializing_if = "is_default")]
    pub targets: u64,
    /// Pages that go on as another one of the same batch.
    #[serde(skip_serializing_if = "is_default")]
    pub merged: u64,
    /// Pages done, and those that were redirected.
    #[serde(skip_serializing_if = "is_default")]
    pub done: u64,
    /// Pages whose dead letters are kept.
    #[serde(skip_serializing_if = "is_default")]
    pub dead: u64,
    /// Pages excluded.
    #[serde(skip_serializing_if = "is_default")]
    pub excluded: u64,
    /// Pages dropped, as tasks or as dead letters.
    #[serde(skip_serializing_if = "is_default")]
    pub dropped: u64,
    /// When its first page was put, in ms.
    pub began_at: i64,
    /// When its last page ended, in ms; none while it has open ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
}

impl BatchCounts {
    /// One that begins now.
    pub fn new(now: i64) -> Self {
        Self { began_at: now, ..Self::default() }
    }

    /// Pages that wait, are delayed, parked, behind others or run, at either stage.
    pub fn open(&self) -> u64 {
        let joined = self.created + self.coalesced + self.deferred + self.revived + self.targets;
        let ended = self.merged + self.done + self.dead + self.excluded + self.dropped;
        joined.saturating_sub(ended)
    }

    /// It ended so long ago that it is forgotten.
    pub fn is_over(&self, now: i64) -> bool {
        self.ended_at.is_some_and(|at| at <= now - BATCH_KEPT_MS)
    }

    /// A page joins.
    pub fn join(&mut self, how: BatchJoin) {
        *(match how {
            BatchJoin::Created => &mut self.created,
            BatchJoin::Coalesced => &mut self.coalesced,
            BatchJoin::Deferred => &mut self.deferred,
            BatchJoin::Revived => &mut self.revived,
            BatchJoin::Target => &mut self.targets,
        }) += 1;
    }

    /// A page ends.
    pub fn end(&mut self, how: BatchEnd) {
        *(match how {
            BatchEnd::Done => &mut self.done,
            BatchEnd::Excluded => &mut self.excluded,
            BatchEnd::Dropped => &mut self.dropped,
            BatchEnd::Dead => &mut self.dead,
            BatchEnd::Merged => &mut self.merged,
        }) += 1;
    }

    /// Notes whether it has ended by now.
    pub fn note_end(&mut self, now: i64) {
        self.ended_at = if self.open() == 0 { self.ended_at.or(Some(now)) } else { None };
    }
}
