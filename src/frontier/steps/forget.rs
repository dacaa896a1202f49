//! A site that nobody wants any more: its record goes, its last start stays.

use super::places::{interval_after, save_unit};
use super::site::REMOVED;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{SiteState, UnitState};
use crate::frontier::step::Forgotten;

/// Forgets a site that has no tasks and no dead letters, a bounded number of pages a step.
///
/// Never before its last start is an interval ago and its block, or that of its group, is over: it may be registered anew in
/// another unit. Its own unit keeps its last starts: with a longer interval it waits that long.
pub(super) fn forget<S: Shelf>(shelf: &mut S, name: &str, now: i64) -> Result<Forgotten, S::Error> {
    let Some(site) = shelf.site(name)? else { return Ok(Forgotten::Unknown) };
    if let Some(busy) = busy(&site) {
        return Ok(busy);
    }
    let mut unit = shelf.unit(&site.unit)?.unwrap_or_else(|| UnitState::new(&site.unit));
    let wait = left_to_wait(shelf, &site, &unit, now)?;
    if wait > 0 {
        return Ok(Forgotten::NotYet { wait });
    }
    if shelf.sweep_known(name, site.run + 1, REMOVED)? || shelf.remove_pages(name, REMOVED)? {
        return Ok(Forgotten::Partly);
    }
    for start in [&mut unit.last, &mut unit.before].into_iter().flatten().filter(|s| s.site == name) {
        start.fixed.get_or_insert(site.interval());
    }
    for host in shelf.hosts_of(name)? {
        shelf.remove_host(&host, name)?;
    }
    save_unit(shelf, &unit)?;
    shelf.remove_site(name)?;
    Ok(Forgotten::Wholly)
}

/// How long what its last start and its block ask for is still to be kept.
fn left_to_wait<S: Shelf>(
    shelf: &mut S,
    site: &SiteState,
    unit: &UnitState,
    now: i64,
) -> Result<i64, S::Error> {
    let last = unit.last.as_ref().filter(|last| last.site == site.name);
    let paced = match last {
        Some(last) => last.at + interval_after(shelf, unit, Some(last))?,
        None => 0,
    };
    Ok(paced.max(unit.blocked_until) - now)
}

fn busy(site: &SiteState) -> Option<Forgotten> {
    let counts = [&site.download, &site.parse];
    let leased = counts.iter().map(|counts| counts.leased).sum();
    let idle: u64 =
        counts.iter().map(|counts| counts.waiting + counts.delayed + counts.scheduled + counts.letters).sum();
    (leased + idle > 0).then_some(Forgotten::Busy { tasks: leased + idle, leased })
}
