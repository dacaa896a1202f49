//! Which pace units are due, and which of their sites are ready: from memory where that is known, else by an index.

use rusqlite::{Result, params};

use super::columns::{json, to_json};
use super::due_list::{DueList, waits_until};
use super::transaction::Tables;
use crate::frontier::shelf::{DueShelf, Shelf};
use crate::frontier::state::{Turn, UnitDue, WorkScope};
use crate::task::Stage;

/// The ready sites of larger units are asked of the file.
const FEW: u32 = 8;

impl DueShelf for Tables<'_> {
    fn due_count(&mut self, stage: Stage, by: Turn, scope: &WorkScope, most: u32) -> Result<u32> {
        if let Some(list) = self.list_of(scope)? {
            let due = list.due(stage).iter().take_while(|(turn, _)| *turn <= by).take(most as usize).count();
            return Ok(u32::try_from(due).unwrap_or(most));
        }
        if let WorkScope::Lanes(lanes) = scope {
            let due = self.due_in_lanes(stage, lanes, by, most)?.len();
            return Ok(u32::try_from(due).unwrap_or(most));
        }
        self.flush()?;
        let sql = match stage {
            Stage::Download => {
                "SELECT count(*) FROM (SELECT 1 FROM unit WHERE ready_download > 0 AND turn <= ?1 LIMIT ?2)"
            }
            Stage::Parse => {
                "SELECT count(*) FROM (SELECT 1 FROM unit WHERE ready_parse > 0 AND parsed_at <= ?1 LIMIT ?2)"
            }
        };
        Ok(self.file.one(sql, params![until(stage, by), most], |row| row.get(0))?.unwrap_or(0))
    }

    fn nth_due(&mut self, stage: Stage, by: Turn, scope: &WorkScope, n: u32) -> Result<Option<String>> {
        if let Some(list) = self.list_of(scope)? {
            let due = list.due(stage).iter().take_while(|(turn, _)| *turn <= by).nth(n as usize);
            return Ok(due.map(|(_, name)| name.clone()));
        }
        if let WorkScope::Lanes(lanes) = scope {
            return Ok(self
                .due_in_lanes(stage, lanes, by, n + 1)?
                .into_iter()
                .nth(n as usize)
                .map(|(_, name)| name));
        }
        self.flush()?;
        let sql = match stage {
            Stage::Download => {
                "SELECT name FROM unit WHERE ready_download > 0 AND turn <= ?1
                 ORDER BY turn, name LIMIT 1 OFFSET ?2"
            }
            Stage::Parse => {
                "SELECT name FROM unit WHERE ready_parse > 0 AND parsed_at <= ?1
                 ORDER BY parsed_at, name LIMIT 1 OFFSET ?2"
            }
        };
        self.file.one(sql, params![until(stage, by), n], |row| row.get(0))
    }

    fn next_turns(&mut self, stage: Stage, scope: &WorkScope, most: u32) -> Result<Vec<Turn>> {
        if let Some(list) = self.list_of(scope)? {
            return Ok(list.due(stage).iter().map(|(turn, _)| *turn).take(most as usize).collect());
        }
        if let WorkScope::Lanes(lanes) = scope {
            let due = self.due_in_lanes(stage, lanes, Turn(i64::MAX), most)?;
            return Ok(due.into_iter().map(|(turn, _)| turn).collect());
        }
        if stage == Stage::Parse {
            return Ok(self.first_parse()?.map(Turn::of_parse).into_iter().take(most as usize).collect());
        }
        self.flush()?;
        let sql = "SELECT turn FROM unit WHERE ready_download > 0 ORDER BY turn LIMIT ?1";
        self.file.all(sql, [most], |row| row.get(0).map(Turn))
    }

    fn first_ready(&mut self, unit: &str, scope: &WorkScope) -> Result<Option<i64>> {
        if let Some(list) = self.list_of(scope)? {
            return Ok(list.ready(Stage::Download, unit).next().map(|(ends, _)| ends));
        }
        if let WorkScope::Lanes(lanes) = scope {
            return Ok(self.ready_in_lanes(unit, lanes, i64::MAX, 1)?.first().map(|(ends, _)| *ends));
        }
        if let Some(ready) = self.ready_of_few(Stage::Download, unit)? {
            return Ok(ready.first().map(|(ends, _)| *ends));
        }
        self.flush()?;
        let sql = "SELECT min(waits_until) FROM site
             WHERE unit = (SELECT id FROM unit WHERE name = ?1) AND ready_download";
        Ok(self.file.one(sql, [unit], |row| row.get(0))?.flatten())
    }

    fn ready_by(&mut self, unit: &str, scope: &WorkScope, by: i64, most: u32) -> Result<Vec<String>> {
        if let Some(list) = self.list_of(scope)? {
            let over = list.ready(Stage::Download, unit).take_while(|(ends, _)| *ends <= by);
            return Ok(over.take(most as usize).map(|(_, name)| name.to_owned()).collect());
        }
        if let WorkScope::Lanes(lanes) = scope {
            let ready = self.ready_in_lanes(unit, lanes, by, most)?;
            return Ok(ready.into_iter().map(|(_, name)| name).collect());
        }
        if let Some(ready) = self.ready_of_few(Stage::Download, unit)? {
            let over = ready.into_iter().take_while(|(ends, _)| *ends <= by);
            return Ok(over.take(most as usize).map(|(_, name)| name).collect());
        }
        self.flush()?;
        let sql =
            "SELECT name FROM site WHERE unit = (SELECT id FROM unit WHERE name = ?1) AND ready_download
             AND waits_until <= ?2 ORDER BY waits_until, name LIMIT ?3";
        self.file.all(sql, params![unit, by, most], |row| row.get(0))
    }

    fn next_parse(&mut self, unit: &str, scope: &WorkScope, after: &str) -> Result<Option<String>> {
        let next = |ready: &mut dyn Iterator<Item = &str>| {
            let mut first = None;
            for name in ready {
                if name > after {
                    return Some(name.to_owned());
                }
                first.get_or_insert(name);
            }
            first.map(str::to_owned)
        };
        if let Some(list) = self.list_of(scope)? {
            return Ok(next(&mut list.ready(Stage::Parse, unit).map(|(_, name)| name)));
        }
        if let WorkScope::Lanes(lanes) = scope {
            return match self.parse_in_lanes(unit, lanes, after)? {
                None if !after.is_empty() => self.parse_in_lanes(unit, lanes, ""),
                next => Ok(next),
            };
        }
        if let Some(ready) = self.ready_of_few(Stage::Parse, unit)? {
            return Ok(next(&mut ready.iter().map(|(_, name)| name.as_str())));
        }
        self.flush()?;
        let sql = "SELECT name FROM site WHERE unit = (SELECT id FROM unit WHERE name = ?1) AND ready_parse
             AND name > ?2 ORDER BY name LIMIT 1";
        match self.file.one(sql, [unit, after], |row| row.get(0))? {
            None if !after.is_empty() => self.file.one(sql, [unit, ""], |row| row.get(0)),
            next => Ok(next),
        }
    }
}

/// What is compared with a stage's index.
fn until(stage: Stage, by: Turn) -> i64 {
    if stage == Stage::Download { by.0 } else { by.from() }
}

impl Tables<'_> {
    /// What is due among the sites of the scope. `None` where all sites are worked on: the file has that in order.
    fn list_of(&mut self, scope: &WorkScope) -> Result<Option<&DueList>> {
        let WorkScope::Sites(names) = scope else { return Ok(None) };
        if !self.memory.due_list.as_ref().is_some_and(|list| list.is_of(scope)) {
            self.flush()?;
            let mut list = DueList::of(scope);
            let sql = "SELECT site.state, unit.name, unit.ends, unit.due, unit.ahead, unit.parsed_at
                 FROM json_each(?1) JOIN site ON site.name = value JOIN unit ON unit.id = site.unit";
            self.file.all(sql, [to_json(&**names)?], |row| {
                let due = UnitDue { ends: row.get(2)?, due: row.get(3)?, ahead: row.get(4)? };
                list.add(&json(row, 0)?, due, row.get(5)?);
                Ok(())
            })?;
            self.memory.due_list = Some(list);
        }
        Ok(self.memory.due_list.as_ref())
    }

    /// The ready ones among the sites of a small unit, by the end of their own wait, then by name. `None` where the file is to
    /// be asked.
    fn ready_of_few(&mut self, stage: Stage, unit: &str) -> Result<Option<Vec<(i64, String)>>> {
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
            if let Some(site) = self.site(&name)?.filter(|site| site.is_ready(stage)) {
                ready.push((waits_until(stage, &site), name));
            }
        }
        ready.sort();
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
