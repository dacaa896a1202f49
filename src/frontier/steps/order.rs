//! Which waiting task of a lane goes first, and which ones follow it. A store has them by priority, then position; the order of
//! deadlines is that of the first ones of each priority.

use super::{Done, Moment};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{SiteState, Task, deadline};
use crate::task::{Priority, Stage, TaskOrder};

impl<S: Shelf> Moment<'_, S> {
    /// The task of a lane that goes first.
    pub(super) fn first_of_lane(
        &mut self,
        site: &SiteState,
        stage: Stage,
        lane: &str,
    ) -> Done<S, Option<Task>> {
        match site.order {
            TaskOrder::Strict => self.shelf.first_waiting(&site.name, stage, lane),
            TaskOrder::Deadline => {
                Ok(self.first_ones(site, stage, lane)?.into_iter().min_by_key(Task::deadline))
            }
        }
    }

    /// Tasks of a lane behind that place, in order.
    pub(super) fn behind(
        &mut self,
        site: &SiteState,
        stage: Stage,
        lane: &str,
        place: (Priority, i64),
        most: u32,
    ) -> Done<S, Vec<Task>> {
        if site.order == TaskOrder::Strict {
            return self.shelf.waiting_behind(&site.name, stage, lane, place, most);
        }
        let (by, position) = deadline(place.0, place.1);
        let mut found = Vec::new();
        for Task { priority, .. } in self.first_ones(site, stage, lane)? {
            if priority == Priority::ROBOTS {
                continue;
            }
            let same = by.saturating_sub(priority.allowance());
            // One with the very deadline of the place is behind it if it was put later.
            let behind = (priority, if same > position { same - 1 } else { same });
            let tasks = self.shelf.waiting_behind(&site.name, stage, lane, behind, most)?;
            found.extend(tasks.into_iter().take_while(|task| task.priority == priority));
        }
        found.sort_by_key(Task::deadline);
        found.truncate(most as usize);
        Ok(found)
    }

    /// The first task of each priority: as many looks as there are priorities.
    fn first_ones(&mut self, site: &SiteState, stage: Stage, lane: &str) -> Done<S, Vec<Task>> {
        let mut first_ones = Vec::new();
        let mut next = self.shelf.first_waiting(&site.name, stage, lane)?;
        while let Some(task) = next {
            let behind = (task.priority, i64::MAX);
            first_ones.push(task);
            next = self.shelf.waiting_behind(&site.name, stage, lane, behind, 1)?.pop();
        }
        Ok(first_ones)
    }
}
