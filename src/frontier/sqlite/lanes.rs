//! What a fleet agreed on, and the tasks that its tenants asked for lately.

use std::sync::Arc;

use rusqlite::{Result, params};

use super::columns::{stage_column, to_json};
use super::transaction::Tables;
use crate::frontier::shelf::{LaneShelf, Window};
use crate::frontier::state::FleetState;

/// Rows of a window that go at once.
const SWEPT: u32 = 100;

impl LaneShelf for Tables<'_> {
    fn fleet(&mut self) -> Result<Arc<FleetState>> {
        if let Some(known) = &self.memory.fleet {
            return Ok(Arc::clone(known));
        }
        let fleet = self.file.record("SELECT value FROM meta WHERE key = 'fleet'", [])?;
        Ok(Arc::clone(self.memory.fleet.insert(Arc::new(fleet.unwrap_or_default()))))
    }

    fn save_fleet(&mut self, fleet: &FleetState) -> Result<()> {
        self.memory.fleet = Some(Arc::new(fleet.clone()));
        self.file.run("INSERT OR REPLACE INTO meta VALUES ('fleet', ?1)", [to_json(fleet)?])
    }

    fn count_in(&mut self, window: Window<'_>, at: i64, keep: u32, until: i64) -> Result<()> {
        let (stage, tenant) = (stage_column(window.stage), window.tenant);
        let turn = self.last_turn(window)? + 1;
        self.file.run("INSERT INTO counted VALUES (?1, ?2, ?3, ?4)", params![stage, tenant, turn, at])?;
        let old = "DELETE FROM counted WHERE stage = ?1 AND tenant = ?2 AND turn <= ?3";
        self.file.run(old, params![stage, tenant, turn - i64::from(keep)])?;
        self.file.run("INSERT OR REPLACE INTO window VALUES (?1, ?2, ?3)", params![stage, tenant, until])
    }

    fn nth_newest(&mut self, window: Window<'_>, n: u32) -> Result<Option<i64>> {
        let turn = self.last_turn(window)? - i64::from(n);
        let sql = "SELECT at FROM counted WHERE stage = ?1 AND tenant = ?2 AND turn = ?3";
        self.file.one(sql, params![stage_column(window.stage), window.tenant, turn], |row| row.get(0))
    }

    fn sweep_windows(&mut self, now: i64, most: u32) -> Result<()> {
        let over =
            "SELECT stage, tenant FROM window WHERE until <= ?1 ORDER BY until, stage, tenant LIMIT ?2";
        let over: Vec<(i64, String)> =
            self.file.all(over, params![now, most], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (stage, tenant) in over {
            let first = "(SELECT min(turn) FROM counted WHERE stage = ?1 AND tenant = ?2)";
            let some =
                format!("DELETE FROM counted WHERE stage = ?1 AND tenant = ?2 AND turn < {first} + ?3");
            if self.file.changed(&some, params![stage, tenant, SWEPT])? < SWEPT as usize {
                self.file
                    .run("DELETE FROM window WHERE stage = ?1 AND tenant = ?2", params![stage, tenant])?;
            }
        }
        Ok(())
    }
}

impl Tables<'_> {
    fn last_turn(&self, window: Window<'_>) -> Result<i64> {
        let sql = "SELECT max(turn) FROM counted WHERE stage = ?1 AND tenant = ?2";
        let last =
            self.file.one(sql, params![stage_column(window.stage), window.tenant], |row| row.get(0))?;
        Ok(last.flatten().unwrap_or(0))
    }
}
