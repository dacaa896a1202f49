//! Tasks: where each is found, by its place, its turn or its end.

use rusqlite::{Params, Result, named_params, params};

use super::columns::{LeaseColumn, lane_column, place_columns, read_task, stage_column, to_json};
use super::transaction::Tables;
use crate::frontier::shelf::TaskShelf;
use crate::frontier::state::{Place, Rare, Task};
use crate::task::{LANE, Origin, PageKey, Priority, Stage};

/// What is read of a task, behind its site's name.
const COLUMNS: &str =
    "task.stage, task.url, task.place, task.priority, task.position, task.depth, task.origin, task.until,
    task.token, task.owner, task.lease, task.rare";

impl TaskShelf for Tables<'_> {
    fn task(&mut self, page: PageKey<'_>, stage: Stage) -> Result<Option<Task>> {
        let PageKey { site, url } = page;
        let (id, stage, fingerprint) = (self.site_id(site)?, stage, url.fingerprint());
        if let Some(task) = self.memory.running.get(&(id, stage, fingerprint)).filter(|task| task.url == *url)
        {
            return Ok(Some(task.clone()));
        }
        self.first_task_of(
            "WHERE task.site = ?2 AND task.stage = ?3 AND task.fp = ?4 AND task.url = ?5",
            params![site, id, stage_column(stage), fingerprint, url.as_str()],
        )
    }

    fn granted(&mut self, owner: &str, token: u64) -> Result<Option<Task>> {
        let sql = of_all_sites("WHERE task.place = 3 AND task.owner = ?1 AND task.token = ?2");
        self.file.one(&sql, params![owner, token.cast_signed()], read_task)
    }

    fn add_task(&mut self, task: &Task) -> Result<()> {
        self.write_task(
            "INSERT INTO task (site, stage, fp, url, place, priority, position, depth, origin, until, token, owner,
             lease, rare, host, lane, session)
             VALUES (:site, :stage, :fp, :url, :place, :priority, :position, :depth, :origin, :until, :token, :owner,
             :lease, :rare, :host, :lane, :session)",
            task,
        )
    }

    fn save_task(&mut self, task: &Task) -> Result<()> {
        self.write_task(
            "UPDATE task SET place = :place, priority = :priority, position = :position, depth = :depth,
             origin = :origin, until = :until, token = :token, owner = :owner, lease = :lease, rare = :rare, host = :host,
             lane = :lane, session = :session
             WHERE site = :site AND stage = :stage AND fp = :fp AND url = :url",
            task,
        )
    }

    fn remove_task(&mut self, task: &Task) -> Result<()> {
        let (site, fingerprint) = (self.site_id(&task.site)?, task.url.fingerprint());
        self.memory.running.forget(&(site, task.stage, fingerprint));
        self.file.run(
            "DELETE FROM task WHERE site = ?1 AND stage = ?2 AND fp = ?3 AND url = ?4",
            params![site, stage_column(task.stage), fingerprint, task.url.as_str()],
        )
    }

    fn first_waiting(&mut self, site: &str, stage: Stage, lane: &str) -> Result<Option<Task>> {
        let id = self.site_id(site)?;
        self.first_task_of(
            "WHERE task.site = ?2 AND task.stage = ?3 AND task.lane = ?4 AND task.place = 0
             ORDER BY task.priority, task.position LIMIT 1",
            params![site, id, stage_column(stage), lane_column(lane)],
        )
    }

    fn waiting_behind(
        &mut self,
        site: &str,
        stage: Stage,
        lane: &str,
        (priority, position): (Priority, i64),
        most: u32,
    ) -> Result<Vec<Task>> {
        let id = self.site_id(site)?;
        let (stage, lane, priority) = (stage_column(stage), lane_column(lane), priority.value());
        self.tasks_of(
            "WHERE task.site = ?2 AND task.stage = ?3 AND task.lane = ?4 AND task.place = 0
             AND (task.priority, task.position) > (?5, ?6)
             ORDER BY task.priority, task.position LIMIT ?7",
            params![site, id, stage, lane, priority, position, most],
        )
    }

    fn first_positions(&mut self, site: &str, stage: Stage, lane: &str) -> Result<Vec<(Priority, i64)>> {
        let site = self.site_id(site)?;
        // By an index that begins with the priority: the first of each is looked at.
        let sql = "SELECT priority, position FROM task
             WHERE site = ?1 AND stage = ?2 AND lane = ?4 AND place = 0 AND priority > ?3
             ORDER BY priority, position LIMIT 1";
        let mut first = Vec::new();
        let mut above = -1_i64;
        while let Some((priority, position)) =
            self.file.one(sql, params![site, stage_column(stage), above, lane_column(lane)], |row| {
                Ok((row.get::<_, u16>(0)?, row.get::<_, i64>(1)?))
            })?
        {
            first.push((Priority::from_value(priority), position));
            above = priority.into();
        }
        Ok(first)
    }

    fn overdue(&mut self, now: i64, most: u32) -> Result<Vec<Task>> {
        let first = match self.memory.delayed_from {
            Some(first) if first > now => Some(first),
            _ => self.next_delayed()?,
        };
        if first.is_none_or(|first| first > now) {
            return Ok(Vec::new());
        }
        self.tasks(
            "WHERE task.place IN (1, 2) AND task.until <= ?1
             ORDER BY task.until, task.position, site.name, task.stage LIMIT ?2",
            params![now, most],
        )
    }

    fn next_delayed(&mut self) -> Result<Option<i64>> {
        let first = self.file.least("SELECT min(until) FROM task WHERE place IN (1, 2)")?;
        self.memory.delayed_from = Some(first.unwrap_or(i64::MAX));
        Ok(first)
    }

    fn lost_leases(&mut self, now: i64, most: u32) -> Result<Vec<Task>> {
        let orphaned = self.may_have_orphans()?;
        let first = match self.memory.leased_until {
            Some(first) if first > now => Some(first),
            _ => self.first_lease_end()?,
        };
        if !orphaned && first.is_none_or(|first| first > now) {
            return Ok(Vec::new());
        }
        let ended = "WHERE task.place = 3 AND task.until <= ?1
             ORDER BY task.until, task.position, site.name, task.stage LIMIT ?2";
        let mut lost = self.tasks(ended, params![now, most])?;
        if orphaned {
            lost.extend(self.orphans(now, most.saturating_sub(count(&lost)))?);
        }
        Ok(lost)
    }

    fn next_lease_end(&mut self) -> Result<Option<i64>> {
        let orphan = "SELECT EXISTS (SELECT 1 FROM task
             WHERE place = 3 AND owner IN (SELECT name FROM owner WHERE dead))";
        if self.may_have_orphans()? && self.file.least(orphan)? == Some(1) {
            return Ok(Some(i64::MIN));
        }
        self.first_lease_end()
    }

    fn idle_tasks(&mut self, site: &str, most: u32) -> Result<Vec<Task>> {
        let site = self.site_id(site)?;
        self.tasks(
            "WHERE task.site = ?1 AND task.place <> 3 ORDER BY task.stage, task.fp LIMIT ?2",
            params![site, most],
        )
    }

    fn running_tasks(&mut self, site: &str) -> Result<Vec<Task>> {
        let site = self.site_id(site)?;
        self.tasks("WHERE task.site = ?1 AND +task.place = 3", [site])
    }
}

impl Tables<'_> {
    fn first_lease_end(&mut self) -> Result<Option<i64>> {
        let first = self.file.least("SELECT min(until) FROM task WHERE place = 3")?;
        self.memory.leased_until = Some(first.unwrap_or(i64::MAX));
        Ok(first)
    }

    /// Leases of dead processes that hadn't ended by `now`, at most so many.
    fn orphans(&mut self, now: i64, most: u32) -> Result<Vec<Task>> {
        let mut orphans = Vec::new();
        let dead = "SELECT name FROM owner WHERE dead ORDER BY name";
        for owner in self.file.all(dead, [], |row| row.get::<_, String>(0))? {
            let held = "WHERE task.place = 3 AND task.owner = ?1 AND task.until > ?2
                 ORDER BY task.until, task.position LIMIT ?3";
            orphans.extend(self.tasks(held, params![owner, now, most.saturating_sub(count(&orphans))])?);
        }
        if orphans.is_empty() && most > 0 {
            self.memory.may_have_orphans = Some(false);
        }
        orphans.sort_by(|one, other| order(one).cmp(&order(other)));
        Ok(orphans)
    }

    fn may_have_orphans(&mut self) -> Result<bool> {
        let may = match self.memory.may_have_orphans {
            Some(may) => may,
            None => self.file.least("SELECT EXISTS (SELECT 1 FROM owner WHERE dead)")? == Some(1),
        };
        self.memory.may_have_orphans = Some(may);
        Ok(may)
    }

    fn tasks(&self, rest: &str, params: impl Params) -> Result<Vec<Task>> {
        self.file.all(&of_all_sites(rest), params, read_task)
    }

    /// The first task of the site whose name is the first parameter.
    fn first_task_of(&self, rest: &str, params: impl Params) -> Result<Option<Task>> {
        self.file.one(&format!("SELECT ?1, {COLUMNS} FROM task {rest}"), params, read_task)
    }

    /// Tasks of the site whose name is the first parameter.
    pub(super) fn tasks_of(&self, rest: &str, params: impl Params) -> Result<Vec<Task>> {
        self.file.all(&format!("SELECT ?1, {COLUMNS} FROM task {rest}"), params, read_task)
    }

    /// Writes a task by one of the statements that name its columns.
    fn write_task(&mut self, sql: &str, task: &Task) -> Result<()> {
        let (site, fingerprint) = (self.site_id(&task.site)?, task.url.fingerprint());
        self.memory.notes_task((site, task.stage, fingerprint), task);
        let (place, until) = place_columns(task);
        let running = task.running();
        let lease = running.map(|running| to_json(&LeaseColumn::of(running))).transpose()?;
        let rare = (task.rare != Rare::default()).then(|| to_json(&task.rare)).transpose()?;
        let values = named_params! {
            ":site": site, ":stage": stage_column(task.stage), ":fp": fingerprint,
            ":url": task.url.as_str(), ":place": place, ":priority": task.priority.value(),
            ":position": task.position, ":depth": task.depth, ":origin": i64::from(task.origin == Origin::Link),
            ":until": until, ":token": running.map(|r| r.token.cast_signed()),
            ":owner": running.map(|r| &r.owner), ":lease": lease, ":rare": rare,
            ":host": (task.place == Place::Parked).then(|| task.url.origin()),
            ":lane": lane_column(task.rare.lane.as_deref().unwrap_or(LANE)),
            ":session": task.rare.session.as_deref(),
        };
        self.file.run(sql, values)
    }
}

fn count(tasks: &[Task]) -> u32 {
    u32::try_from(tasks.len()).unwrap_or(u32::MAX)
}

/// Running tasks are in order of the ends of their leases.
fn order(task: &Task) -> (Option<i64>, i64, &str, Stage) {
    (task.running().map(|running| running.ends_at), task.position, &task.site, task.stage)
}

fn of_all_sites(rest: &str) -> String {
    format!("SELECT site.name, {COLUMNS} FROM task JOIN site ON site.id = task.site {rest}")
}
