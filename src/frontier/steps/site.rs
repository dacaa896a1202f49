//! What a person's verbs do to a site: register it, begin a run, give one up, tune it.

use std::time::Duration;

use super::places::{interval_after, remove, retime, save, save_unit};
use super::put::put_all;
use super::reasons;
use super::settle::block_for;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{MutexState, SiteState, Start, UnitState, mutex_token};
use crate::frontier::step::{Registered, Registration, Run, Tuning};
use crate::task::Put;

/// Tasks, pages or fingerprints removed in one step.
pub(in crate::frontier) const REMOVED: u32 = 1_000;

/// Puts a site's rules in force, or says what stands against it and leaves the old ones.
pub(super) fn register<S: Shelf>(
    shelf: &mut S,
    new: &Registration,
    now: i64,
) -> Result<Registered, S::Error> {
    if let Some(refusal) = foreign_host(shelf, new)? {
        return Ok(Registered::Refused(refusal));
    }
    let (unit, group_interval) = new.group.clone().unwrap_or((new.name.clone(), 0));
    let known = shelf.site(&new.name)?;
    let version = known.as_ref().map(|site| site.version);
    let mut site = match known {
        None => {
            take_back(shelf, &unit, &new.name)?;
            SiteState::new(&new.name, &unit, new.settings.clone())
        }
        Some(mut site) => {
            if site.unit != unit {
                if site.download.leased > 0 || site.running > 0 {
                    return Ok(Registered::Refused(reasons::requests_in_flight(&new.name)));
                }
                move_unit(shelf, &mut site, &unit)?;
            }
            if site.settings != new.settings
                || shelf.site_text(&new.name)?.as_deref() != Some(new.text.as_str())
            {
                site.version += 1;
            }
            site.settings = new.settings.clone();
            site
        }
    };
    if site.fence == 0 {
        site.fence = now;
    }
    save_hosts(shelf, new)?;
    if version != Some(site.version) {
        ask_robots_again(shelf, new)?;
    }
    let mut state = shelf.unit(&unit)?.unwrap_or_else(|| UnitState::new(&unit));
    state.interval = group_interval;
    shelf.save_site(&site)?;
    retime(shelf, &state, now)?;
    shelf.save_site_text(&site.name, &new.text)?;
    Ok(Registered::Version(site.version))
}

/// Starts of a forgotten site of that name are its own again: its interval as in force holds after them.
fn take_back<S: Shelf>(shelf: &mut S, unit: &str, site: &str) -> Result<(), S::Error> {
    let Some(mut state) = shelf.unit(unit)? else { return Ok(()) };
    for start in [&mut state.last, &mut state.before].into_iter().flatten().filter(|start| start.site == site)
    {
        start.fixed = None;
    }
    save_unit(shelf, &state)
}

/// Under new rules each `robots.txt` is read anew: what it asks of the pace is kept with the site that read it, and its hosts may
/// have been another site's, or those of one that was forgotten.
fn ask_robots_again<S: Shelf>(shelf: &mut S, new: &Registration) -> Result<(), S::Error> {
    for host in &new.hosts {
        for scheme in ["https", "http"] {
            shelf.remove_robots(&format!("{scheme}://{host}"))?;
        }
    }
    Ok(())
}

/// A host belongs to one site, unless both are of one group: else two files would double a shop's load.
fn foreign_host<S: Shelf>(shelf: &mut S, new: &Registration) -> Result<Option<String>, S::Error> {
    for host in &new.hosts {
        for owner in shelf.sites_of(host)?.into_iter().filter(|owner| *owner != new.name) {
            let unit = shelf.site(&owner)?.map(|site| site.unit);
            if unit.is_none() || unit.as_ref() != new.group.as_ref().map(|(name, _)| name) {
                return Ok(Some(reasons::foreign_host(host, &owner)));
            }
        }
    }
    Ok(None)
}

fn save_hosts<S: Shelf>(shelf: &mut S, new: &Registration) -> Result<(), S::Error> {
    for host in shelf.hosts_of(&new.name)? {
        if !new.hosts.contains(&host) {
            shelf.remove_host(&host, &new.name)?;
        }
    }
    for host in &new.hosts {
        shelf.save_host(host, &new.name)?;
    }
    Ok(())
}

/// The new unit inherits the later last start and block.
///
/// A start that is left in a unit, or taken into one, to which its site doesn't belong is waited for as long as now: later
/// changes of that site's interval are not that unit's.
pub(super) fn move_unit<S: Shelf>(shelf: &mut S, site: &mut SiteState, to: &str) -> Result<(), S::Error> {
    let old = shelf.unit(&site.unit)?.unwrap_or_else(|| UnitState::new(&site.unit));
    let mut left = old.clone();
    for start in [&mut left.last, &mut left.before].into_iter().flatten().filter(|s| s.site == site.name) {
        start.fixed.get_or_insert(site.interval());
    }
    save_unit(shelf, &left)?;
    let mut unit = shelf.unit(to)?.unwrap_or_else(|| UnitState::new(to));
    inherit(shelf, &mut unit, old, &site.name)?;
    to.clone_into(&mut site.unit);
    shelf.save_site(site)?;
    save_unit(shelf, &unit)
}

fn inherit<S: Shelf>(
    shelf: &mut S,
    unit: &mut UnitState,
    old: UnitState,
    site: &str,
) -> Result<(), S::Error> {
    let own_lock = shelf.mutex(&unit.mutex())?.filter(|held| unit.owns(&held.token));
    let mut starts: Vec<Start> = [unit.before.take(), unit.last.take()].into_iter().flatten().collect();
    for mut start in [&old.before, &old.last].into_iter().flatten().cloned() {
        if start.site != site || start.fixed.is_some() {
            start.fixed = Some(interval_after(shelf, &old, Some(&start))?);
        }
        starts.push(start);
    }
    let mut ordered = Vec::with_capacity(starts.len());
    for start in starts {
        ordered.push((start.at, interval_after(shelf, unit, Some(&start))?, start));
    }
    ordered.sort_by_key(|(at, wait, _)| (*at, *wait));
    unit.last = ordered.pop().map(|(_, _, start)| start);
    unit.before = ordered.pop().map(|(_, _, start)| start);
    if let (Some(held), Some(last)) = (own_lock, &unit.last) {
        let mutex = MutexState { token: mutex_token(last.token), ..held };
        shelf.save_mutex(&unit.mutex(), &mutex)?;
    }
    if old.blocked_until > unit.blocked_until {
        unit.blocked_until = old.blocked_until;
        unit.blocked_why = old.blocked_why;
    }
    Ok(())
}

/// Goes on with an unfinished run; when the last one is finished, or where a fresh one is wanted, begins a new one and
/// puts its seeds, in one step. Tasks that run are adopted by the new one.
pub(super) fn begin_run<S: Shelf>(
    shelf: &mut S,
    name: &str,
    seeds: Vec<Put>,
    fresh: bool,
    now: i64,
) -> Result<Run, S::Error> {
    let Some(mut site) = shelf.site(name)? else { return Ok(Run { number: 0, begun: false }) };
    if site.run > 0 && !site.is_finished() && !fresh {
        return Ok(Run { number: site.run, begun: false });
    }
    site.run += 1;
    site.run_began = now;
    site.spent.clear();
    site.starts = 0;
    put_all(shelf, &mut site, seeds, now)?;
    save(shelf, &site)?;
    Ok(Run { number: site.run, begun: true })
}

/// Gives up an unfinished run, a bounded number of tasks a step; whether some are left.
///
/// Running tasks are adopted by the next run, what met them is dropped.
pub(super) fn give_up<S: Shelf>(shelf: &mut S, name: &str) -> Result<bool, S::Error> {
    let Some(mut site) = shelf.site(name)? else { return Ok(false) };
    let tasks = shelf.idle_tasks(name, REMOVED)?;
    let more = tasks.len() == REMOVED as usize;
    for task in tasks {
        site.counts(task.stage).dropped += 1;
        remove(shelf, &mut site, &task)?;
    }
    if !more {
        for letter in shelf.dead_letters(name, None, REMOVED)? {
            shelf.remove_dead(site.page(&letter.url), letter.stage)?;
            let letters = &mut site.counts(letter.stage).letters;
            *letters = letters.saturating_sub(1);
        }
        for mut task in shelf.running_tasks(name)? {
            if task.rare.deferral.take().is_some() {
                shelf.save_task(&task)?;
            }
        }
    }
    let letters_left = !shelf.dead_letters(name, None, 1)?.is_empty();
    save(shelf, &site)?;
    Ok(more || letters_left)
}

/// Forgets pages known in earlier runs, a bounded number a step; whether some are left.
pub(super) fn sweep<S: Shelf>(shelf: &mut S, name: &str) -> Result<bool, S::Error> {
    match shelf.site(name)? {
        Some(site) => shelf.sweep_known(name, site.run, REMOVED),
        None => Ok(false),
    }
}

/// No start of the site's unit for so long: it asked for that. A shorter block never shortens a longer one.
pub(super) fn block<S: Shelf>(
    shelf: &mut S,
    name: &str,
    wait: Duration,
    why: String,
    now: i64,
) -> Result<bool, S::Error> {
    let Some(site) = shelf.site(name)? else { return Ok(false) };
    block_for(shelf, &site.unit, Some((wait, why)), now)?;
    Ok(true)
}

/// Sets a value that is in force for the very next claim (L6).
pub(super) fn tune<S: Shelf>(shelf: &mut S, name: &str, tuning: Tuning, now: i64) -> Result<bool, S::Error> {
    let Some(mut site) = shelf.site(name)? else { return Ok(false) };
    match tuning {
        Tuning::Interval(interval) => site.tuned.interval = interval,
        Tuning::Parallel(parallel) => site.tuned.parallel = parallel,
        Tuning::Paused(why) => site.tuned.paused = why,
    }
    shelf.save_site(&site)?;
    if let Some(unit) = shelf.unit(&site.unit)? {
        retime(shelf, &unit, now)?;
    }
    Ok(true)
}
