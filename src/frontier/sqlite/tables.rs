//! The tables behind the steps: each record found and saved by one prepared statement.

use rusqlite::{Result, Row, params};

use super::columns::{json, read_owner, stage_column, stage_of, to_json, url};
use super::memory::Cached;
use super::transaction::Tables;
use crate::clock::Timestamp;
use crate::frontier::MutexKey;
use crate::frontier::shelf::{Fallible, Shelf};
use crate::frontier::state::{
    DeadState, LastBeat, MutexState, OwnerState, RobotsBrief, RobotsState, SiteState, Turn, UnitDue,
    UnitState,
};
use crate::frontier::steps::acts::MOST_ACTS;
use crate::frontier::view::{DatedAct, Inspection, LetterPlace};
use crate::task::{DeadLetter, PageKey, Stage};

const ROBOTS: &str = "SELECT state FROM robots WHERE origin = ?1";

impl Fallible for Tables<'_> {
    type Error = rusqlite::Error;
}

impl Shelf for Tables<'_> {
    fn site(&mut self, name: &str) -> Result<Option<SiteState>> {
        let read = || self.file.record("SELECT state FROM site WHERE name = ?1", [name]);
        self.memory.sites.get_or_read(name, read)
    }

    fn save_site(&mut self, site: &SiteState) -> Result<()> {
        self.memory.notes_site(site);
        if self.memory.sites.change(&site.name, site) { Ok(()) } else { self.write_site_row(site) }
    }

    fn idle_in_all(&mut self) -> Result<u64> {
        self.flush()?;
        let idle =
            self.file.one("SELECT value FROM meta WHERE key = 'idle'", [], |row| row.get::<_, i64>(0))?;
        Ok(idle.map_or(0, i64::unsigned_abs))
    }

    fn remove_site(&mut self, name: &str) -> Result<()> {
        self.forget_flow(name)?;
        self.forget_all()?;
        self.unlist(name)?;
        self.file.run("DELETE FROM session WHERE site = (SELECT id FROM site WHERE name = ?1)", [name])?;
        self.file
            .run("DELETE FROM batch_books WHERE site = (SELECT id FROM site WHERE name = ?1)", [name])?;
        self.file.run("DELETE FROM site_file WHERE site = ?1", [name])?;
        self.file.run("DELETE FROM act WHERE site = ?1", [name])?;
        self.file.run("DELETE FROM site WHERE name = ?1", [name])
    }

    fn rename_site(&mut self, name: &str, to: &str) -> Result<()> {
        self.forget_all()?;
        self.unlist(name)?;
        self.file.run("UPDATE site SET name = ?2 WHERE name = ?1", [name, to])?;
        self.file.run("UPDATE site_file SET site = ?2 WHERE site = ?1", [name, to])?;
        self.file.run("UPDATE away SET site = ?2 WHERE site = ?1", [name, to])?;
        self.file.run("UPDATE act SET site = ?2 WHERE site = ?1", [name, to])?;
        self.file.run("UPDATE campaign_name SET site = ?2 WHERE site = ?1", [name, to])?;
        self.file.run("UPDATE host SET site = ?2 WHERE site = ?1", [name, to])
    }

    fn site_names(&mut self, after: &str, most: u32) -> Result<Vec<String>> {
        let sql = "SELECT name FROM site WHERE name > ?1 ORDER BY name LIMIT ?2";
        self.file.all(sql, params![after, most], |row| row.get(0))
    }

    fn site_text(&mut self, name: &str) -> Result<Option<String>> {
        self.file.one("SELECT text FROM site_file WHERE site = ?1", [name], |row| row.get(0))
    }

    fn save_site_text(&mut self, name: &str, text: &str) -> Result<()> {
        self.file.run("INSERT OR REPLACE INTO site_file VALUES (?1, ?2)", [name, text])
    }

    fn unit(&mut self, name: &str) -> Result<Option<UnitState>> {
        let sql = "SELECT state, ends, due, ahead FROM unit WHERE name = ?1";
        let read = || {
            self.file.one(sql, [name], |row| {
                let due = UnitDue { ends: row.get(1)?, due: row.get(2)?, ahead: row.get(3)? };
                Ok((json(row, 0)?, due))
            })
        };
        Ok(self.memory.units.get_or_read(name, read)?.map(|(unit, _)| unit))
    }

    fn save_unit(&mut self, unit: &UnitState, due: UnitDue) -> Result<()> {
        self.memory.notes_unit(unit, due);
        let is_known = self.memory.units.change(&unit.name, &(unit.clone(), due));
        if is_known { Ok(()) } else { self.write_unit(unit, due) }
    }

    fn longest_interval(&mut self, unit: &str) -> Result<i64> {
        self.flush()?;
        let sql = "SELECT max(interval) FROM site WHERE unit = (SELECT id FROM unit WHERE name = ?1)";
        Ok(self.file.one(sql, [unit], |row| row.get(0))?.flatten().unwrap_or(0))
    }

    fn has_sites(&mut self, unit: &str) -> Result<bool> {
        self.flush()?;
        let sql = "SELECT 1 FROM site WHERE unit = (SELECT id FROM unit WHERE name = ?1) LIMIT 1";
        Ok(self.file.one(sql, [unit], |_| Ok(()))?.is_some())
    }

    fn set_idle(&mut self, unit: &str, until: Option<i64>) -> Result<()> {
        match until {
            Some(until) => {
                self.file.run("INSERT OR REPLACE INTO idle_unit VALUES (?1, ?2)", params![unit, until])
            }
            None => self.file.run("DELETE FROM idle_unit WHERE name = ?1", [unit]),
        }
    }

    fn idle_units(&mut self, now: i64, most: u32) -> Result<Vec<String>> {
        let sql = "SELECT name FROM idle_unit WHERE until <= ?1 ORDER BY until, name LIMIT ?2";
        self.file.all(sql, params![now, most], |row| row.get(0))
    }

    fn remove_unit(&mut self, unit: &str) -> Result<()> {
        self.forget_all()?;
        self.file.run("DELETE FROM unit WHERE name = ?1", [unit])
    }

    fn is_known(&mut self, page: PageKey<'_>, run: i64) -> Result<bool> {
        let site = self.site_id(page.site)?;
        let sql = "SELECT 1 FROM seen WHERE site = ?1 AND fp = ?2 AND run = ?3";
        Ok(self.file.one(sql, params![site, page.url.fingerprint(), run], |_| Ok(()))?.is_some())
    }

    fn add_known(&mut self, page: PageKey<'_>, run: i64) -> Result<()> {
        let Some(site) = self.site_id(page.site)? else { return Ok(()) };
        self.see(site, page.url.fingerprint(), run)
    }

    fn sweep_known(&mut self, site: &str, run: i64, most: u32) -> Result<bool> {
        let site = self.site_id(site)?;
        let sql = "DELETE FROM seen WHERE (site, fp, page) IN
             (SELECT site, fp, page FROM seen WHERE site = ?1 AND page = 0 AND run < ?2 LIMIT ?3)";
        Ok(self.file.changed(sql, params![site, run, most])? == most as usize)
    }

    fn dead(&mut self, page: PageKey<'_>, stage: Stage) -> Result<Option<DeadState>> {
        let site = self.site_id(page.site)?;
        self.file.record(
            "SELECT state FROM dead WHERE site = ?1 AND stage = ?2 AND fp = ?3 AND url = ?4",
            params![site, stage_column(stage), page.url.fingerprint(), page.url.as_str()],
        )
    }

    fn save_dead(&mut self, page: PageKey<'_>, stage: Stage, dead: &DeadState) -> Result<()> {
        self.remove_dead(page, stage)?;
        let site = self.site_id(page.site)?;
        self.file.run(
            "INSERT INTO dead (site, stage, fp, url, died_at, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                site,
                stage_column(stage),
                page.url.fingerprint(),
                page.url.as_str(),
                dead.died_at,
                to_json(dead)?
            ],
        )
    }

    fn remove_dead(&mut self, page: PageKey<'_>, stage: Stage) -> Result<()> {
        let site = self.site_id(page.site)?;
        self.file.run(
            "DELETE FROM dead WHERE site = ?1 AND stage = ?2 AND fp = ?3 AND url = ?4",
            params![site, stage_column(stage), page.url.fingerprint(), page.url.as_str()],
        )
    }

    fn letters(&mut self, site: &str, after: Option<&LetterPlace>, most: u32) -> Result<Vec<DeadLetter>> {
        let id = self.site_id(site)?;
        let sql = "SELECT state, stage, url FROM dead WHERE site = ?1
             AND (died_at, stage, url) > (?2, ?3, ?4) ORDER BY died_at, stage, url LIMIT ?5";
        let (died_at, stage, after) = match after {
            Some(after) => (after.died_at, stage_column(after.stage), after.url.as_str()),
            None => (i64::MIN, stage_column(Stage::Download), ""),
        };
        self.file.all(sql, params![id, died_at, stage, after, most], |row| {
            let dead: DeadState = json(row, 0)?;
            Ok(dead.letter(PageKey { site, url: &url(row, 2)? }, stage_of(row.get(1)?)))
        })
    }

    fn robots(&mut self, origin: &str) -> Result<Option<RobotsState>> {
        self.file.record(ROBOTS, [origin])
    }

    fn robots_brief(&mut self, origin: &str) -> Result<Option<RobotsBrief>> {
        let read = || {
            let robots: Option<RobotsState> = self.file.record(ROBOTS, [origin])?;
            Ok(Some(robots.map(|robots| robots.brief())))
        };
        self.memory.robots.get_or_read(origin, read).map(Option::flatten)
    }

    fn remove_robots(&mut self, origin: &str) -> Result<()> {
        self.memory.robots.stands(origin, None);
        self.file.run("DELETE FROM robots WHERE origin = ?1", [origin])
    }

    fn save_robots(&mut self, origin: &str, robots: &RobotsState) -> Result<()> {
        self.memory.robots.stands(origin, Some(robots.brief()));
        self.file.run("INSERT OR REPLACE INTO robots VALUES (?1, ?2)", params![origin, to_json(robots)?])
    }

    fn sites_of(&mut self, host: &str, most: u32) -> Result<Vec<String>> {
        let sql = "SELECT site FROM host WHERE host = ?1 ORDER BY turn LIMIT ?2";
        self.file.all(sql, params![host, most], |row| row.get(0))
    }

    fn save_host(&mut self, host: &str, site: &str) -> Result<()> {
        self.file.run(
            "INSERT OR IGNORE INTO host
             VALUES (?1, (SELECT coalesce(max(turn), 0) + 1 FROM host WHERE host = ?1), ?2)",
            [host, site],
        )
    }

    fn remove_host(&mut self, host: &str, site: &str) -> Result<()> {
        self.file.run("DELETE FROM host WHERE host = ?1 AND site = ?2", [host, site])
    }

    fn hosts_of(&mut self, site: &str) -> Result<Vec<String>> {
        self.file.all("SELECT host FROM host WHERE site = ?1 ORDER BY host", [site], |row| row.get(0))
    }

    fn has_host(&mut self, site: &str, host: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM host WHERE site = ?1 AND host = ?2";
        Ok(self.file.one(sql, [site, host], |_| Ok(()))?.is_some())
    }

    fn mutex(&mut self, key: &MutexKey) -> Result<Option<MutexState>> {
        let sql = "SELECT token, until FROM mutex WHERE name = ?1";
        let state = |row: &Row<'_>| Ok(MutexState { token: row.get(0)?, until: row.get(1)? });
        let read = || self.file.one(sql, [key.stored()], state).map(Some);
        self.memory.mutexes.get_or_read(key, read).map(Option::flatten)
    }

    fn save_mutex(&mut self, key: &MutexKey, mutex: &MutexState) -> Result<()> {
        self.memory.mutexes.stands(key, Some(mutex.clone()));
        let row = params![key.stored(), mutex.token, mutex.until];
        self.file.run("INSERT OR REPLACE INTO mutex VALUES (?1, ?2, ?3)", row)
    }

    fn remove_mutex(&mut self, key: &MutexKey) -> Result<()> {
        self.memory.mutexes.stands(key, None);
        self.file.run("DELETE FROM mutex WHERE name = ?1", [key.stored()])
    }

    fn sweep_mutexes(&mut self, now: i64, most: u32) -> Result<()> {
        let sql = "DELETE FROM mutex WHERE name IN
             (SELECT name FROM mutex WHERE name NOT GLOB 'site/*' AND until <= ?1 ORDER BY until LIMIT ?2)";
        if self.file.changed(sql, params![now, most])? > 0 {
            self.memory.mutexes = Cached::default();
        }
        Ok(())
    }

    fn owner(&mut self, name: &str) -> Result<Option<OwnerState>> {
        let sql =
            "SELECT owner.state, answers.state FROM owner LEFT JOIN answers ON answers.owner = owner.name
             WHERE owner.name = ?1";
        self.memory.owners.get_or_read(name, || self.file.one(sql, [name], read_owner))
    }

    fn save_owner(&mut self, name: &str, owner: &OwnerState) -> Result<()> {
        if self.memory.owners.get(name).is_some_and(|known| known.is_same_but_for_answers(owner)) {
            self.memory.owners.change(name, owner);
            return Ok(());
        }
        let row = params![name, owner.dead, to_json(owner)?];
        self.file.run("INSERT OR REPLACE INTO owner VALUES (?1, ?2, ?3)", row)?;
        self.write_answers(name, &owner.last)?;
        self.memory.may_have_orphans = None;
        self.memory.owners.stands(name, owner.clone());
        Ok(())
    }

    fn owners(&mut self) -> Result<Vec<(String, OwnerState)>> {
        self.flush()?;
        self.file
            .all("SELECT name, state FROM owner ORDER BY name", [], |row| Ok((row.get(0)?, json(row, 1)?)))
    }

    fn last_beat(&mut self, owner: &str) -> Result<Option<LastBeat>> {
        let sql = "SELECT at, state FROM beat WHERE owner = ?1";
        self.file.one(sql, [owner], |row| {
            Ok(LastBeat { at: Timestamp::from_millis(row.get(0)?), tells: json(row, 1)? })
        })
    }

    fn save_beat(&mut self, owner: &str, beat: &LastBeat) -> Result<()> {
        let row = params![owner, beat.at.as_millis(), to_json(&beat.tells)?];
        self.file.run("INSERT OR REPLACE INTO beat VALUES (?1, ?2, ?3)", row)
    }

    fn sweep_owners(&mut self) -> Result<()> {
        self.forget_all()?;
        let gone = "DELETE FROM owner WHERE dead AND NOT EXISTS
             (SELECT 1 FROM task WHERE task.place = 3 AND task.owner = owner.name) RETURNING name";
        let gone: Vec<String> = self.file.all(gone, [], |row| row.get(0))?;
        gone.iter().try_for_each(|owner| {
            self.file.run("DELETE FROM answers WHERE owner = ?1", [owner])?;
            self.file.run("DELETE FROM beat WHERE owner = ?1", [owner])
        })
    }

    fn add_act(&mut self, site: &str, act: &DatedAct, since: i64) -> Result<()> {
        let DatedAct { at, act } = act;
        let add = "INSERT INTO act (site, at, state) VALUES (?1, ?2, ?3)";
        self.file.run(add, params![site, at.as_millis(), to_json(act)?])?;
        self.file.run("DELETE FROM act WHERE site = ?1 AND at < ?2", params![site, since])?;
        let last = "(SELECT id FROM act WHERE site = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)";
        self.file.run(&format!("DELETE FROM act WHERE site = ?1 AND id <= {last}"), params![site, MOST_ACTS])
    }

    fn acts(&mut self, site: &str) -> Result<Vec<DatedAct>> {
        let sql = "SELECT at, state FROM act WHERE site = ?1 ORDER BY id DESC";
        self.file.all(sql, [site], |row| {
            Ok(DatedAct { at: Timestamp::from_millis(row.get(0)?), act: json(row, 1)? })
        })
    }

    fn inspect(&mut self) -> Result<Inspection> {
        self.flush()?;
        let tasks =
            "SELECT site.name, task.stage, task.url, task.place FROM task JOIN site ON site.id = task.site
             ORDER BY site.name, task.stage, task.url";
        let tasks = self.file.all(tasks, [], |row| {
            let place = ["waiting", "delayed", "scheduled", "running", "parked", "behind"];
            let place = place.get(usize::from(row.get::<_, u8>(3)?)).copied().unwrap_or("nowhere");
            Ok((row.get(0)?, stage_of(row.get(1)?), row.get(2)?, place.to_owned()))
        })?;
        let download = "SELECT name, turn FROM unit WHERE ready_download > 0 ORDER BY name";
        let parse = "SELECT name, parsed_at FROM unit WHERE ready_parse > 0 ORDER BY name";
        let mut due = self.file.all(download, [], |row| Ok((Stage::Download, row.get(0)?, row.get(1)?)))?;
        let parse =
            self.file.all(parse, [], |row| Ok((Stage::Parse, row.get(0)?, Turn::of_parse(row.get(1)?).0)))?;
        due.extend(parse);
        let dead = "SELECT site.name, dead.stage, dead.url FROM dead JOIN site ON site.id = dead.site
             ORDER BY site.name, dead.stage, dead.url";
        let dead = self.file.all(dead, [], |row| Ok((row.get(0)?, stage_of(row.get(1)?), row.get(2)?)))?;
        // What a page's own row says of an earlier run is nothing that is known.
        let known = "SELECT count(*) FROM seen JOIN site ON site.id = seen.site
             WHERE seen.run = site.state ->> '$.run' OR seen.page = 0 AND seen.run >= 0";
        let known = self.file.one(known, [], |row| row.get::<_, i64>(0))?.unwrap_or(0);
        Ok(Inspection { tasks, due, dead, known: u64::try_from(known).unwrap_or(0) })
    }
}
