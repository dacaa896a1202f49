//! What flows through a site's queue: its books every five minutes (N1, N3), and how long its pages waited (N2).

use super::{Done, Moment};
use crate::clock::Timestamp;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    EPOCH, HOUR_SLOTS, MOST_WAITS, OldestWaiting, QueueBooks, QueueFlow, RUN_SLOT, SiteState, Task,
    WAITS_KEPT, WaitKey, slot_of,
};
use crate::task::Stage;

impl<S: Shelf> Moment<'_, S> {
    /// Before the books of a site's downloads change: the first change of a slot keeps them as they were.
    pub(super) fn books_change(&mut self, site: &SiteState) -> Done<S> {
        self.shelf.open_slot(&site.name, slot_of(self.now), QueueBooks::of(&site.download))
    }

    /// A run begins.
    pub(super) fn run_begins(&mut self, site: &SiteState) -> Done<S> {
        self.shelf.open_run(&site.name, QueueBooks::of(&site.download))
    }

    /// A task is granted: its wait is counted, if it had one.
    pub(super) fn ends_wait(&mut self, task: &Task) -> Done<S> {
        let Some(wait) = WaitKey::of(task, self.now) else { return Ok(()) };
        let (before, slot) = (self.shelf.waits_slot(&task.site)?, slot_of(self.now));
        if before != Some(slot) {
            self.shelf.halve_waits(&task.site, before.map_or(0, |before| slot - before), slot)?;
        }
        self.shelf.add_wait(&task.site, &wait, MOST_WAITS)
    }

    /// What flows through a site's queue.
    pub(super) fn flow(&mut self, name: &str) -> Done<S, Option<QueueFlow>> {
        let Some(site) = self.shelf.site(name)? else { return Ok(None) };
        let (books, kept) = (QueueBooks::of(&site.download), self.shelf.books(name)?);
        let of = |slot: i64| kept.iter().find(|(of, _)| *of == slot).map(|(_, books)| *books);
        // Where a slot has none, nothing changed in it.
        let slots = (0..).zip(0..=HOUR_SLOTS).map(|(back, _)| of(slot_of(self.now) - back));
        let past = slots.scan(books, |books, of| {
            *books = of.unwrap_or(*books);
            Some(*books)
        });
        Ok(Some(QueueFlow {
            at: Timestamp::from_millis(self.now),
            books,
            past: past.collect(),
            run: of(RUN_SLOT),
            waits: self.lately_waited(name)?,
            oldest: self.oldest_of_each(&site)?,
        }))
    }

    /// What was counted of waits, halved by each slot that began since.
    fn lately_waited(&mut self, site: &str) -> Done<S, Vec<(WaitKey, u64)>> {
        let passed = self.shelf.waits_slot(site)?.map(|before| slot_of(self.now) - before);
        let Some(passed) = passed.filter(|passed| *passed < WAITS_KEPT) else { return Ok(Vec::new()) };
        let waits = self.shelf.waits(site)?.into_iter().map(|(wait, count)| (wait, count >> passed));
        Ok(waits.filter(|(_, count)| *count > 0).collect())
    }

    /// The longest waiting download of each lane and priority.
    fn oldest_of_each(&mut self, site: &SiteState) -> Done<S, Vec<OldestWaiting>> {
        let mut oldest = Vec::new();
        for lane in site.download.ready_lanes() {
            let first = self.shelf.first_positions(&site.name, Stage::Download, lane)?;
            oldest.extend(first.into_iter().map(|(priority, position)| OldestWaiting {
                lane: lane.to_owned(),
                priority,
                put_at: Timestamp::from_millis(self.now.min(EPOCH + position)),
            }));
        }
        Ok(oldest)
    }
}
