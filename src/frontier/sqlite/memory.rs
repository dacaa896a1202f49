//! Sites, units and owners as they stand in the file, kept from one transaction to the next for as long as no other process
//! writes into it.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::session::{Answer, Tables};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{OwnerState, SiteState, UnitState};
use crate::task::Stage;

/// With more sites than this it begins anew.
const MOST_SITES: usize = 2_000;

/// What is known of the file without reading it.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) sites: BTreeMap<String, Held<SiteState>>,
    pub(super) units: BTreeMap<String, Held<(UnitState, i64)>>,
    pub(super) rows: BTreeMap<String, SiteRow>,
    pub(super) owners: BTreeMap<String, OwnerState>,
    /// It is from the transaction before: nobody else writes just now.
    pub(super) lasts: bool,
    /// Of which state of the file it is.
    version: Option<i64>,
}

/// A record that is in its table already, as it should stand there.
pub(super) struct Held<T> {
    pub(super) record: T,
    pub(super) changed: bool,
}

/// What of a site stands in columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SiteRow {
    pub(super) unit: String,
    pub(super) ready: [i64; 2],
    pub(super) has_room: bool,
}

impl<T: PartialEq> Held<T> {
    pub(super) fn read(record: T) -> Self {
        Self { record, changed: false }
    }

    pub(super) fn change(&mut self, record: T) {
        self.changed |= self.record != record;
        self.record = record;
    }
}

impl Memory {
    /// What of it still holds in a transaction that has begun.
    pub(super) fn in_transaction(self, connection: &Connection) -> Answer<Self> {
        let version = connection
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get::<_, i64>(0))
            .map(Some)?;
        let lasts = self.version == version && self.sites.len() <= MOST_SITES;
        let base = if lasts { self } else { Self::default() };
        Ok(Self { lasts, version, ..base })
    }
}

impl Tables<'_> {
    /// The units of those of the named sites that are ready, each with the time from which it is due, the longest due first,
    /// then by name. `None` where no names are given, or where others write and all would have to be read anew each time.
    pub(super) fn ready_among(
        &mut self,
        stage: Stage,
        only: &[String],
    ) -> Answer<Option<Vec<(i64, String)>>> {
        if only.is_empty() || !self.memory.lasts {
            return Ok(None);
        }
        let mut units = Vec::new();
        for name in only {
            if let Some(unit) = self.unit_if_ready(stage, name)? {
                units.push(unit);
            }
        }
        units.sort_unstable();
        units.dedup();
        Ok(Some(units))
    }

    fn unit_if_ready(&mut self, stage: Stage, name: &str) -> Answer<Option<(i64, String)>> {
        if !self.memory.sites.contains_key(name) {
            self.site(name)?;
        }
        let Some(site) = self.memory.sites.get(name).map(|held| &held.record) else { return Ok(None) };
        if !site.is_ready(stage) {
            return Ok(None);
        }
        let unit = site.unit.clone();
        if !self.memory.units.contains_key(&unit) {
            self.unit(&unit)?;
        }
        let held = self.memory.units.get(&unit).map(|held| &held.record);
        Ok(held.map(|(state, due)| (if stage == Stage::Download { *due } else { state.parsed_at }, unit)))
    }
}
