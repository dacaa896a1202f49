//! How many tasks may run at once, by stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use super::role::Role;
use crate::cores::cores;
use crate::task::{Lease, Stage};

/// For each core, parses of pages at once up to which more are claimed.
const PARSES_A_CORE: usize = 8;
/// Besides these, parses that downloads take along: those pages are in memory anyway, and queueing each costs a claim more.
const PARSES_ALONG_A_CORE: usize = 128;
/// Bytes of the pages that downloads take along, at most: a thousand usual ones.
const MOST_ALONG: usize = 32 << 20;
/// Parses for each core that wait for the disk and the frontier alone. Many, as those that wait together share a flush and a commit.
const ENDS_A_CORE: usize = 64;
/// Downloads for each core whose page is kept and that wait for the frontier alone.
const SETTLEMENTS_A_CORE: usize = 128;

/// The slots of a process.
#[derive(Debug)]
pub(super) struct Slots {
    download: AtomicUsize,
    /// The processes that share the downloads, as far as is known.
    sharers: AtomicUsize,
    parse: usize,
    along: usize,
    /// By stage, how many are taken, but for those of parses that downloads took along.
    taken: [AtomicUsize; 2],
    /// How many of these are taken, and the bytes of their pages.
    taken_along: AtomicUsize,
    bytes_along: AtomicUsize,
    /// By stage, how many more may wait for their end.
    ends: [Semaphore; 2],
    /// A slot got free.
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
    /// Of a parse that its download took along: the bytes of its page.
    along: Option<usize>,
}

/// A task, and the slot in which it runs.
#[derive(Debug)]
pub(super) struct SlottedLease {
    pub(super) lease: Lease,
    pub(super) slot: Slot,
    /// The time since boot right before it was asked for.
    pub(super) noted: Duration,
}

impl Slots {
    /// Parses by the number of cores, and no downloads yet.
    pub(super) fn new(role: Role) -> Arc<Self> {
        let cores = cores();
        let parses = |a_core| if role.walks(Stage::Parse) { cores * a_core } else { 0 };
        Arc::new(Self {
            download: AtomicUsize::new(0),
            sharers: AtomicUsize::new(1),
            parse: parses(PARSES_A_CORE),
            along: parses(PARSES_ALONG_A_CORE),
            taken: Default::default(),
            taken_along: AtomicUsize::new(0),
            bytes_along: AtomicUsize::new(0),
            ends: [SETTLEMENTS_A_CORE, ENDS_A_CORE].map(|a_core| Semaphore::new(cores * a_core)),
            freed: Notify::new(),
            are_short: AtomicBool::new(false),
            left_some: AtomicBool::new(true),
        })
    }

    /// A slot for what was granted, whether or not one is free.
    pub(super) fn take(self: &Arc<Self>, stage: Stage) -> Slot {
        self.taken(stage).fetch_add(1, Ordering::SeqCst);
        Slot { slots: Arc::clone(self), stage, along: None }
    }

    /// A slot for the parse of a page of so many bytes that was fetched just now, if one is free. Those that are claimed have
    /// theirs apart: the parses of one site don't hold up those of the others.
    pub(super) fn take_along(self: &Arc<Self>, bytes: usize) -> Option<Slot> {
        let taken = 1 + self.taken_along.fetch_add(1, Ordering::SeqCst);
        let held = bytes + self.bytes_along.fetch_add(bytes, Ordering::SeqCst);
        let slot = Slot { slots: Arc::clone(self), stage: Stage::Parse, along: Some(bytes) };
        (taken <= self.along && held <= MOST_ALONG).then_some(slot)
    }

    /// Whether a slot may be kept for a parse that is only asked for: enough are left for others that come along.
    pub(super) fn has_parses_to_spare(&self) -> bool {
        2 * self.taken_along.load(Ordering::SeqCst) <= self.along
    }

    /// For a page that is kept, or taken apart: its slot is another one's, once not too many of its stage wait for their end.
    pub(super) async fn free_for_the_end(&self, slot: Slot) -> Option<SemaphorePermit<'_>> {
        let end = self.ends[slot.stage as usize].acquire().await.ok();
        drop(slot);
        end
    }

    /// So many downloads may run from now on; how many they were before.
    pub(super) fn set_downloads(&self, downloads: usize) -> usize {
        self.download.swap(downloads, Ordering::SeqCst)
    }

    /// So many processes share the downloads from now on.
    pub(super) fn shared_by(&self, sharers: usize) {
        self.sharers.store(sharers.max(1), Ordering::SeqCst);
    }

    /// How many processes share the downloads.
    pub(super) fn sharers(&self) -> usize {
        self.sharers.load(Ordering::SeqCst)
    }

    /// Slots that downloads have taken.
    pub(super) fn downloading(&self) -> usize {
        self.taken(Stage::Download).load(Ordering::SeqCst)
    }

    /// How many downloads may run.
    pub(super) fn downloads(&self) -> usize {
        self.download.load(Ordering::SeqCst)
    }

    /// How many parses that are claimed may run.
    pub(super) fn parses(&self) -> usize {
        self.parse
    }

    /// Free slots for downloads, and for parses.
    pub(super) fn free(&self) -> (usize, usize) {
        let downloads = self.downloads().saturating_sub(self.downloading());
        let parses = self.parse.saturating_sub(self.taken(Stage::Parse).load(Ordering::SeqCst));
        (downloads, parses)
    }

    fn taken(&self, stage: Stage) -> &AtomicUsize {
        &self.taken[stage as usize]
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(bytes) = self.along {
            self.slots.taken_along.fetch_sub(1, Ordering::SeqCst);
            self.slots.bytes_along.fetch_sub(bytes, Ordering::SeqCst);
        } else {
            self.slots.taken(self.stage).fetch_sub(1, Ordering::SeqCst);
        }
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn where_nothing_comes_to_its_end_a_bounded_number_gives_its_slot_to_others() {
        for (stage, a_core) in [(Stage::Download, SETTLEMENTS_A_CORE), (Stage::Parse, ENDS_A_CORE)] {
            let (slots, most) = (Slots::new(Role::Both), cores() * a_core);
            let mut ends = Vec::new();
            for _ in 0..most {
                ends.push(slots.free_for_the_end(slots.take(stage)).await);
            }
            let next = slots.free_for_the_end(slots.take(stage));
            let taken = || slots.taken(stage).load(Ordering::SeqCst);
            tokio::pin!(next);
            assert!(futures_util::poll!(&mut next).is_pending(), "{stage}: one more than {most}");
            assert_eq!(taken(), 1, "{stage}: it keeps its slot");
            // The other stage is held up by none of them.
            let other = if stage == Stage::Parse { Stage::Download } else { Stage::Parse };
            assert!(slots.free_for_the_end(slots.take(other)).await.is_some());
            ends.pop();
            assert!(next.await.is_some());
            assert_eq!(taken(), 0, "{stage}");
        }
    }

    #[test]
    fn parses_are_taken_along_up_to_a_number_and_to_bytes_and_claimed_ones_have_slots_of_their_own() {
        let slots = Slots::new(Role::Both);
        let taken: Vec<Slot> = std::iter::from_fn(|| slots.take_along(1_000)).collect();
        assert_eq!((taken.len(), slots.free()), (slots.along, (0, slots.parse)));
        assert!(!slots.has_parses_to_spare());
        let claimed = slots.take(Stage::Parse);
        drop(taken);
        assert_eq!(slots.free(), (0, slots.parse - 1));
        assert!(slots.has_parses_to_spare());
        drop(claimed);
        assert_eq!(slots.free(), (0, slots.parse));
        let large: Vec<Slot> = std::iter::from_fn(|| slots.take_along(8 << 20)).collect();
        assert_eq!(large.len(), MOST_ALONG / (8 << 20));
        drop(large);
        assert!(slots.take_along(MOST_ALONG).is_some() && slots.take_along(MOST_ALONG + 1).is_none());
        assert!(Slots::new(Role::Download).take_along(0).is_none());
    }
}
