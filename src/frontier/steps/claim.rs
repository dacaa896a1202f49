//! The claim: a due unit, its timed mutex, a ready site, its first task, a lease. One step, bounded (I16).

use std::time::Duration;

use super::lease::{free_lost_leases, lease_of};
use super::places::{die, enter, finish, save, save_unit, shift};
use super::reasons;
use crate::canonical_url::CanonicalUrl;
use crate::clock::millis;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    BACK_MS, MutexState, Place, Rare, Running, SiteState, Start, Task, UnitState, WorkScope, mutex_token,
};
use crate::frontier::step::{Claim, Grant};
use crate::task::{Exclusion, Failure, Lease, Origin, Priority, Stage};

/// Units looked at in one step.
pub(in crate::frontier) const LOOKS: u32 = 64;
/// A choice is made among one part in so many of the due units: those that are due longest.
pub(in crate::frontier) const PARTS: u32 = 4;
/// The most due units that one choice is among.
pub(in crate::frontier) const WIDEST: u32 = 64;
/// Tasks promoted, and tasks tidied away, in one step.
pub(in crate::frontier) const TIDIED: u32 = 100;

/// Grants up to as many tasks as asked for.
pub(super) fn claim<S: Shelf>(shelf: &mut S, claim: &Claim, now: i64) -> Result<Grant, S::Error> {
    let Some(mut owner) = shelf.owner(&claim.owner)?.filter(|owner| !owner.dead) else {
        return Ok(Grant { buried: true, ..Grant::default() });
    };
    let scope = owner.scope.clone();
    if let Some((token, granted)) = owner.last.claimed
        && token == claim.token
    {
        return repeat(shelf, claim, &scope, granted, now);
    }
    let mut round = Round { shelf, claim, scope: &scope, now, tidied: 0, leases: Vec::new() };
    let lost = free_lost_leases(round.shelf, now)?;
    round.promote()?;
    round.download()?;
    round.parse()?;
    let leases = round.leases;
    owner.last.claimed = Some((claim.token, leases.len() as u64));
    shelf.save_owner(&claim.owner, &owner)?;
    Ok(Grant { leases, next_in: next_in(shelf, claim, &scope, now)?, buried: false, lost })
}

/// The same claim again, its answer having been lost: the same tasks, as far as they still run.
fn repeat<S: Shelf>(
    shelf: &mut S,
    claim: &Claim,
    scope: &WorkScope,
    granted: u64,
    now: i64,
) -> Result<Grant, S::Error> {
    let mut leases = Vec::new();
    for token in (0..granted).map(|i| claim.token.wrapping_add(i)) {
        if let Some(task) = shelf.granted(token)? {
            leases.extend(lease_of(shelf, &task)?);
        }
    }
    Ok(Grant { leases, next_in: next_in(shelf, claim, scope, now)?, ..Grant::default() })
}

/// When something more can be claimed, if nothing else happens: never later than the first such moment (L1).
///
/// What a bounded step left over is in the past: a lease that ended, a delayed task, a due unit. So it is 0 then.
fn next_in<S: Shelf>(
    shelf: &mut S,
    claim: &Claim,
    scope: &WorkScope,
    now: i64,
) -> Result<Option<i64>, S::Error> {
    let mut soonest = None;
    for (wanted, stage) in [(claim.download, Stage::Download), (claim.parse, Stage::Parse)] {
        let due = if wanted > 0 { shelf.next_due(stage, scope)? } else { None };
        if due.is_some_and(|at| at <= now) {
            return Ok(Some(0));
        }
        soonest = [soonest, due].into_iter().flatten().min();
    }
    let times = [soonest, shelf.next_delayed()?, shelf.next_lease_end()?];
    Ok(times.into_iter().flatten().min().map(|at| at.saturating_sub(now).max(0)))
}

/// One claim under way.
struct Round<'a, S> {
    shelf: &'a mut S,
    claim: &'a Claim,
    scope: &'a WorkScope,
    now: i64,
    tidied: u32,
    leases: Vec<Lease>,
}

impl<S: Shelf> Round<'_, S> {
    /// Delayed tasks whose time has come wait again, in their old position.
    fn promote(&mut self) -> Result<(), S::Error> {
        for mut task in self.shelf.overdue(self.now, TIDIED)? {
            if let Some(mut site) = self.shelf.site(&task.site)? {
                shift(self.shelf, &mut site, &mut task, Place::Waiting)?;
                save(self.shelf, &site)?;
            }
        }
        Ok(())
    }

    fn download(&mut self) -> Result<(), S::Error> {
        self.serve(Stage::Download, self.claim.download)
    }

    fn parse(&mut self) -> Result<(), S::Error> {
        self.serve(Stage::Parse, self.claim.parse)
    }

    /// Random among the longest due, until enough is granted or nothing is due.
    fn serve(&mut self, stage: Stage, wanted: u32) -> Result<(), S::Error> {
        let enough = self.leases.len() + wanted as usize;
        for look in 0..LOOKS {
            if self.leases.len() >= enough || self.tidied >= TIDIED {
                return Ok(());
            }
            let due = self.shelf.due_count(stage, self.now, self.scope, WIDEST * PARTS)?;
            let dice = pick(&self.claim.dice, look);
            let turn = dice % window(due);
            let Some(name) = self.shelf.nth_due(stage, self.now, self.scope, turn)? else {
                return Ok(());
            };
            let Some(unit) = self.shelf.unit(&name)? else { return Ok(()) };
            self.look_at(stage, unit, dice / WIDEST)?;
        }
        Ok(())
    }

    fn look_at(&mut self, stage: Stage, mut unit: UnitState, dice: u32) -> Result<(), S::Error> {
        if stage == Stage::Download && self.is_held_by_somebody_else(&mut unit)? {
            return Ok(());
        }
        let mut ready = self.shelf.ready_sites(stage, &unit.name)?;
        ready.retain(|site| self.scope.includes(site));
        let Some(name) = choose(&ready, dice) else { return Ok(()) };
        let Some(mut site) = self.shelf.site(name)? else { return Ok(()) };
        if let Some(task) = self.first_wanted(&mut site, stage)? {
            self.grant(&mut site, &mut unit, task)?;
        }
        if stage == Stage::Parse {
            unit.parsed_at = self.now;
        }
        self.shelf.save_site(&site)?;
        save_unit(self.shelf, &unit)
    }

    /// An outsider's lock moves the due time to its end.
    fn is_held_by_somebody_else(&mut self, unit: &mut UnitState) -> Result<bool, S::Error> {
        let Some(held) = self.shelf.mutex(&unit.mutex())? else { return Ok(false) };
        if held.until <= self.now || unit.owns(&held.token) {
            return Ok(false);
        }
        unit.held_until = held.until;
        save_unit(self.shelf, unit)?;
        Ok(true)
    }

    /// The first task that is still wanted and may go now; those before it are tidied away.
    fn first_wanted(&mut self, site: &mut SiteState, stage: Stage) -> Result<Option<Task>, S::Error> {
        while self.tidied < TIDIED {
            let Some(mut task) = self.shelf.first_waiting(&site.name, stage)? else { return Ok(None) };
            let errand = task.rare.errand.is_some() && site.settings.robots;
            if !errand && task.rare.expires.is_some_and(|expires| expires <= self.now) {
                *site.counts(stage).excluded.entry(Exclusion::Expired).or_default() += 1;
                finish(self.shelf, site, task, self.now)?;
            } else if stage == Stage::Parse || !site.settings.robots {
                task.rare.errand = None;
                return Ok(Some(task));
            } else if let Some(task) = self.past_robots(site, task)? {
                return Ok(Some(task));
            }
            self.tidied += 1;
        }
        Ok(None)
    }

    /// With a fresh record the task itself, or nothing where its host can't be reached; else the host's `robots.txt`.
    fn past_robots(&mut self, site: &mut SiteState, mut task: Task) -> Result<Option<Task>, S::Error> {
        if task.rare.errand.is_some() {
            return Ok(Some(task));
        }
        let record = self.shelf.robots_brief(&task.url.origin())?;
        let Some(robots) = record.filter(|robots| robots.until > self.now) else {
            return self.errand(site, task);
        };
        let Some(why) = robots.unreachable else {
            follow_floor(site, &task.url.origin(), robots.crawl_delay);
            return Ok(Some(task));
        };
        if robots.failures >= site.settings.attempts {
            let why = Failure::new(reasons::robots_unreachable(&why));
            die(self.shelf, site, task, why, self.now)?;
        } else {
            let place = Place::Delayed { until: robots.until, scheduled: false };
            shift(self.shelf, site, &mut task, place)?;
        }
        Ok(None)
    }

    /// The `robots.txt` of a task's host, made or raised to go before everything else.
    fn errand(&mut self, site: &mut SiteState, for_task: Task) -> Result<Option<Task>, S::Error> {
        let url = for_task.url.robots_txt();
        let Some(mut task) = self.shelf.task(site.page(&url), Stage::Download)? else {
            return self.new_errand(site, url).map(Some);
        };
        if let Some(until) = self.unavailable_until(&task) {
            let place = Place::Delayed { until, scheduled: false };
            let mut waiting = for_task;
            shift(self.shelf, site, &mut waiting, place)?;
            return Ok(None);
        }
        task.priority = Priority::ROBOTS;
        task.rare.errand = Some(url);
        shift(self.shelf, site, &mut task, Place::Waiting)?;
        Ok(Some(task))
    }

    /// A `robots.txt` asked for as an ordinary page before the record ended, or one that went back: its host waits.
    fn unavailable_until(&self, task: &Task) -> Option<i64> {
        match task.place {
            Place::Running(_) => Some(self.now + BACK_MS),
            Place::Delayed { until, .. } if task.rare.errand.is_some() && until > self.now => Some(until),
            _ => None,
        }
    }

    fn new_errand(&mut self, site: &mut SiteState, url: CanonicalUrl) -> Result<Task, S::Error> {
        let revived = self.shelf.dead(site.page(&url), Stage::Download)?.is_some();
        if revived {
            self.shelf.remove_dead(site.page(&url), Stage::Download)?;
            site.download.letters = site.download.letters.saturating_sub(1);
            site.download.revived += 1;
        } else {
            site.download.created += 1;
        }
        let task = Task {
            site: site.name.clone(),
            stage: Stage::Download,
            url: url.clone(),
            place: Place::Waiting,
            priority: Priority::ROBOTS,
            position: site.next_position(self.now),
            depth: 0,
            origin: Origin::Link,
            rare: Rare { errand: Some(url), ..Rare::default() },
        };
        enter(self.shelf, site, &task)?;
        Ok(task)
    }

    fn grant(&mut self, site: &mut SiteState, unit: &mut UnitState, mut task: Task) -> Result<(), S::Error> {
        let token = self.claim.token.wrapping_add(self.leases.len() as u64);
        let download = task.stage == Stage::Download;
        if download {
            self.start(site, unit, token)?;
            site.running += 1;
            site.starts += 1;
        }
        if task.rare.errand.is_some() {
            site.errand = Some(token);
        }
        let interval = unit.interval.max(site.interval());
        let fence = site.next_fence(self.now);
        let interval = if download { interval } else { 0 };
        let running = Running::granted(task.stage, token, &self.claim.owner, fence, interval, self.now);
        shift(self.shelf, site, &mut task, Place::Running(running))?;
        self.shelf.save_site(site)?;
        let lease = lease_of(self.shelf, &task)?;
        self.leases.extend(lease);
        Ok(())
    }

    /// The unit's start: its timed mutex is taken for the interval in force and never released.
    fn start(&mut self, site: &SiteState, unit: &mut UnitState, token: u64) -> Result<(), S::Error> {
        let start = Start { at: self.now, site: site.name.clone(), token, fixed: None };
        unit.before = unit.last.replace(start);
        (unit.held_until, unit.turn) = (0, 0);
        let interval = unit.interval.max(site.interval());
        if interval > 0 {
            let mutex = MutexState { token: mutex_token(token), until: self.now + interval };
            self.shelf.save_mutex(&unit.mutex(), &mutex)?;
        }
        Ok(())
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

/// Among how many of the longest due the choice is: a quarter of them. Among all of a few units, those that are due longest
/// would wait for many times as long as where the earliest is always taken (L2).
fn window(due: u32) -> u32 {
    (due / PARTS).clamp(1, WIDEST)
}

fn pick(dice: &[u32], look: u32) -> u32 {
    if dice.is_empty() { 0 } else { dice[look as usize % dice.len()] }
}

fn choose(names: &[String], dice: u32) -> Option<&String> {
    let count = u32::try_from(names.len()).ok().filter(|n| *n > 0)?;
    names.get((dice % count) as usize)
}
