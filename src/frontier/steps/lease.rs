//! What a worker does with a lease before it settles: renew it, take a new start, say that the body ended, give it back.
//! And what happens to leases that nobody renews.

use std::time::Duration;

use super::places::{die, give_back_start, interval_after, save, save_unit, shift};
use super::reasons;
use super::settle::{block_for, keep_robots};
use crate::clock::Timestamp;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    BACK_MS, LEASE_MS, MAX_LOSSES, MutexState, OwnerState, Place, SiteState, Start, Task, WorkScope,
    delay_after_loss, mutex_token,
};
use crate::frontier::step::{Lost, Rearm};
use crate::task::{Failure, Lease, LeaseKey, Priority, RobotsAccess, RobotsFetch, RobotsRecord, Stage};

/// Leases freed in one step.
pub(in crate::frontier) const REAPED: u32 = 100;
/// How long a `robots.txt` counts as unreachable whose workers died each time.
pub(in crate::frontier) const DEADLY_ROBOTS: Duration = Duration::from_hours(1);

/// The lease of a running task, as its worker sees it.
pub(super) fn lease_of<S: Shelf>(shelf: &mut S, task: &Task) -> Result<Option<Lease>, S::Error> {
    let (Some(running), Some(site)) = (task.running(), shelf.site(&task.site)?) else { return Ok(None) };
    let robots = if site.settings.robots { shelf.robots_brief(&task.url.origin())? } else { None };
    let errand = task
        .rare
        .errand
        .clone()
        .map(|fetch| RobotsFetch { fetch, failures: robots.as_ref().map_or(0, |robots| robots.failures) });
    let stored = match task.stage {
        Stage::Download => shelf.page(task.page())?.map(|page| page.stored),
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
        interval: Duration::from_millis(u64::try_from(running.interval).unwrap_or(0)),
        robots: errand,
        robots_until: robots.map(|robots| Timestamp::from_millis(robots.until)),
        stored,
        version: site.version,
    }))
}

/// The task that runs under a lease, over or not.
pub(super) fn leased<S: Shelf>(shelf: &mut S, lease: &LeaseKey) -> Result<Option<Task>, S::Error> {
    let task = shelf.task(lease.page(), lease.stage)?;
    Ok(task.filter(|task| task.running().is_some_and(|running| running.token == lease.token)))
}

/// The task that runs under a lease, unless that is over: a stale token changes nothing (I5).
pub(super) fn held<S: Shelf>(shelf: &mut S, lease: &LeaseKey, now: i64) -> Result<Option<Task>, S::Error> {
    let Some(task) = leased(shelf, lease)? else { return Ok(None) };
    let Some(running) = task.running() else { return Ok(None) };
    let over = running.ends_at <= now || shelf.owner(&running.owner)?.is_some_and(|owner| owner.dead);
    Ok((!over).then_some(task))
}

/// Renews leases; for each whether it still holds.
pub(super) fn extend<S: Shelf>(shelf: &mut S, leases: &[LeaseKey], now: i64) -> Result<Vec<bool>, S::Error> {
    let mut alive = Vec::with_capacity(leases.len());
    for lease in leases {
        let task = held(shelf, lease, now)?;
        alive.push(task.is_some());
        if let Some(mut task) = task
            && let Place::Running(running) = &mut task.place
        {
            running.ends_at = running.ends_at.max(now + LEASE_MS);
            shelf.save_task(&task)?;
        }
    }
    Ok(alive)
}

/// The body ended: the request no longer counts against `parallel`. A block is the site's own word: it holds even where the
/// lease is lost.
pub(super) fn landed<S: Shelf>(
    shelf: &mut S,
    lease: &LeaseKey,
    block: Option<(Duration, String)>,
    now: i64,
) -> Result<bool, S::Error> {
    if block.is_some()
        && let Some(site) = shelf.site(&lease.site)?
    {
        block_for(shelf, &site.unit, block, now)?;
    }
    let Some(mut task) = held(shelf, lease, now)? else { return Ok(false) };
    let Place::Running(running) = &mut task.place else { return Ok(false) };
    if !std::mem::take(&mut running.in_flight) {
        return Ok(true);
    }
    if let Some(mut site) = shelf.site(&task.site)? {
        site.running = site.running.saturating_sub(1);
        shelf.save_task(&task)?;
        save(shelf, &site)?;
    }
    Ok(true)
}

/// A new start for a permit that grew late: the unit's last start becomes this one, so spacing holds.
pub(super) fn rearm<S: Shelf>(shelf: &mut S, lease: &LeaseKey, now: i64) -> Result<Rearm, S::Error> {
    let Some(mut task) = held(shelf, lease, now)? else { return Ok(Rearm::Stale) };
    let token = lease.token;
    if task.stage == Stage::Parse {
        return Ok(Rearm::StartIn(0));
    }
    let Some(site) = shelf.site(&task.site)? else { return Ok(Rearm::Stale) };
    let Some(mut unit) = shelf.unit(&site.unit)? else { return Ok(Rearm::Stale) };
    if site.tuned.paused.is_some() || unit.blocked_until > now {
        give_up(shelf, task, now, Place::Waiting, true)?;
        return Ok(Rearm::WentBack);
    }
    if let Some(mutex) = shelf.mutex(&unit.mutex())?
        && mutex.until > now
        && !unit.owns(&mutex.token)
    {
        return Ok(Rearm::Held(mutex.until - now));
    }
    let interval = unit.interval.max(site.interval());
    let own = unit.last.take_if(|last| last.token == token);
    if let Some(later) = unit.last.take() {
        unit.before = Some(later);
    }
    // An interval that was raised since the start before counts as well (I1).
    let spaced = match unit.before.as_ref().filter(|before| before.token != token) {
        Some(before) => before.at + interval_after(shelf, &unit, Some(before))?,
        None => now,
    };
    let at = now.max(spaced).max(own.map_or(now, |own| own.at));
    unit.last = Some(Start { at, site: site.name.clone(), token, fixed: None });
    if at + interval > now {
        let mutex = MutexState { token: mutex_token(token), until: at + interval };
        shelf.save_mutex(&unit.mutex(), &mutex)?;
    }
    save_unit(shelf, &unit)?;
    if let Place::Running(running) = &mut task.place {
        running.ends_at = at + LEASE_MS;
        running.interval = interval;
    }
    shelf.save_task(&task)?;
    Ok(Rearm::StartIn(at - now))
}

/// The permit was late each time, or its process can't end it: the task goes back to its place, no attempt counted. A
/// start that was made stands.
pub(super) fn back<S: Shelf>(
    shelf: &mut S,
    lease: &LeaseKey,
    unused: bool,
    now: i64,
) -> Result<bool, S::Error> {
    let Some(task) = held(shelf, lease, now)? else { return Ok(false) };
    give_up(shelf, task, now, Place::Delayed { until: now + BACK_MS, scheduled: false }, unused)?;
    Ok(true)
}

fn give_up<S: Shelf>(
    shelf: &mut S,
    mut task: Task,
    now: i64,
    to: Place,
    unused: bool,
) -> Result<(), S::Error> {
    let (Some(mut site), Some(token)) = (shelf.site(&task.site)?, task.running().map(|r| r.token)) else {
        return Ok(());
    };
    let starts = if let Place::Delayed { until, .. } = to { until } else { now };
    absorb(&mut site, &mut task, starts);
    shift(shelf, &mut site, &mut task, to)?;
    save(shelf, &site)?;
    if unused { give_back_start(shelf, &site.unit, token, now) } else { Ok(()) }
}

/// A task that runs again anyway, not before `starts`, stands for the request that met it, unless that one is for later.
pub(super) fn absorb(site: &mut SiteState, task: &mut Task, starts: i64) {
    if let Some(deferral) = task.rare.deferral.take_if(|deferral| deferral.is_served_by(starts)) {
        site.counts(task.stage).absorbed += 1;
        let errand = task.rare.errand.clone();
        task.take_up(deferral);
        if errand.is_some() {
            task.priority = Priority::ROBOTS;
            task.rare.errand = errand;
        }
    }
}

/// Frees leases that ended or whose owner is dead, a bounded number.
pub(super) fn free_lost_leases<S: Shelf>(shelf: &mut S, now: i64) -> Result<Vec<Lost>, S::Error> {
    let mut lost = Vec::new();
    for task in shelf.lost_leases(now, REAPED)? {
        if let Some(mut site) = shelf.site(&task.site)? {
            let (url, stage, losses) = (task.url.clone(), task.stage, task.rare.losses + 1);
            let kept_back = lose(shelf, &mut site, task, now)?;
            save(shelf, &site)?;
            lost.push(Lost { site: site.name, url, stage, losses, kept_back });
        }
    }
    Ok(lost)
}

/// A lost lease is no attempt: back at once, later with a delay, after the sixth it is dead. For how long it is kept back, in
/// ms; none where it is dead.
fn lose<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    mut task: Task,
    now: i64,
) -> Result<Option<i64>, S::Error> {
    site.counts(task.stage).lost += 1;
    task.rare.losses += 1;
    if task.rare.losses >= MAX_LOSSES {
        let why = Failure::new(reasons::WORKER_DIED);
        if task.rare.errand.is_some() {
            let record = RobotsRecord {
                access: RobotsAccess::Unreachable(why.reason),
                holds_for: DEADLY_ROBOTS,
                crawl_delay: None,
                refuses: None,
            };
            keep_robots(shelf, site, task, record, now)?;
        } else {
            die(shelf, site, task, why, now)?;
        }
        return Ok(None);
    }
    let wait = if task.rare.errand.is_some() { 0 } else { delay_after_loss(task.rare.losses) };
    absorb(site, &mut task, now + wait);
    let to = if wait == 0 { Place::Waiting } else { Place::Delayed { until: now + wait, scheduled: false } };
    shift(shelf, site, &mut task, to)?;
    Ok(Some(wait))
}

/// A process says what it works on from now on, or merely that it is there.
pub(super) fn enlist<S: Shelf>(
    shelf: &mut S,
    name: &str,
    pid: u32,
    scope: Option<WorkScope>,
) -> Result<(), S::Error> {
    let Some(scope) = scope else { return Ok(()) };
    let owner = shelf.owner(name)?.unwrap_or_default();
    shelf.save_owner(name, &OwnerState { pid, scope, ..owner })
}

/// A process is dead: from now on its tokens are stale and its leases return.
pub(super) fn bury<S: Shelf>(shelf: &mut S, name: &str) -> Result<bool, S::Error> {
    let Some(mut owner) = shelf.owner(name)? else { return Ok(false) };
    owner.dead = true;
    owner.last.settled = None;
    shelf.save_owner(name, &owner)?;
    shelf.sweep_owners()?;
    Ok(true)
}
