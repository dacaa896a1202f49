//! What a worker does with a lease before it settles: renew it, take a new start, say that the body ended, give it back.
//! And what happens to leases that nobody renews.

use std::time::Duration;

use super::claim::LONGEST_LEAD;
use super::wall::is_walled_against;
use super::{Done, Moment, reasons};
use crate::clock::Timestamp;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    BACK_MS, LEASE_MS, LastBeat, MAX_LOSSES, OwnerState, Place, SignOfLife, SiteState, Start, Task,
    UnitState, WorkScope, delay_after_loss,
};
use crate::frontier::step::{Beaten, Lost, Rearm};
use crate::manners::lead_ms;
use crate::task::{Departure, Failure, Lease, LeaseKey, NOW, RobotsFetch, RobotsRecord, Stage};

/// Leases freed in one step.
pub(in crate::frontier) const REAPED: u32 = 100;
/// How long a `robots.txt` counts as unreachable whose workers died each time.
pub(in crate::frontier) const DEADLY_ROBOTS: Duration = Duration::from_hours(1);

impl<S: Shelf> Moment<'_, S> {
    /// The lease of a running task, as its worker sees it.
    pub(super) fn lease_of(&mut self, task: &Task) -> Done<S, Option<Lease>> {
        let (Some(running), Some(site)) = (task.running(), self.shelf.site(&task.site)?) else {
            return Ok(None);
        };
        let robots = if site.settings.robots { self.shelf.robots_brief(&task.url.origin())? } else { None };
        let failures = robots.as_ref().map_or(0, |robots| robots.failures);
        let stored = match task.stage {
            Stage::Download => self.shelf.page(task.page())?.map(|page| page.stored),
            Stage::Parse => task.rare.stored.clone(),
        };
        Ok(Some(Lease {
            token: running.token,
            site: task.site.clone(),
            stage: task.stage,
            url: task.url.clone(),
            fence: running.fence,
            granted_at: Timestamp::from_millis(running.granted_at),
            ends_at: Timestamp::from_millis(running.ends_at),
            attempts: task.rare.attempts,
            origin: task.origin,
            priority: task.priority,
            depth: task.depth,
            hops: task.rare.hops,
            departure: running.departure,
            robots: task.rare.errand.clone().map(|fetch| RobotsFetch { fetch, failures }),
            robots_until: robots.map(|robots| Timestamp::from_millis(robots.until)),
            stored,
            version: site.version,
            supply: site.supply(),
            places: site.places(),
            parallel: site.parallel(),
            response: site.response,
            tells: site.is_told_by(running.token),
            probe_of: match task.stage {
                Stage::Download => self.probe_of(&site, running.token)?,
                Stage::Parse => None,
            },
            tenant: task.rare.tenant.clone(),
            urgent: task.rare.lane.as_deref() == Some(NOW),
            session: task.rare.session.clone(),
            batches: task.rare.batches.clone(),
        }))
    }

    /// The task that runs under a lease, over or not.
    pub(super) fn leased(&mut self, lease: &LeaseKey) -> Done<S, Option<Task>> {
        let task = self.shelf.task(lease.page(), lease.stage)?;
        Ok(task.filter(|task| task.running().is_some_and(|running| running.token == lease.token)))
    }

    /// The task that runs under a lease, unless that is over: a stale token changes nothing (I5).
    pub(super) fn held(&mut self, lease: &LeaseKey) -> Done<S, Option<Task>> {
        let Some(task) = self.leased(lease)? else { return Ok(None) };
        let Some(running) = task.running() else { return Ok(None) };
        let over =
            running.ends_at <= self.now || self.shelf.owner(&running.owner)?.is_some_and(|owner| owner.dead);
        Ok((!over).then_some(task))
    }

    /// Renews leases; for each whether it still holds.
    pub(super) fn extend(&mut self, leases: &[LeaseKey]) -> Done<S, Vec<bool>> {
        let mut alive = Vec::with_capacity(leases.len());
        for lease in leases {
            let task = self.held(lease)?;
            alive.push(task.is_some());
            if let Some(mut task) = task
                && let Place::Running(running) = &mut task.place
            {
                running.ends_at = running.ends_at.max(self.now + LEASE_MS);
                self.shelf.save_task(&task)?;
            }
        }
        Ok(alive)
    }

    /// The body ended: the request no longer counts against `parallel`. A block is the site's own word: it holds even where
    /// the lease is lost.
    pub(super) fn landed(&mut self, lease: &LeaseKey, block: Option<(Duration, String)>) -> Done<S, bool> {
        if let Some((wait, why)) = block {
            self.block(&lease.site, wait, why)?;
        }
        let Some(mut task) = self.held(lease)? else { return Ok(false) };
        let Place::Running(running) = &mut task.place else { return Ok(false) };
        if !std::mem::take(&mut running.in_flight) {
            return Ok(true);
        }
        if let Some(mut site) = self.shelf.site(&task.site)? {
            site.running = site.running.saturating_sub(1);
            self.shelf.save_task(&task)?;
            self.save(&site)?;
        }
        Ok(true)
    }

    /// A new start for a permit that grew late: the last start of its unit and of its site becomes this one, so both spacings
    /// hold. One that is `asked` about once more, as it is far away, stands where nothing has changed, however many were granted
    /// after it.
    pub(super) fn rearm(&mut self, lease: &LeaseKey, asked: Option<i64>, lead: i64) -> Done<S, Rearm> {
        let Some(task) = self.held(lease)? else { return Ok(Rearm::Stale) };
        if task.stage == Stage::Parse {
            return Ok(Rearm::Departs(Departure::default()));
        }
        let Some(site) = self.shelf.site(&task.site)? else { return Ok(Rearm::Stale) };
        let Some(mut unit) = self.shelf.unit(&site.unit)? else { return Ok(Rearm::Stale) };
        let waits = (self.wait_of(&unit)?, site.interval());
        let before = task.running().map(|running| running.departure).unwrap_or_default();
        let stands = asked == Some(before.at);
        let is_longer = waits.0 > before.unit || waits.1 > before.site;
        let is_void = site.tuned.is_paused(self.now)
            || site.blocked_until.max(unit.blocked_until).max(unit.paused.until(Stage::Download)) > self.now
            || is_walled_against(&site, &unit, lease.token);
        if is_void || stands && is_longer {
            self.put_back(task, Place::Waiting, true)?;
            return Ok(Rearm::WentBack);
        }
        if stands {
            return Ok(Rearm::Departs(before));
        }
        if let Some(held) = self.held_outside(&unit)? {
            unit.held_until = held.until;
            self.save_unit(&unit)?;
            return Ok(Rearm::Held(held.until - self.now));
        }
        self.depart_anew(task, site, unit, waits, lead).map(Rearm::Departs)
    }

    /// After the starts before its own or, where later ones were granted, after those.
    fn depart_anew(
        &mut self,
        mut task: Task,
        mut site: SiteState,
        mut unit: UnitState,
        (wait, interval): (i64, i64),
        lead: i64,
    ) -> Done<S, Departure> {
        let Place::Running(running) = &mut task.place else { return Ok(Departure::default()) };
        let token = running.token;
        let soonest = self.now + lead_ms(wait.max(interval)).max(lead.clamp(0, LONGEST_LEAD));
        let after_unit = earliest(token, unit.last, wait);
        let after_site = earliest(token, site.last, interval);
        let at = soonest.max(after_unit).max(after_site).max(unit.not_before);
        let departure = Departure { at, unit: wait, site: interval };
        depart(token, departure, &mut unit.last, &mut unit.before);
        depart(token, departure, &mut site.last, &mut site.before);
        let until = unit.last.map_or(at, |last| last.ends(wait));
        if until > self.now {
            self.take_mutex(&unit, token, until)?;
        }
        (running.granted_at, running.ends_at) = (self.now, at + LEASE_MS);
        running.departure = departure;
        self.shelf.save_task(&task)?;
        self.shelf.save_site(&site)?;
        self.save_unit(&unit)?;
        Ok(departure)
    }

    /// The permit was late each time, or its process can't end it: the task goes back to its place, no attempt counted. A
    /// start that was made stands.
    pub(super) fn back(&mut self, lease: &LeaseKey, unused: bool) -> Done<S, bool> {
        let Some(task) = self.held(lease)? else { return Ok(false) };
        let later = Place::Delayed { until: self.now + BACK_MS, scheduled: false };
        self.put_back(task, later, unused)?;
        Ok(true)
    }

    fn put_back(&mut self, mut task: Task, to: Place, unused: bool) -> Done<S> {
        let (Some(mut site), Some(token)) =
            (self.shelf.site(&task.site)?, task.running().map(|running| running.token))
        else {
            return Ok(());
        };
        let starts = if let Place::Delayed { until, .. } = to { until } else { self.now };
        task.rare.returned = true;
        self.absorb(&mut site, &mut task, starts)?;
        self.shift(&mut site, &mut task, to)?;
        self.save(&site)?;
        if unused { self.give_back_start(&mut site, token) } else { Ok(()) }
    }

    /// Frees leases that ended or whose owner is dead, a bounded number.
    pub(super) fn free_lost_leases(&mut self) -> Done<S, Vec<Lost>> {
        let (mut lost, mut of_dead) = (Vec::new(), false);
        for task in self.shelf.lost_leases(self.now, REAPED)? {
            if let Some(running) = task.running() {
                of_dead |= self.shelf.owner(&running.owner)?.is_some_and(|owner| owner.dead);
            }
            if let Some(mut site) = self.shelf.site(&task.site)? {
                let (url, stage, losses) = (task.url.clone(), task.stage, task.rare.losses + 1);
                let kept_back = self.lose(&mut site, task)?;
                self.save(&site)?;
                lost.push(Lost { site: site.name, url, stage, losses, kept_back });
            }
        }
        if of_dead {
            self.shelf.sweep_owners()?;
        }
        Ok(lost)
    }

    /// A lost lease is no attempt: back at once, later with a delay, after the sixth it is dead. For how long it is kept back,
    /// in ms; none where it is dead.
    fn lose(&mut self, site: &mut SiteState, mut task: Task) -> Done<S, Option<i64>> {
        site.counts(task.stage).lost += 1;
        task.rare.losses += 1;
        let is_errand = task.rare.errand.is_some();
        if task.rare.losses >= MAX_LOSSES {
            if is_errand {
                let record = RobotsRecord::unreachable(reasons::WORKER_DIED, DEADLY_ROBOTS);
                self.keep_robots(site, task, record)?;
            } else {
                self.die(site, task, Failure::new(reasons::WORKER_DIED))?;
            }
            return Ok(None);
        }
        let wait = if is_errand { 0 } else { delay_after_loss(task.rare.losses) };
        let until = self.now + wait;
        self.absorb(site, &mut task, until)?;
        let to = if wait == 0 { Place::Waiting } else { Place::Delayed { until, scheduled: false } };
        self.shift(site, &mut task, to)?;
        Ok(Some(wait))
    }

    /// A process says what it works on from now on, or merely that it is there, and that it downloads. None is silent for too long
    /// here: whether one lives shows by the lock on its file. How many of the living download from all sites, if it may as well.
    pub(super) fn enlist(
        &mut self,
        name: &str,
        pid: u32,
        scope: Option<WorkScope>,
        downloads: bool,
        tells: Option<SignOfLife>,
    ) -> Done<S, Beaten> {
        if let Some(scope) = scope {
            let owner = self.shelf.owner(name)?.unwrap_or_default();
            self.shelf.save_owner(name, &OwnerState { pid, scope, downloads: false, ..owner })?;
        }
        let Some(owner) = self.shelf.owner(name)?.filter(|owner| !owner.dead) else {
            return Ok(Beaten::default());
        };
        if let Some(tells) = tells {
            self.shelf.save_beat(name, &LastBeat { at: Timestamp::from_millis(self.now), tells })?;
        }
        let drained = owner.drained;
        if owner.scope != WorkScope::All {
            return Ok(Beaten { sharers: 0, drained });
        }
        if downloads {
            self.shelf.save_owner(name, &OwnerState { downloads, ..owner })?;
        }
        let owners = self.shelf.owners()?;
        let sharers = owners.iter().filter(|(_, owner)| owner.downloads && !owner.dead).count();
        Ok(Beaten { sharers: u32::try_from(sharers).unwrap_or(u32::MAX), drained })
    }

    /// A process that lives is to claim nothing more and to end: it is told so with its next beat. False where it doesn't live.
    pub(super) fn drain(&mut self, name: &str) -> Done<S, bool> {
        let Some(owner) = self.shelf.owner(name)?.filter(|owner| !owner.dead) else { return Ok(false) };
        self.shelf.save_owner(name, &OwnerState { drained: true, ..owner })?;
        Ok(true)
    }

    /// A process is dead: from now on its tokens are stale and its leases return. Its record goes with the last of them.
    pub(in crate::frontier) fn bury(&mut self, name: &str) -> Done<S, bool> {
        let Some(mut owner) = self.shelf.owner(name)? else { return Ok(false) };
        owner.dead = true;
        owner.last.settled = None;
        self.shelf.save_owner(name, &owner)?;
        self.shelf.sweep_owners()?;
        Ok(true)
    }
}

/// The earliest time of a start that takes the place of the one under that token, in ms. One that isn't the last any more comes
/// after that.
fn earliest(token: u64, last: Option<Start>, wait: i64) -> i64 {
    last.map_or(
        0,
        |last| if last.token == token { last.at.max(last.comes_after(wait)) } else { last.ends(wait) },
    )
}

/// The start under that token is the last one, at another time.
fn depart(token: u64, departure: Departure, last: &mut Option<Start>, before: &mut Option<Start>) {
    match last {
        Some(own) if own.token == token => {
            *own = Start { after: own.after, ..Start::of(token, departure, None) };
        }
        _ => *before = last.replace(Start::of(token, departure, *last)),
    }
}
