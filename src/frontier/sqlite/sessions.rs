//! Sessions: a row each, and the tasks behind their heads.

use rusqlite::{Result, params};

use super::columns::to_json;
use super::transaction::Tables;
use crate::frontier::shelf::SessionShelf;
use crate::frontier::state::{SessionPlace, SessionState, Task};

impl SessionShelf for Tables<'_> {
    fn session(&mut self, site: &str, name: &str) -> Result<Option<SessionState>> {
        let site = self.site_id(site)?;
        self.file.record("SELECT state FROM session WHERE site = ?1 AND name = ?2", params![site, name])
    }

    fn save_session(&mut self, site: &str, name: &str, session: &SessionState) -> Result<()> {
        let (site, turn) = (self.site_id(site)?, session.place().number());
        self.file.run(
            "INSERT OR REPLACE INTO session VALUES (?1, ?2, ?3, ?4)",
            params![site, name, turn, to_json(session)?],
        )
    }

    fn remove_session(&mut self, site: &str, name: &str) -> Result<()> {
        let site = self.site_id(site)?;
        self.file.run("DELETE FROM session WHERE site = ?1 AND name = ?2", params![site, name])
    }

    fn steps_behind(&mut self, site: &str, name: &str, most: u32) -> Result<Vec<Task>> {
        let id = self.site_id(site)?;
        self.tasks_of(
            "WHERE task.site = ?2 AND task.session = ?3 AND task.place = 5
             ORDER BY task.priority, task.until, task.position LIMIT ?4",
            params![site, id, name, most],
        )
    }

    fn held_sessions(&mut self, site: &str, most: u32) -> Result<Vec<String>> {
        let site = self.site_id(site)?;
        let sql = "SELECT name FROM session WHERE site = ?1 AND turn = ?2 ORDER BY name LIMIT ?3";
        self.file.all(sql, params![site, SessionPlace::HELD, most], |row| row.get(0))
    }

    fn count_ended(&mut self, site: &str) -> Result<u64> {
        let site = self.site_id(site)?;
        let sql = "SELECT count(*) FROM session WHERE site = ?1 AND turn > ?2 AND turn < ?3";
        let ended = params![site, SessionPlace::HELD, SessionPlace::OPEN];
        Ok(self.file.one(sql, ended, |row| row.get::<_, u32>(0))?.unwrap_or(0).into())
    }

    fn ended_sessions(&mut self, site: &str, most: u32) -> Result<Vec<(i64, String)>> {
        let site = self.site_id(site)?;
        let sql = "SELECT turn, name FROM session WHERE site = ?1 AND turn > ?2 AND turn < ?3
             ORDER BY turn, name LIMIT ?4";
        let ended = params![site, SessionPlace::HELD, SessionPlace::OPEN, most];
        self.file.all(sql, ended, |row| Ok((row.get(0)?, row.get(1)?)))
    }
}
