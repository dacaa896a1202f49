//! What is asked for, booked: puts by the table of section 4, registrations, runs, burials.

use std::collections::BTreeSet;

use paced::internals::clock::Timestamp;
use paced::internals::frontier::{Beaten, Forgotten, Registered, Registration, SiteSettings};
use paced::internals::task::{HighWater, LaneWish, NOW, Origin, Priority, Put, PutReply, SessionWish, Stage};

use super::laned::goes_now;
use super::ledger::{Deferral, Held, Key, Ledger, NEVER, Place, Task, differs};
use crate::world::START;

/// In ms since the history began.
fn time(time: Option<Timestamp>) -> Option<i64> {
    time.map(|time| time.as_millis() - START)
}

impl Ledger {
    /// A put by somebody who can put it again: it is refused where too much waits, but the target of a redirect, a probe, and what
    /// was taken in before (M10).
    pub fn put_by_somebody(&mut self, site_name: &str, put: &Put) -> PutReply {
        let may_be_refused =
            put.hops == 0 && put.priority != Priority::ROBOTS && self.sites.contains_key(site_name);
        let is_link = put.origin == Origin::Link;
        let mark = if may_be_refused { self.mark_met(site_name, is_link) } else { None };
        self.put_where(site_name, Stage::Download, put, mark)
    }

    /// A put by the table of section 4.
    pub fn put(&mut self, site_name: &str, stage: Stage, put: &Put) -> PutReply {
        self.put_where(site_name, stage, put, None)
    }

    fn put_where(&mut self, site_name: &str, stage: Stage, put: &Put, mark: Option<HighWater>) -> PutReply {
        let key = (site_name.to_owned(), stage, put.url.to_string());
        let link = put.origin == Origin::Link;
        let (expires, now) = (time(put.expires), self.now);
        let at = time(put.at).filter(|at| *at > now);
        let mut wish = put.session.clone();
        if self.tasks.contains_key(&key) && !self.has_room(&key, put) {
            return PutReply::Refused(HighWater::Batches);
        }
        if self.is_busy(&key, put) {
            if put.hops == 0 {
                return PutReply::Busy;
            }
            wish = wish.filter(|_| !self.tasks.contains_key(&key));
        } else if let Some(wish) = wish.as_ref().filter(|_| self.tasks.contains_key(&key)) {
            self.tell_session(site_name, wish);
        }
        if self.tasks.contains_key(&key) {
            return self.put_on(&key, put, wish);
        }
        let (holds, has_room) = (self.held_by(&key).is_some(), self.has_room(&key, put));
        let Some(site) = self.sites.get_mut(site_name) else { return PutReply::Known };
        let letter = self.dead.get(&key).cloned();
        let seen = match &letter {
            Some((run, _)) => *run == site.run || holds,
            None => stage == Stage::Download && site.known.contains(&key.2),
        };
        let page = self.pages.get(&(site_name.to_owned(), key.2.clone()));
        let fetched = page.map(|page| page.fetched_at).zip(time(put.unless_newer));
        let is_new_enough = letter.is_none() && fetched.is_some_and(|(fetched, since)| fetched >= since);
        if link && seen || stage == Stage::Download && is_new_enough {
            self.know_in_batches(site_name, put);
            return PutReply::Known;
        }
        let names: Vec<&str> = [Some(""), put.rule.as_deref()].into_iter().flatten().collect();
        let full = |name: &&str| {
            let most = if name.is_empty() { site.max_pages() } else { site.budgets.get(*name).copied() };
            most.is_some_and(|most| site.spent.get(*name).is_some_and(|n| *n >= most))
        };
        if link && names.iter().any(full) {
            return PutReply::OverBudget;
        }
        if let Some(mark) = mark.filter(|_| letter.is_none()) {
            return PutReply::Refused(mark);
        }
        if !has_room {
            return PutReply::Refused(HighWater::Batches);
        }
        if stage == Stage::Download {
            for name in names {
                *site.spent.entry(name.to_owned()).or_default() += 1;
            }
        }
        let turn = self.next_turn(site_name);
        let place = at.map_or(Place::Waiting, Place::Scheduled);
        let mut task = Task::new(place, put.priority.value(), turn);
        let held = self.held_by(&key).filter(|_| letter.is_some());
        (task.session, task.begun) = (held.clone(), held.is_some());
        task.after = at.filter(|_| held.is_some() || wish.is_some());
        (task.expires, task.hops) = (expires, put.hops);
        task.batches = self.revive_batches(&key);
        let how = if letter.is_some() { "revived" } else { "created" };
        self.join_batches(site_name, &mut task.batches, put, how);
        let before = letter.and_then(|(_, tenant)| tenant);
        let whose = LaneWish { tenant: put.wish.tenant.clone().or(before), ..put.wish.clone() };
        (task.lane, task.tenant) = self.gate(site_name, stage, &whose, at.is_some());
        let Some(site) = self.sites.get_mut(site_name) else { return PutReply::Known };
        let books = site.books.entry(stage).or_default();
        self.tasks.insert(key.clone(), task);
        let is_revived = self.dead.remove(&key).is_some();
        *(if is_revived { &mut books.revived } else { &mut books.created }) += 1;
        match (held, wish) {
            (Some(held), _) => self.release(site_name, &held, true),
            (None, Some(wish)) => self.join(&key, &wish),
            (None, None) => {}
        }
        if is_revived { PutReply::Revived } else { PutReply::Created }
    }

    /// A put of a page that is in hand: what runs is done once more, what waits stands for it.
    fn put_on(&mut self, key: &Key, put: &Put, wish: Option<SessionWish>) -> PutReply {
        let (link, now) = (put.origin == Origin::Link, self.now);
        let (expires, at) = (time(put.expires), time(put.at).filter(|at| *at > now));
        let later = |one: Option<i64>, two: Option<i64>| one.and_then(|one| two.map(|two| one.max(two)));
        let Some(task) = self.tasks.get_mut(key) else { return PutReply::Known };
        if !task.is_idle() {
            let granted = self.leases.values().filter(|lease| lease.key == *key).map(|lease| lease.granted);
            let is_new_enough = time(put.unless_newer).zip(granted.max());
            if link || is_new_enough.is_some_and(|(since, granted)| granted >= since) {
                self.know_in_batches(&key.0, put);
                return PutReply::Known;
            }
            let priority = put.priority.value();
            let step = wish.map(|_| self.next_turn(&key.0));
            let met = self.tasks.get(key).and_then(|task| task.deferral.as_ref());
            let how = if met.is_some() { "coalesced" } else { "deferred" };
            let mut batches = met.map(|met| met.batches.clone()).unwrap_or_default();
            self.join_batches(&key.0, &mut batches, put, how);
            let Some(task) = self.tasks.get_mut(key) else { return PutReply::Known };
            let Some(deferral) = &mut task.deferral else {
                let wish = put.wish.clone();
                task.deferral = Some(Deferral { priority, expires, hops: put.hops, at, wish, step, batches });
                return PutReply::Deferred;
            };
            deferral.priority = match (deferral.step, step) {
                (Some(_), None) => deferral.priority,
                (None, Some(_)) => priority,
                _ => deferral.priority.min(priority),
            };
            deferral.batches = batches;
            deferral.step = deferral.step.or(step);
            deferral.expires = later(deferral.expires, expires);
            deferral.hops = put.hops;
            deferral.wish = deferral.wish.clone().joined_by(put.wish.clone());
            deferral.at = deferral.at.and_then(|one| at.map(|two| one.min(two)));
            return PutReply::Coalesced;
        }
        let mut batches = task.batches.clone();
        self.join_batches(&key.0, &mut batches, put, "coalesced");
        let Some(task) = self.tasks.get_mut(key) else { return PutReply::Known };
        task.batches = batches;
        let is_foreign = task.session.is_some() && wish.is_none();
        if !is_foreign {
            task.priority = task.priority.min(put.priority.value());
        }
        if !link {
            task.expires = later(task.expires, expires);
            task.hops = put.hops;
        }
        if goes_now(&put.wish, task.place != Place::Waiting) {
            task.lane = Some(NOW.to_owned());
        }
        let until = match task.place {
            Place::Scheduled(until) | Place::Delayed(until) if until > now => Some(until),
            _ => None,
        };
        let is_pulled =
            put.again && !is_foreign && (until.is_none() || matches!(task.place, Place::Scheduled(_)));
        task.after = task.after.filter(|_| !is_pulled);
        match (&task.session, wish) {
            (None, Some(wish)) => {
                task.after = until.filter(|_| !is_pulled);
                self.join(key, &wish);
            }
            (session, _) => {
                let session = session.clone();
                if is_pulled && until.is_some() {
                    task.place = Place::Waiting;
                }
                if let Some(name) = session {
                    self.put_in_order(&key.0, &name);
                }
            }
        }
        PutReply::Coalesced
    }

    pub fn register(&mut self, new: &Registration, answer: &Registered) -> Result<(), String> {
        let unit = new.group.as_ref().map_or(&new.name, |(group, _)| group).clone();
        let before = self.sites.get(&new.name).map(|site| site.unit.clone());
        let is_running = |lease: &Held| lease.key.0 == new.name && lease.key.1 == Stage::Download;
        let moves = before.as_ref().is_some_and(|before| *before != unit);
        if self.has_foreign_host(new) || (moves && self.leases.values().any(is_running)) {
            let refused = matches!(answer, Registered::Refused(_));
            return if refused { Ok(()) } else { differs("register", "Refused", answer) };
        }
        let Registered::Version(version) = *answer else {
            return differs("register", "Version", answer);
        };
        if let Some(before) = before.filter(|_| moves) {
            let wait = self.wait_of(&before);
            let old = self.unit(&before);
            let paced = old.starts.iter().map(|start| start.at + wait).max().unwrap_or(0);
            let (not_before, blocked) = (old.not_before.max(paced).max(old.outsider), old.blocked);
            let (wall, slow) = (old.wall.clone(), old.slow);
            let to = self.unit(&unit);
            to.not_before = to.not_before.max(not_before);
            to.blocked = to.blocked.max(blocked);
            to.wall = to.wall.take().or(wall);
            to.slow = to.slow.or(slow);
            if before == new.name {
                let own = self.unit(&before);
                (own.wall, own.slow) = (None, None);
            }
        }
        self.unit(&unit).group = new.group.as_ref().map(|(_, interval)| *interval);
        let site = self.sites.entry(new.name.clone()).or_default();
        site.unit = unit;
        if site.run == 0 {
            site.order = self.fleet.rules.order;
        }
        let dropped: Vec<String> =
            site.hosts.iter().filter(|host| !new.hosts.contains(host)).cloned().collect();
        site.hosts.clone_from(&new.hosts);
        site.file = (new.settings.interval, new.settings.parallel);
        let SiteSettings { interval, parallel, min_interval, max_parallel, .. } = new.settings;
        let usual = (4 * parallel).clamp(parallel, 256.max(parallel));
        site.bounds = (
            if min_interval > 0 { min_interval } else { interval },
            if max_parallel > 0 { max_parallel } else { usual },
        );
        site.attempts = new.settings.attempts;
        site.robots = new.settings.robots;
        site.budgets.clone_from(&new.settings.budgets);
        let rules = (new.text.clone(), new.settings.clone());
        let are_new = site.rules.replace(rules.clone()) != Some(rules);
        let before = self.versions.insert(new.name.clone(), version);
        if before.is_some_and(|before| version < before || are_new && version == before) {
            return differs("version", format!("more than {before:?}"), version);
        }
        let is_of =
            |origin: &str, hosts: &[String]| hosts.iter().any(|host| origin.ends_with(&format!("://{host}")));
        self.robots.retain(|origin, _| !is_of(origin, &dropped));
        site.floors.retain(|origin, _| is_of(origin, &new.hosts));
        if are_new {
            let now = self.now;
            for (_, task) in self.tasks.iter_mut().filter(|(key, _)| key.0 == new.name) {
                if matches!(task.place, Place::Parked(_)) {
                    task.place = Place::Parked(now);
                }
            }
            self.robots
                .retain(|origin, _| !new.hosts.iter().any(|host| origin.ends_with(&format!("://{host}"))));
        }
        Ok(())
    }

    /// A host belongs to one site, unless all that have it are of one group.
    fn has_foreign_host(&self, new: &Registration) -> bool {
        let group = new.group.as_ref().map(|(group, _)| group);
        let others = self.sites.iter().filter(|(name, site)| **name != new.name && Some(&site.unit) != group);
        others.into_iter().any(|(_, site)| site.hosts.iter().any(|host| new.hosts.contains(host)))
    }

    pub fn begin_run(&mut self, name: &str, fresh: bool, seeds: &[Put]) -> bool {
        let unfinished = |(key, task): (&Key, &Task)| {
            key.0 == name && !matches!(task.place, Place::Scheduled(_) | Place::Behind)
        };
        if self.sites[name].run > 0 && !fresh && self.tasks.iter().any(unfinished) {
            return false;
        }
        if fresh {
            self.give_up(name);
        }
        let Some(site) = self.sites.get_mut(name) else { return false };
        site.run += 1;
        site.order = self.fleet.rules.order;
        site.known.clear();
        site.spent.clear();
        for seed in seeds {
            let key = (name.to_owned(), Stage::Download, seed.url.to_string());
            // What runs is adopted by the new run, which fetches it with that; what holds a session is an operator's to revive.
            let holds = !self.tasks.contains_key(&key) && self.held_by(&key).is_some();
            if !holds && self.tasks.get(&key).is_none_or(Task::is_idle) {
                self.put(name, Stage::Download, seed);
            }
        }
        true
    }

    fn give_up(&mut self, name: &str) {
        let idle = self.tasks.iter().filter(|(key, task)| key.0 == name && task.is_idle());
        for key in idle.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            if let Some(name) = self.drop_task(&key) {
                self.step_given_up(&key, &name);
            }
        }
        self.release_all(name);
        let letters: Vec<Key> = self.dead.keys().filter(|key| key.0 == name).cloned().collect();
        for key in &letters {
            self.drop_dead_batches(key);
        }
        self.dead.retain(|key, _| key.0 != name);
        let running = self.tasks.iter_mut().filter(|(key, _)| key.0 == name);
        let met: Vec<_> = running.filter_map(|(_, task)| task.deferral.take()).collect();
        for met in met {
            self.count_all(name, &met.batches, "dropped");
        }
    }

    /// How many tasks of a site are in workers' hands.
    pub fn leased(&self, name: &str) -> u64 {
        self.leases.values().filter(|lease| lease.key.0 == name).count() as u64
    }

    /// How long its last start, its block and its unit's ask for.
    fn left_to_wait(&self, name: &str) -> i64 {
        let site = &self.sites[name];
        let paced = site.starts.iter().map(|start| start.at + site.interval()).max().unwrap_or(0);
        let paused = site.paused.filter(|until| *until < NEVER).unwrap_or(0);
        paced.max(self.units[&site.unit].blocked).max(site.blocked).max(paused) - self.now
    }

    /// All of a site goes but what its unit knows of starts. One that was granted under a longer interval may be later on the wire.
    pub fn forget(&mut self, name: &str, answer: Forgotten) -> Result<(), String> {
        self.give_up(name);
        let leased = self.leased(name);
        let (wait, now) = (self.left_to_wait(name), self.now);
        let probe = self.walls(name).into_iter().map(|wall| wall.latest(now)).max().unwrap_or(0);
        let expected = match leased {
            0 if matches!(answer, Forgotten::NotYet { wait: told } if (wait..=wait + 250).contains(&told)) => {
                answer.clone()
            }
            0 if matches!(answer, Forgotten::NotYet { wait } if wait > 0 && wait <= probe - self.now) => {
                answer.clone()
            }
            0 if wait > 0 => Forgotten::NotYet { wait },
            0 => Forgotten::Wholly,
            leased => Forgotten::Busy { tasks: leased, leased },
        };
        if expected != answer {
            return differs("forget", expected, answer);
        }
        if expected == Forgotten::Wholly {
            let hosts = self.sites.remove(name).map(|site| site.hosts).unwrap_or_default();
            self.robots.retain(|origin, _| !hosts.iter().any(|host| origin.ends_with(&format!("://{host}"))));
            self.pages.retain(|(site, _), _| site != name);
            self.sessions.retain(|(site, _), _| site != name);
            self.batches.retain(|(site, _), _| site != name);
            self.campaigns.retain(|(site, _), _| site != name);
            self.forget_periods();
        }
        Ok(())
    }

    pub fn bury(&mut self, owner: &str) {
        let Some(known) = self.owners.get_mut(owner) else { return };
        known.dead = true;
        known.settled = None;
        self.forget_the_dead();
    }

    /// A process that lives is told whether it is drained.
    pub fn beat(&self, owner: &str, answer: Beaten) -> Result<(), String> {
        let drained = self.owners.get(owner).is_some_and(|owner| !owner.dead && owner.drained);
        let expected = Beaten { sharers: 0, drained };
        if answer == expected { Ok(()) } else { differs("a beat", expected, answer) }
    }

    pub fn drain(&mut self, owner: &str, answer: bool) -> Result<(), String> {
        let known = self.owners.get_mut(owner).filter(|owner| !owner.dead);
        let lives = known.map(|owner| owner.drained = true).is_some();
        if answer == lives { Ok(()) } else { differs("a drained process", lives, answer) }
    }

    /// Those that hold nothing any more.
    pub fn forget_the_dead(&mut self) {
        let holders: BTreeSet<&String> = self.leases.values().map(|lease| &lease.owner).collect();
        self.owners.retain(|name, owner| !owner.dead || holders.contains(name));
    }
}
