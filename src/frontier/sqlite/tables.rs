//! The tables behind the steps: each record found and saved by one prepared statement.

use rusqlite::params;

use super::columns::{json, read_owner, stage_column, stage_of, to_json, token_column, url};
use super::session::{Answer, Tables};
use crate::frontier::MutexKey;
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{
    DeadState, MutexState, OwnerState, PageState, Recrawl, RobotsBrief, RobotsState, SiteState, Task,
    UnitState, WorkScope,
};
use crate::frontier::view::{Freshness, Inspection, LetterPlace};
use crate::task::{DeadLetter, PageKey, Stage};

impl Shelf for Tables<'_> {
    type Error = rusqlite::Error;

    fn site(&mut self, name: &str) -> Answer<Option<SiteState>> {
        if let Some(site) = self.memory.sites.get(name) {
            return Ok(Some(site.clone()));
        }
        let site: Option<SiteState> = self.record("SELECT state FROM site WHERE name = ?1", [name])?;
        if let Some(site) = &site {
            self.memory.sites.stands(name, site.clone());
        }
        Ok(site)
    }

    fn save_site(&mut self, site: &SiteState) -> Answer<()> {
        self.notes_site(site);
        if self.memory.sites.change(&site.name, site) { Ok(()) } else { self.write_site(site) }
    }

    fn remove_site(&mut self, name: &str) -> Answer<()> {
        self.memory.forget_site(name);
        self.run("DELETE FROM site_file WHERE site = ?1", [name])?;
        self.run("DELETE FROM site WHERE name = ?1", [name])
    }

    fn rename_site(&mut self, name: &str, to: &str) -> Answer<()> {
        self.memory.forget_site(name);
        self.run("UPDATE site SET name = ?2 WHERE name = ?1", [name, to])?;
        self.run("UPDATE site_file SET site = ?2 WHERE site = ?1", [name, to])?;
        self.run("UPDATE host SET site = ?2 WHERE site = ?1", [name, to])
    }

    fn site_names(&mut self) -> Answer<Vec<String>> {
        self.all("SELECT name FROM site ORDER BY name", [], |row| row.get(0))
    }

    fn site_text(&mut self, name: &str) -> Answer<Option<String>> {
        self.one("SELECT text FROM site_file WHERE site = ?1", [name], |row| row.get(0))
    }

    fn save_site_text(&mut self, name: &str, text: &str) -> Answer<()> {
        self.run("INSERT OR REPLACE INTO site_file VALUES (?1, ?2)", [name, text])
    }

    fn unit(&mut self, name: &str) -> Answer<Option<UnitState>> {
        if let Some((unit, _)) = self.memory.units.get(name) {
            return Ok(Some(unit.clone()));
        }
        let sql = "SELECT state, due FROM unit WHERE name = ?1";
        let read: Option<(UnitState, i64)> = self.one(sql, [name], |row| Ok((json(row, 0)?, row.get(1)?)))?;
        let Some((unit, due)) = read else { return Ok(None) };
        self.memory.units.stands(name, (unit.clone(), due));
        Ok(Some(unit))
    }

    fn save_unit(&mut self, unit: &UnitState, due: i64) -> Answer<()> {
        self.notes_unit(unit, due);
        let held = self.memory.units.change(&unit.name, &(unit.clone(), due));
        if held { Ok(()) } else { self.write_unit(unit, due) }
    }

    fn due_count(&mut self, stage: Stage, now: i64, scope: &WorkScope, most: u32) -> Answer<u32> {
        self.count_due(stage, now, scope, most)
    }

    fn nth_due(&mut self, stage: Stage, now: i64, scope: &WorkScope, n: u32) -> Answer<Option<String>> {
        self.find_due(stage, now, scope, n)
    }

    fn next_due(&mut self, stage: Stage, scope: &WorkScope) -> Answer<Option<i64>> {
        self.first_due(stage, scope)
    }

    fn ready_sites(&mut self, stage: Stage, unit: &str) -> Answer<Vec<String>> {
        self.ready_in(stage, unit)
    }

    fn task(&mut self, page: PageKey<'_>, stage: Stage) -> Answer<Option<Task>> {
        self.find_task(page, stage)
    }

    fn granted(&mut self, token: u64) -> Answer<Option<Task>> {
        self.first_task("WHERE task.place = 3 AND task.token = ?1", [token_column(token)])
    }

    fn add_task(&mut self, task: &Task) -> Answer<()> {
        self.insert_task(task)
    }

    fn save_task(&mut self, task: &Task) -> Answer<()> {
        self.update_task(task)
    }

    fn remove_task(&mut self, task: &Task) -> Answer<()> {
        self.delete_task(task)
    }

    fn first_waiting(&mut self, site: &str, stage: Stage) -> Answer<Option<Task>> {
        self.find_first_waiting(site, stage)
    }

    fn first_position(&mut self, site: &str, stage: Stage) -> Answer<Option<i64>> {
        self.find_first_position(site, stage)
    }

    fn overdue(&mut self, now: i64, most: u32) -> Answer<Vec<Task>> {
        self.find_overdue(now, most)
    }

    fn next_delayed(&mut self) -> Answer<Option<i64>> {
        let first = self.least("SELECT min(until) FROM task WHERE place IN (1, 2)")?;
        self.memory.delayed_from = Some(first.unwrap_or(i64::MAX));
        Ok(first)
    }

    fn lost_leases(&mut self, now: i64, most: u32) -> Answer<Vec<Task>> {
        self.find_lost_leases(now, most)
    }

    fn next_lease_end(&mut self) -> Answer<Option<i64>> {
        self.find_next_lease_end()
    }

    fn idle_tasks(&mut self, site: &str, most: u32) -> Answer<Vec<Task>> {
        let site = self.site_id(site)?;
        self.tasks(
            "WHERE task.site = ?1 AND task.place <> 3 ORDER BY task.stage, task.fp LIMIT ?2",
            params![site, most],
        )
    }

    fn running_tasks(&mut self, site: &str) -> Answer<Vec<Task>> {
        let site = self.site_id(site)?;
        self.tasks("WHERE task.place = 3 AND +task.site = ?1 ORDER BY task.until, task.position", [site])
    }

    fn is_known(&mut self, page: PageKey<'_>, run: i64) -> Answer<bool> {
        let site = self.site_id(page.site)?;
        let sql = "SELECT 1 FROM known WHERE site = ?1 AND run = ?2 AND fp = ?3";
        Ok(self.one(sql, params![site, run, page.url.fingerprint()], |_| Ok(()))?.is_some())
    }

    fn add_known(&mut self, page: PageKey<'_>, run: i64) -> Answer<()> {
        let site = self.site_id(page.site)?;
        self.run(
            "INSERT OR IGNORE INTO known VALUES (?1, ?2, ?3)",
            params![site, run, page.url.fingerprint()],
        )
    }

    fn sweep_known(&mut self, site: &str, run: i64, most: u32) -> Answer<bool> {
        let site = self.site_id(site)?;
        let sql = "DELETE FROM known WHERE (site, run, fp) IN
             (SELECT site, run, fp FROM known WHERE site = ?1 AND run < ?2 LIMIT ?3)";
        let removed = self.prepare(sql)?.execute(params![site, run, most])?;
        Ok(removed == most as usize)
    }

    fn dead(&mut self, page: PageKey<'_>, stage: Stage) -> Answer<Option<DeadState>> {
        let site = self.site_id(page.site)?;
        self.record(
            "SELECT state FROM dead WHERE site = ?1 AND stage = ?2 AND fp = ?3 AND url = ?4",
            params![site, stage_column(stage), page.url.fingerprint(), page.url.as_str()],
        )
    }

    fn save_dead(&mut self, page: PageKey<'_>, stage: Stage, dead: &DeadState) -> Answer<()> {
        self.remove_dead(page, stage)?;
        let site = self.site_id(page.site)?;
        self.run(
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

    fn remove_dead(&mut self, page: PageKey<'_>, stage: Stage) -> Answer<()> {
        let site = self.site_id(page.site)?;
        self.run(
            "DELETE FROM dead WHERE site = ?1 AND stage = ?2 AND fp = ?3 AND url = ?4",
            params![site, stage_column(stage), page.url.fingerprint(), page.url.as_str()],
        )
    }

    fn dead_letters(
        &mut self,
        site: &str,
        after: Option<&LetterPlace>,
        most: u32,
    ) -> Answer<Vec<DeadLetter>> {
        let id = self.site_id(site)?;
        let sql = "SELECT state, stage, url FROM dead WHERE site = ?1
             AND (died_at, stage, url) > (?2, ?3, ?4) ORDER BY died_at, stage, url LIMIT ?5";
        let (died_at, stage, after) = match after {
            Some(after) => (after.died_at, stage_column(after.stage), after.url.as_str()),
            None => (i64::MIN, stage_column(Stage::Download), ""),
        };
        self.all(sql, params![id, died_at, stage, after, most], |row| {
            let dead: DeadState = json(row, 0)?;
            Ok(dead.letter(PageKey { site, url: &url(row, 2)? }, stage_of(row.get(1)?)))
        })
    }

    fn page(&mut self, page: PageKey<'_>) -> Answer<Option<PageState>> {
        self.read_page(page)
    }

    fn remove_pages(&mut self, site: &str, most: u32) -> Answer<bool> {
        let site = self.site_id(site)?;
        let sql = "DELETE FROM page WHERE id IN (SELECT id FROM page WHERE site = ?1 LIMIT ?2)";
        let removed = self.prepare(sql)?.execute(params![site, most])?;
        self.run(
            "UPDATE site SET recrawl_at = (SELECT min(recrawl_at) FROM page
             WHERE page.site = site.id AND recrawl_at IS NOT NULL) WHERE id = ?1",
            [site],
        )?;
        Ok(removed == most as usize)
    }

    fn save_page(&mut self, page: PageKey<'_>, before: Option<&PageState>, now: &PageState) -> Answer<()> {
        self.write_page(page, before, now)
    }

    fn first_recrawl(&mut self) -> Answer<Option<Recrawl>> {
        self.flush()?;
        self.first_page_again()
    }

    fn freshness(&mut self, site: &str, now: i64) -> Answer<Freshness> {
        self.count_fresh(site, now)
    }

    fn robots(&mut self, origin: &str) -> Answer<Option<RobotsState>> {
        self.record("SELECT state FROM robots WHERE origin = ?1", [origin])
    }

    fn robots_brief(&mut self, origin: &str) -> Answer<Option<RobotsBrief>> {
        if let Some(brief) = self.memory.robots.get(origin) {
            return Ok(brief.clone());
        }
        let brief = self.robots(origin)?.map(|robots| robots.brief());
        self.memory.robots.insert(origin.to_owned(), brief.clone());
        Ok(brief)
    }

    fn remove_robots(&mut self, origin: &str) -> Answer<()> {
        self.memory.robots.remove(origin);
        self.run("DELETE FROM robots WHERE origin = ?1", [origin])
    }

    fn save_robots(&mut self, origin: &str, robots: &RobotsState) -> Answer<()> {
        self.memory.robots.insert(origin.to_owned(), Some(robots.brief()));
        self.run("INSERT OR REPLACE INTO robots VALUES (?1, ?2)", params![origin, to_json(robots)?])
    }

    fn sites_of(&mut self, host: &str) -> Answer<Vec<String>> {
        self.all("SELECT site FROM host WHERE host = ?1 ORDER BY turn", [host], |row| row.get(0))
    }

    fn save_host(&mut self, host: &str, site: &str) -> Answer<()> {
        self.run(
            "INSERT OR IGNORE INTO host
             VALUES (?1, (SELECT coalesce(max(turn), 0) + 1 FROM host WHERE host = ?1), ?2)",
            [host, site],
        )
    }

    fn remove_host(&mut self, host: &str, site: &str) -> Answer<()> {
        self.run("DELETE FROM host WHERE host = ?1 AND site = ?2", [host, site])
    }

    fn hosts_of(&mut self, site: &str) -> Answer<Vec<String>> {
        self.all("SELECT host FROM host WHERE site = ?1 ORDER BY host", [site], |row| row.get(0))
    }

    fn mutex(&mut self, key: &MutexKey) -> Answer<Option<MutexState>> {
        if let Some(mutex) = self.memory.mutexes.get(key) {
            return Ok(mutex.clone());
        }
        let mutex = self.one("SELECT token, until FROM mutex WHERE name = ?1", [key.stored()], |row| {
            Ok(MutexState { token: row.get(0)?, until: row.get(1)? })
        })?;
        self.memory.mutexes.insert(key.clone(), mutex.clone());
        Ok(mutex)
    }

    fn save_mutex(&mut self, key: &MutexKey, mutex: &MutexState) -> Answer<()> {
        self.memory.mutexes.insert(key.clone(), Some(mutex.clone()));
        let row = params![key.stored(), mutex.token, mutex.until];
        self.run("INSERT OR REPLACE INTO mutex VALUES (?1, ?2, ?3)", row)
    }

    fn remove_mutex(&mut self, key: &MutexKey) -> Answer<()> {
        self.memory.mutexes.insert(key.clone(), None);
        self.run("DELETE FROM mutex WHERE name = ?1", [key.stored()])
    }

    fn owner(&mut self, name: &str) -> Answer<Option<OwnerState>> {
        if let Some(owner) = self.memory.owners.get(name) {
            return Ok(Some(owner.clone()));
        }
        let sql =
            "SELECT owner.state, answers.state FROM owner LEFT JOIN answers ON answers.owner = owner.name
             WHERE owner.name = ?1";
        let owner = self.one(sql, [name], read_owner)?;
        if let Some(owner) = &owner {
            self.memory.owners.stands(name, owner.clone());
        }
        Ok(owner)
    }

    fn save_owner(&mut self, name: &str, owner: &OwnerState) -> Answer<()> {
        if self.memory.owners.get(name).is_some_and(|held| held.is_same_but_for_answers(owner)) {
            self.memory.owners.change(name, owner);
            return Ok(());
        }
        self.write_owner(name, owner)?;
        self.write_answers(name, &owner.last)?;
        self.memory.may_have_orphans = None;
        self.memory.owners.stands(name, owner.clone());
        Ok(())
    }

    fn owners(&mut self) -> Answer<Vec<(String, OwnerState)>> {
        self.flush()?;
        self.all("SELECT name, state FROM owner ORDER BY name", [], |row| Ok((row.get(0)?, json(row, 1)?)))
    }

    fn sweep_owners(&mut self) -> Answer<()> {
        self.flush()?;
        self.memory.owners.clear();
        self.memory.may_have_orphans = None;
        self.run(
            "DELETE FROM owner WHERE dead AND NOT EXISTS
             (SELECT 1 FROM task WHERE task.place = 3 AND task.owner = owner.name)",
            [],
        )?;
        self.run(
            "DELETE FROM answers WHERE NOT EXISTS (SELECT 1 FROM owner WHERE owner.name = answers.owner)",
            [],
        )
    }

    fn inspect(&mut self) -> Answer<Inspection> {
        self.flush()?;
        let tasks =
            "SELECT site.name, task.stage, task.url, task.place FROM task JOIN site ON site.id = task.site
             ORDER BY site.name, task.stage, task.url";
        let tasks = self.all(tasks, [], |row| {
            let place = ["waiting", "delayed", "scheduled", "running"];
            let place = place.get(usize::from(row.get::<_, u8>(3)?)).copied().unwrap_or("nowhere");
            Ok((row.get(0)?, stage_of(row.get(1)?), row.get(2)?, place.to_owned()))
        })?;
        let download = "SELECT name, due FROM unit WHERE ready_download > 0 ORDER BY name";
        let parse = "SELECT name, parsed_at FROM unit WHERE ready_parse > 0 ORDER BY name";
        let mut due = self.all(download, [], |row| Ok((Stage::Download, row.get(0)?, row.get(1)?)))?;
        due.extend(self.all(parse, [], |row| Ok((Stage::Parse, row.get(0)?, row.get(1)?)))?);
        let dead = "SELECT site.name, dead.stage, dead.url FROM dead JOIN site ON site.id = dead.site
             ORDER BY site.name, dead.stage, dead.url";
        let dead = self.all(dead, [], |row| Ok((row.get(0)?, stage_of(row.get(1)?), row.get(2)?)))?;
        let known = self.one("SELECT count(*) FROM known", [], |row| row.get::<_, i64>(0))?.unwrap_or(0);
        Ok(Inspection { tasks, due, dead, known: u64::try_from(known).unwrap_or(0) })
    }
}
