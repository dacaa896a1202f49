//! Events: a row each, found by kind and site, by when it happened, and by when it may be taken.

use rusqlite::{Result, params};

use super::columns::{json, to_json};
use super::transaction::Tables;
use crate::frontier::shelf::EventShelf;
use crate::frontier::state::EventState;
use crate::task::EventKind;

impl EventShelf for Tables<'_> {
    fn event(&mut self, kind: EventKind, site: &str) -> Result<Option<EventState>> {
        self.file.record("SELECT state FROM event WHERE kind = ?1 AND site = ?2", [kind.word(), site])
    }

    fn save_event(&mut self, event: &EventState) -> Result<()> {
        let EventState { at, event: of, next, .. } = event;
        self.file.run(
            "INSERT OR REPLACE INTO event VALUES (?1, ?2, ?3, ?4, ?5)",
            params![of.kind.word(), of.site, at, next, to_json(event)?],
        )
    }

    fn remove_event(&mut self, kind: EventKind, site: &str) -> Result<()> {
        self.file.run("DELETE FROM event WHERE kind = ?1 AND site = ?2", [kind.word(), site])
    }

    fn first_event(&mut self) -> Result<Option<(i64, EventKind, String)>> {
        let sql = "SELECT state FROM event ORDER BY at, kind, site LIMIT 1";
        let first: Option<EventState> = self.file.record(sql, [])?;
        Ok(first.map(|event| (event.at, event.event.kind, event.event.site)))
    }

    fn first_due_event(&mut self, kind: EventKind, now: i64) -> Result<Option<(i64, String)>> {
        let sql = "SELECT next, site FROM event WHERE kind = ?1 AND next <= ?2 ORDER BY next, site LIMIT 1";
        self.file.one(sql, params![kind.word(), now], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn count_events(&mut self) -> Result<u64> {
        let count = self.file.one("SELECT count(*) FROM event", [], |row| row.get::<_, i64>(0))?;
        Ok(count.map_or(0, i64::cast_unsigned))
    }

    fn events(&mut self) -> Result<Vec<EventState>> {
        self.file.all("SELECT state FROM event ORDER BY at, kind, site", [], |row| json(row, 0))
    }
}
