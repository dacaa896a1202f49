//! One transaction at work: prepared statements, and the sites and units that are held back until they are needed.

use std::cell::Cell;

use rusqlite::{
    CachedStatement, Connection, OptionalExtension, Params, Result, Row, Statement, StatementStatus, params,
};
use serde::de::DeserializeOwned;

use super::columns::{json, to_json};
use super::memory::Memory;
use crate::frontier::backend::Effort;
use crate::frontier::state::{LastAnswers, SiteState, UnitDue, UnitState};
use crate::task::Stage;

#[cfg(test)]
thread_local! {
    static SEEN: std::cell::RefCell<std::collections::BTreeSet<String>> = const { std::cell::RefCell::new(std::collections::BTreeSet::new()) };
}

/// The statements that this thread has prepared.
#[cfg(test)]
pub(super) fn statements() -> std::collections::BTreeSet<String> {
    SEEN.with_borrow(Clone::clone)
}

/// A connection inside a transaction. Sites, units and the answers of owners, which nearly every step changes more than once, are
/// held back and written before an index is asked, and at the end.
pub(super) struct Tables<'c> {
    pub(super) file: Statements<'c>,
    pub(super) memory: Memory,
}

/// The prepared statements of a connection.
pub(super) struct Statements<'c> {
    connection: &'c Connection,
    /// What these took.
    pub(super) effort: Cell<Effort>,
}

impl<'c> Statements<'c> {
    fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>> {
        #[cfg(test)]
        SEEN.with_borrow_mut(|seen| seen.insert(sql.to_owned()));
        self.connection.prepare_cached(sql)
    }

    fn count(&self, statement: &Statement<'_>) {
        let instructions = u64::from(statement.reset_status(StatementStatus::VmStep).unsigned_abs());
        let mut effort = self.effort.get();
        effort.add(Effort { statements: 1, instructions });
        self.effort.set(effort);
    }

    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut statement = self.prepare(sql)?;
        let found = statement.query_row(params, read).optional();
        self.count(&statement);
        found
    }

    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.prepare(sql)?;
        let found = statement.query_map(params, read)?.collect();
        self.count(&statement);
        found
    }

    pub(super) fn run(&self, sql: &str, params: impl Params) -> Result<()> {
        self.changed(sql, params).map(drop)
    }

    /// How many rows were changed.
    pub(super) fn changed(&self, sql: &str, params: impl Params) -> Result<usize> {
        let mut statement = self.prepare(sql)?;
        let changed = statement.execute(params);
        self.count(&statement);
        changed
    }

    /// The only value of the only row.
    pub(super) fn least(&self, sql: &str) -> Result<Option<i64>> {
        Ok(self.one(sql, [], |row| row.get(0))?.flatten())
    }

    pub(super) fn record<T: DeserializeOwned>(&self, sql: &str, params: impl Params) -> Result<Option<T>> {
        self.one(sql, params, |row| json(row, 0))
    }
}

impl<'c> Tables<'c> {
    /// The tables of a connection inside a transaction, and what is remembered of them.
    pub(super) fn new(connection: &'c Connection, memory: Memory) -> Result<Self> {
        Ok(Self {
            file: Statements { connection, effort: Cell::default() },
            memory: memory.in_transaction(connection)?,
        })
    }

    /// Writes what was held back. Without it, changes of sites, units and answers are lost.
    pub(super) fn flush(&mut self) -> Result<()> {
        for (_, _, (unit, due)) in self.memory.units.take_changed() {
            self.write_unit(&unit, due)?;
        }
        for (_, before, site) in self.memory.sites.take_changed() {
            self.write_site(&before, &site)?;
        }
        for (name, _, owner) in self.memory.owners.take_changed() {
            self.write_answers(&name, &owner.last)?;
        }
        Ok(())
    }

    /// For what changes more than records: nothing is held back, and what is known is read anew.
    pub(super) fn forget_all(&mut self) -> Result<()> {
        self.flush()?;
        self.memory.clear();
        Ok(())
    }

    /// The number by which other tables know a site; none where there is no such site.
    pub(super) fn site_id(&mut self, name: &str) -> Result<Option<i64>> {
        self.memory.ids.get_or_read(name, || {
            self.file.one("SELECT id FROM site WHERE name = ?1", [name], |row| row.get(0))
        })
    }

    pub(super) fn write_answers(&self, owner: &str, answers: &LastAnswers) -> Result<()> {
        self.file.run("INSERT OR REPLACE INTO answers VALUES (?1, ?2)", params![owner, to_json(answers)?])
    }

    /// Writes a site whose row is there, in place of what that says.
    fn write_site(&mut self, before: &SiteState, site: &SiteState) -> Result<()> {
        if before.unit != site.unit || columns(before) != columns(site) {
            return self.write_site_row(site);
        }
        let id = self.site_id(&site.name)?;
        let row = params![id, site.waits_until(), to_json(site)?, site.download.idle().cast_signed()];
        self.file.run("UPDATE site SET waits_until = ?2, state = ?3, idle = ?4 WHERE id = ?1", row)?;
        self.relist(before, site)
    }

    pub(super) fn write_site_row(&self, site: &SiteState) -> Result<()> {
        self.file.run(
            "INSERT OR IGNORE INTO unit (name, turn, ends, due, ahead, parsed_at, state)
             VALUES (?1, 0, 0, 0, 0, 0, ?2)",
            params![site.unit, to_json(&UnitState::new(&site.unit))?],
        )?;
        let before = "SELECT unit, ready_download, ready_parse FROM site WHERE name = ?1";
        let before: Option<[i64; 3]> =
            self.file.one(before, [&site.name], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
        let unit = self.file.one("SELECT id FROM unit WHERE name = ?1", [&site.unit], |row| row.get(0))?;
        let unit: i64 = unit.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let Columns { ready, has_room, interval } = columns(site);
        self.file.run(
            "INSERT INTO site (name, unit, ready_download, ready_parse, has_room, interval, waits_until, state, idle)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (name) DO UPDATE
             SET unit = ?2, ready_download = ?3, ready_parse = ?4, has_room = ?5, interval = ?6, waits_until = ?7,
                 state = ?8, idle = ?9",
            params![
                site.name, unit, ready[0], ready[1], has_room, interval, site.waits_until(), to_json(site)?,
                site.download.idle().cast_signed()
            ],
        )?;
        let after = [unit, ready[0].into(), ready[1].into()];
        if site.by_lane {
            self.list_by_lane(site)?;
        }
        if before == Some(after) {
            return Ok(());
        }
        let count = "UPDATE unit SET ready_download = ready_download + ?2, ready_parse = ready_parse + ?3
                     WHERE id = ?1";
        if let Some([unit, download, parse]) = before {
            self.file.run(count, [unit, -download, -parse])?;
        }
        self.file.run(count, after)
    }

    pub(super) fn write_unit(&self, unit: &UnitState, due: UnitDue) -> Result<()> {
        let UnitDue { ends, due: at, ahead } = due;
        self.file.run(
            "INSERT INTO unit (name, turn, ends, due, ahead, parsed_at, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (name) DO UPDATE
             SET turn = ?2, ends = ?3, due = ?4, ahead = ?5, parsed_at = ?6, state = ?7",
            params![unit.name, due.turn(at).0, ends, at, ahead, unit.parse_turn(), to_json(unit)?],
        )?;
        if unit.by_lane { self.rank_in_lanes(unit) } else { Ok(()) }
    }
}

/// What of a site stands in columns and changes now and then, its unit aside.
#[derive(PartialEq)]
struct Columns {
    /// By stage, whether it is ready.
    ready: [bool; 2],
    has_room: bool,
    /// The one that its file names, in ms.
    interval: i64,
}

fn columns(site: &SiteState) -> Columns {
    let ready = Stage::ALL.map(|stage| site.is_ready(stage));
    Columns { ready, has_room: site.has_room(), interval: site.settings.interval }
}
