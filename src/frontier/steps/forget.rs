//! A site that nobody wants any more: its record goes, its last start stays.

use super::places::save_unit;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{SiteState, UnitState};
use crate::frontier::step::Forgotten;

/// Pages or fingerprints removed in one step.
const REMOVED: u32 = 1_000;

/// Forgets a site that has no tasks and no dead letters, a bounded number of pages a step.
///
/// Its unit keeps its last starts, each waited for as long as now: the same site registered again asks nobody early.
pub(super) fn forget<S: Shelf>(shelf: &mut S, name: &str) -> Result<Forgotten, S::Error> {
    let Some(site) = shelf.site(name)? else { return Ok(Forgotten::Unknown) };
    if let Some(busy) = busy(&site) {
        return Ok(busy);
    }
    if shelf.sweep_known(name, site.run + 1, REMOVED)? || shelf.remove_pages(name, REMOVED)? {
        return Ok(Forgotten::Partly);
    }
    let mut unit = shelf.unit(&site.unit)?.unwrap_or_else(|| UnitState::new(&site.unit));
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

fn busy(site: &SiteState) -> Option<Forgotten> {
    let counts = [&site.download, &site.parse];
    let leased = counts.iter().map(|counts| counts.leased).sum();
    let idle: u64 =
        counts.iter().map(|counts| counts.waiting + counts.delayed + counts.scheduled + counts.letters).sum();
    (leased + idle > 0).then_some(Forgotten::Busy { tasks: leased + idle, leased })
}
