//! Sites listed by lane, for workers that serve some lanes alone (N7). Until the first of them comes nothing is listed so.

use super::{Done, Moment};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{FleetState, WorkScope};

/// Sites that are listed in one step.
pub(in crate::frontier) const LANES_LISTED: u32 = 100;

impl<S: Shelf> Moment<'_, S> {
    /// Lists sites by lane from now on: those that are registered later, and the next ones behind that name: behind which name those
    /// after them are.
    pub(super) fn list_by_lane(&mut self, after: &str) -> Done<S, Option<String>> {
        let fleet = self.shelf.fleet()?;
        if !fleet.by_lane {
            self.shelf.save_fleet(&FleetState { by_lane: true, ..FleetState::clone(&*fleet) })?;
        }
        let mut names = self.shelf.site_names(after, LANES_LISTED)?;
        for name in &names {
            let Some(mut site) = self.shelf.site(name)?.filter(|site| !site.by_lane) else { continue };
            site.by_lane = true;
            self.shelf.save_site(&site)?;
            let mut unit = self.unit_or_new(&site.unit)?;
            unit.by_lane = true;
            self.save_unit(&unit)?;
        }
        Ok(if names.len() == LANES_LISTED as usize { names.pop() } else { None })
    }

    /// Whether a process works on tasks of a lane.
    pub(super) fn is_served_by(&mut self, owner: &str, lane: &str) -> Done<S, bool> {
        Ok(self.shelf.owner(owner)?.is_none_or(|owner| WorkScope::serves(&owner.scope, lane)))
    }
}
