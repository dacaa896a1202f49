//! How many tasks may run at once, by stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use super::role::Role;
use crate::task::{Lease, Stage};

/// For each core, parses of pages at once up to which more are claimed.
const PARSES_A_CORE: usize = 8;
/// And up to which downloads take their own along: those pages are in memory anyway, and queueing each costs a claim more.
const PARSES_ALONG_A_CORE: usize = 32;
/// Parses for each core that wait for the disk and the frontier alone. Many, as those that wait together share a flush and a commit.
const ENDS_A_CORE: usize = 64;

/// The slots of a process.
#[derive(Debug)]
pub(super) struct Slots {
    download: AtomicUsize,
    parse: usize,
    along: usize,
    /// By stage, how many are taken.
    taken: [AtomicUsize; 2],
    ends: Semaphore,
    pub(super) freed: Notify,
    /// All download slots are taken, and there was more to claim at once.
    pub(super) are_short: AtomicBool,
    /// The last claim left something that a free slot could take up.
    pub(super) left_some: AtomicBool,
}

/// A slot that is taken until this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Arc<Slots>,
    stage: Stage,
}

/// A task, and the slot in which it runs.
#[derive(Debug)]
pub(super) struct SlottedLease {
    pub(super) lease: Lease,
    pub(super) slot: Slot,
    /// The time since boot right before it was asked for.
    pub(super) noted: Duration,
}

/// The processor's cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

impl Slots {
    /// Parses by the number of cores, and no downloads yet.
    pub(super) fn new(role: Role) -> Arc<Self> {
        let cores = cores();
        let parses = |a_core| if role.walks(Stage::Parse) { cores * a_core } else { 0 };
        Arc::new(Self {
            download: AtomicUsize::new(0),
            parse: parses(PARSES_A_CORE),
            along: parses(PARSES_ALONG_A_CORE),
            taken: Default::default(),
            ends: Semaphore::new(cores * ENDS_A_CORE),
            freed: Notify::new(),
            are_short: AtomicBool::new(false),
            left_some: AtomicBool::new(true),
        })
    }

    /// A slot for what was granted, whether or not one is free.
    pub(super) fn take(self: &Arc<Self>, stage: Stage) -> Slot {
        self.taken(stage).fetch_add(1, Ordering::SeqCst);
        Slot { slots: Arc::clone(self), stage }
    }

    /// A slot for the parse of a page that was fetched just now, if one is free.
    pub(super) fn take_free_parse(self: &Arc<Self>) -> Option<Slot> {
        let slot = self.take(Stage::Parse);
        (self.taken(Stage::Parse).load(Ordering::SeqCst) <= self.along).then_some(slot)
    }

    /// Whether a parse slot may be kept for one that is only asked for: enough are left for what a claim brings.
    pub(super) fn has_parses_to_spare(&self) -> bool {
        2 * self.free().1 >= self.parse
    }

    /// For a parse whose page is taken apart: its slot is another page's, once not too many wait for their end.
    pub(super) async fn free_for_the_end(&self, slot: Slot) -> Option<SemaphorePermit<'_>> {
        let end = self.ends.acquire().await.ok();
        drop(slot);
        end
    }

    /// So many downloads may run from now on; how many they were before.
    pub(super) fn set_downloads(&self, downloads: usize) -> usize {
        self.download.swap(downloads, Ordering::SeqCst)
    }

    /// How many downloads may run.
    pub(super) fn downloads(&self) -> usize {
        self.download.load(Ordering::SeqCst)
    }

    /// Free slots for downloads, and for parses.
    pub(super) fn free(&self) -> (usize, usize) {
        let downloads = self.downloads().saturating_sub(self.taken(Stage::Download).load(Ordering::SeqCst));
        let parses = self.parse.saturating_sub(self.taken(Stage::Parse).load(Ordering::SeqCst));
        (downloads, parses)
    }

    fn taken(&self, stage: Stage) -> &AtomicUsize {
        &self.taken[stage as usize]
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.taken(self.stage).fetch_sub(1, Ordering::SeqCst);
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parse_is_taken_along_only_while_a_slot_is_free_and_a_dropped_slot_is_free_again() {
        let slots = Slots::new(Role::Both);
        let taken: Vec<Slot> = std::iter::from_fn(|| slots.take_free_parse()).collect();
        assert_eq!((taken.len(), slots.free()), (slots.along, (0, 0)));
        assert!(!slots.has_parses_to_spare());
        let beyond = slots.take(Stage::Parse);
        drop(taken);
        assert_eq!(slots.free(), (0, slots.parse - 1));
        assert!(slots.has_parses_to_spare());
        drop(beyond);
        assert_eq!(slots.free(), (0, slots.parse));
        assert!(Slots::new(Role::Download).take_free_parse().is_none());
    }
}
