//! The moves between places. Each keeps the task, its site's books and the unit's due time true together.

use crate::frontier::shelf::Shelf;
use crate::frontier::state::{DeadState, MutexState, Place, SiteState, Start, Task, UnitState, mutex_token};
use crate::task::{Failure, Stage};

/// Puts a task that stood nowhere into a place.
pub(super) fn enter<S: Shelf>(shelf: &mut S, site: &mut SiteState, task: &Task) -> Result<(), S::Error> {
    site.enters(task.stage, &task.place);
    shelf.add_task(task)
}

/// Moves a task from the place where it stands to another.
pub(super) fn shift<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    task: &mut Task,
    to: Place,
) -> Result<(), S::Error> {
    leave(site, task);
    site.enters(task.stage, &to);
    task.place = to;
    shelf.save_task(task)
}

/// Takes a task out for good.
pub(super) fn remove<S: Shelf>(shelf: &mut S, site: &mut SiteState, task: &Task) -> Result<(), S::Error> {
    leave(site, task);
    shelf.remove_task(task)
}

fn leave(site: &mut SiteState, task: &Task) {
    site.leaves(task.stage, &task.place);
    if let Some(running) = task.running()
        && site.errand == Some(running.token)
    {
        site.errand = None;
    }
}

/// Done: gone and known, or, where a request met it, waiting once more at a new position.
pub(super) fn finish<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    task: Task,
    now: i64,
) -> Result<(), S::Error> {
    site.counts(task.stage).done += 1;
    if task.stage == Stage::Download {
        shelf.add_known(site.page(&task.url), site.run)?;
    }
    if task.rare.deferral.is_some() { rerun(shelf, site, task, now) } else { remove(shelf, site, &task) }
}

/// Dead: a letter is kept, or, where a request met it, it waits once more.
pub(super) fn die<S: Shelf>(
    shelf: &mut S,
    site: &mut SiteState,
    task: Task,
    why: Failure,
    now: i64,
) -> Result<(), S::Error> {
    site.counts(task.stage).dead += 1;
    if task.rare.deferral.is_some() {
        return rerun(shelf, site, task, now);
    }
    let mut history = task.rare.history.clone();
    history.push(why.clone());
    let (attempts, depth) = (task.rare.attempts, task.depth);
    let dead = DeadState { why, attempts, history, died_at: now, run: site.run, depth };
    site.counts(task.stage).letters += 1;
    shelf.save_dead(task.page(), task.stage, &dead)?;
    remove(shelf, site, &task)
}

/// The further run is a task of its own: a new turn, not before the time that was asked for.
fn rerun<S: Shelf>(shelf: &mut S, site: &mut SiteState, mut task: Task, now: i64) -> Result<(), S::Error> {
    let Some(deferral) = task.rare.deferral.take() else { return Ok(()) };
    site.counts(task.stage).reruns += 1;
    let later = deferral.at.filter(|at| *at > now);
    let to = later.map_or(Place::Waiting, |until| Place::Delayed { until, scheduled: true });
    task.take_up(deferral);
    task.position = site.next_position(now);
    shift(shelf, site, &mut task, to)
}

/// Saves a site and, as it may be the one whose interval holds, the due time of its unit.
pub(super) fn save<S: Shelf>(shelf: &mut S, site: &SiteState) -> Result<(), S::Error> {
    shelf.save_site(site)?;
    if let Some(unit) = shelf.unit(&site.unit)? {
        save_unit(shelf, &unit)?;
    }
    Ok(())
}

/// Saves a unit with the due time that follows from it.
pub(super) fn save_unit<S: Shelf>(shelf: &mut S, unit: &UnitState) -> Result<(), S::Error> {
    let interval = interval_after(shelf, unit, unit.last.as_ref())?;
    shelf.save_unit(unit, unit.due(interval))
}

/// What the unit waits after a start: the larger of its own interval and that of the start's site, as in force now.
pub(super) fn interval_after<S: Shelf>(
    shelf: &mut S,
    unit: &UnitState,
    start: Option<&Start>,
) -> Result<i64, S::Error> {
    let own = match start {
        Some(Start { fixed: Some(interval), .. }) => *interval,
        Some(start) => shelf.site(&start.site)?.map_or(0, |site| site.interval()),
        None => 0,
    };
    Ok(unit.interval.max(own))
}

/// Gives a start back that wasn't used, unless a later one was granted meanwhile.
///
/// The start before it stays the one to fall back on, even where that one is given back as well: an interval that was
/// raised meanwhile would else count from nowhere.
pub(super) fn give_back_start<S: Shelf>(
    shelf: &mut S,
    unit: &str,
    token: u64,
    now: i64,
) -> Result<(), S::Error> {
    let Some(mut unit) = shelf.unit(unit)? else { return Ok(()) };
    if unit.last.as_ref().is_none_or(|start| start.token != token) {
        return Ok(());
    }
    let mutex = unit.mutex();
    if shelf.mutex(&mutex)?.is_some_and(|held| unit.owns(&held.token)) {
        shelf.remove_mutex(&mutex)?;
    }
    if let Some(start) = std::mem::replace(&mut unit.last, unit.before.clone())
        && let Some(mut site) = shelf.site(&start.site)?
    {
        site.starts = site.starts.saturating_sub(1);
        shelf.save_site(&site)?;
    }
    retime(shelf, &unit, now)
}

/// Nobody knows how long ago the last start was, nor of which of the unit's sites: it is waited as if the slowest of them had been
/// asked right now. Without any, its last start counts from now.
pub(in crate::frontier) fn postpone<S: Shelf>(
    shelf: &mut S,
    unit: &str,
    slowest: Option<&SiteState>,
    now: i64,
) -> Result<(), S::Error> {
    let Some(mut unit) = shelf.unit(unit)? else { return Ok(()) };
    let known = interval_after(shelf, &unit, unit.last.as_ref())?;
    let longest = slowest.map_or(0, SiteState::interval);
    unit.last = match (unit.last.take(), slowest) {
        (None, Some(site)) => Some(Start { at: now, site: site.name.clone(), token: 0, fixed: None }),
        (Some(last), Some(site)) if longest > known => {
            Some(Start { at: now.max(last.at), site: site.name.clone(), fixed: None, ..last })
        }
        (last, _) => last.map(|last| Start { at: now.max(last.at), ..last }),
    };
    retime(shelf, &unit, now)
}

/// Saves a unit whose last start or interval in force has changed: its due time and its own timed mutex follow.
pub(super) fn retime<S: Shelf>(shelf: &mut S, unit: &UnitState, now: i64) -> Result<(), S::Error> {
    if let Some(start) = &unit.last {
        let until = start.at + interval_after(shelf, unit, Some(start))?;
        let held = shelf.mutex(&unit.mutex())?;
        let own = held.as_ref().is_some_and(|held| unit.owns(&held.token));
        let free = held.is_none_or(|held| held.until <= now);
        if own || (free && until > now) {
            let mutex = MutexState { token: mutex_token(start.token), until };
            shelf.save_mutex(&unit.mutex(), &mutex)?;
        }
    }
    save_unit(shelf, unit)
}
