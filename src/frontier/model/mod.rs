//! The model: the steps over plain maps, every index a scan. It is what other backends are compared with.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::mem::take;

use super::mutex_key::MutexKey;
use super::shelf::Shelf;
use super::state::{
    DeadState, MutexState, OwnerState, PageState, Place, Recrawl, RobotsBrief, RobotsState, SiteState, Task,
    UnitState, WorkScope,
};
use super::steps;
use super::table::{Reply, Step};
use super::view::{Freshness, Inspection, LetterPlace};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::task::{DeadLetter, PageKey, Stage};

type Key = (String, Stage, CanonicalUrl);

/// A frontier in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    sites: BTreeMap<String, SiteState>,
    texts: BTreeMap<String, String>,
    units: BTreeMap<String, (UnitState, i64)>,
    tasks: BTreeMap<Key, Task>,
    known: BTreeSet<(String, i64, CanonicalUrl)>,
    dead: BTreeMap<Key, DeadState>,
    pages: BTreeMap<(String, CanonicalUrl), PageState>,
    robots: BTreeMap<String, RobotsState>,
    hosts: BTreeMap<String, Vec<String>>,
    mutexes: BTreeMap<MutexKey, MutexState>,
    owners: BTreeMap<String, OwnerState>,
}

impl Model {
    /// Does one step at `now`.
    pub(crate) fn apply(&mut self, step: Step, now: Timestamp) -> Reply {
        match steps::apply(self, step, now.as_millis()) {
            Ok(reply) => reply,
            Err(never) => match never {},
        }
    }

    /// Units with a ready site, and their scores: worked out from the tasks themselves.
    fn ready_units(&self, stage: Stage, scope: &WorkScope) -> BTreeMap<String, i64> {
        let ready =
            self.sites.values().filter(|site| scope.includes(&site.name) && self.is_ready(site, stage));
        ready
            .filter_map(|site| self.units.get(&site.unit))
            .map(|(unit, due)| {
                let score = if stage == Stage::Download { *due } else { unit.parsed_at };
                (unit.name.clone(), score)
            })
            .collect()
    }

    fn is_ready(&self, site: &SiteState, stage: Stage) -> bool {
        let waits = self
            .tasks
            .values()
            .any(|task| task.site == site.name && task.stage == stage && task.place == Place::Waiting);
        let in_flight = self.running().filter(|(task, running)| task.site == site.name && running.in_flight);
        let gated = site.tuned.paused.is_some()
            || site.errand.is_some()
            || in_flight.count() >= site.parallel() as usize;
        waits && (stage == Stage::Parse || !gated)
    }

    fn running(&self) -> impl Iterator<Item = (&Task, &super::state::Running)> {
        self.tasks.values().filter_map(|task| task.running().map(|running| (task, running)))
    }

    fn by_position<'a>(tasks: impl Iterator<Item = &'a Task>) -> Vec<Task> {
        let mut tasks: Vec<Task> = tasks.cloned().collect();
        tasks.sort_by_key(|task| task.position);
        tasks
    }

    /// The first tasks by time, then position, site and stage.
    fn by_time<'a>(tasks: impl Iterator<Item = (i64, &'a Task)>, most: u32) -> Vec<Task> {
        let mut tasks: Vec<(i64, &Task)> = tasks.collect();
        tasks.sort_by_key(|(at, task)| (*at, task.position, &task.site, task.stage));
        tasks.into_iter().take(most as usize).map(|(_, task)| task.clone()).collect()
    }

    fn is_over(&self, running: &super::state::Running, now: i64) -> bool {
        running.ends_at <= now || self.owners.get(&running.owner).is_some_and(|owner| owner.dead)
    }
}

fn key(page: PageKey<'_>, stage: Stage) -> Key {
    (page.site.to_owned(), stage, page.url.clone())
}

fn owned(page: PageKey<'_>) -> (String, CanonicalUrl) {
    (page.site.to_owned(), page.url.clone())
}

type Answer<T> = Result<T, Infallible>;

impl Shelf for Model {
    type Error = Infallible;

    fn site(&mut self, name: &str) -> Answer<Option<SiteState>> {
        Ok(self.sites.get(name).cloned())
    }

    fn save_site(&mut self, site: &SiteState) -> Answer<()> {
        self.sites.insert(site.name.clone(), site.clone());
        Ok(())
    }

    fn remove_site(&mut self, name: &str) -> Answer<()> {
        self.sites.remove(name);
        self.texts.remove(name);
        Ok(())
    }

    fn rename_site(&mut self, name: &str, to: &str) -> Answer<()> {
        let renamed = |site: &str| if site == name { to.to_owned() } else { site.to_owned() };
        self.sites.remove(name);
        self.texts = take(&mut self.texts).into_iter().map(|(site, text)| (renamed(&site), text)).collect();
        let tasks = take(&mut self.tasks).into_values();
        let tasks = tasks.map(|task| Task { site: renamed(&task.site), ..task });
        self.tasks = tasks.map(|task| (key(task.page(), task.stage), task)).collect();
        let known = take(&mut self.known).into_iter();
        self.known = known.map(|(site, run, url)| (renamed(&site), run, url)).collect();
        let dead = take(&mut self.dead).into_iter();
        self.dead = dead.map(|((site, stage, url), letter)| ((renamed(&site), stage, url), letter)).collect();
        let pages = take(&mut self.pages).into_iter();
        self.pages = pages.map(|((site, url), page)| ((renamed(&site), url), page)).collect();
        self.hosts.values_mut().flatten().filter(|site| *site == name).for_each(|site| to.clone_into(site));
        Ok(())
    }

    fn site_names(&mut self) -> Answer<Vec<String>> {
        Ok(self.sites.keys().cloned().collect())
    }

    fn site_text(&mut self, name: &str) -> Answer<Option<String>> {
        Ok(self.texts.get(name).cloned())
    }

    fn save_site_text(&mut self, name: &str, text: &str) -> Answer<()> {
        self.texts.insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    fn unit(&mut self, name: &str) -> Answer<Option<UnitState>> {
        Ok(self.units.get(name).map(|(unit, _)| unit.clone()))
    }

    fn save_unit(&mut self, unit: &UnitState, due: i64) -> Answer<()> {
        self.units.insert(unit.name.clone(), (unit.clone(), due));
        Ok(())
    }

    fn due_count(&mut self, stage: Stage, now: i64, scope: &WorkScope, most: u32) -> Answer<u32> {
        let due = self.ready_units(stage, scope).into_values().filter(|score| *score <= now);
        Ok(u32::try_from(due.count()).unwrap_or(most).min(most))
    }

    fn nth_due(&mut self, stage: Stage, now: i64, scope: &WorkScope, n: u32) -> Answer<Option<String>> {
        let ready = self.ready_units(stage, scope).into_iter();
        let mut due: Vec<(i64, String)> =
            ready.filter(|(_, score)| *score <= now).map(|(name, score)| (score, name)).collect();
        due.sort();
        Ok(due.into_iter().nth(n as usize).map(|(_, name)| name))
    }

    fn next_due(&mut self, stage: Stage, scope: &WorkScope) -> Answer<Option<i64>> {
        Ok(self.ready_units(stage, scope).into_values().min())
    }

    fn ready_sites(&mut self, stage: Stage, unit: &str) -> Answer<Vec<String>> {
        let ready = self.sites.values().filter(|site| site.unit == unit && self.is_ready(site, stage));
        Ok(ready.map(|site| site.name.clone()).collect())
    }

    fn task(&mut self, page: PageKey<'_>, stage: Stage) -> Answer<Option<Task>> {
        Ok(self.tasks.get(&key(page, stage)).cloned())
    }

    fn granted(&mut self, token: u64) -> Answer<Option<Task>> {
        Ok(self.running().find(|(_, running)| running.token == token).map(|(task, _)| task.clone()))
    }

    fn add_task(&mut self, task: &Task) -> Answer<()> {
        debug_assert!(!self.tasks.contains_key(&key(task.page(), task.stage)), "{task:?}");
        self.save_task(task)
    }

    fn save_task(&mut self, task: &Task) -> Answer<()> {
        self.tasks.insert(key(task.page(), task.stage), task.clone());
        Ok(())
    }

    fn remove_task(&mut self, task: &Task) -> Answer<()> {
        self.tasks.remove(&key(task.page(), task.stage));
        Ok(())
    }

    fn first_waiting(&mut self, site: &str, stage: Stage) -> Answer<Option<Task>> {
        let waiting = self
            .tasks
            .values()
            .filter(|task| task.site == site && task.stage == stage && task.place == Place::Waiting);
        Ok(waiting.min_by_key(|task| (task.priority, task.position)).cloned())
    }

    fn first_position(&mut self, site: &str, stage: Stage) -> Answer<Option<i64>> {
        let waiting = self
            .tasks
            .values()
            .filter(|task| task.site == site && task.stage == stage && task.place == Place::Waiting);
        Ok(waiting.map(|task| task.position).min())
    }

    fn overdue(&mut self, now: i64, most: u32) -> Answer<Vec<Task>> {
        let overdue = self.tasks.values().filter_map(|task| match task.place {
            Place::Delayed { until, .. } if until <= now => Some((until, task)),
            _ => None,
        });
        Ok(Self::by_time(overdue, most))
    }

    fn next_delayed(&mut self) -> Answer<Option<i64>> {
        let delayed = self.tasks.values().filter_map(|task| match task.place {
            Place::Delayed { until, .. } => Some(until),
            _ => None,
        });
        Ok(delayed.min())
    }

    fn lost_leases(&mut self, now: i64, most: u32) -> Answer<Vec<Task>> {
        let lost = self.running().filter(|(_, running)| self.is_over(running, now));
        Ok(Self::by_time(lost.map(|(task, running)| (running.ends_at, task)), most))
    }

    fn next_lease_end(&mut self) -> Answer<Option<i64>> {
        let ends = self.running().map(|(_, r)| if self.is_over(r, i64::MIN) { i64::MIN } else { r.ends_at });
        Ok(ends.min())
    }

    fn idle_tasks(&mut self, site: &str, most: u32) -> Answer<Vec<Task>> {
        let idle = self.tasks.values().filter(|task| task.site == site && task.running().is_none());
        let mut tasks = Self::by_position(idle);
        tasks.sort_by_key(|task| (task.stage, task.url.fingerprint()));
        tasks.truncate(most as usize);
        Ok(tasks)
    }

    fn running_tasks(&mut self, site: &str) -> Answer<Vec<Task>> {
        let mut running = Self::by_position(self.tasks.values().filter(|task| task.site == site));
        running.retain(|task| task.running().is_some());
        running.sort_by_key(|task| task.running().map(|running| running.ends_at));
        Ok(running)
    }

    fn is_known(&mut self, page: PageKey<'_>, run: i64) -> Answer<bool> {
        Ok(self.known.contains(&(page.site.to_owned(), run, page.url.clone())))
    }

    fn add_known(&mut self, page: PageKey<'_>, run: i64) -> Answer<()> {
        self.known.insert((page.site.to_owned(), run, page.url.clone()));
        Ok(())
    }

    fn sweep_known(&mut self, site: &str, run: i64, most: u32) -> Answer<bool> {
        let old = self.known.iter().filter(|(s, r, _)| s == site && *r < run);
        let old: Vec<_> = old.take(most as usize).cloned().collect();
        for entry in &old {
            self.known.remove(entry);
        }
        Ok(old.len() == most as usize)
    }

    fn dead(&mut self, page: PageKey<'_>, stage: Stage) -> Answer<Option<DeadState>> {
        Ok(self.dead.get(&key(page, stage)).cloned())
    }

    fn save_dead(&mut self, page: PageKey<'_>, stage: Stage, dead: &DeadState) -> Answer<()> {
        self.dead.insert(key(page, stage), dead.clone());
        Ok(())
    }

    fn remove_dead(&mut self, page: PageKey<'_>, stage: Stage) -> Answer<()> {
        self.dead.remove(&key(page, stage));
        Ok(())
    }

    fn dead_letters(
        &mut self,
        site: &str,
        after: Option<&LetterPlace>,
        most: u32,
    ) -> Answer<Vec<DeadLetter>> {
        let mut letters: Vec<DeadLetter> = self
            .dead
            .iter()
            .filter(|((s, _, _), _)| s == site)
            .map(|((site, stage, url), dead)| dead.letter(PageKey { site, url }, *stage))
            .filter(|letter| after.is_none_or(|after| LetterPlace::of(letter) > *after))
            .collect();
        letters.sort_by(|a, b| (a.died_at, a.stage, &a.url).cmp(&(b.died_at, b.stage, &b.url)));
        letters.truncate(most as usize);
        Ok(letters)
    }

    fn page(&mut self, page: PageKey<'_>) -> Answer<Option<PageState>> {
        Ok(self.pages.get(&owned(page)).cloned())
    }

    fn remove_pages(&mut self, site: &str, most: u32) -> Answer<bool> {
        let found: Vec<_> =
            self.pages.keys().filter(|(s, _)| s == site).take(most as usize).cloned().collect();
        for key in &found {
            self.pages.remove(key);
        }
        Ok(found.len() == most as usize)
    }

    fn save_page(&mut self, page: PageKey<'_>, before: Option<&PageState>, now: &PageState) -> Answer<()> {
        debug_assert_eq!(self.pages.get(&owned(page)), before);
        self.pages.insert(owned(page), now.clone());
        Ok(())
    }

    fn freshness(&mut self, site: &str, now: i64) -> Answer<Freshness> {
        let pages = self.pages.iter().filter(|((owner, _), _)| owner == site);
        let pages: Vec<(&PageState, i64)> =
            pages.filter_map(|(_, page)| Some((page, page.fresh_until()?))).collect();
        let fresh = pages.iter().filter(|(_, end)| *end > now).count();
        let oldest = pages.iter().map(|(page, _)| page.stored.fetched_at).min();
        Ok(Freshness { fresh: fresh as u64, all: pages.len() as u64, oldest })
    }

    fn first_recrawl(&mut self) -> Answer<Option<Recrawl>> {
        let has_room = |site: &str| self.sites.get(site).is_some_and(SiteState::has_room);
        let pages = self.pages.iter().filter(|((site, _), _)| has_room(site));
        let first = pages.filter_map(|((site, url), page)| Some((page.recrawl_at?, site, url))).min();
        Ok(first.map(|(at, site, url)| Recrawl { at, site: site.clone(), url: url.clone() }))
    }

    fn robots(&mut self, origin: &str) -> Answer<Option<RobotsState>> {
        Ok(self.robots.get(origin).cloned())
    }

    fn robots_brief(&mut self, origin: &str) -> Answer<Option<RobotsBrief>> {
        Ok(self.robots.get(origin).map(RobotsState::brief))
    }

    fn remove_robots(&mut self, origin: &str) -> Answer<()> {
        self.robots.remove(origin);
        Ok(())
    }

    fn save_robots(&mut self, origin: &str, robots: &RobotsState) -> Answer<()> {
        self.robots.insert(origin.to_owned(), robots.clone());
        Ok(())
    }

    fn sites_of(&mut self, host: &str) -> Answer<Vec<String>> {
        Ok(self.hosts.get(host).cloned().unwrap_or_default())
    }

    fn save_host(&mut self, host: &str, site: &str) -> Answer<()> {
        let sites = self.hosts.entry(host.to_owned()).or_default();
        if !sites.iter().any(|other| other == site) {
            sites.push(site.to_owned());
        }
        Ok(())
    }

    fn remove_host(&mut self, host: &str, site: &str) -> Answer<()> {
        if let Some(sites) = self.hosts.get_mut(host) {
            sites.retain(|other| other != site);
        }
        Ok(())
    }

    fn hosts_of(&mut self, site: &str) -> Answer<Vec<String>> {
        let named = self.hosts.iter().filter(|(_, sites)| sites.iter().any(|name| name == site));
        Ok(named.map(|(host, _)| host.clone()).collect())
    }

    fn mutex(&mut self, key: &MutexKey) -> Answer<Option<MutexState>> {
        Ok(self.mutexes.get(key).cloned())
    }

    fn save_mutex(&mut self, key: &MutexKey, mutex: &MutexState) -> Answer<()> {
        self.mutexes.insert(key.clone(), mutex.clone());
        Ok(())
    }

    fn remove_mutex(&mut self, key: &MutexKey) -> Answer<()> {
        self.mutexes.remove(key);
        Ok(())
    }

    fn owner(&mut self, name: &str) -> Answer<Option<OwnerState>> {
        Ok(self.owners.get(name).cloned())
    }

    fn save_owner(&mut self, name: &str, owner: &OwnerState) -> Answer<()> {
        self.owners.insert(name.to_owned(), owner.clone());
        Ok(())
    }

    fn owners(&mut self) -> Answer<Vec<(String, OwnerState)>> {
        Ok(self.owners.iter().map(|(name, owner)| (name.clone(), owner.clone())).collect())
    }

    fn sweep_owners(&mut self) -> Answer<()> {
        let holders: BTreeSet<String> = self.running().map(|(_, r)| r.owner.clone()).collect();
        self.owners.retain(|name, owner| !owner.dead || holders.contains(name));
        Ok(())
    }

    fn inspect(&mut self) -> Answer<Inspection> {
        let mut due = Vec::new();
        for stage in Stage::ALL {
            due.extend(
                self.ready_units(stage, &WorkScope::All)
                    .into_iter()
                    .map(|(unit, score)| (stage, unit, score)),
            );
        }
        Ok(Inspection {
            tasks: self
                .tasks
                .values()
                .map(|t| (t.site.clone(), t.stage, t.url.to_string(), t.place.name().to_owned()))
                .collect(),
            due,
            dead: self.dead.keys().map(|(s, stage, url)| (s.clone(), *stage, url.to_string())).collect(),
            known: self.known.len() as u64,
        })
    }
}
