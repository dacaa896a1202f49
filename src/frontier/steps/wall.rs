//! Walls: a site that refuses without saying for how long is left alone but for one probe at a time (W2-W6). Refusals like 403
//! wall their site, all others its unit; what holds for one holds for the other.

use super::{Done, Moment};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{Place, Probe, SiteState, SlowStart, Start, Task, UnitState, Wall, WorkScope};
use crate::manners::slow_start::{FORGIVEN_AFTER, LEAST_BLOCK};
use crate::task::{LANE, LeaseKey, Outcome, PageKey, Stage, WallSighting};

impl<S: Shelf> Moment<'_, S> {
    /// A body ended that refuses: that holds even where the lease is lost. Whether the lease is held.
    pub(super) fn refuse(&mut self, lease: &LeaseKey, refusal: &WallSighting) -> Done<S, bool> {
        let asked_at = self.leased(lease)?.and_then(|task| task.running().map(|running| running.granted_at));
        let Some(mut site) = self.shelf.site(&lease.site)? else { return Ok(false) };
        let mut unit = self.unit_or_new(&site.unit)?;
        for wall in [&mut site.wall, &mut unit.wall].into_iter().flatten() {
            if wall.probe.take_if(|probe| probe.token == lease.token).is_some() {
                wall.refused += 1;
            }
        }
        self.find_wall(&mut site, &mut unit, lease.url.as_str(), refusal, asked_at);
        self.shelf.save_site(&site)?;
        self.save_unit(&unit)?;
        self.landed(lease, None)
    }

    /// Somebody without a lease asked for a page: it was refused, or else it came, which ends the walls before it. False: there
    /// is no such site.
    pub(super) fn probed(&mut self, name: &str, url: &str, refusal: Option<&WallSighting>) -> Done<S, bool> {
        let Some(mut site) = self.shelf.site(name)? else { return Ok(false) };
        let mut unit = self.unit_or_new(&site.unit)?;
        let now = self.now;
        match refusal {
            None => pass(&mut site, &mut unit, now, |_| true),
            Some(refusal) => {
                for wall in [&mut site.wall, &mut unit.wall].into_iter().flatten() {
                    wall.refused += 1;
                    wall.probed(now, refusal.dice);
                }
                self.find_wall(&mut site, &mut unit, url, refusal, Some(now));
            }
        }
        self.shelf.save_site(&site)?;
        self.retime(&unit)?;
        Ok(true)
    }

    /// The next probe of a site, and of its unit, is due now. False: no wall is known.
    pub(super) fn resume(&mut self, name: &str) -> Done<S, bool> {
        let Some(mut site) = self.shelf.site(name)? else { return Ok(false) };
        let mut unit = self.unit_or_new(&site.unit)?;
        let mut is_walled = false;
        for wall in [&mut site.wall, &mut unit.wall].into_iter().flatten() {
            wall.probe_at = self.now;
            is_walled = true;
        }
        self.shelf.save_site(&site)?;
        self.save_unit(&unit)?;
        Ok(is_walled)
    }

    /// A refusal is a new wall where none is known, and where it isn't one of those that were in flight together: what was asked
    /// for before the last wall ended tells nothing new (W5). Nor does what was asked for nobody knows when.
    fn find_wall(
        &self,
        site: &mut SiteState,
        unit: &mut UnitState,
        url: &str,
        refusal: &WallSighting,
        asked_at: Option<i64>,
    ) {
        let is_old = |slow: Option<SlowStart>| {
            slow.is_some_and(|slow| asked_at.is_none_or(|at| at < slow.until - FORGIVEN_AFTER))
        };
        let is_known = site.wall.is_some() || unit.wall.is_some();
        if is_known || is_old(site.slow) || is_old(unit.slow) {
            return;
        }
        let page = (site.name.as_str(), url);
        let ahead = |last: Option<Start>| last.filter(|start| start.at > self.now).map(|start| start.token);
        if refusal.of_site {
            site.wall = Some(Wall::found(page, refusal, (site.slow, ahead(site.last)), self.now));
        } else {
            unit.wall = Some(Wall::found(page, refusal, (unit.slow, ahead(unit.last)), self.now));
        }
    }

    /// A refused page goes back behind the others, no attempt counted.
    pub(super) fn stand_back(&mut self, site: &mut SiteState, mut task: Task) -> Done<S> {
        task.rare.returned = true;
        self.absorb(site, &mut task, self.now)?;
        task.position = site.next_position(self.now);
        self.shift(site, &mut task, Place::Waiting)
    }

    /// A task ended: if it was a probe, and what came is an answer of the site's own, the wall is gone. A `robots.txt` that had to
    /// be read first is no answer: the probe is due still.
    pub(super) fn ends_probe(&mut self, site: &mut SiteState, token: u64, outcome: &Outcome) -> Done<S> {
        let (is_answer, is_read) = match outcome {
            Outcome::Done { .. } | Outcome::Redirected { .. } => (true, false),
            Outcome::Dead { why } => (why.status.is_some(), false),
            Outcome::Robots(record) => (false, !record.is_unreachable()),
            _ => (false, false),
        };
        let mut unit = self.unit_or_new(&site.unit)?;
        let is_probe = |wall: &Wall| wall.is_probed_by(token);
        if !(is_answer || is_read) || ![&site.wall, &unit.wall].into_iter().flatten().any(is_probe) {
            return Ok(());
        }
        if is_answer {
            pass(site, &mut unit, self.now, is_probe);
        } else {
            let walls = [&mut site.wall, &mut unit.wall].into_iter().flatten();
            walls.for_each(|wall| wall.unprobed(token, self.now));
        }
        self.shelf.save_site(site)?;
        self.retime(&unit)
    }

    /// How the wall looks that the lease of a download is a probe of.
    pub(super) fn probe_of(&mut self, site: &SiteState, token: u64) -> Done<S, Option<u32>> {
        let unit = self.shelf.unit(&site.unit)?;
        let walls = [site.wall.as_ref(), unit.as_ref().and_then(|unit| unit.wall.as_ref())];
        Ok(walls.into_iter().flatten().find(|wall| wall.is_probed_by(token)).map(|wall| wall.looks))
    }

    /// The site whose page a unit refused first, where that can be asked for and its own wait is over by then.
    pub(super) fn first_refused(
        &mut self,
        unit: &UnitState,
        scope: &WorkScope,
        by: i64,
    ) -> Done<S, Option<String>> {
        let Some(wall) = unit.wall.as_ref().filter(|wall| wall.asks_for().is_some()) else { return Ok(None) };
        let site = self
            .shelf
            .site(&wall.site)?
            .filter(|site| site.unit == unit.name && site.is_ready_for(Stage::Download, scope));
        Ok(site.filter(|site| site.waits_until() <= by).map(|site| site.name))
    }

    /// The page that was refused first, where it waits in a lane of the scope: the unit's, or the site's own.
    pub(super) fn refused_page(
        &mut self,
        site: &SiteState,
        unit: &UnitState,
        scope: &WorkScope,
    ) -> Done<S, Option<Task>> {
        for url in [&unit.wall, &site.wall].into_iter().flatten().filter_map(Wall::asks_for) {
            let Ok(url) = crate::canonical_url::CanonicalUrl::parse(url) else { continue };
            let task = self.shelf.task(PageKey { site: &site.name, url: &url }, Stage::Download)?;
            let may_go =
                |task: &Task| task.place == Place::Waiting && scope.serves(task.queued_in().unwrap_or(LANE));
            if let Some(task) = task.filter(may_go) {
                return Ok(Some(task));
            }
        }
        Ok(None)
    }

    /// One probe at a time: where the last one is still under way, the next is put off. Whether it is.
    pub(super) fn awaits_probe(
        &mut self,
        site: &mut SiteState,
        unit: &mut UnitState,
        soonest: i64,
    ) -> Done<S, bool> {
        let mut is_under_way = false;
        for wall in [&mut site.wall, &mut unit.wall].into_iter().flatten() {
            let Some(Probe { token, site, url }) = wall.probe.clone() else { continue };
            let Ok(url) = crate::canonical_url::CanonicalUrl::parse(&url) else { continue };
            let lease = LeaseKey { token, site, stage: Stage::Download, url };
            if self.leased(&lease)?.is_some() {
                wall.probe_at = soonest.saturating_add(wall.first);
                is_under_way = true;
            }
        }
        Ok(is_under_way)
    }
}

/// Marks a start as the probe of the walls before it.
pub(super) fn begin_probe(
    (site, unit): (&mut SiteState, &mut UnitState),
    (token, url): (u64, &str),
    at: i64,
    dice: u32,
) {
    let probe = Probe { token, site: site.name.clone(), url: url.to_owned() };
    for wall in [&mut site.wall, &mut unit.wall].into_iter().flatten() {
        wall.probe = Some(probe.clone());
        wall.probed(at, dice);
    }
}

/// Whether a start that was granted before a wall was found is void: it is no probe of it.
pub(super) fn is_walled_against(site: &SiteState, unit: &UnitState, token: u64) -> bool {
    [&site.wall, &unit.wall].into_iter().flatten().any(|wall| !wall.is_probed_by(token))
}

/// What follows a block that lasts until then.
pub(super) fn after_block(before: Option<SlowStart>, until: i64, now: i64) -> Option<SlowStart> {
    if until - now >= LEAST_BLOCK { Some(SlowStart::after_block(until, before, now)) } else { before }
}

/// These walls are gone; what comes next is asked for slowly at first.
fn pass(site: &mut SiteState, unit: &mut UnitState, now: i64, is_over: impl Fn(&Wall) -> bool) {
    if let Some(wall) = site.wall.take_if(|wall| is_over(wall)) {
        site.slow = Some(wall.left_behind(now));
    }
    if let Some(wall) = unit.wall.take_if(|wall| is_over(wall)) {
        unit.slow = Some(wall.left_behind(now));
    }
}
