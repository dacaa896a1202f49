//! Batches (N4): each name that a task, a further run of it or a dead letter carries is a page of that batch, and is counted
//! by its site. A name that moves from one of them to another is the same page.

use super::{Done, Moment};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{BATCHES_KEPT, BatchCounts, BatchEnd, BatchJoin, DeadState, SiteState, Task};
use crate::task::{BatchNames, Put};

/// Batches that ended, forgotten whenever one ends.
pub(in crate::frontier) const BATCHES_SWEPT: u32 = 2;

impl<S: Shelf> Moment<'_, S> {
    /// The books of a batch on a site; none where it has none, or no more.
    pub(super) fn batch(&mut self, site: &str, name: &str) -> Done<S, Option<BatchCounts>> {
        Ok(self.shelf.batch(site, name)?.filter(|batch| !batch.is_over(self.now)))
    }

    fn save_batch(&mut self, site: &SiteState, name: &str, mut batch: BatchCounts) -> Done<S> {
        let had_ended = batch.ended_at.is_some();
        // A campaign's goes on with its next portion.
        if !BatchNames::is_of_campaign(name) {
            batch.note_end(self.now);
        }
        self.shelf.save_batch(&site.name, name, &batch)?;
        if batch.ended_at.is_some() && !had_ended { self.sweep_batches(site, BATCHES_SWEPT) } else { Ok(()) }
    }

    /// The batches of a put are those of a task, or of a further run, as well. The target of a redirect goes without those that it
    /// has no room for.
    pub(super) fn join_batches(
        &mut self,
        site: &SiteState,
        names: &mut BatchNames,
        put: &Put,
        how: BatchJoin,
    ) -> Done<S> {
        let how = if put.hops > 0 { BatchJoin::Target } else { how };
        for name in &put.batches {
            if names.contains(name) || !names.has_room_for(name) {
                continue;
            }
            names.add(name.clone());
            let mut batch = self.batch(&site.name, name)?.unwrap_or_else(|| BatchCounts::new(self.now));
            batch.join(how);
            self.save_batch(site, name, batch)?;
        }
        Ok(())
    }

    /// A request that asks for nothing joins no batch, but whoever looks is told of it.
    pub(super) fn know_in_batches(&mut self, site: &SiteState, put: &Put) -> Done<S> {
        for name in put.batches.iter().filter(|_| put.hops == 0) {
            let mut batch = self.batch(&site.name, name)?.unwrap_or_else(|| BatchCounts::new(self.now));
            batch.known += 1;
            self.save_batch(site, name, batch)?;
        }
        Ok(())
    }

    /// Pages end in their batches.
    pub(super) fn end_batches(&mut self, site: &SiteState, names: BatchNames, how: BatchEnd) -> Done<S> {
        for name in names {
            self.end_batch(site, &name, how)?;
        }
        Ok(())
    }

    pub(super) fn end_batch(&mut self, site: &SiteState, name: &str, how: BatchEnd) -> Done<S> {
        let Some(mut batch) = self.batch(&site.name, name)? else { return Ok(()) };
        batch.end(how);
        self.save_batch(site, name, batch)
    }

    /// Pages go on as those that carry `names`. What has no room there is done.
    pub(super) fn carry_batches(
        &mut self,
        site: &SiteState,
        names: &mut BatchNames,
        carried: BatchNames,
    ) -> Done<S> {
        for name in carried {
            if names.contains(&name) {
                self.end_batch(site, &name, BatchEnd::Merged)?;
            } else if names.has_room_for(&name) {
                names.add(name);
            } else {
                self.end_batch(site, &name, BatchEnd::Done)?;
            }
        }
        Ok(())
    }

    /// A task and what met it go together.
    pub(super) fn end_batches_of(&mut self, site: &SiteState, task: &Task, how: BatchEnd) -> Done<S> {
        self.end_batches(site, task.rare.batches.clone(), how)?;
        match &task.rare.deferral {
            Some(deferral) => self.end_batches(site, deferral.batches.clone(), how),
            None => Ok(()),
        }
    }

    /// A dead letter comes back: its batches that are still known.
    pub(super) fn revive_batches(&mut self, site: &SiteState, letter: &DeadState) -> Done<S, BatchNames> {
        let mut names = BatchNames::default();
        for name in &letter.batches {
            if self.undo_death(site, name, letter.died_at, None)? {
                names.add(name.clone());
            }
        }
        Ok(names)
    }

    /// A dead letter is put away.
    pub(super) fn drop_batches(&mut self, site: &SiteState, names: &BatchNames, died_at: i64) -> Done<S> {
        let then = Some(BatchEnd::Dropped);
        names.iter().try_for_each(|name| self.undo_death(site, name, died_at, then).map(drop))
    }

    /// Whether there was such a death: one from before its beginning was another batch's of that name.
    fn undo_death(
        &mut self,
        site: &SiteState,
        name: &str,
        died_at: i64,
        then: Option<BatchEnd>,
    ) -> Done<S, bool> {
        let counts_it = |batch: &BatchCounts| batch.dead > 0 && died_at >= batch.began_at;
        let Some(mut batch) = self.batch(&site.name, name)?.filter(counts_it) else { return Ok(false) };
        batch.dead -= 1;
        if let Some(how) = then {
            batch.end(how);
        }
        self.save_batch(site, name, batch)?;
        Ok(true)
    }

    /// Forgets batches that ended long ago, or before as many others as are kept: so many at most.
    pub(super) fn sweep_batches(&mut self, site: &SiteState, most: u32) -> Done<S> {
        let over = self.shelf.count_ended_batches(&site.name)?.saturating_sub(BATCHES_KEPT);
        for (place, (at, name)) in (0..).zip(self.shelf.ended_batches(&site.name, most)?) {
            let batch = BatchCounts { ended_at: Some(at), ..BatchCounts::default() };
            if place < over || batch.is_over(self.now) {
                self.shelf.remove_batch(&site.name, &name)?;
            }
        }
        Ok(())
    }
}
