//! Which pace units are due, and which of their sites are ready: from memory where that is known, else by an index.

use std::collections::BTreeSet;

use rusqlite::{Result, params};

use super::columns::to_json;
use super::due_list::DueList;
use super::session::Tables;
use crate::frontier::shelf::{DueShelf, Shelf};
use crate::frontier::state::WorkScope;
use crate::task::Stage;

/// The ready sites of larger units are asked of the file.
const FEW: u32 = 8;

impl DueShelf for Tables<'_> {
    fn due_count(&mut self, stage: Stage, now: i64, scope: &WorkScope, most: u32) -> Result<u32> {
        if let Some(ready) = self.ready_of(scope, stage)? {
            let due = ready.iter().take_while(|(from, _)| *from <= now).take(most as usize).count();
            return Ok(u32::try_from(due).unwrap_or(most));
        }
        self.flush()?;
        let sql = match stage {
            Stage::Download => {
                "SELECT count(*) FROM (SELECT 1 FROM unit WHERE ready_download > 0 AND due <= ?1 LIMIT ?2)"
            }
            Stage::Parse => {
                "SELECT count(*) FROM (SELECT 1 FROM unit WHERE ready_parse > 0 AND parsed_at <= ?1 LIMIT ?2)"
            }
        };
        Ok(self.file.one(sql, params![now, most], |row| row.get(0))?.unwrap_or(0))
    }

    fn nth_due(&mut self, stage: Stage, now: i64, scope: &WorkScope, n: u32) -> Result<Option<String>> {
        if let Some(ready) = self.ready_of(scope, stage)? {
            let due = ready.iter().take_while(|(from, _)| *from <= now).nth(n as usize);
            return Ok(due.map(|(_, name)| name.clone()));
        }
        self.flush()?;
        let sql = match stage {
            Stage::Download => {
                "SELECT name FROM unit WHERE ready_download > 0 AND due <= ?1
                 ORDER BY due, name LIMIT 1 OFFSET ?2"
            }
            Stage::Parse => {
                "SELECT name FROM unit WHERE ready_parse > 0 AND parsed_at <= ?1
                 ORDER BY parsed_at, name LIMIT 1 OFFSET ?2"
            }
        };
        self.file.one(sql, params![now, n], |row| row.get(0))
    }

    fn next_due(&mut self, stage: Stage, scope: &WorkScope) -> Result<Option<i64>> {
        if let Some(ready) = self.ready_of(scope, stage)? {
            return Ok(ready.first().map(|(from, _)| *from));
        }
        if stage == Stage::Parse {
            return self.first_parse();
        }
        self.flush()?;
        self.file.least("SELECT min(due) FROM unit WHERE ready_download > 0")
    }

    fn ready_sites(&mut self, stage: Stage, unit: &str) -> Result<Vec<String>> {
        if let Some(ready) = self.ready_of_few(stage, unit)? {
            return Ok(ready);
        }
        self.flush()?;
        let sql = match stage {
            Stage::Download => {
                "SELECT name FROM site WHERE unit = (SELECT id FROM unit WHERE name = ?1) AND ready_download
                 ORDER BY name"
            }
            Stage::Parse => {
                "SELECT name FROM site WHERE unit = (SELECT id FROM unit WHERE name = ?1) AND ready_parse
                 ORDER BY name"
            }
        };
        self.file.all(sql, [unit], |row| row.get(0))
    }
}

impl Tables<'_> {
    /// The units with a site of the scope ready, the longest due first, then by name. `None` where all sites are worked on:
    /// the file has them in that order.
    fn ready_of(&mut self, scope: &WorkScope, stage: Stage) -> Result<Option<&BTreeSet<(i64, String)>>> {
        let WorkScope::Sites(names) = scope else { return Ok(None) };
        if !self.memory.due_list.as_ref().is_some_and(|list| list.is_of(scope)) {
            self.flush()?;
            let mut list = DueList::of(scope);
            let sql =
                "SELECT site.name, unit.name, site.ready_download, site.ready_parse, unit.due, unit.parsed_at
                 FROM json_each(?1) JOIN site ON site.name = value JOIN unit ON unit.id = site.unit";
            self.file.all(sql, [to_json(&**names)?], |row| {
                let (ready, from) = ([row.get(2)?, row.get(3)?], [row.get(4)?, row.get(5)?]);
                list.add(row.get(0)?, row.get(1)?, ready, from);
                Ok(())
            })?;
            self.memory.due_list = Some(list);
        }
        Ok(self.memory.due_list.as_ref().map(|list| list.due(stage)))
    }

    /// The ready ones among the sites of a small unit, by name. `None` where the file is to be asked.
    fn ready_of_few(&mut self, stage: Stage, unit: &str) -> Result<Option<Vec<String>>> {
        if !self.memory.lasts {
            return Ok(None);
        }
        if self.memory.members.get(unit).is_none() {
            self.flush()?;
        }
        let members = self.memory.members.get_or_read(unit, || {
            let sql = "SELECT name FROM site WHERE unit = (SELECT id FROM unit WHERE name = ?1)
                 ORDER BY name LIMIT ?2";
            self.file.all(sql, params![unit, FEW + 1], |row| row.get(0)).map(Some)
        })?;
        let members = members.unwrap_or_default();
        if members.len() > FEW as usize {
            return Ok(None);
        }
        let mut ready = Vec::new();
        for name in members {
            if self.site(&name)?.is_some_and(|site| site.is_ready(stage)) {
                ready.push(name);
            }
        }
        Ok(Some(ready))
    }

    /// The least time of a unit with a parse ready.
    fn first_parse(&mut self) -> Result<Option<i64>> {
        if self.memory.first_parse.is_none() {
            self.flush()?;
            let first = self.file.least("SELECT min(parsed_at) FROM unit WHERE ready_parse > 0")?;
            self.memory.first_parse = Some(first.unwrap_or(i64::MAX));
        }
        Ok(self.memory.first_parse.filter(|first| *first < i64::MAX))
    }
}
