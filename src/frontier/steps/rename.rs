//! A site gets another name and keeps all it has: tasks, dead letters, what is known of its pages, books, tuned values, pace.

use super::places::retime;
use super::site::move_unit;
use crate::frontier::MutexKey;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::UnitState;
use crate::frontier::step::Renamed;

/// Renames a site that nobody works on. A pace unit of its own is renamed with it; the old one keeps its last starts, so that a
/// site registered under the old name asks nobody early.
pub(super) fn rename<S: Shelf>(shelf: &mut S, name: &str, to: &str, now: i64) -> Result<Renamed, S::Error> {
    let Some(mut site) = shelf.site(name)? else { return Ok(Renamed::Unknown) };
    if shelf.site(to)?.is_some() {
        return Ok(Renamed::Taken);
    }
    let leased = site.download.leased + site.parse.leased;
    if leased > 0 {
        return Ok(Renamed::Busy { leased });
    }
    if site.unit == name {
        move_unit(shelf, &mut site, to)?;
        move_outsider(shelf, name, to, now)?;
    }
    shelf.rename_site(name, to)?;
    to.clone_into(&mut site.name);
    shelf.save_site(&site)?;
    let mut unit = shelf.unit(&site.unit)?.unwrap_or_else(|| UnitState::new(&site.unit));
    for start in [&mut unit.last, &mut unit.before].into_iter().flatten().filter(|start| start.site == name) {
        to.clone_into(&mut start.site);
    }
    retime(shelf, &unit, now)?;
    Ok(Renamed::Done)
}

/// Who holds the unit's mutex from outside holds that of the new name as well.
fn move_outsider<S: Shelf>(shelf: &mut S, name: &str, to: &str, now: i64) -> Result<(), S::Error> {
    let own = |token: &str, unit: Option<UnitState>| unit.is_some_and(|unit| unit.owns(token));
    if let Some(held) = shelf.mutex(&MutexKey::unit(name))?.filter(|held| held.until > now)
        && !own(&held.token, shelf.unit(name)?)
    {
        shelf.save_mutex(&MutexKey::unit(to), &held)?;
    }
    Ok(())
}
