//! What is due among the sites that a process names with each of its claims: kept in order from one claim to the next, so that a
//! claim costs as much with hundreds of sites as with a few.

use std::collections::{BTreeSet, HashMap};

use super::memory::HeldBack;
use crate::frontier::state::{SiteState, UnitState};
use crate::task::Stage;

/// Units of named sites, by when they are due.
#[derive(Default)]
pub(super) struct Among {
    /// The sites that were named.
    named: Vec<String>,
    /// The named sites of each unit.
    sites: HashMap<String, Vec<String>>,
    /// By stage, the units with a task ready and the time from which each is due: the longest due first, then by name.
    due: [BTreeSet<(i64, String)>; 2],
    /// Where each unit stands in `due`.
    places: HashMap<String, [Option<i64>; 2]>,
    /// Units that may have to stand elsewhere.
    stale: BTreeSet<String>,
}

impl Among {
    /// Of these sites, each remembered with its unit where it is there at all.
    pub(super) fn of(named: &[String], sites: &HeldBack<SiteState>) -> Self {
        let mut among = Self { named: named.to_vec(), ..Self::default() };
        for site in named.iter().filter_map(|name| sites.get(name)) {
            among.sites.entry(site.unit.clone()).or_default().push(site.name.clone());
        }
        among.stale = among.sites.keys().cloned().collect();
        among
    }

    /// Whether it is of these sites.
    pub(super) fn is_of(&self, named: &[String]) -> bool {
        self.named == named
    }

    /// A unit or one of its sites is about to change.
    pub(super) fn changes(&mut self, unit: &str) {
        if self.sites.contains_key(unit) && !self.stale.contains(unit) {
            self.stale.insert(unit.to_owned());
        }
    }

    /// The units that are ready, in order.
    pub(super) fn due(
        &mut self,
        stage: Stage,
        sites: &HeldBack<SiteState>,
        units: &HeldBack<(UnitState, i64)>,
    ) -> &BTreeSet<(i64, String)> {
        for unit in std::mem::take(&mut self.stale) {
            let named = self.sites.get(&unit).into_iter().flatten();
            let named: Vec<&SiteState> = named.filter_map(|name| sites.get(name)).collect();
            let place = Stage::ALL.map(|stage| {
                let (state, due) = units.get(&unit)?;
                let due = if stage == Stage::Download { *due } else { state.parsed_at };
                named.iter().any(|site| site.is_ready(stage)).then_some(due)
            });
            self.put(&unit, place);
        }
        let [download, parse] = &self.due;
        if stage == Stage::Download { download } else { parse }
    }

    fn put(&mut self, unit: &str, place: [Option<i64>; 2]) {
        let before = self.places.insert(unit.to_owned(), place).unwrap_or_default();
        for ((due, before), now) in self.due.iter_mut().zip(before).zip(place) {
            if before == now {
                continue;
            }
            if let Some(before) = before {
                due.remove(&(before, unit.to_owned()));
            }
            due.extend(now.map(|now| (now, unit.to_owned())));
        }
    }
}
