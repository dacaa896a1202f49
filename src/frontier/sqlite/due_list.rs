//! What is due among the named sites that a process works on: read once, and kept in order from one claim to the next, so that a
//! claim costs as much with hundreds of sites as with a few.

use std::collections::{BTreeSet, HashMap};

use crate::frontier::state::{SiteState, UnitState, WorkScope};
use crate::task::Stage;

/// Units of named sites, by when they are due.
pub(super) struct DueList {
    scope: WorkScope,
    /// The unit of each named site, and at which stages the site is ready.
    sites: HashMap<String, (String, [bool; 2])>,
    units: HashMap<String, DueTurn>,
    /// By stage, the units with a named site ready: the longest due first, then by name.
    due: [BTreeSet<(i64, String)>; 2],
}

/// What a unit's place goes by, at each stage.
#[derive(Clone, Copy, Default)]
struct DueTurn {
    /// How many of its named sites are ready.
    ready: [u32; 2],
    /// From when on it is due, in ms.
    from: [i64; 2],
}

impl DueTurn {
    fn places(self) -> [Option<i64>; 2] {
        let ([download, parse], [due, parsed]) = (self.ready, self.from);
        [(download > 0).then_some(due), (parse > 0).then_some(parsed)]
    }
}

impl DueList {
    pub(super) fn of(scope: &WorkScope) -> Self {
        let (sites, units) = (HashMap::new(), HashMap::new());
        Self { scope: scope.clone(), sites, units, due: <[BTreeSet<_>; 2]>::default() }
    }

    pub(super) fn is_of(&self, scope: &WorkScope) -> bool {
        self.scope == *scope
    }

    /// The units that are ready, in order.
    pub(super) fn due(&self, stage: Stage) -> &BTreeSet<(i64, String)> {
        &self.due[usize::from(stage == Stage::Parse)]
    }

    /// Takes a named site in.
    pub(super) fn add(&mut self, site: String, unit: String, ready: [bool; 2], from: [i64; 2]) {
        self.change(&unit, |turn| {
            turn.from = from;
            count(turn, [false; 2], ready);
        });
        self.sites.insert(site, (unit, ready));
    }

    /// A site is about to change. False where the list is to be read anew: it is a new one, or of another unit now.
    pub(super) fn site_changes(&mut self, site: &SiteState) -> bool {
        let Some((unit, before)) = self.sites.get_mut(&site.name) else {
            return !self.scope.includes(&site.name);
        };
        if *unit != site.unit {
            return false;
        }
        let ready = Stage::ALL.map(|stage| site.is_ready(stage));
        let before = std::mem::replace(before, ready);
        if before != ready {
            self.change(&site.unit, |turn| count(turn, before, ready));
        }
        true
    }

    /// A unit is about to change.
    pub(super) fn unit_changes(&mut self, unit: &UnitState, due: i64) {
        if self.units.contains_key(&unit.name) {
            self.change(&unit.name, |turn| turn.from = [due, unit.parsed_at]);
        }
    }

    fn change(&mut self, unit: &str, change: impl FnOnce(&mut DueTurn)) {
        let turn = self.units.entry(unit.to_owned()).or_default();
        let before = turn.places();
        change(turn);
        for ((due, before), after) in self.due.iter_mut().zip(before).zip(turn.places()) {
            if before == after {
                continue;
            }
            if let Some(before) = before {
                due.remove(&(before, unit.to_owned()));
            }
            due.extend(after.map(|after| (after, unit.to_owned())));
        }
    }
}

fn count(turn: &mut DueTurn, before: [bool; 2], after: [bool; 2]) {
    for ((ready, before), after) in turn.ready.iter_mut().zip(before).zip(after) {
        *ready = *ready + u32::from(after) - u32::from(before);
    }
}
