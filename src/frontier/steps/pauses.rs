//! Pauses of a group and of all sites. Their sites' units keep them, so that a claim finds them where it looks anyway.

use super::{Done, Moment};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    AwayHost, DROPS_KEPT, DropMark, DroppedOf, FleetState, GroupPaused, Pause, PausesOfAll, SiteState,
    UnitState, UnitWait,
};
use crate::task::Stage;

/// Sites whose units are told of a pause of all in one step.
pub(in crate::frontier) const TOLD: u32 = 100;

impl<S: Shelf> Moment<'_, S> {
    /// Pauses a stage of a group, or ends that: for all who are in it, and those who join it.
    pub(super) fn pause_group(
        &mut self,
        group: &str,
        stage: Stage,
        pause: Option<Pause>,
    ) -> Done<S, GroupPaused> {
        let unit = self.shelf.unit(group)?.filter(|unit| {
            // One without a group may have the name of a former one, whose pause is to be ended still.
            unit.wait != UnitWait::Own || unit.paused.group.are_in_force(self.now)
        });
        let Some(mut unit) = unit else { return Ok(GroupPaused::Unknown) };
        let was = unit.paused.group.in_force(stage, self.now).is_some();
        unit.paused.group.set(stage, pause);
        self.save_unit(&unit)?;
        Ok(GroupPaused::Was(was))
    }

    /// Pauses a stage of all sites, or ends that: for those who are registered from now on. The others are told in further steps.
    /// Whether such a pause was in force before.
    pub(super) fn pause_all(&mut self, stage: Stage, pause: Option<Pause>) -> Done<S, (bool, PausesOfAll)> {
        let mut fleet = FleetState::clone(&*self.shelf.fleet()?);
        let was = fleet.paused.pauses.in_force(stage, self.now).is_some();
        fleet.paused.pauses.set(stage, pause);
        fleet.paused.number = (fleet.paused.number + 1).max(self.now);
        self.shelf.save_fleet(&fleet)?;
        Ok((was, fleet.paused))
    }

    /// Tells the units of some sites what is paused of all, those behind that name: behind which name the next ones are. A later
    /// change that came here first stays.
    pub(super) fn tell_paused(&mut self, of_all: PausesOfAll, after: &str) -> Done<S, Option<String>> {
        let mut fleet = FleetState::clone(&*self.shelf.fleet()?);
        if of_all.number > fleet.paused.number {
            fleet.paused = of_all;
            self.shelf.save_fleet(&fleet)?;
        }
        let mut names = self.shelf.site_names(after, TOLD)?;
        for name in &names {
            let Some(site) = self.shelf.site(name)? else { continue };
            let mut unit = self.unit_or_new(&site.unit)?;
            if unit.paused.all != fleet.paused.pauses {
                unit.paused.all = fleet.paused.pauses.clone();
                self.save_unit(&unit)?;
            }
        }
        Ok(if names.len() == TOLD as usize { names.pop() } else { None })
    }

    /// Requests that were granted until now are to be dropped: each process looks for such marks with its beat.
    pub(super) fn drop_requests(&mut self, of: DroppedOf) -> Done<S> {
        let mut fleet = FleetState::clone(&*self.shelf.fleet()?);
        fleet.drops.retain(|mark| mark.is_kept(self.now) && mark.of != of);
        fleet.drops.push(DropMark { at: self.now, of });
        let over = fleet.drops.len().saturating_sub(DROPS_KEPT);
        fleet.drops.drain(..over);
        self.shelf.save_fleet(&fleet)
    }

    /// Such marks, the latest last.
    pub(super) fn drops(&mut self) -> Done<S, Vec<DropMark>> {
        let fleet = self.shelf.fleet()?;
        Ok(fleet.drops.iter().filter(|mark| mark.is_kept(self.now)).cloned().collect())
    }

    /// Whether no parse of a site is to be granted.
    pub(super) fn is_parse_paused(&mut self, site: &SiteState) -> Done<S, bool> {
        let unit = self.shelf.unit(&site.unit)?;
        let shared = unit.map_or(0, |unit| unit.paused.until(Stage::Parse));
        Ok(site.tuned.parse_paused.is_some() || shared > self.now)
    }

    /// The end of a pause of a site's parses, if it ends by itself, is looked at beside the hosts that are kept back.
    pub(super) fn await_parse_pause(&mut self, site: &SiteState) -> Done<S> {
        let until = site.tuned.parse_paused.as_ref().and_then(|pause| pause.until);
        self.shelf.set_away(&site.name, AwayHost::PARSE_PAUSE, until)
    }

    /// Its time has come, unless it was made longer.
    pub(super) fn look_at_parse_pause(&mut self, name: &str) -> Done<S> {
        let Some(mut site) = self.shelf.site(name)? else {
            return self.shelf.set_away(name, AwayHost::PARSE_PAUSE, None);
        };
        site.tuned.parse_paused.take_if(|pause| pause.until.is_some_and(|until| until <= self.now));
        self.save(&site)?;
        self.await_parse_pause(&site)
    }

    /// A site is about to be of a unit that may be new: what holds for all sites holds for it.
    pub(super) fn copy_fleet(&mut self, unit: &mut UnitState) -> Done<S> {
        let fleet = self.shelf.fleet()?;
        unit.paused.all.clone_from(&fleet.paused.pauses);
        unit.by_lane |= fleet.by_lane;
        Ok(())
    }
}
