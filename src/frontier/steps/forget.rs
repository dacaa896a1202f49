//! A site that nobody wants any more: its record goes, its last start stays.

use super::{Done, Moment, REMOVED};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{AwayHost, FleetState, SiteState, UnitState};
use crate::frontier::step::Forgotten;

impl<S: Shelf> Moment<'_, S> {
    /// Forgets a site that has no tasks and no dead letters, a bounded number of pages a step.
    ///
    /// Never before its last start is an interval ago and its block, or that of its group, is over: it may be registered anew
    /// in another unit.
    pub(super) fn forget(&mut self, name: &str) -> Done<S, Forgotten> {
        let Some(site) = self.shelf.site(name)? else { return Ok(Forgotten::Unknown) };
        if let Some(busy) = busy(&site) {
            return Ok(busy);
        }
        let mut unit = self.unit_or_new(&site.unit)?;
        let wait = self.left_to_wait(&site, &unit);
        if wait > 0 {
            return Ok(Forgotten::NotYet { wait });
        }
        if self.shelf.sweep_known(name, site.run + 1, REMOVED)? || self.shelf.remove_pages(name, REMOVED)? {
            return Ok(Forgotten::Partly);
        }
        if self.forget_campaigns(name)? {
            return Ok(Forgotten::Partly);
        }
        let hosts = self.shelf.hosts_of(name)?;
        for host in &hosts {
            self.shelf.remove_host(host, name)?;
            self.forget_robots(host)?;
        }
        unit.forget_floors(&hosts);
        self.look_at_all_hosts(name, None)?;
        self.shelf.set_away(name, AwayHost::PARSE_PAUSE, None)?;
        self.shelf.remove_site(name)?;
        self.free_name(&site)?;
        self.leave_unit(unit)?;
        Ok(Forgotten::Wholly)
    }

    /// Another site may get its name from now on, with a version above its own.
    pub(super) fn free_name(&mut self, site: &SiteState) -> Done<S> {
        if site.is_ahead_of(self.now) {
            let mut fleet = FleetState::clone(&*self.shelf.fleet()?);
            fleet.freed_version = fleet.freed_version.max(site.version);
            self.shelf.save_fleet(&fleet)?;
        }
        Ok(())
    }

    /// How long what its last start and its block ask for is still to be kept.
    fn left_to_wait(&self, site: &SiteState, unit: &UnitState) -> i64 {
        let probe = unit.wall.as_ref().map_or(0, |wall| wall.probe_at);
        unit.blocked_until.max(site.waits_until()).max(probe) - self.now
    }
}

fn busy(site: &SiteState) -> Option<Forgotten> {
    let counts = [&site.download, &site.parse];
    let leased = counts.iter().map(|counts| counts.leased).sum();
    let idle: u64 =
        counts.iter().map(|counts| counts.waiting + counts.delayed + counts.scheduled + counts.letters).sum();
    (leased + idle > 0).then_some(Forgotten::Busy { tasks: leased + idle, leased })
}
