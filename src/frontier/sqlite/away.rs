//! Hosts that can't be reached, and the tasks that wait for them.

use rusqlite::{Result, params};

use super::transaction::Tables;
use crate::frontier::shelf::HostShelf;
use crate::frontier::state::{AwayHost, Task};

impl HostShelf for Tables<'_> {
    fn away(&mut self, site: &str, origin: &str) -> Result<Option<i64>> {
        self.file
            .one("SELECT until FROM away WHERE site = ?1 AND origin = ?2", [site, origin], |row| row.get(0))
    }

    fn set_away(&mut self, site: &str, origin: &str, at: Option<i64>) -> Result<()> {
        self.memory.first_away = None;
        match at {
            Some(at) => {
                self.file.run("INSERT OR REPLACE INTO away VALUES (?1, ?2, ?3)", params![site, origin, at])
            }
            None => self.file.run("DELETE FROM away WHERE site = ?1 AND origin = ?2", [site, origin]),
        }
    }

    fn first_away(&mut self) -> Result<Option<AwayHost>> {
        if let Some(first) = &self.memory.first_away {
            return Ok(first.clone());
        }
        let sql = "SELECT until, site, origin FROM away ORDER BY until, site, origin LIMIT 1";
        let first = self
            .file
            .one(sql, [], |row| Ok(AwayHost { at: row.get(0)?, site: row.get(1)?, origin: row.get(2)? }))?;
        self.memory.first_away = Some(first.clone());
        Ok(first)
    }

    fn hosts_away(&mut self, site: &str) -> Result<Vec<String>> {
        self.file.all("SELECT origin FROM away WHERE site = ?1 ORDER BY origin", [site], |row| row.get(0))
    }

    fn waits_longest(&mut self, origin: &str, at: i64) -> Result<Option<String>> {
        let sql =
            "SELECT site FROM away WHERE origin = ?1 AND until > ?2 ORDER BY until DESC, site DESC LIMIT 1";
        self.file.one(sql, params![origin, at], |row| row.get(0))
    }

    fn parked(&mut self, site: &str, origin: &str, most: u32) -> Result<Vec<Task>> {
        let id = self.site_id(site)?;
        self.tasks_of(
            "WHERE task.site = ?2 AND task.host = ?3 AND task.place = 4
             ORDER BY task.priority, task.position LIMIT ?4",
            params![site, id, origin, most],
        )
    }
}
