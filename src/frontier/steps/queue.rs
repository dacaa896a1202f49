//! What people do to downloads that wait: look at them, and drop them, raise or lower them, move them to another lane (N5).

use super::{Done, Moment};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{EPOCH, Place, Task};
use crate::frontier::step::QueueChange;
use crate::frontier::view::{QueuePlace, Queued};
use crate::task::{LANE, Priority, Stage};

/// The most that one step lists.
pub(in crate::frontier) const QUEUE_LISTED: u32 = 1_000;

impl<S: Shelf> Moment<'_, S> {
    /// Waiting downloads of a lane behind that place, in order; none: there is no such site.
    pub(super) fn queue(
        &mut self,
        site: &str,
        lane: &str,
        after: Option<QueuePlace>,
        most: u32,
    ) -> Done<S, Option<Vec<Queued>>> {
        let Some(site) = self.shelf.site(site)? else { return Ok(None) };
        // Those before are hosts' robots.txt.
        let after = after
            .map_or((Priority::ROBOTS, i64::MAX), |place| (place.priority, place.put_at.as_millis() - EPOCH));
        let tasks = self.behind(&site, Stage::Download, lane, after, most.min(QUEUE_LISTED))?;
        Ok(Some(tasks.into_iter().map(queued).collect()))
    }

    /// Changes those of the pages that wait as they were seen to; how many they are.
    pub(super) fn requeue(
        &mut self,
        name: &str,
        urls: Vec<CanonicalUrl>,
        change: &QueueChange,
    ) -> Done<S, Option<u32>> {
        let Some(mut site) = self.shelf.site(name)? else { return Ok(None) };
        let mut changed = 0;
        for url in urls {
            let task = self.shelf.task(site.page(&url), Stage::Download)?;
            let Some(mut task) = task.filter(|task| is_as_seen(task, change)) else { continue };
            changed += 1;
            match change {
                QueueChange::Drop => {
                    self.drop_task(&mut site, &task)?;
                }
                QueueChange::Priority { to, .. } => {
                    task.priority = *to;
                    self.shelf.save_task(&task)?;
                }
                QueueChange::Lane { to, .. } => {
                    let lane = Some(to.clone()).filter(|lane| lane != LANE);
                    self.change_lane(&mut site, &mut task, lane)?;
                }
            }
        }
        self.save(&site)?;
        Ok(Some(changed))
    }
}

/// Somebody may have asked for it otherwise since.
fn is_as_seen(task: &Task, change: &QueueChange) -> bool {
    let waits = task.place == Place::Waiting && task.rare.errand.is_none();
    waits
        && match change {
            QueueChange::Drop => true,
            // The steps of a session keep their order.
            QueueChange::Priority { from, .. } => task.priority == *from && task.rare.session.is_none(),
            QueueChange::Lane { from, .. } => task.queued_in().unwrap_or(LANE) == from,
        }
}

fn queued(task: Task) -> Queued {
    Queued {
        url: task.url,
        priority: task.priority,
        put_at: Timestamp::from_millis(EPOCH + task.position),
        depth: task.depth,
        lane: task.rare.lane,
        tenant: task.rare.tenant,
        batches: task.rare.batches,
    }
}
