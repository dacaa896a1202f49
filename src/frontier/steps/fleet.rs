//! What all machines of a fleet agree on.

use super::{Done, Moment};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{Agreed, FleetState, LONGEST_INTERVAL, MOST_TUNED, TuneReply, TunedTenants};
use crate::task::{FleetRules, LaneRule};

impl<S: Shelf> Moment<'_, S> {
    /// Gives a tenant rules of its own, in place of those of the files, for the very next task that is made (F17); none gives it back
    /// to them. Not where too many have some. Other partitions are told in a further step.
    pub(super) fn tune_tenant(
        &mut self,
        tenant: String,
        rules: Option<Vec<LaneRule>>,
    ) -> Done<S, Option<TunedTenants>> {
        let mut fleet = FleetState::clone(&*self.shelf.fleet()?);
        match rules {
            Some(rules) => drop(fleet.tuned.tenants.insert(tenant, rules)),
            None => drop(fleet.tuned.tenants.remove(&tenant)),
        }
        if fleet.tuned.tenants.len() > MOST_TUNED {
            return Ok(None);
        }
        fleet.tuned.number = (fleet.tuned.number + 1).max(self.now);
        self.shelf.save_fleet(&fleet)?;
        Ok(Some(fleet.tuned))
    }

    /// Such rules hold here too, unless a later change came first.
    pub(super) fn tell_tuned(&mut self, tuned: TunedTenants) -> Done<S> {
        let mut fleet = FleetState::clone(&*self.shelf.fleet()?);
        if tuned.number > fleet.tuned.number {
            fleet.tuned = tuned;
            self.shelf.save_fleet(&fleet)?;
        }
        Ok(())
    }

    /// Sets what a group waits between its starts, for the very next claim (L6): longer than its sites' files and their robots.txt
    /// ask for. None gives it back to them.
    pub(super) fn tune_group(&mut self, group: &str, interval: Option<i64>) -> Done<S, TuneReply> {
        let Some(mut unit) = self.shelf.unit(group)? else { return Ok(TuneReply::Unknown) };
        let (Some(least), true) = (unit.least_group_wait(), self.shelf.has_sites(group)?) else {
            return Ok(TuneReply::Unknown);
        };
        let most = LONGEST_INTERVAL.max(least);
        if interval.is_some_and(|interval| !(least..=most).contains(&interval)) {
            return Ok(TuneReply::Interval(least, most));
        }
        unit.tuned_interval = interval;
        self.retime(&unit)?;
        Ok(TuneReply::Done)
    }

    /// Puts the rules of a machine in force for all of them, unless newer ones took their place before (N8). What the directory of a
    /// cluster has agreed to holds in each partition.
    pub(super) fn agree(&mut self, rules: FleetRules, mark: u64, by_directory: bool) -> Done<S, Agreed> {
        let before = self.shelf.fleet()?;
        let mut fleet = FleetState::clone(&before);
        if by_directory {
            fleet.replaced.retain(|other| *other != mark);
        }
        let agreed = fleet.agree(rules, mark);
        if fleet != *before {
            self.shelf.save_fleet(&fleet)?;
        }
        Ok(agreed)
    }
}
