//! What stands in the file, kept from one transaction to the next for as long as no other process writes into it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::Connection;

use super::due_list::DueList;
use super::session::{Answer, Tables};
use crate::frontier::MutexKey;
use crate::frontier::state::{MutexState, OwnerState, Place, RobotsBrief, SiteState, Task, UnitState};
use crate::task::{PageKey, Stage};

/// With more records of a kind than this it begins anew.
const MOST: usize = 2_000;

/// What is known of the file without reading it.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) sites: HeldBack<SiteState>,
    /// With the time from which each is due.
    pub(super) units: HeldBack<(UnitState, i64)>,
    /// Of the named sites that this process works on, once it has claimed.
    pub(super) due_list: Option<DueList>,
    pub(super) rows: BTreeMap<String, SiteRow>,
    /// The numbers by which other tables know sites.
    pub(super) ids: BTreeMap<String, i64>,
    pub(super) owners: HeldBack<OwnerState>,
    /// A dead owner may have leases; not where none was found, as it gets no more.
    pub(super) may_have_orphans: Option<bool>,
    pub(super) running: RunningTasks,
    pub(super) robots: BTreeMap<String, Option<RobotsBrief>>,
    pub(super) mutexes: BTreeMap<MutexKey, Option<MutexState>>,
    /// The first sites of units, by name; of larger units there are more.
    pub(super) members: BTreeMap<String, Vec<String>>,
    /// The least time of a unit with a parse ready, where it is known; `i64::MAX` where there is none.
    pub(super) first_parse: Option<i64>,
    /// No task is delayed until an earlier time, where that is known.
    pub(super) delayed_from: Option<i64>,
    /// No lease ends at an earlier time, where that is known.
    pub(super) leased_until: Option<i64>,
    /// It is from the transaction before: nobody else writes just now.
    pub(super) lasts: bool,
    /// Of which state of the file it is.
    version: Option<i64>,
}

/// Records that are in their table already, by name, as they should stand there.
pub(super) struct HeldBack<T> {
    records: BTreeMap<String, T>,
    /// Those that stand otherwise there.
    changed: BTreeSet<String>,
}

impl<T> Default for HeldBack<T> {
    fn default() -> Self {
        Self { records: BTreeMap::new(), changed: BTreeSet::new() }
    }
}

/// What of a site stands in columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SiteRow {
    pub(super) unit: String,
    pub(super) ready: [i64; 2],
    pub(super) has_room: bool,
}

impl<T: Clone + PartialEq> HeldBack<T> {
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.records.get(name)
    }

    /// Remembers a record as it stands in its table.
    pub(super) fn stands(&mut self, name: &str, record: T) {
        self.records.insert(name.to_owned(), record);
    }

    /// A record that is held is to stand otherwise; false where it isn't held.
    pub(super) fn change(&mut self, name: &str, record: &T) -> bool {
        let Some(held) = self.records.get_mut(name) else { return false };
        if held != record {
            held.clone_from(record);
            self.changed.insert(name.to_owned());
        }
        true
    }

    /// Those that are to be written now.
    pub(super) fn take_changed(&mut self) -> Vec<(String, T)> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        changed.filter_map(|name| self.records.get(&name).cloned().map(|record| (name, record))).collect()
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.records.remove(name);
        self.changed.remove(name);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Memory {
    /// What of it still holds in a transaction that has begun.
    pub(super) fn in_transaction(self, connection: &Connection) -> Answer<Self> {
        let version = connection
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get::<_, i64>(0))
            .map(Some)?;
        let lasts = self.version == version && self.is_small();
        let base = if lasts { self } else { Self::default() };
        Ok(Self { lasts, version, ..base })
    }

    fn is_small(&self) -> bool {
        let sizes = [
            self.sites.records.len(),
            self.ids.len(),
            self.running.0.len(),
            self.robots.len(),
            self.mutexes.len(),
        ];
        sizes.into_iter().all(|size| size <= MOST)
    }

    pub(super) fn forget_site(&mut self, name: &str) {
        self.sites.forget(name);
        self.rows.remove(name);
        self.ids.remove(name);
        self.members.clear();
        self.due_list = None;
        self.first_parse = None;
        self.running.forget_site(name);
    }

    /// A task is about to stand as it is told.
    pub(super) fn notes_task(&mut self, task: &Task) {
        self.running.remove(task);
        match &task.place {
            Place::Waiting => {}
            Place::Delayed { until, .. } => {
                self.delayed_from = self.delayed_from.map(|first| first.min(*until));
            }
            Place::Running(running) => {
                self.leased_until = self.leased_until.map(|first| first.min(running.ends_at));
                self.running.add(task);
            }
        }
    }
}

/// Tasks under leases, by URL: each is asked for several times before it ends.
#[derive(Default)]
pub(super) struct RunningTasks(HashMap<String, Vec<Task>>);

impl RunningTasks {
    pub(super) fn find(&self, page: PageKey<'_>, stage: Stage) -> Option<&Task> {
        self.0.get(page.url.as_str())?.iter().find(|task| task.site == page.site && task.stage == stage)
    }

    fn add(&mut self, task: &Task) {
        self.0.entry(task.url.to_string()).or_default().push(task.clone());
    }

    pub(super) fn remove(&mut self, task: &Task) {
        let Some(of_url) = self.0.get_mut(task.url.as_str()) else { return };
        of_url.retain(|other| (&other.site, other.stage) != (&task.site, task.stage));
        if of_url.is_empty() {
            self.0.remove(task.url.as_str());
        }
    }

    fn forget_site(&mut self, site: &str) {
        self.0.retain(|_, of_url| {
            of_url.retain(|task| task.site != site);
            !of_url.is_empty()
        });
    }
}

impl Tables<'_> {
    pub(super) fn first_lease_end(&mut self) -> Answer<Option<i64>> {
        let first = self.least("SELECT min(until) FROM task WHERE place = 3")?;
        self.memory.leased_until = Some(first.unwrap_or(i64::MAX));
        Ok(first)
    }

    pub(super) fn may_have_orphans(&mut self) -> Answer<bool> {
        if let Some(may) = self.memory.may_have_orphans {
            return Ok(may);
        }
        let may = self.least("SELECT EXISTS (SELECT 1 FROM owner WHERE dead)")? == Some(1);
        self.memory.may_have_orphans = Some(may);
        Ok(may)
    }

    /// A site is about to stand as it is told.
    pub(super) fn notes_site(&mut self, site: &SiteState) {
        self.memory.due_list.take_if(|list| !list.site_changes(site));
        let before = self.memory.sites.get(&site.name);
        if before.is_none_or(|before| before.unit != site.unit) {
            self.memory.members.clear();
        }
        if before.is_none_or(|before| {
            before.unit != site.unit || before.is_ready(Stage::Parse) != site.is_ready(Stage::Parse)
        }) {
            self.memory.first_parse = None;
        }
    }

    /// A unit is about to stand as it is told.
    pub(super) fn notes_unit(&mut self, unit: &UnitState, due: i64) {
        if let Some(list) = &mut self.memory.due_list {
            list.unit_changes(unit, due);
        }
        let before = self.memory.units.get(&unit.name).map(|(unit, _)| unit);
        if before.is_none_or(|before| before.parsed_at != unit.parsed_at) {
            self.memory.first_parse = None;
        }
    }
}
