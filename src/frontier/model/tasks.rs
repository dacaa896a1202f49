//! Tasks of the model, and which units are due by them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Model, Sure, key};
use crate::frontier::shelf::{DueShelf, HostShelf, TaskShelf};
use crate::frontier::state::{AwayHost, Place, Running, SiteState, Task, Turn, WorkScope};
use crate::task::{LANE, PageKey, Priority, Stage};

impl DueShelf for Model {
    fn due_count(&mut self, stage: Stage, by: Turn, scope: &WorkScope, most: u32) -> Sure<u32> {
        let due = self.ready_units(stage, scope).into_values().filter(|turn| *turn <= by);
        Ok(u32::try_from(due.count()).unwrap_or(most).min(most))
    }

    fn nth_due(&mut self, stage: Stage, by: Turn, scope: &WorkScope, n: u32) -> Sure<Option<String>> {
        let ready = self.ready_units(stage, scope).into_iter();
        let mut due: Vec<(Turn, String)> =
            ready.filter(|(_, turn)| *turn <= by).map(|(name, turn)| (turn, name)).collect();
        due.sort();
        Ok(due.into_iter().nth(n as usize).map(|(_, name)| name))
    }

    fn next_turns(&mut self, stage: Stage, scope: &WorkScope, most: u32) -> Sure<Vec<Turn>> {
        let mut turns: Vec<Turn> = self.ready_units(stage, scope).into_values().collect();
        turns.sort();
        turns.truncate(most as usize);
        Ok(turns)
    }

    fn first_ready(&mut self, unit: &str, scope: &WorkScope) -> Sure<Option<i64>> {
        Ok(self.ready_sites(Stage::Download, unit, scope).map(SiteState::waits_until).min())
    }

    fn ready_by(&mut self, unit: &str, scope: &WorkScope, by: i64, most: u32) -> Sure<Vec<String>> {
        let ready = self.ready_sites(Stage::Download, unit, scope);
        let mut ready: Vec<(i64, &String)> =
            ready.map(|site| (site.waits_until(), &site.name)).filter(|(ends, _)| *ends <= by).collect();
        ready.sort();
        Ok(ready.into_iter().take(most as usize).map(|(_, name)| name.clone()).collect())
    }

    fn next_parse(&mut self, unit: &str, scope: &WorkScope, after: &str) -> Sure<Option<String>> {
        let ready: BTreeSet<&str> =
            self.ready_sites(Stage::Parse, unit, scope).map(|site| site.name.as_str()).collect();
        let next = ready.iter().find(|name| **name > after).or(ready.first());
        Ok(next.map(|name| (*name).to_owned()))
    }
}

impl HostShelf for Model {
    fn away(&mut self, site: &str, origin: &str) -> Sure<Option<i64>> {
        Ok(self.away.get(&(site.to_owned(), origin.to_owned())).copied())
    }

    fn set_away(&mut self, site: &str, origin: &str, at: Option<i64>) -> Sure<()> {
        let host = (site.to_owned(), origin.to_owned());
        match at {
            Some(at) => drop(self.away.insert(host, at)),
            None => drop(self.away.remove(&host)),
        }
        Ok(())
    }

    fn first_away(&mut self) -> Sure<Option<AwayHost>> {
        let hosts = self.away.iter();
        let hosts = hosts.map(|((site, origin), at)| AwayHost {
            at: *at,
            site: site.clone(),
            origin: origin.clone(),
        });
        Ok(hosts.min())
    }

    fn hosts_away(&mut self, site: &str) -> Sure<Vec<String>> {
        Ok(self.away.keys().filter(|(name, _)| name == site).map(|(_, origin)| origin.clone()).collect())
    }

    fn waits_longest(&mut self, origin: &str, at: i64) -> Sure<Option<String>> {
        let hosts = self.away.iter().filter(|((_, host), until)| host == origin && **until > at);
        Ok(hosts.map(|((site, _), until)| (until, site)).max().map(|(_, site)| site.clone()))
    }

    fn parked(&mut self, site: &str, origin: &str, most: u32) -> Sure<Vec<Task>> {
        let is_it =
            |task: &&Task| task.site == site && task.place == Place::Parked && task.url.origin() == origin;
        let mut parked: Vec<Task> = self.tasks.values().filter(is_it).cloned().collect();
        parked.sort_by_key(|task| (task.priority, task.position));
        parked.truncate(most as usize);
        Ok(parked)
    }
}

impl TaskShelf for Model {
    fn task(&mut self, page: PageKey<'_>, stage: Stage) -> Sure<Option<Task>> {
        Ok(self.tasks.get(&key(page, stage)).cloned())
    }

    fn granted(&mut self, owner: &str, token: u64) -> Sure<Option<Task>> {
        let is_it = |running: &Running| running.owner == owner && running.token == token;
        Ok(self.running().find(|(_, running)| is_it(running)).map(|(task, _)| task.clone()))
    }

    fn add_task(&mut self, task: &Task) -> Sure<()> {
        debug_assert!(!self.tasks.contains_key(&key(task.page(), task.stage)), "{task:?}");
        self.save_task(task)
    }

    fn save_task(&mut self, task: &Task) -> Sure<()> {
        self.tasks.insert(key(task.page(), task.stage), task.clone());
        Ok(())
    }

    fn remove_task(&mut self, task: &Task) -> Sure<()> {
        self.tasks.remove(&key(task.page(), task.stage));
        Ok(())
    }

    fn first_waiting(&mut self, site: &str, stage: Stage, lane: &str) -> Sure<Option<Task>> {
        Ok(self.waiting(site, stage, lane).min_by_key(|task| (task.priority, task.position)).cloned())
    }

    fn waiting_behind(
        &mut self,
        site: &str,
        stage: Stage,
        lane: &str,
        behind: (Priority, i64),
        most: u32,
    ) -> Sure<Vec<Task>> {
        let waiting = self.waiting(site, stage, lane).filter(|task| (task.priority, task.position) > behind);
        let mut waiting: Vec<Task> = waiting.cloned().collect();
        waiting.sort_by_key(|task| (task.priority, task.position));
        waiting.truncate(most as usize);
        Ok(waiting)
    }

    fn first_positions(&mut self, site: &str, stage: Stage, lane: &str) -> Sure<Vec<(Priority, i64)>> {
        let mut first = BTreeMap::new();
        for task in self.waiting(site, stage, lane) {
            let position = first.entry(task.priority).or_insert(task.position);
            *position = task.position.min(*position);
        }
        Ok(first.into_iter().collect())
    }

    fn overdue(&mut self, now: i64, most: u32) -> Sure<Vec<Task>> {
        Ok(Self::by_time(self.delayed().filter(|(until, _)| *until <= now), most))
    }

    fn next_delayed(&mut self) -> Sure<Option<i64>> {
        Ok(self.delayed().map(|(until, _)| until).min())
    }

    fn lost_leases(&mut self, now: i64, most: u32) -> Sure<Vec<Task>> {
        let lost = self.running().filter(|(_, running)| self.is_over(running, now));
        Ok(Self::by_time(lost.map(|(task, running)| (running.ends_at, task)), most))
    }

    fn next_lease_end(&mut self) -> Sure<Option<i64>> {
        let ends = self.running().map(|(_, r)| if self.is_over(r, i64::MIN) { i64::MIN } else { r.ends_at });
        Ok(ends.min())
    }

    fn idle_tasks(&mut self, site: &str, most: u32) -> Sure<Vec<Task>> {
        let idle = self.tasks.values().filter(|task| task.site == site && task.running().is_none());
        let mut tasks: Vec<Task> = idle.cloned().collect();
        tasks.sort_by_key(|task| (task.stage, task.url.fingerprint()));
        tasks.truncate(most as usize);
        Ok(tasks)
    }

    fn running_tasks(&mut self, site: &str) -> Sure<Vec<Task>> {
        let running = self.running().filter(|(task, _)| task.site == site);
        Ok(Self::by_time(running.map(|(task, running)| (running.ends_at, task)), u32::MAX))
    }
}

impl Model {
    /// Units with a ready site, and their turns: worked out from the tasks themselves.
    pub(super) fn ready_units(&self, stage: Stage, scope: &WorkScope) -> BTreeMap<String, Turn> {
        let ready = self.sites.values().filter(|site| self.is_ready_for(site, stage, scope));
        let units: BTreeSet<&String> = ready.map(|site| &site.unit).collect();
        let turns = units.into_iter().filter_map(|unit| {
            let (state, due) = self.units.get(unit)?;
            let first = self.ready_sites(Stage::Download, unit, scope).map(SiteState::waits_until).min();
            let turn = match stage {
                Stage::Download => due.turn(first.unwrap_or(0)),
                Stage::Parse => Turn::of_parse(state.parse_turn()),
            };
            Some((unit.clone(), turn))
        });
        turns.collect()
    }

    /// The unit's ready sites of the scope.
    fn ready_sites(&self, stage: Stage, unit: &str, scope: &WorkScope) -> impl Iterator<Item = &SiteState> {
        let of_unit = self.sites.values().filter(move |site| site.unit == unit);
        of_unit.filter(move |site| self.is_ready_for(site, stage, scope))
    }

    fn is_ready_for(&self, site: &SiteState, stage: Stage, scope: &WorkScope) -> bool {
        let in_lanes = |task: &Task| scope.serves(task.queued_in().unwrap_or(LANE));
        let is_of_lanes = matches!(scope, WorkScope::Lanes(_));
        let is_found = !is_of_lanes || site.by_lane && self.all_waiting(&site.name, stage).any(in_lanes);
        is_found && scope.includes(&site.name) && self.is_ready(site, stage)
    }

    fn is_ready(&self, site: &SiteState, stage: Stage) -> bool {
        let waits = self.all_waiting(&site.name, stage).next().is_some();
        let in_flight = self.running().filter(|(task, running)| task.site == site.name && running.in_flight);
        let paused = site.tuned.paused.is_some() && site.tuned.paused_until.is_none();
        let gated = paused || site.errand.is_some() || in_flight.count() >= site.parallel() as usize;
        let gated = if stage == Stage::Parse { site.tuned.parse_paused.is_some() } else { gated };
        waits && !site.given_up && !gated
    }

    fn all_waiting(&self, site: &str, stage: Stage) -> impl Iterator<Item = &Task> {
        let of_stage = self.tasks.values().filter(move |task| task.site == site && task.stage == stage);
        of_stage.filter(|task| task.place == Place::Waiting)
    }

    fn waiting(&self, site: &str, stage: Stage, lane: &str) -> impl Iterator<Item = &Task> {
        self.all_waiting(site, stage).filter(move |task| task.queued_in().unwrap_or(LANE) == lane)
    }

    /// When each delayed task's time comes.
    fn delayed(&self) -> impl Iterator<Item = (i64, &Task)> {
        self.tasks.values().filter_map(|task| match task.place {
            Place::Delayed { until, .. } => Some((until, task)),
            _ => None,
        })
    }

    pub(super) fn running(&self) -> impl Iterator<Item = (&Task, &Running)> {
        self.tasks.values().filter_map(|task| task.running().map(|running| (task, running)))
    }

    /// The first tasks by time, then position, site and stage.
    fn by_time<'a>(tasks: impl Iterator<Item = (i64, &'a Task)>, most: u32) -> Vec<Task> {
        let mut tasks: Vec<(i64, &Task)> = tasks.collect();
        tasks.sort_by_key(|(at, task)| (*at, task.position, &task.site, task.stage));
        tasks.into_iter().take(most as usize).map(|(_, task)| task.clone()).collect()
    }

    fn is_over(&self, running: &Running, now: i64) -> bool {
        running.ends_at <= now || self.owners.get(&running.owner).is_some_and(|owner| owner.dead)
    }
}
