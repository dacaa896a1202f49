//! What stands in the file, kept from one transaction to the next for as long as no other process writes into it.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{Connection, Result};

use super::due_list::DueList;
use crate::frontier::MutexKey;
use crate::frontier::state::{
    AwayHost, FleetState, MutexState, OwnerState, Place, RobotsBrief, SiteState, Task, UnitDue, UnitState,
};
use crate::task::Stage;

/// With more records of a kind than this it begins anew.
const MOST: usize = 2_000;

/// What is known of the file without reading it.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) sites: Cached<str, SiteState>,
    /// The numbers by which other tables know sites.
    pub(super) ids: Cached<str, i64>,
    /// The slot for which books are kept already.
    pub(super) slots_open: Cached<str, i64>,
    /// The slot by which the waits of a site were halved.
    pub(super) waits_slots: Cached<str, i64>,
    /// With when each is due.
    pub(super) units: Cached<str, (UnitState, UnitDue)>,
    /// The first sites of units, by name; of larger units there are more.
    pub(super) members: Cached<str, Vec<String>>,
    pub(super) owners: Cached<str, OwnerState>,
    pub(super) robots: Cached<str, Option<RobotsBrief>>,
    pub(super) mutexes: Cached<MutexKey, Option<MutexState>>,
    /// Tasks under leases: each is asked for several times before it ends.
    pub(super) running: Cached<TaskKey, Task>,
    /// Of the named sites that this process works on, once it has claimed.
    pub(super) due_list: Option<DueList>,
    /// A dead owner may have leases; not where none was found, as it gets no more.
    pub(super) may_have_orphans: Option<bool>,
    /// The least time of a unit with a parse ready, where it is known; `i64::MAX` where there is none.
    pub(super) first_parse: Option<i64>,
    /// No task is delayed until an earlier time, where that is known.
    pub(super) delayed_from: Option<i64>,
    /// The host that is looked at first, where that is known.
    #[expect(clippy::option_option, reason = "that there is none is known as well")]
    pub(super) first_away: Option<Option<AwayHost>>,
    /// No lease ends at an earlier time, where that is known.
    pub(super) leased_until: Option<i64>,
    /// What the fleet agreed on, once it was asked for.
    pub(super) fleet: Option<Arc<FleetState>>,
    /// It is from the transaction before: nobody else writes just now.
    pub(super) lasts: bool,
    /// Of which state of the file it is.
    version: i64,
}

/// Site, stage and fingerprint: two pages have the same hardly ever, so the URL is still to be compared.
pub(super) type TaskKey = (Option<i64>, Stage, i64);

/// Records by key, as they should stand in their table.
pub(super) struct Cached<K: ToOwned + ?Sized, V> {
    known: BTreeMap<K::Owned, V>,
    /// Those that stand otherwise there, as they do.
    stood: BTreeMap<K::Owned, V>,
}

impl<K: ToOwned + ?Sized, V> Default for Cached<K, V> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), stood: BTreeMap::new() }
    }
}

impl<K: Ord + ToOwned<Owned: Ord> + ?Sized, V: Clone + PartialEq> Cached<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.known.get(key)
    }

    /// A record, read from its table if it isn't known.
    pub(super) fn get_or_read(
        &mut self,
        key: &K,
        read: impl FnOnce() -> Result<Option<V>>,
    ) -> Result<Option<V>> {
        if let Some(known) = self.known.get(key) {
            return Ok(Some(known.clone()));
        }
        let read = read()?;
        self.known.extend(read.clone().map(|record| (key.to_owned(), record)));
        Ok(read)
    }

    /// Remembers a record as it stands in its table.
    pub(super) fn stands(&mut self, key: &K, record: V) {
        self.known.insert(key.to_owned(), record);
    }

    /// A record that is known is to stand otherwise; false where it isn't known.
    pub(super) fn change(&mut self, key: &K, record: &V) -> bool {
        let Some(known) = self.known.get_mut(key) else { return false };
        if known != record {
            let before = std::mem::replace(known, record.clone());
            self.stood.entry(key.to_owned()).or_insert(before);
        }
        true
    }

    /// Those that are to be written now: key, as it stands, as it is to stand.
    pub(super) fn take_changed(&mut self) -> Vec<(K::Owned, V, V)> {
        let stood = std::mem::take(&mut self.stood).into_iter();
        let now = |key: &K::Owned| self.known.get(key.borrow()).cloned();
        stood.filter_map(|(key, before)| now(&key).map(|now| (key, before, now))).collect()
    }

    pub(super) fn forget(&mut self, key: &K) {
        self.known.remove(key);
    }
}

impl Memory {
    /// What of it still holds in a transaction that has begun.
    pub(super) fn in_transaction(self, connection: &Connection) -> Result<Self> {
        let version = connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        let lasts = self.version == version && self.is_small();
        let base = if lasts { self } else { Self::default() };
        Ok(Self { lasts, version, ..base })
    }

    fn is_small(&self) -> bool {
        let [sites, ids, units] = [self.sites.known.len(), self.ids.known.len(), self.units.known.len()];
        let [members, owners] = [self.members.known.len(), self.owners.known.len()];
        let [robots, mutexes, running] =
            [self.robots.known.len(), self.mutexes.known.len(), self.running.known.len()];
        let [slots_open, waits_slots] = [self.slots_open.known.len(), self.waits_slots.known.len()];
        let sizes = [sites, ids, units, members, owners, robots, mutexes, running, slots_open, waits_slots];
        sizes.into_iter().all(|size| size <= MOST)
    }

    /// Nothing is known any more.
    pub(super) fn clear(&mut self) {
        *self = Self { version: self.version, ..Self::default() };
    }

    /// A site is about to stand as it is told.
    pub(super) fn notes_site(&mut self, site: &SiteState) {
        self.due_list.take_if(|list| !list.site_changes(site));
        let before = self.sites.get(&site.name).filter(|before| before.unit == site.unit);
        if before.is_none() {
            self.members = Cached::default();
        }
        if before.is_none_or(|before| before.is_ready(Stage::Parse) != site.is_ready(Stage::Parse)) {
            self.first_parse = None;
        }
    }

    /// A unit is about to stand as it is told.
    pub(super) fn notes_unit(&mut self, unit: &UnitState, due: UnitDue) {
        if let Some(list) = &mut self.due_list {
            list.unit_changes(unit, due);
        }
        let before = self.units.get(&unit.name);
        if before.is_none_or(|(before, _)| before.parse_turn() != unit.parse_turn()) {
            self.first_parse = None;
        }
    }

    /// A task is about to stand as it is told.
    pub(super) fn notes_task(&mut self, key: TaskKey, task: &Task) {
        match &task.place {
            Place::Waiting | Place::Parked | Place::Behind => {}
            Place::Delayed { until, .. } => {
                self.delayed_from = self.delayed_from.map(|first| first.min(*until));
            }
            Place::Running(running) => {
                self.leased_until = self.leased_until.map(|first| first.min(running.ends_at));
                return self.running.stands(&key, task.clone());
            }
        }
        self.running.forget(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fill = fn(&mut Memory, &str);

    #[test]
    fn i17_of_many_records_of_any_kind_none_are_known_in_the_next_transaction() {
        let file = Connection::open_in_memory().expect("a file");
        let begun = |memory: Memory| memory.in_transaction(&file).expect("begun");
        let kinds: [Fill; 6] = [
            |memory, name| memory.slots_open.stands(name, 1),
            |memory, name| memory.waits_slots.stands(name, 1),
            |memory, name| memory.ids.stands(name, 1),
            |memory, name| memory.members.stands(name, Vec::new()),
            |memory, name| memory.robots.stands(name, None),
            |memory, name| memory.mutexes.stands(&MutexKey::Unit(name.to_owned()), None),
        ];
        for fill in kinds {
            let mut memory = begun(Memory::default());
            (0..MOST).for_each(|n| fill(&mut memory, &n.to_string()));
            memory = begun(memory);
            assert!(memory.lasts);
            fill(&mut memory, "one more");
            memory = begun(memory);
            assert!(!memory.lasts && memory.ids.known.is_empty() && memory.mutexes.known.is_empty());
        }
    }
}
