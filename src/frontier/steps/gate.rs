//! Which lane a task waits in, and which lane the next start is of.

use super::{Done, Moment};
use crate::frontier::shelf::{Shelf, Window};
use crate::frontier::state::{MOST_NOW, SiteState, Task, WorkScope};
use crate::task::{LANE, LaneWish, NOW, Stage};

/// Windows that are over, forgotten with each task that is counted.
pub(in crate::frontier) const SWEPT_WINDOWS: u32 = 2;

impl<S: Shelf> Moment<'_, S> {
    /// A task that is made now gets its lane, which it keeps until it is settled, and is noted as somebody's.
    pub(super) fn stand_in_lane(
        &mut self,
        site: &SiteState,
        task: &mut Task,
        wish: &LaneWish,
        is_later: bool,
    ) -> Done<S> {
        let lane = self.lane_of(site, task.stage, wish, is_later)?;
        task.rare.lane = lane.filter(|lane| lane != LANE);
        task.rare.tenant = wish.tenant.clone().filter(|tenant| Some(tenant) != site.settings.tenant.as_ref());
        Ok(())
    }

    /// The lane that was asked for; else that of the last rule that its tenant's window matches, this task included (F1-F3);
    /// else its site's. What goes where it asked to isn't counted (F7).
    fn lane_of(
        &mut self,
        site: &SiteState,
        stage: Stage,
        wish: &LaneWish,
        is_later: bool,
    ) -> Done<S, Option<String>> {
        if goes_now(site, stage, wish, is_later) {
            return Ok(Some(NOW.to_owned()));
        }
        if wish.lane.is_some() {
            return Ok(wish.lane.clone());
        }
        let tenant = wish.tenant.as_ref().or(site.settings.tenant.as_ref());
        let rule = match tenant {
            Some(tenant) => self.ruled_lane(Window { stage, tenant })?,
            None => None,
        };
        Ok(rule.or_else(|| site.lane().map(str::to_owned)))
    }

    fn ruled_lane(&mut self, window: Window<'_>) -> Done<S, Option<String>> {
        let fleet = self.shelf.fleet()?;
        let rules = fleet.rules.of(fleet.tuned.tenants.get(window.tenant), window.tenant, window.stage);
        let Some(most) = rules.clone().map(|rule| rule.threshold).max() else { return Ok(None) };
        let longest = rules.clone().map(|rule| rule.per).max().unwrap_or(0);
        self.shelf.sweep_windows(self.now, SWEPT_WINDOWS)?;
        self.shelf.count_in(window, self.now, most + 1, self.now + longest + 1)?;
        let mut lane = None;
        for rule in rules {
            let first_of_more = self.shelf.nth_newest(window, rule.threshold)?;
            if first_of_more.is_some_and(|at| at >= self.now - rule.per) {
                lane = Some(rule.lane.clone());
            }
        }
        Ok(lane)
    }

    /// The first task of one of the lanes of the scope that have something ready, drawn anew for each start (F18).
    pub(super) fn first_in_lane(
        &mut self,
        site: &SiteState,
        stage: Stage,
        scope: &WorkScope,
        dice: u32,
    ) -> Done<S, Option<Task>> {
        let counts = site.counted(stage);
        let lane = if counts.lanes.is_empty() {
            Some(LANE).filter(|lane| scope.serves(lane))
        } else {
            let ready: Vec<&str> = counts.ready_lanes().filter(|lane| scope.serves(lane)).collect();
            self.shelf.fleet()?.rules.draw(&ready, dice)
        };
        match lane {
            Some(lane) => self.first_of_lane(site, stage, lane),
            None => Ok(None),
        }
    }
}

/// Whether a put goes before all others: it asked for that, or for as long as there is room and it isn't for later.
pub(super) fn goes_now(site: &SiteState, stage: Stage, wish: &LaneWish, is_later: bool) -> bool {
    let has_room = || site.counted(stage).waiting_in(NOW) < MOST_NOW;
    wish.lane.as_deref() == Some(NOW) || wish.lane.is_none() && wish.urgent && !is_later && has_room()
}
