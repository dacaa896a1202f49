//! Tasks: where each is found, by its place, its turn or its end.

use rusqlite::{Params, named_params, params};

use super::columns::{LeaseColumn, place_columns, read_task, stage_column, to_json, token_column};
use super::session::{Answer, Tables};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{Rare, Task};
use crate::task::{Origin, PageKey, Stage};

/// What is read of a task, behind its site's name.
const COLUMNS: &str =
    "task.stage, task.url, task.place, task.priority, task.position, task.depth, task.origin, task.until,
    task.token, task.owner, task.lease, task.rare";

impl Tables<'_> {
    pub(super) fn find_task(&mut self, page: PageKey<'_>, stage: Stage) -> Answer<Option<Task>> {
        if let Some(task) = self.memory.running.find(page, stage) {
            return Ok(Some(task.clone()));
        }
        let PageKey { site, url } = page;
        let id = self.site_id(site)?;
        self.first_task_of(
            "WHERE task.site = ?2 AND task.stage = ?3 AND task.fp = ?4 AND task.url = ?5",
            params![site, id, stage_column(stage), url.fingerprint(), url.as_str()],
        )
    }

    pub(super) fn insert_task(&mut self, task: &Task) -> Answer<()> {
        let site = self.site_id(&task.site)?;
        self.memory.notes_task(task);
        self.write_task(
            "INSERT INTO task (site, stage, fp, url, place, priority, position, depth, origin, until, token, owner,
             lease, rare)
             VALUES (:site, :stage, :fp, :url, :place, :priority, :position, :depth, :origin, :until, :token, :owner,
             :lease, :rare)",
            site,
            task,
        )
    }

    pub(super) fn update_task(&mut self, task: &Task) -> Answer<()> {
        let site = self.site_id(&task.site)?;
        self.memory.notes_task(task);
        self.write_task(
            "UPDATE task SET place = :place, priority = :priority, position = :position, depth = :depth,
             origin = :origin, until = :until, token = :token, owner = :owner, lease = :lease, rare = :rare
             WHERE site = :site AND stage = :stage AND fp = :fp AND url = :url",
            site,
            task,
        )
    }

    pub(super) fn delete_task(&mut self, task: &Task) -> Answer<()> {
        let site = self.site_id(&task.site)?;
        self.memory.running.remove(task);
        self.run(
            "DELETE FROM task WHERE site = ?1 AND stage = ?2 AND fp = ?3 AND url = ?4",
            params![site, stage_column(task.stage), task.url.fingerprint(), task.url.as_str()],
        )
    }

    pub(super) fn find_first_waiting(&mut self, site: &str, stage: Stage) -> Answer<Option<Task>> {
        let id = self.site_id(site)?;
        self.first_task_of(
            "WHERE task.site = ?2 AND task.stage = ?3 AND task.place = 0
             ORDER BY task.priority, task.position LIMIT 1",
            params![site, id, stage_column(stage)],
        )
    }

    pub(super) fn find_first_position(&mut self, site: &str, stage: Stage) -> Answer<Option<i64>> {
        let site = self.site_id(site)?;
        // By an index that begins with the priority: the first of each is looked at.
        let sql = "SELECT priority, position FROM task
             WHERE site = ?1 AND stage = ?2 AND place = 0 AND priority > ?3
             ORDER BY priority, position LIMIT 1";
        let mut first: Option<i64> = None;
        let mut above = -1_i64;
        while let Some((priority, position)) =
            self.one(sql, params![site, stage_column(stage), above], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            })?
        {
            first = Some(first.map_or(position, |least| least.min(position)));
            above = priority;
        }
        Ok(first)
    }

    pub(super) fn find_overdue(&mut self, now: i64, most: u32) -> Answer<Vec<Task>> {
        if self.memory.delayed_from.is_none_or(|first| first <= now) {
            self.next_delayed()?;
        }
        if self.memory.delayed_from > Some(now) {
            return Ok(Vec::new());
        }
        self.tasks(
            "WHERE task.place IN (1, 2) AND task.until <= ?1
             ORDER BY task.until, task.position, site.name, task.stage LIMIT ?2",
            params![now, most],
        )
    }

    pub(super) fn find_lost_leases(&mut self, now: i64, most: u32) -> Answer<Vec<Task>> {
        let orphaned = self.may_have_orphans()?;
        if !orphaned && self.memory.leased_until.is_none_or(|first| first <= now) {
            self.first_lease_end()?;
        }
        if !orphaned && self.memory.leased_until > Some(now) {
            return Ok(Vec::new());
        }
        let ended = "WHERE task.place = 3 AND task.until <= ?1
             ORDER BY task.until, task.position, site.name, task.stage LIMIT ?2";
        let mut lost = self.tasks(ended, params![now, most])?;
        if orphaned {
            let orphans = "WHERE task.place = 3 AND task.until > ?1
                 AND task.owner IN (SELECT name FROM owner WHERE dead)
                 ORDER BY +task.until, task.position, site.name, task.stage LIMIT ?2";
            let orphans = self.tasks(orphans, params![now, most])?;
            if orphans.is_empty() {
                self.memory.may_have_orphans = Some(false);
            }
            lost.extend(orphans);
            lost.truncate(most as usize);
        }
        Ok(lost)
    }

    pub(super) fn find_next_lease_end(&mut self) -> Answer<Option<i64>> {
        let orphan = "SELECT EXISTS (SELECT 1 FROM task
             WHERE place = 3 AND owner IN (SELECT name FROM owner WHERE dead))";
        if self.may_have_orphans()? && self.one(orphan, [], |row| row.get(0))?.unwrap_or(false) {
            return Ok(Some(i64::MIN));
        }
        self.first_lease_end()
    }

    pub(super) fn tasks(&self, rest: &str, params: impl Params) -> Answer<Vec<Task>> {
        self.all(&of_all_sites(rest), params, read_task)
    }

    pub(super) fn first_task(&self, rest: &str, params: impl Params) -> Answer<Option<Task>> {
        self.one(&of_all_sites(rest), params, read_task)
    }

    /// The first task of the site whose name is the first parameter.
    fn first_task_of(&self, rest: &str, params: impl Params) -> Answer<Option<Task>> {
        self.one(&format!("SELECT ?1, {COLUMNS} FROM task {rest}"), params, read_task)
    }

    /// A task in one of the statements that name its columns, with its site's number.
    fn write_task(&self, sql: &str, site: Option<i64>, task: &Task) -> Answer<()> {
        let (place, until) = place_columns(&task.place);
        let running = task.running();
        let lease = running.map(|running| to_json(&LeaseColumn::of(running))).transpose()?;
        let rare = (task.rare != Rare::default()).then(|| to_json(&task.rare)).transpose()?;
        let values = named_params! {
            ":site": site, ":stage": stage_column(task.stage), ":fp": task.url.fingerprint(),
            ":url": task.url.as_str(), ":place": place, ":priority": task.priority.value(),
            ":position": task.position, ":depth": task.depth, ":origin": i64::from(task.origin == Origin::Link),
            ":until": until, ":token": running.map(|r| token_column(r.token)),
            ":owner": running.map(|r| &r.owner), ":lease": lease, ":rare": rare,
        };
        self.run(sql, values)
    }
}

fn of_all_sites(rest: &str) -> String {
    format!("SELECT site.name, {COLUMNS} FROM task JOIN site ON site.id = task.site {rest}")
}
