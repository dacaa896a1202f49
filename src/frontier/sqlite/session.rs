//! One transaction at work: prepared statements, and the sites and units that are held back until they are needed.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, params};
use serde::de::DeserializeOwned;

use super::columns::{json, to_json};
use super::memory::{Memory, SiteRow};
use crate::frontier::state::{LastAnswers, OwnerState, SiteState, UnitState};
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
    connection: &'c Connection,
    pub(super) memory: Memory,
}

pub(super) type Answer<T> = rusqlite::Result<T>;

impl<'c> Tables<'c> {
    /// The tables of a connection inside a transaction, and what is remembered of them.
    pub(super) fn new(connection: &'c Connection, memory: Memory) -> Answer<Self> {
        Ok(Self { connection, memory: memory.in_transaction(connection)? })
    }

    /// What may be remembered once the transaction is committed.
    pub(super) fn into_memory(self) -> Memory {
        self.memory
    }

    /// Writes what was held back. Without it, changes of sites, units and answers are lost.
    pub(super) fn flush(&mut self) -> Answer<()> {
        for (_, (unit, due)) in self.memory.units.take_changed() {
            self.write_unit(&unit, due)?;
        }
        for (_, site) in self.memory.sites.take_changed() {
            self.write_site(&site)?;
        }
        for (name, owner) in self.memory.owners.take_changed() {
            self.write_answers(&name, &owner.last)?;
        }
        Ok(())
    }

    pub(super) fn prepare(&self, sql: &str) -> Answer<CachedStatement<'c>> {
        #[cfg(test)]
        SEEN.with_borrow_mut(|seen| seen.insert(sql.to_owned()));
        self.connection.prepare_cached(sql)
    }

    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Answer<T>,
    ) -> Answer<Option<T>> {
        self.prepare(sql)?.query_row(params, read).optional()
    }

    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> Answer<T>,
    ) -> Answer<Vec<T>> {
        self.prepare(sql)?.query_map(params, read)?.collect()
    }

    pub(super) fn run(&self, sql: &str, params: impl Params) -> Answer<()> {
        self.prepare(sql)?.execute(params).map(drop)
    }

    /// The only value of the only row.
    pub(super) fn least(&self, sql: &str) -> Answer<Option<i64>> {
        Ok(self.one(sql, [], |row| row.get(0))?.flatten())
    }

    pub(super) fn record<T: DeserializeOwned>(&self, sql: &str, params: impl Params) -> Answer<Option<T>> {
        self.one(sql, params, |row| json(row, 0))
    }

    /// The number by which other tables know a site; none where there is no such site.
    pub(super) fn site_id(&mut self, name: &str) -> Answer<Option<i64>> {
        if let Some(id) = self.memory.ids.get(name) {
            return Ok(Some(*id));
        }
        let id = self.one("SELECT id FROM site WHERE name = ?1", [name], |row| row.get(0))?;
        if let Some(id) = id {
            self.memory.ids.insert(name.to_owned(), id);
        }
        Ok(id)
    }

    pub(super) fn write_owner(&self, name: &str, owner: &OwnerState) -> Answer<()> {
        self.run(
            "INSERT OR REPLACE INTO owner VALUES (?1, ?2, ?3)",
            params![name, owner.dead, to_json(owner)?],
        )
    }

    pub(super) fn write_answers(&self, owner: &str, answers: &LastAnswers) -> Answer<()> {
        self.run("INSERT OR REPLACE INTO answers VALUES (?1, ?2)", params![owner, to_json(answers)?])
    }

    pub(super) fn write_site(&mut self, site: &SiteState) -> Answer<()> {
        let row = SiteRow {
            unit: site.unit.clone(),
            ready: Stage::ALL.map(|stage| i64::from(site.is_ready(stage))),
            has_room: site.has_room(),
        };
        if self.memory.rows.get(&site.name) == Some(&row) {
            let id = self.site_id(&site.name)?;
            return self.run("UPDATE site SET state = ?2 WHERE id = ?1", params![id, to_json(site)?]);
        }
        self.write_site_row(site, &row)?;
        self.memory.rows.insert(site.name.clone(), row);
        Ok(())
    }

    fn write_site_row(&self, site: &SiteState, row: &SiteRow) -> Answer<()> {
        self.run(
            "INSERT OR IGNORE INTO unit (name, due, parsed_at, state) VALUES (?1, 0, 0, ?2)",
            params![site.unit, to_json(&UnitState::new(&site.unit))?],
        )?;
        let before = "SELECT unit, ready_download, ready_parse FROM site WHERE name = ?1";
        let before: Option<(i64, i64, i64)> =
            self.one(before, [&site.name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let unit: i64 =
            self.prepare("SELECT id FROM unit WHERE name = ?1")?.query_row([&site.unit], |row| row.get(0))?;
        let ready = row.ready;
        self.run(
            "INSERT INTO site (name, unit, ready_download, ready_parse, has_room, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (name) DO UPDATE
             SET unit = ?2, ready_download = ?3, ready_parse = ?4, has_room = ?5, state = ?6",
            params![site.name, unit, ready[0], ready[1], row.has_room, to_json(site)?],
        )?;
        let after = (unit, ready[0], ready[1]);
        if before == Some(after) {
            return Ok(());
        }
        let count = "UPDATE unit SET ready_download = ready_download + ?2, ready_parse = ready_parse + ?3
                     WHERE id = ?1";
        if let Some((unit, download, parse)) = before {
            self.run(count, [unit, -download, -parse])?;
        }
        self.run(count, [after.0, after.1, after.2])
    }

    pub(super) fn write_unit(&self, unit: &UnitState, due: i64) -> Answer<()> {
        self.run(
            "INSERT INTO unit (name, due, parsed_at, state) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (name) DO UPDATE SET due = ?2, parsed_at = ?3, state = ?4",
            params![unit.name, due, unit.parsed_at, to_json(unit)?],
        )
    }
}
