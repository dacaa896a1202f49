//! What is due among the named sites that a process works on: read once, and kept in order from one claim to the next, so that a
//! claim costs as much with hundreds of sites as with a few.

use std::collections::{BTreeSet, HashMap};

use crate::frontier::state::{SiteState, Turn, UnitDue, UnitState, WorkScope};
use crate::task::Stage;

/// Units of named sites, by when they are due.
pub(super) struct DueList {
    scope: WorkScope,
    /// The unit of each named site, and its place at each stage.
    sites: HashMap<String, (String, Places)>,
    units: HashMap<String, Named>,
    /// By stage, the units with a named site ready: the longest due first, then by name.
    due: [BTreeSet<(Turn, String)>; 2],
}

/// By stage, where a site stands that is ready there: when its own wait is over, in ms.
type Places = [Option<i64>; 2];

/// A unit and its named sites.
#[derive(Default)]
struct Named {
    /// By stage, those that are ready, by the end of their own wait, then by name.
    ready: [BTreeSet<(i64, String)>; 2],
    due: UnitDue,
    parsed_at: i64,
}

impl Named {
    fn turns(&self) -> [Option<Turn>; 2] {
        let [download, parse] = &self.ready;
        let first = download.first().map(|(ends, _)| self.due.turn(*ends));
        [first, parse.first().map(|_| Turn::of_parse(self.parsed_at))]
    }

    fn moves(&mut self, site: &str, before: Places, after: Places) {
        for ((ready, before), after) in self.ready.iter_mut().zip(before).zip(after) {
            if before != after {
                before.map(|ends| ready.remove(&(ends, site.to_owned())));
                ready.extend(after.map(|ends| (ends, site.to_owned())));
            }
        }
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
    pub(super) fn due(&self, stage: Stage) -> &BTreeSet<(Turn, String)> {
        &self.due[usize::from(stage == Stage::Parse)]
    }

    /// The named sites of a unit that are ready, by the end of their own wait.
    pub(super) fn ready(&self, stage: Stage, unit: &str) -> impl Iterator<Item = (i64, &str)> {
        let named = self.units.get(unit).into_iter();
        let ready = named.flat_map(move |named| &named.ready[usize::from(stage == Stage::Parse)]);
        ready.map(|(ends, name)| (*ends, name.as_str()))
    }

    /// Takes a named site in.
    pub(super) fn add(&mut self, site: &SiteState, due: UnitDue, parsed_at: i64) {
        let after = places(site);
        self.change(&site.unit, |named| {
            (named.due, named.parsed_at) = (due, parsed_at);
            named.moves(&site.name, [None; 2], after);
        });
        self.sites.insert(site.name.clone(), (site.unit.clone(), after));
    }

    /// A site is about to change. False where the list is to be read anew: it is a new one, or of another unit now.
    pub(super) fn site_changes(&mut self, site: &SiteState) -> bool {
        let Some((unit, before)) = self.sites.get_mut(&site.name) else {
            return !self.scope.includes(&site.name);
        };
        if *unit != site.unit {
            return false;
        }
        let after = places(site);
        let before = std::mem::replace(before, after);
        if before != after {
            self.change(&site.unit, |named| named.moves(&site.name, before, after));
        }
        true
    }

    /// A unit is about to change.
    pub(super) fn unit_changes(&mut self, unit: &UnitState, due: UnitDue) {
        if self.units.contains_key(&unit.name) {
            self.change(&unit.name, |named| (named.due, named.parsed_at) = (due, unit.parse_turn()));
        }
    }

    fn change(&mut self, unit: &str, change: impl FnOnce(&mut Named)) {
        let named = self.units.entry(unit.to_owned()).or_default();
        let before = named.turns();
        change(named);
        for ((due, before), after) in self.due.iter_mut().zip(before).zip(named.turns()) {
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

fn places(site: &SiteState) -> Places {
    Stage::ALL.map(|stage| site.is_ready(stage).then(|| waits_until(stage, site)))
}

/// When a site's own wait at a stage is over: nothing is waited for by the parse stage.
pub(super) fn waits_until(stage: Stage, site: &SiteState) -> i64 {
    if stage == Stage::Download { site.waits_until() } else { 0 }
}
