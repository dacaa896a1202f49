//! The claim: a due unit, its timed mutex, a ready site, its first task, a lease. One step, bounded (I16).

use std::time::Duration;

use super::away::{Errand, TIDIED};
use super::wall::begin_probe;
use super::{Done, Moment};
use crate::clock::millis;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    AwayHost, Place, Running, SiteState, SlowStart, Start, Task, Turn, UnitState, UnitWait, WorkScope, nth_of,
};
use crate::frontier::step::{Claim, Grant};
use crate::manners::lead_ms;
use crate::task::{Departure, Exclusion, Lease, Stage, UnitPick};

/// Units looked at in one step.
pub(in crate::frontier) const LOOKS: u32 = 64;
/// A choice is made among one part in so many of the due units: those that are due longest.
pub(in crate::frontier) const PARTS: u32 = 4;
/// The most due units that one choice is among, and the most ready sites of a unit.
pub(in crate::frontier) const WIDEST: u32 = 64;
/// The longest lead that is given to one whose answers are slow, in ms.
pub(in crate::frontier) const LONGEST_LEAD: i64 = 1_000;

impl<S: Shelf> Moment<'_, S> {
    /// Grants up to as many tasks as asked for.
    pub(super) fn claim(&mut self, claim: &Claim) -> Done<S, Grant> {
        let Some(mut owner) = self.shelf.owner(&claim.owner)?.filter(|owner| !owner.dead) else {
            return Ok(Grant { buried: true, ..Grant::default() });
        };
        let scope = owner.scope.clone();
        if let Some((token, granted)) = owner.last.claimed
            && token == claim.token
        {
            let leases = self.granted_before(&claim.owner, token, granted)?;
            return Ok(Grant { leases, next_in: self.next_in(claim, &scope)?, ..Grant::default() });
        }
        let lost = self.free_lost_leases()?;
        self.promote()?;
        self.look_at_hosts()?;
        let (shelf, now) = (&mut *self.shelf, self.now);
        let at = Moment { shelf, now };
        let mut round = Round { at, claim, scope: &scope, tidied: 0, was_cut: false, leases: Vec::new() };
        round.serve(Stage::Download, claim.download)?;
        round.serve(Stage::Parse, claim.parse)?;
        let Round { leases, was_cut, .. } = round;
        owner.last.claimed = Some((claim.token, leases.len() as u64));
        self.shelf.save_owner(&claim.owner, &owner)?;
        let next_in = if was_cut { Some(0) } else { self.next_in(claim, &scope)? };
        Ok(Grant { leases, next_in, buried: false, lost })
    }

    /// The same claim again, its answer having been lost: the same tasks, as far as they still run.
    fn granted_before(&mut self, owner: &str, token: u64, granted: u64) -> Done<S, Vec<Lease>> {
        let mut leases = Vec::new();
        for token in (0..granted).map(|i| token.wrapping_add(i)) {
            if let Some(task) = self.shelf.granted(owner, token)? {
                leases.extend(self.lease_of(&task)?);
            }
        }
        Ok(leases)
    }

    /// Delayed tasks whose time has come wait again, in their old position.
    fn promote(&mut self) -> Done<S> {
        for mut task in self.shelf.overdue(self.now, TIDIED)? {
            if let Some(mut site) = self.shelf.site(&task.site)? {
                self.shift(&mut site, &mut task, Place::Waiting)?;
                self.save(&site)?;
            }
        }
        Ok(())
    }

    /// When something more can be claimed, if nothing else happens: never later than the first such moment (L1).
    ///
    /// What a bounded step left over is in the past: a lease that ended, a delayed task, a due unit. So it is 0 then.
    fn next_in(&mut self, claim: &Claim, scope: &WorkScope) -> Done<S, Option<i64>> {
        let mut soonest = None;
        for (wanted, stage) in [(claim.download, Stage::Download), (claim.parse, Stage::Parse)] {
            let most = if wanted > 0 { Turn::TOLD } else { 0 };
            let best = Turn::that_comes(Turn::best(&self.shelf.next_turns(stage, scope, most)?));
            if best.is_some_and(|at| at <= self.now) {
                return Ok(Some(0));
            }
            soonest = [soonest, best].into_iter().flatten().min();
        }
        let away = self.shelf.first_away()?.map(|host| host.at).filter(|at| *at < AwayHost::NEVER);
        let times = [soonest, self.shelf.next_delayed()?, self.shelf.next_lease_end()?, away];
        Ok(times.into_iter().flatten().min().map(|at| at.saturating_sub(self.now).max(0)))
    }
}

/// What is to become of the first task of a queue.
enum Found {
    /// It is granted.
    Wanted,
    /// The `robots.txt` of its host is granted instead.
    Errand(Box<Task>),
    /// It ends.
    Unwanted(Exclusion),
    /// Its host can't be reached, and is looked at again then.
    Away(i64),
}

/// One claim under way.
struct Round<'a, S> {
    at: Moment<'a, S>,
    claim: &'a Claim,
    scope: &'a WorkScope,
    tidied: u32,
    /// A look ended before what was to be tidied away.
    was_cut: bool,
    leases: Vec<Lease>,
}

impl<S: Shelf> Round<'_, S> {
    /// Random among the longest due or the longest due itself, until enough is granted or nothing is due. What has more to be tidied away than one step
    /// does stands behind all others that are due.
    fn serve(&mut self, stage: Stage, wanted: u32) -> Done<S> {
        let enough = self.leases.len() + wanted as usize;
        for look in 0..LOOKS {
            if self.leases.len() >= enough {
                return Ok(());
            }
            let is_cut = self.tidied >= TIDIED;
            let by = Turn::at(self.at.now - i64::from(is_cut));
            let due = self.at.shelf.due_count(stage, by, self.scope, WIDEST * PARTS)?;
            let dice = pick(&self.claim.dice, look);
            let turn = dice % self.window(due)?;
            let Some(name) = self.at.shelf.nth_due(stage, by, self.scope, turn)? else { return Ok(()) };
            let Some(unit) = self.at.shelf.unit(&name)? else { return Ok(()) };
            self.look_at(stage, unit, dice / WIDEST)?;
        }
        Ok(())
    }

    /// Among how many of the longest due the choice is: a quarter of them. Among all of a few units, those that are due longest
    /// would wait for many times as long as where the earliest is always taken (L2).
    fn window(&mut self, due: u32) -> Done<S, u32> {
        let quarter = (due / PARTS).clamp(1, WIDEST);
        let is_earliest = quarter > 1 && self.at.shelf.fleet()?.rules.pick == UnitPick::Earliest;
        Ok(if is_earliest { 1 } else { quarter })
    }

    fn look_at(&mut self, stage: Stage, mut unit: UnitState, dice: u32) -> Done<S> {
        // An outsider's lock moves the due time to its end.
        if stage == Stage::Download
            && let Some(held) = self.at.held_outside(&unit)?
        {
            unit.held_until = held.until;
            return self.at.save_unit(&unit);
        }
        let Some((name, soonest)) = self.choose(stage, &unit, dice)? else { return Ok(()) };
        let Some(mut site) = self.at.shelf.site(&name)? else { return Ok(()) };
        if stage == Stage::Download && self.at.awaits_probe(&mut site, &mut unit, soonest)? {
            self.at.shelf.save_site(&site)?;
            return self.at.save_unit(&unit);
        }
        let lanes = dice / WIDEST;
        if let Some(task) = self.first_wanted(&mut site, &mut unit, stage, (soonest, lanes))? {
            self.grant(&mut site, &mut unit, task, soonest)?;
        }
        if stage == Stage::Parse {
            unit.parsed_at = self.at.now;
            unit.parsed_site = if name == unit.name { String::new() } else { name };
        }
        self.at.shelf.save_site(&site)?;
        self.at.save_unit(&unit)
    }

    /// One of the unit's ready sites; and when its next start is. For a download it is random among those whose own wait is
    /// over by then, of the ones that are so longest; parses take turns by name.
    fn choose(&mut self, stage: Stage, unit: &UnitState, dice: u32) -> Done<S, Option<(String, i64)>> {
        if stage == Stage::Parse {
            let name = self.at.shelf.next_parse(&unit.name, self.scope, &unit.parsed_site)?;
            return Ok(name.map(|name| (name, i64::MAX)));
        }
        let (wait, now) = (self.at.wait_of(unit)?, self.at.now);
        let first = self.at.first_of(unit, self.scope)?;
        let soonest = unit.ends(wait).max(first).max(now + self.lead(wait));
        if let Some(name) = self.at.first_refused(unit, self.scope, soonest)? {
            return Ok(Some((name, soonest)));
        }
        let mut ready = self.at.shelf.ready_by(&unit.name, self.scope, soonest, WIDEST)?;
        let by_chance = ready.len() < 2 || self.at.shelf.fleet()?.rules.pick == UnitPick::Random;
        let dice = if by_chance { dice } else { 0 };
        let chosen = nth_of(ready.len(), dice).map(|n| ready.swap_remove(n));
        Ok(chosen.map(|name| (name, soonest)))
    }

    /// How long before it a start is granted at the latest: its asker may know that answers take longer.
    fn lead(&self, wait: i64) -> i64 {
        if wait > 0 { lead_ms(wait).max(self.claim.lead.clamp(0, LONGEST_LEAD)) } else { 0 }
    }

    /// The first task that is still wanted and may go now, to start `soonest`; those before it are tidied away.
    fn first_wanted(
        &mut self,
        site: &mut SiteState,
        unit: &mut UnitState,
        stage: Stage,
        (soonest, dice): (i64, u32),
    ) -> Done<S, Option<Task>> {
        let starts = if stage == Stage::Download { soonest } else { self.at.now };
        let is_download = stage == Stage::Download;
        let mut refused = if is_download { self.at.refused_page(site, unit, self.scope)? } else { None };
        loop {
            let first = match refused.take() {
                None => self.at.first_in_lane(site, stage, self.scope, dice)?,
                first => first,
            };
            let Some(mut task) = first else { return Ok(None) };
            let errand = task.rare.errand.is_some() && site.settings.robots;
            let found = if !errand && task.rare.expires.is_some_and(|expires| expires <= starts) {
                Found::Unwanted(Exclusion::Expired)
            } else if stage == Stage::Parse || !site.settings.robots {
                task.rare.errand = None;
                return Ok(Some(task));
            } else {
                self.at.past_robots(site, unit, &task, starts)?
            };
            if let Found::Errand(errand) = found {
                return Ok(Some(*errand));
            }
            if matches!(found, Found::Wanted) {
                return Ok(Some(task));
            }
            if self.tidied >= TIDIED {
                self.was_cut = true;
                if stage == Stage::Download {
                    self.at.stand_behind(unit)?;
                }
                return Ok(None);
            }
            self.tidied += 1;
            match found {
                Found::Unwanted(why) => self.at.exclude(site, task, why)?,
                Found::Away(at) => self.at.park(site, task, at)?,
                Found::Wanted | Found::Errand(_) => {}
            }
        }
    }

    /// Leases the task, a download with the start that comes `soonest`; not where its site turned out to wait longer.
    fn grant(&mut self, site: &mut SiteState, unit: &mut UnitState, mut task: Task, soonest: i64) -> Done<S> {
        let token = self.claim.token.wrapping_add(self.leases.len() as u64);
        let mut departure = Departure::default();
        if task.stage == Stage::Download {
            departure = Departure { at: soonest, unit: self.at.wait_of(unit)?, site: site.interval() };
            departure.at = soonest.max(self.at.now + self.lead(departure.unit.max(departure.site)));
            if unit.ends(departure.unit).max(site.waits_until()) > departure.at {
                return Ok(());
            }
            self.at.start(site, unit, token, departure)?;
            let dice = pick(&self.claim.dice, u32::try_from(self.leases.len()).unwrap_or(0));
            begin_probe((site, unit), (token, task.url.as_str()), departure.at, dice);
        }
        if task.rare.errand.is_some() {
            site.errand = Some(token);
        }
        task.rare.begun = task.rare.session.is_some();
        self.at.ends_wait(&task)?;
        let (fence, now) = (site.next_fence(self.at.now), self.at.now);
        let running = Running::granted(task.stage, token, &self.claim.owner, fence, departure, now);
        self.at.shift(site, &mut task, Place::Running(running))?;
        self.at.shelf.save_site(site)?;
        let lease = self.at.lease_of(&task)?;
        // The unit is saved later.
        let wall = unit.wall.as_ref().filter(|_| task.stage == Stage::Download).map(|wall| wall.looks);
        self.leases.extend(lease.map(|lease| Lease { probe_of: lease.probe_of.or(wall), ..lease }));
        Ok(())
    }
}

impl<S: Shelf> Moment<'_, S> {
    /// What the `robots.txt` of its host makes of a task. The record must hold when the task `starts`.
    fn past_robots(
        &mut self,
        site: &mut SiteState,
        unit: &mut UnitState,
        task: &Task,
        starts: i64,
    ) -> Done<S, Found> {
        let origin = task.url.origin();
        let record = match task.rare.errand {
            Some(_) => None,
            None => self.shelf.robots_brief(&origin)?.filter(|robots| robots.until > starts),
        };
        if let Some(robots) = record.as_ref().filter(|robots| robots.unreachable.is_none()) {
            follow_floor(site, &origin, robots.crawl_delay);
            unit.share_floor(&site.name, &origin);
            return Ok(Found::Wanted);
        }
        if !self.is_of(&site.name, &origin)? {
            return Ok(Found::Unwanted(Exclusion::Scope));
        }
        if let Some(robots) = record {
            return Ok(Found::Away(robots.until));
        }
        if task.rare.errand.is_some() {
            return Ok(Found::Wanted);
        }
        Ok(match self.errand(site, task.url.robots_txt())? {
            Errand::Task(errand) => Found::Errand(errand),
            Errand::LookAt(at) => Found::Away(at),
        })
    }

    /// The unit's turn is behind all that are due now.
    fn stand_behind(&mut self, unit: &mut UnitState) -> Done<S> {
        let ahead = unit.ahead(self.wait_of(unit)?);
        unit.not_before = unit.not_before.max(self.now + ahead);
        Ok(())
    }

    /// The unit's start and its site's: the timed mutex is taken for the wait in force and never released.
    fn start(
        &mut self,
        site: &mut SiteState,
        unit: &mut UnitState,
        token: u64,
        departure: Departure,
    ) -> Done<S> {
        let start = Start::of(token, departure, unit.last);
        unit.before = unit.last.replace(start);
        site.before = site.last.replace(Start::of(token, departure, site.last));
        unit.slow = unit.slow.and_then(|slow| slow.after_start(self.now));
        site.slow = site.slow.and_then(|slow| slow.after_start(self.now));
        (unit.held_until, unit.turn) = (0, 0);
        site.tuned.tidy(self.now);
        site.running += 1;
        site.starts += 1;
        if departure.unit == 0 {
            return Ok(());
        }
        // With this start a slow start may be over: outsiders wait no longer than the unit itself.
        let wait = match unit.wait {
            UnitWait::Own => SlowStart::lengthens(unit.slow, site.interval()),
            _ => self.wait_of(unit)?,
        };
        self.take_mutex(unit, token, start.ends(wait))
    }
}

/// What a `robots.txt` asks of the pace holds for every site that has its host, whichever of a group has read it.
fn follow_floor(site: &mut SiteState, origin: &str, crawl_delay: Option<Duration>) {
    match crawl_delay.map(millis) {
        Some(floor) if site.floors.get(origin) != Some(&floor) => {
            site.floors.insert(origin.to_owned(), floor);
        }
        None if !site.floors.is_empty() => drop(site.floors.remove(origin)),
        _ => {}
    }
}

fn pick(dice: &[u32], look: u32) -> u32 {
    if dice.is_empty() { 0 } else { dice[look as usize % dice.len()] }
}
