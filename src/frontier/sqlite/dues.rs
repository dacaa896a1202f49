//! Which pace units are due, and which of their sites are ready: from memory where that is known, else by an index.

use std::collections::BTreeSet;

use rusqlite::params;

use super::among::Among;
use super::columns::to_json;
use super::memory::Memory;
use super::session::{Answer, Tables};
use crate::frontier::shelf::Shelf;
use crate::task::Stage;

/// The ready sites of larger units are asked of the file.
const FEW: u32 = 8;
/// The lists of named sites that are kept in order: a process names its sites in portions.
const MOST_LISTS: usize = 32;

impl Tables<'_> {
    pub(super) fn count_due(&mut self, stage: Stage, now: i64, only: &[String], most: u32) -> Answer<u32> {
        if let Some(ready) = self.ready_among(stage, only)? {
            let due = ready.iter().take_while(|(score, _)| *score <= now).take(most as usize).count();
            return Ok(u32::try_from(due).unwrap_or(most));
        }
        self.flush()?;
        let (every, named) = match stage {
            Stage::Download => (
                "SELECT count(*) FROM (SELECT 1 FROM unit WHERE ready_download > 0 AND due <= ?1 LIMIT ?2)",
                "SELECT count(DISTINCT unit.id) FROM site JOIN unit ON unit.id = site.unit
                 WHERE site.name IN (SELECT value FROM json_each(?2)) AND site.ready_download AND unit.due <= ?1",
            ),
            Stage::Parse => (
                "SELECT count(*) FROM (SELECT 1 FROM unit WHERE ready_parse > 0 AND parsed_at <= ?1 LIMIT ?2)",
                "SELECT count(DISTINCT unit.id) FROM site JOIN unit ON unit.id = site.unit
                 WHERE site.name IN (SELECT value FROM json_each(?2)) AND site.ready_parse AND unit.parsed_at <= ?1",
            ),
        };
        let count = if only.is_empty() {
            self.one(every, params![now, most], |row| row.get(0))?
        } else {
            self.one(named, params![now, to_json(&only)?], |row| row.get(0))?
        };
        Ok(count.unwrap_or(0).min(most))
    }

    pub(super) fn find_due(
        &mut self,
        stage: Stage,
        now: i64,
        only: &[String],
        n: u32,
    ) -> Answer<Option<String>> {
        if let Some(ready) = self.ready_among(stage, only)? {
            let due = ready.iter().take_while(|(score, _)| *score <= now).nth(n as usize);
            return Ok(due.map(|(_, name)| name.clone()));
        }
        self.flush()?;
        let (every, named) = match stage {
            Stage::Download => (
                "SELECT name FROM unit WHERE ready_download > 0 AND due <= ?1 ORDER BY due, name LIMIT 1 OFFSET ?2",
                "SELECT DISTINCT unit.name, unit.due AS score FROM site JOIN unit ON unit.id = site.unit
                 WHERE site.name IN (SELECT value FROM json_each(?3)) AND site.ready_download AND unit.due <= ?1
                 ORDER BY score, unit.name LIMIT 1 OFFSET ?2",
            ),
            Stage::Parse => (
                "SELECT name FROM unit WHERE ready_parse > 0 AND parsed_at <= ?1
                 ORDER BY parsed_at, name LIMIT 1 OFFSET ?2",
                "SELECT DISTINCT unit.name, unit.parsed_at AS score FROM site JOIN unit ON unit.id = site.unit
                 WHERE site.name IN (SELECT value FROM json_each(?3)) AND site.ready_parse AND unit.parsed_at <= ?1
                 ORDER BY score, unit.name LIMIT 1 OFFSET ?2",
            ),
        };
        if only.is_empty() {
            self.one(every, params![now, n], |row| row.get(0))
        } else {
            self.one(named, params![now, n, to_json(&only)?], |row| row.get(0))
        }
    }

    pub(super) fn first_due(&mut self, stage: Stage, only: &[String]) -> Answer<Option<i64>> {
        if let Some(ready) = self.ready_among(stage, only)? {
            return Ok(ready.first().map(|(score, _)| *score));
        }
        if only.is_empty() && stage == Stage::Parse {
            return self.first_parse();
        }
        self.flush()?;
        if only.is_empty() {
            return self.least("SELECT min(due) FROM unit WHERE ready_download > 0");
        }
        let named = match stage {
            Stage::Download => {
                "SELECT min(unit.due) FROM site JOIN unit ON unit.id = site.unit
                 WHERE site.name IN (SELECT value FROM json_each(?1)) AND site.ready_download"
            }
            Stage::Parse => {
                "SELECT min(unit.parsed_at) FROM site JOIN unit ON unit.id = site.unit
                 WHERE site.name IN (SELECT value FROM json_each(?1)) AND site.ready_parse"
            }
        };
        Ok(self.one(named, [to_json(&only)?], |row| row.get(0))?.flatten())
    }

    pub(super) fn ready_in(&mut self, stage: Stage, unit: &str) -> Answer<Vec<String>> {
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
        self.all(sql, [unit], |row| row.get(0))
    }

    /// The units of those of the named sites that are ready, each with the time from which it is due, the longest due first,
    /// then by name. `None` where no names are given, or where others write and all would have to be read anew each time.
    fn ready_among(&mut self, stage: Stage, only: &[String]) -> Answer<Option<&BTreeSet<(i64, String)>>> {
        if only.is_empty() || !self.memory.lasts {
            return Ok(None);
        }
        let known = self.memory.among.iter().position(|among| among.is_of(only));
        let nth = if let Some(nth) = known { nth } else { self.begin_among(only)? };
        let Memory { among, sites, units, .. } = &mut self.memory;
        Ok(Some(among[nth].due(stage, sites, units)))
    }

    fn begin_among(&mut self, named: &[String]) -> Answer<usize> {
        for name in named {
            self.remember_unit_of(name)?;
        }
        let Memory { among, sites, .. } = &mut self.memory;
        if among.len() >= MOST_LISTS {
            among.clear();
        }
        among.push(Among::of(named, sites));
        Ok(among.len() - 1)
    }

    fn remember_unit_of(&mut self, site: &str) -> Answer<()> {
        if self.memory.sites.get(site).is_none() {
            self.site(site)?;
        }
        let Some(site) = self.memory.sites.get(site) else { return Ok(()) };
        if self.memory.units.get(&site.unit).is_none() {
            self.unit(&site.unit.clone())?;
        }
        Ok(())
    }

    /// The ready ones among the sites of a small unit, by name. `None` where the file is to be asked.
    fn ready_of_few(&mut self, stage: Stage, unit: &str) -> Answer<Option<Vec<String>>> {
        if !self.memory.lasts {
            return Ok(None);
        }
        if !self.memory.members.contains_key(unit) {
            self.flush()?;
            let sql = "SELECT name FROM site WHERE unit = (SELECT id FROM unit WHERE name = ?1)
                 ORDER BY name LIMIT ?2";
            let members = self.all(sql, params![unit, FEW + 1], |row| row.get(0))?;
            self.memory.members.insert(unit.to_owned(), members);
        }
        let members = self.memory.members.get(unit).cloned().unwrap_or_default();
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
    fn first_parse(&mut self) -> Answer<Option<i64>> {
        if self.memory.first_parse.is_none() {
            self.flush()?;
            let first = self.least("SELECT min(parsed_at) FROM unit WHERE ready_parse > 0")?;
            self.memory.first_parse = Some(first.unwrap_or(i64::MAX));
        }
        Ok(self.memory.first_parse.filter(|first| *first < i64::MAX))
    }
}
