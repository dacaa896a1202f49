//! An independent book of what must be so: written from the design, not from the steps. Nothing here is read from the
//! frontier but its answers, and the places that `inspect` tells.

use std::collections::{BTreeMap, BTreeSet};

use paced::frontier::{Inspection, Lock, Rearm, Registered, Registration, Tuning, View};
use paced::task::{Origin, Outcome, Put, PutReply, RobotsAccess, RobotsRecord, Settled, Settlement, Stage};

use super::game::{Answer, Move, stage_name};
use crate::world::START;

/// Site, stage, URL.
pub type Key = (String, Stage, String);
/// The due time of each unit, as `view` tells it.
pub type Dues = BTreeMap<String, i64>;

pub const LEASE: i64 = 30_000;

#[derive(Default)]
pub struct Ledger {
    pub now: i64,
    pub sites: BTreeMap<String, Site>,
    pub units: BTreeMap<String, Unit>,
    pub tasks: BTreeMap<Key, Task>,
    /// The run in which each dead letter died.
    pub dead: BTreeMap<Key, i64>,
    pub leases: BTreeMap<u64, Held>,
    pub robots: BTreeMap<String, Robots>,
    pub owners: BTreeMap<String, Owner>,
    pub turns: u64,
}

#[derive(Default)]
pub struct Site {
    pub unit: String,
    file: (i64, u32),
    tuned: (Option<i64>, Option<u32>),
    pub paused: bool,
    pub attempts: u32,
    pub robots: bool,
    pub floors: BTreeMap<String, i64>,
    budgets: BTreeMap<String, u64>,
    spent: BTreeMap<String, u64>,
    run: i64,
    known: BTreeSet<String>,
    pub fence: i64,
    pub books: BTreeMap<Stage, Books>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    pub created: u64,
    pub revived: u64,
    pub reruns: u64,
    pub done: u64,
    pub dead: u64,
    pub dropped: u64,
}

#[derive(Default)]
pub struct Unit {
    interval: i64,
    /// Starts in the order of their grants or re-arms, those given back taken out.
    pub starts: Vec<Start>,
    pub blocked: i64,
    /// Until when the outsider holds the mutex.
    pub outsider: i64,
}

#[derive(Clone, Debug)]
pub struct Start {
    pub token: u64,
    pub at: i64,
    pub site: String,
    interval: i64,
    /// What is waited after it in a unit to which its site doesn't belong any more.
    fixed: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub place: Place,
    pub priority: u16,
    /// Its turn among equals.
    pub turn: u64,
    pub expires: Option<i64>,
    pub attempts: u32,
    pub losses: u32,
    pub hops: u32,
    pub errand: bool,
    pub deferral: Option<Deferral>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Waiting,
    Delayed(i64),
    Scheduled(i64),
    Running(u64),
}

#[derive(Clone, Debug)]
pub struct Deferral {
    priority: u16,
    expires: Option<i64>,
    hops: u32,
    at: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct Held {
    pub key: Key,
    pub owner: String,
    pub ends: i64,
    pub in_flight: bool,
}

#[derive(Clone, Debug)]
pub struct Robots {
    pub until: i64,
    pub unreachable: bool,
    pub failures: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Owner {
    pub dead: bool,
    pub claimed: Option<(u64, Vec<u64>)>,
    settled: Option<(u64, Settled)>,
}

impl Site {
    pub fn interval(&self) -> i64 {
        let floor = self.floors.values().copied().max().filter(|_| self.robots).unwrap_or(0);
        self.tuned.0.unwrap_or(self.file.0).max(floor)
    }

    pub fn parallel(&self) -> usize {
        self.tuned.1.unwrap_or(self.file.1) as usize
    }
}

impl Task {
    pub fn new(place: Place, priority: u16, turn: u64) -> Self {
        let (expires, deferral) = (None, None);
        Self { place, priority, turn, expires, attempts: 0, losses: 0, hops: 0, errand: false, deferral }
    }

    pub fn is_idle(&self) -> bool {
        !matches!(self.place, Place::Running(_))
    }

    pub fn order(&self) -> (u16, u64) {
        (self.priority, self.turn)
    }

    fn take_up(&mut self, deferral: Deferral) {
        self.priority = deferral.priority;
        self.expires = deferral.expires;
        self.hops = deferral.hops;
        self.attempts = 0;
        self.losses = 0;
    }

    /// A run that starts at `start` anyway is the run of a request that isn't for later.
    fn absorb(&mut self, start: i64) {
        if let Some(deferral) = self.deferral.take_if(|deferral| deferral.at.is_none_or(|at| at <= start)) {
            self.take_up(deferral);
            // A robots.txt stays the first of its site.
            self.priority = if self.errand { 0 } else { self.priority };
        }
    }
}

/// What the ledger says against an answer.
pub fn differs<T>(
    what: &str,
    expected: impl std::fmt::Debug,
    got: impl std::fmt::Debug,
) -> Result<T, String> {
    Err(format!("{what}: expected {expected:?}, got {got:?}"))
}

impl Ledger {
    /// Books a move and its answer, or says which invariant it breaks.
    pub fn book(
        &mut self,
        what: &Move,
        answer: &Answer,
        inside: &Inspection,
        dues: &Dues,
    ) -> Result<(), String> {
        match (what, answer) {
            (Move::Put(site, put), Answer::Put(reply)) => {
                let expected = self.put(site, Stage::Download, put);
                if expected == *reply { Ok(()) } else { differs("put", expected, reply) }
            }
            (Move::Claim(claim), Answer::Grant(grant)) => self.claim(claim, grant, inside, dues),
            (Move::Settle(owner, token, settlement), Answer::Settled(reply)) => {
                let expected = self.settle(owner, *token, settlement);
                if expected == *reply { Ok(()) } else { differs("settle", expected, reply) }
            }
            (Move::Rearm(token), Answer::Rearm(answer)) => self.rearm(*token, answer),
            (Move::Landed(token), Answer::Is(is)) => {
                let holds = self.holds(*token);
                if let Some(lease) = self.leases.get_mut(token).filter(|_| holds) {
                    lease.in_flight = false;
                }
                if holds == *is { Ok(()) } else { differs("landed", holds, is) }
            }
            (Move::Back(token), Answer::Is(is)) => {
                let holds = self.holds(*token);
                if holds {
                    self.go_back(*token, Place::Delayed(self.now + 1_000));
                }
                if holds == *is { Ok(()) } else { differs("back", holds, is) }
            }
            (Move::Extend(tokens), Answer::Is(is)) => {
                let holds = self.holds(tokens[0]);
                let ends = self.now + LEASE;
                if let Some(lease) = self.leases.get_mut(&tokens[0]).filter(|_| holds) {
                    lease.ends = lease.ends.max(ends);
                }
                if holds == *is { Ok(()) } else { differs("extend", holds, is) }
            }
            (Move::Tune(site, tuning), Answer::Is(true)) => {
                let site = self.sites.get_mut(site).ok_or("no such site")?;
                match tuning {
                    Tuning::Interval(value) => site.tuned.0 = *value,
                    Tuning::Parallel(value) => site.tuned.1 = *value,
                    Tuning::Paused(why) => site.paused = why.is_some(),
                }
                Ok(())
            }
            (Move::GroupInterval(interval), Answer::Nothing) => {
                if let Some(unit) = self.units.get_mut("g") {
                    unit.interval = *interval;
                }
                Ok(())
            }
            (Move::Register(new), Answer::Registered(answer)) => self.register(new, answer),
            (Move::BeginRun(site, fresh, seeds), Answer::Run(run)) => {
                let begun = self.begin_run(site, *fresh, seeds);
                let expected = (self.sites[site].run, begun);
                if expected == (run.number, run.begun) { Ok(()) } else { differs("run", expected, run) }
            }
            (Move::Bury(owner), Answer::Nothing) => {
                self.bury(owner);
                Ok(())
            }
            (Move::Lock(mutex, expire), Answer::Lock(lock)) => self.lock(mutex, *expire, *lock),
            (Move::ExtendLock(mutex, expire), Answer::Is(is)) => {
                let now = self.now;
                let unit = self.unit_of(mutex);
                let holds = unit.outsider > now;
                if holds {
                    unit.outsider = now + expire;
                }
                if holds == *is { Ok(()) } else { differs("extend lock", holds, is) }
            }
            (Move::Unlock(mutex), Answer::Is(is)) => {
                let now = self.now;
                let unit = self.unit_of(mutex);
                let holds = unit.outsider > now;
                unit.outsider = if holds { 0 } else { unit.outsider };
                if holds == *is { Ok(()) } else { differs("unlock", holds, is) }
            }
            other => Err(format!("an answer of another kind: {other:?}")),
        }
    }

    /// A put by the table of section 4.
    fn put(&mut self, site_name: &str, stage: Stage, put: &Put) -> PutReply {
        let key = (site_name.to_owned(), stage, put.url.to_string());
        let link = put.origin == Origin::Link;
        let time = |time: Option<paced::clock::Timestamp>| time.map(|time| time.as_millis() - START);
        let (expires, now) = (time(put.expires), self.now);
        let at = time(put.at).filter(|at| *at > now);
        let later = |one: Option<i64>, two: Option<i64>| one.and_then(|one| two.map(|two| one.max(two)));
        if let Some(task) = self.tasks.get_mut(&key) {
            if !task.is_idle() {
                if link {
                    return PutReply::Known;
                }
                let priority = put.priority.value();
                let Some(deferral) = &mut task.deferral else {
                    task.deferral = Some(Deferral { priority, expires, hops: put.hops, at });
                    return PutReply::Deferred;
                };
                deferral.priority = deferral.priority.min(priority);
                deferral.expires = later(deferral.expires, expires);
                deferral.hops = put.hops;
                deferral.at = deferral.at.and_then(|one| at.map(|two| one.min(two)));
                return PutReply::Coalesced;
            }
            task.priority = task.priority.min(put.priority.value());
            if !link {
                task.expires = later(task.expires, expires);
                task.hops = put.hops;
            }
            if put.again && matches!(task.place, Place::Scheduled(until) if until > now) {
                task.place = Place::Waiting;
            }
            return PutReply::Coalesced;
        }
        let Some(site) = self.sites.get_mut(site_name) else { return PutReply::Known };
        let letter = self.dead.get(&key).copied();
        let seen = match letter {
            Some(run) => run == site.run,
            None => stage == Stage::Download && site.known.contains(&key.2),
        };
        if link && seen {
            return PutReply::Known;
        }
        let names: Vec<&str> = [Some(""), put.rule.as_deref()].into_iter().flatten().collect();
        let full = |name: &&str| {
            site.budgets.get(*name).is_some_and(|most| site.spent.get(*name).is_some_and(|n| n >= most))
        };
        if link && names.iter().any(full) {
            return PutReply::OverBudget;
        }
        if stage == Stage::Download {
            for name in names {
                *site.spent.entry(name.to_owned()).or_default() += 1;
            }
        }
        self.turns += 1;
        let place = at.map_or(Place::Waiting, Place::Scheduled);
        let mut task = Task::new(place, put.priority.value(), self.turns);
        (task.expires, task.hops) = (expires, put.hops);
        let books = site.books.entry(stage).or_default();
        self.tasks.insert(key.clone(), task);
        if self.dead.remove(&key).is_some() {
            books.revived += 1;
            return PutReply::Revived;
        }
        books.created += 1;
        PutReply::Created
    }

    pub fn books(&mut self, key: &Key) -> &mut Books {
        self.sites.entry(key.0.clone()).or_default().books.entry(key.1).or_default()
    }

    /// Whether a lease still is its holder's (I5).
    pub fn holds(&self, token: u64) -> bool {
        self.leases.get(&token).is_some_and(|lease| !self.is_lost(lease))
    }

    pub fn is_lost(&self, lease: &Held) -> bool {
        lease.ends <= self.now || self.owners.get(&lease.owner).is_some_and(|owner| owner.dead)
    }

    pub fn owner_of(&self, token: u64) -> Option<&str> {
        self.leases.get(&token).map(|lease| lease.owner.as_str())
    }

    fn settle(&mut self, owner: &str, token: u64, settlement: &Settlement) -> Settled {
        let known = self.owners.entry(owner.to_owned()).or_default();
        if let Some((last, answer)) = &known.settled
            && *last == token
        {
            return answer.clone();
        }
        let settled = self.settle_one(settlement);
        let known = self.owners.entry(owner.to_owned()).or_default();
        if !known.dead {
            known.settled = Some((token, settled.clone()));
        }
        settled
    }

    fn settle_one(&mut self, settlement: &Settlement) -> Settled {
        let token = settlement.lease.token;
        if !self.holds(token) {
            return Settled::Stale;
        }
        let Some(lease) = self.leases.remove(&token) else { return Settled::Stale };
        let key = lease.key;
        let attempts = self.sites[&key.0].attempts;
        let died = self.books(&key).dead;
        let Some(task) = self.tasks.get_mut(&key) else { return Settled::Stale };
        let now = self.now;
        match &settlement.outcome {
            outcome if task.errand => self.settle_errand(&key, outcome),
            Outcome::Done { stored, .. } => {
                if stored.is_some() && key.1 == Stage::Download {
                    let priority = paced::task::Priority::from_value(task.priority);
                    let put = Put { hops: task.hops, ..Put::request(settlement.lease.url.clone(), priority) };
                    self.put(&key.0, Stage::Parse, &put);
                }
                self.finish(&key);
            }
            Outcome::Excluded { .. } | Outcome::Redirected { .. } => self.finish(&key),
            Outcome::Retry { after, .. } => {
                task.attempts += 1;
                if task.attempts >= attempts {
                    self.die(&key);
                } else {
                    let until = now + i64::try_from(after.as_millis()).unwrap_or(0);
                    task.absorb(until);
                    task.place = Place::Delayed(until);
                }
            }
            Outcome::Dead { .. } => self.die(&key),
            Outcome::Robots(_) | Outcome::RobotsMoved { .. } => unreachable!("only for errands"),
        }
        let unit = self.sites[&key.0].unit.clone();
        if matches!(settlement.outcome, Outcome::Excluded { unused: true, .. }) {
            self.unit(&unit).starts.retain(|start| start.token != token);
        }
        if let Some((wait, _)) = &settlement.block {
            let until = now + i64::try_from(wait.as_millis()).unwrap_or(0);
            let unit = self.unit(&unit);
            unit.blocked = unit.blocked.max(until);
        }
        if self.books(&key).dead > died { Settled::Died } else { Settled::Kept }
    }

    fn settle_errand(&mut self, key: &Key, outcome: &Outcome) {
        let now = self.now;
        let hour = std::time::Duration::from_secs(3600);
        let unreachable = |holds_for| RobotsRecord {
            access: RobotsAccess::Unreachable(String::new()),
            holds_for,
            crawl_delay: None,
            refuses: None,
        };
        let Some(task) = self.tasks.get_mut(key) else { return };
        let record = match outcome {
            Outcome::RobotsMoved { .. } if task.hops < 5 => {
                let hops = task.hops + 1;
                task.absorb(now);
                (task.place, task.priority, task.hops) = (Place::Waiting, 0, hops);
                return;
            }
            Outcome::Robots(record) => record.clone(),
            Outcome::Retry { after, .. } => unreachable(*after),
            _ => unreachable(hour),
        };
        self.keep_robots(key, &record);
    }

    pub fn keep_robots(&mut self, key: &Key, record: &RobotsRecord) {
        let origin = origin(&key.2);
        let millis = |wait: std::time::Duration| i64::try_from(wait.as_millis()).unwrap_or(0);
        let until = self.now + millis(record.holds_for);
        let unreachable = matches!(record.access, RobotsAccess::Unreachable(_));
        let before = self.robots.get(&origin).map_or(0, |robots| robots.failures);
        let failures = if unreachable { before + 1 } else { 0 };
        self.robots.insert(origin.clone(), Robots { until, unreachable, failures });
        let Some(site) = self.sites.get_mut(&key.0) else { return };
        match record.crawl_delay {
            Some(delay) => drop(site.floors.insert(origin, millis(delay))),
            None if unreachable => {}
            None => drop(site.floors.remove(&origin)),
        }
        if record.refuses.is_some() {
            let unit = site.unit.clone();
            let unit = self.unit(&unit);
            unit.blocked = unit.blocked.max(until);
        }
        self.finish(key);
    }

    pub fn finish(&mut self, key: &Key) {
        self.books(key).done += 1;
        if key.1 == Stage::Download {
            let site = self.sites.entry(key.0.clone()).or_default();
            site.known.insert(key.2.clone());
        }
        if !self.rerun(key) {
            self.tasks.remove(key);
        }
    }

    pub fn die(&mut self, key: &Key) {
        self.books(key).dead += 1;
        if !self.rerun(key) {
            self.tasks.remove(key);
            self.dead.insert(key.clone(), self.sites[&key.0].run);
        }
    }

    fn rerun(&mut self, key: &Key) -> bool {
        let now = self.now;
        let Some(task) = self.tasks.get_mut(key) else { return false };
        let Some(deferral) = task.deferral.take() else { return false };
        let at = deferral.at.filter(|at| *at > now);
        task.take_up(deferral);
        task.errand = false;
        task.place = at.map_or(Place::Waiting, Place::Scheduled);
        self.turns += 1;
        task.turn = self.turns;
        self.books(key).reruns += 1;
        true
    }

    /// The task goes back and its start is unused.
    fn go_back(&mut self, token: u64, to: Place) {
        let Some(lease) = self.leases.remove(&token) else { return };
        let start = if let Place::Delayed(until) = to { until } else { self.now };
        if let Some(task) = self.tasks.get_mut(&lease.key) {
            task.absorb(start);
            task.place = to;
        }
        let unit = self.sites[&lease.key.0].unit.clone();
        self.unit(&unit).starts.retain(|start| start.token != token);
    }

    /// Leases that ended or whose owner is dead.
    pub fn lose_leases(&mut self) {
        let lost: Vec<u64> = self.leases.iter().filter(|(_, l)| self.is_lost(l)).map(|(t, _)| *t).collect();
        for token in lost {
            let Some(lease) = self.leases.remove(&token) else { continue };
            let now = self.now;
            let Some(task) = self.tasks.get_mut(&lease.key) else { continue };
            task.losses += 1;
            let wait = [0, 0, 10_000, 60_000, 600_000, 3_600_000, -1][task.losses as usize];
            match (task.errand, wait) {
                (true, -1) => {
                    let access = RobotsAccess::Unreachable(String::new());
                    let holds_for = std::time::Duration::from_secs(3600);
                    let record = RobotsRecord { access, holds_for, crawl_delay: None, refuses: None };
                    self.keep_robots(&lease.key, &record);
                }
                (false, -1) => self.die(&lease.key),
                (errand, wait) => {
                    let wait = if errand { 0 } else { wait };
                    task.absorb(now + wait);
                    task.place = if wait == 0 { Place::Waiting } else { Place::Delayed(now + wait) };
                }
            }
        }
    }

    fn rearm(&mut self, token: u64, answer: &Rearm) -> Result<(), String> {
        if !self.holds(token) {
            return if *answer == Rearm::Stale { Ok(()) } else { differs("re-arm", Rearm::Stale, answer) };
        }
        let (key, now) = (self.leases[&token].key.clone(), self.now);
        if key.1 == Stage::Parse {
            let none = Rearm::StartIn(0);
            return if *answer == none { Ok(()) } else { differs("re-arm", none, answer) };
        }
        let unit = self.sites[&key.0].unit.clone();
        if self.sites[&key.0].paused || self.unit(&unit).blocked > now {
            self.go_back(token, Place::Waiting);
            return if *answer == Rearm::WentBack { Ok(()) } else { differs("re-arm", "WentBack", answer) };
        }
        let left = self.unit(&unit).outsider - now;
        if left > 0 {
            let held = Rearm::Held(left);
            return if *answer == held { Ok(()) } else { differs("re-arm", held, answer) };
        }
        let Rearm::StartIn(wait) = answer else { return differs("re-arm", "StartIn", answer) };
        let at = now + wait;
        self.unit(&unit).starts.retain(|start| start.token != token);
        self.check_spacing(&unit, at)?;
        let interval = self.sites[&key.0].interval().max(self.unit(&unit).interval);
        self.unit(&unit).starts.push(Start { token, at, site: key.0, interval, fixed: None });
        if let Some(lease) = self.leases.get_mut(&token) {
            lease.ends = at + LEASE;
        }
        Ok(())
    }

    /// I1: a new start at `at` comes an interval after every start that stands, the one in force now of that start.
    pub fn check_spacing(&self, unit: &str, at: i64) -> Result<(), String> {
        let last = self.units[unit].starts.iter().max_by_key(|start| start.at);
        match last {
            Some(last) if at < last.at + self.wait_after(unit, last) => Err(format!(
                "I1: a start of {unit} at {at}, {} ms after {last:?}, where {} ms were in force",
                at - last.at,
                self.wait_after(unit, last)
            )),
            _ => Ok(()),
        }
    }

    pub fn wait_after(&self, unit: &str, start: &Start) -> i64 {
        let own = start.fixed.unwrap_or_else(|| self.sites[&start.site].interval());
        self.units[unit].interval.max(own)
    }

    pub fn start(&mut self, unit: &str, token: u64, site: &str) {
        let interval = self.sites[site].interval().max(self.unit(unit).interval);
        let start = Start { token, at: self.now, site: site.to_owned(), interval, fixed: None };
        self.unit(unit).starts.push(start);
    }

    pub fn unit(&mut self, name: &str) -> &mut Unit {
        self.units.entry(name.to_owned()).or_default()
    }

    fn unit_of(&mut self, mutex: &str) -> &mut Unit {
        self.unit(mutex.trim_start_matches("site/"))
    }

    /// An outsider that shares the pace never gets the lock within the interval after a start that stands.
    fn lock(&mut self, mutex: &str, expire: i64, answer: Lock) -> Result<(), String> {
        let now = self.now;
        let name = mutex.trim_start_matches("site/").to_owned();
        if self.unit(&name).outsider > now {
            // Its own token asks again: the answer is the same, and nothing changes.
            return if matches!(answer, Lock::Taken(_)) { Ok(()) } else { differs("lock", "Taken", answer) };
        }
        if matches!(answer, Lock::Taken(_)) {
            let last = self.units[&name].starts.iter().max_by_key(|start| start.at);
            // Where it was raised while the outsider itself held the lock, the old one counts.
            let due = last.map(|last| last.at + last.interval.min(self.wait_after(&name, last)));
            if due.is_some_and(|due| due > now) {
                return Err(format!("an outsider got the lock of {name} at {now}, before {due:?}: {last:?}"));
            }
            self.unit(&name).outsider = now + expire;
        }
        Ok(())
    }

    fn register(&mut self, new: &Registration, answer: &Registered) -> Result<(), String> {
        let unit = new.group.as_ref().map_or(&new.name, |(group, _)| group).clone();
        let before = self.sites.get(&new.name).map(|site| site.unit.clone());
        let is_running = |lease: &Held| lease.key.0 == new.name && lease.key.1 == Stage::Download;
        let moves = before.as_ref().is_some_and(|before| *before != unit);
        if moves && self.leases.values().any(is_running) {
            let refused = matches!(answer, Registered::Refused(_));
            return if refused { Ok(()) } else { differs("register", "Refused", answer) };
        }
        if !matches!(answer, Registered::Version(_)) {
            return differs("register", "Version", answer);
        }
        if let Some(before) = before.filter(|_| moves) {
            let (mut starts, blocked) = (self.unit(&before).starts.clone(), self.unit(&before).blocked);
            for start in starts.iter_mut().filter(|start| start.site != new.name || start.fixed.is_some()) {
                start.fixed = Some(self.wait_after(&before, start));
            }
            let own = self.sites[&new.name].interval();
            for start in self.unit(&before).starts.iter_mut().filter(|start| start.site == new.name) {
                start.fixed.get_or_insert(own);
            }
            let to = self.unit(&unit);
            to.starts.extend(starts);
            to.blocked = to.blocked.max(blocked);
            let mut starts = std::mem::take(&mut to.starts);
            starts.sort_by_key(|start| (start.at, self.wait_after(&unit, start)));
            self.unit(&unit).starts = starts;
        }
        self.unit(&unit).interval = new.group.as_ref().map_or(0, |(_, interval)| *interval);
        let site = self.sites.entry(new.name.clone()).or_default();
        site.unit = unit;
        site.file = (new.settings.interval, new.settings.parallel);
        site.attempts = new.settings.attempts;
        site.robots = new.settings.robots;
        site.budgets.clone_from(&new.settings.budgets);
        Ok(())
    }

    fn begin_run(&mut self, name: &str, fresh: bool, seeds: &[Put]) -> bool {
        let unfinished =
            |(key, task): (&Key, &Task)| key.0 == name && !matches!(task.place, Place::Scheduled(_));
        if self.sites[name].run > 0 && !fresh && self.tasks.iter().any(unfinished) {
            return false;
        }
        if fresh {
            let idle = self.tasks.iter().filter(|(key, task)| key.0 == name && task.is_idle());
            for key in idle.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
                self.tasks.remove(&key);
                self.books(&key).dropped += 1;
            }
            self.dead.retain(|key, _| key.0 != name);
            for (_, task) in self.tasks.iter_mut().filter(|(key, _)| key.0 == name) {
                task.deferral = None;
            }
        }
        let Some(site) = self.sites.get_mut(name) else { return false };
        site.run += 1;
        site.known.clear();
        site.spent.clear();
        for seed in seeds {
            self.put(name, Stage::Download, seed);
        }
        true
    }

    /// The dead are forgotten once they hold nothing any more.
    fn bury(&mut self, owner: &str) {
        let Some(known) = self.owners.get_mut(owner) else { return };
        known.dead = true;
        known.settled = None;
        let holders: BTreeSet<&String> = self.leases.values().map(|lease| &lease.owner).collect();
        self.owners.retain(|name, owner| !owner.dead || holders.contains(name));
    }

    /// Every invariant that can be seen at rest: places (I3), books (I14), due index (I9), fences and flights (I2).
    pub fn check(&self, inside: &Inspection, views: &[View]) -> Result<(), String> {
        let places: BTreeMap<Key, String> = inside
            .tasks
            .iter()
            .map(|(site, stage, url, place)| ((site.clone(), *stage, url.clone()), place.clone()))
            .collect();
        if places.len() != inside.tasks.len() {
            return Err(format!("I3: a task is in two places: {:?}", inside.tasks));
        }
        let expected = self.tasks.iter().map(|(key, task)| (key.clone(), name(task.place).to_owned()));
        let expected: BTreeMap<Key, String> = expected.collect();
        if places != expected {
            return differs("places", &expected, &places);
        }
        let dead: BTreeSet<&Key> = self.dead.keys().collect();
        if dead != inside.dead.iter().collect() {
            return differs("dead letters", dead, &inside.dead);
        }
        let known: usize = self.sites.values().map(|site| site.known.len()).sum();
        if known as u64 > inside.known {
            return differs("known pages", known, inside.known);
        }
        for view in views {
            self.check_site(view)?;
        }
        self.check_due(inside)
    }

    fn check_site(&self, view: &View) -> Result<(), String> {
        let name = &view.site;
        for (stage, counts) in [(Stage::Download, &view.download), (Stage::Parse, &view.parse)] {
            let books = self.sites[name].books.get(&stage).copied().unwrap_or_default();
            let (created, revived, reruns) = (counts.created, counts.revived, counts.reruns);
            let (done, dead, dropped) = (counts.done, counts.dead, counts.dropped);
            let told = Books { created, revived, reruns, done, dead, dropped };
            if told != books {
                return differs(&format!("I14: books of {name}, {}", stage_name(stage)), books, told);
            }
            let here = |wanted: &str| {
                let is = |(key, task): &(&Key, &Task)| {
                    key.0 == *name && key.1 == stage && self::name(task.place) == wanted
                };
                self.tasks.iter().filter(is).count() as u64
            };
            let counted = (here("waiting"), here("delayed"), here("scheduled"), here("running"));
            let told = (counts.waiting, counts.delayed, counts.scheduled, counts.leased);
            if told != counted || counts.imbalance() != 0 {
                return differs(&format!("I14: places of {name}, {}", stage_name(stage)), counted, counts);
            }
        }
        if view.in_flight as usize != self.in_flight(name) {
            return differs(&format!("I2: in flight on {name}"), self.in_flight(name), view.in_flight);
        }
        if (view.interval, view.parallel as usize, view.paused.is_some())
            != (
                self.sites[name].interval().max(self.units[&view.unit].interval),
                self.sites[name].parallel(),
                self.sites[name].paused,
            )
        {
            return Err(format!("L6: values in force on {name}: {view:?}"));
        }
        Ok(())
    }

    pub fn in_flight(&self, site: &str) -> usize {
        self.leases.values().filter(|lease| lease.key.0 == site && lease.in_flight).count()
    }

    /// Whether a download of the site could be granted if its unit were due.
    pub fn is_ready(&self, name: &str) -> bool {
        let site = &self.sites[name];
        let mut tasks = self.tasks.iter().filter(|(key, _)| key.0 == name && key.1 == Stage::Download);
        let errand = tasks.clone().any(|(_, task)| task.errand && !task.is_idle());
        let waits = tasks.any(|(_, task)| task.place == Place::Waiting);
        waits && !errand && !site.paused && self.in_flight(name) < site.parallel()
    }

    fn check_due(&self, inside: &Inspection) -> Result<(), String> {
        let mut expected: BTreeSet<(Stage, &str)> = BTreeSet::new();
        for (name, site) in &self.sites {
            if self.is_ready(name) {
                expected.insert((Stage::Download, &site.unit));
            }
            let parse = |(key, task): (&Key, &Task)| {
                key.0 == *name && key.1 == Stage::Parse && task.place == Place::Waiting
            };
            if self.tasks.iter().any(parse) {
                expected.insert((Stage::Parse, &site.unit));
            }
        }
        let told = inside.due.iter().map(|(stage, unit, _)| (*stage, unit.as_str())).collect();
        if expected != told {
            return differs("I9: due index", expected, told);
        }
        for (_, name, score) in inside.due.iter().filter(|due| due.0 == Stage::Download) {
            let unit = &self.units[name];
            let last = unit.starts.iter().max_by_key(|start| start.at);
            let paced = last.map_or(i64::MIN, |last| last.at + self.wait_after(name, last));
            // A block that was never set is no time at all.
            let least = if unit.blocked > 0 { paced.max(unit.blocked) } else { paced };
            if *score - START < least {
                return differs(&format!("I9: score of {name}"), least, *score - START);
            }
        }
        Ok(())
    }

    /// I15: what is left when all is done.
    pub fn check_empty(&self, inside: &Inspection) -> Result<(), String> {
        if inside.tasks.is_empty() && inside.due.is_empty() {
            return Ok(());
        }
        differs("I15: what is left", "nothing", (&inside.tasks, &inside.due))
    }
}

pub fn name(place: Place) -> &'static str {
    match place {
        Place::Waiting => "waiting",
        Place::Delayed(_) => "delayed",
        Place::Scheduled(_) => "scheduled",
        Place::Running(_) => "running",
    }
}

/// Scheme and host of a URL.
pub fn origin(url: &str) -> String {
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}
