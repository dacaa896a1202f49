//! A site gets another name and keeps all it has: tasks, dead letters, what is known of its pages, books, tuned values, pace.

use super::{Done, Moment};
use crate::frontier::MutexKey;
use crate::frontier::shelf::Shelf;
use crate::frontier::step::Renamed;

impl<S: Shelf> Moment<'_, S> {
    /// Renames a site that nobody works on. A pace unit of its own is renamed with it, and its wall; the old one keeps its last
    /// starts, so that a site registered under the old name asks nobody early.
    pub(super) fn rename(&mut self, name: &str, to: &str) -> Done<S, Renamed> {
        let Some(mut site) = self.shelf.site(name)? else { return Ok(Renamed::Unknown) };
        if self.shelf.site(to)?.is_some() {
            return Ok(Renamed::Taken);
        }
        let leased = site.download.leased + site.parse.leased;
        if leased > 0 {
            return Ok(Renamed::Busy { leased });
        }
        if site.unit == name {
            self.move_unit(&mut site, to)?;
            // Whoever holds the unit's mutex from outside holds that of the new name as well.
            let left = self.unit_or_new(name)?;
            if let Some(held) = self.held_outside(&left)? {
                self.shelf.save_mutex(&MutexKey::unit(to), &held)?;
            }
            let mut unit = self.unit_or_new(to)?;
            if unit.last.is_none() {
                (unit.last, unit.before) = (left.last, left.before);
                self.save_unit(&unit)?;
            }
        }
        self.shelf.rename_site(name, to)?;
        self.free_name(&site)?;
        to.clone_into(&mut site.name);
        let fleet = self.shelf.fleet()?;
        site.first_version(fleet.freed_version, self.now);
        // Those who list the sites by lane may be past that name.
        site.by_lane |= fleet.by_lane;
        self.shelf.save_site(&site)?;
        let mut unit = self.unit_or_new(&site.unit)?;
        unit.by_lane |= site.by_lane;
        self.retime(&unit)?;
        Ok(Renamed::Done)
    }
}
