//! How tasks end, booked: settled, given back, lost.

use std::collections::BTreeMap;

use paced::internals::task::{
    Exclusion, LaneWish, LeaseKey, NOW, Outcome, Put, RobotsAccess, RobotsRecord, Settled, Settlement, Stage,
};

use super::game::Block;
use super::ledger::{Key, Ledger, Place, Robots, differs, origin};
use super::stepped::Ended;
use super::walled::after_block;

impl Ledger {
    /// Books a settlement. The parse of the page that it brings may be leased with it: it must be where that was asked for
    /// and no other parse may go, and must not be elsewhere.
    pub fn settled(
        &mut self,
        owner: &str,
        token: u64,
        settlement: &Settlement,
        reply: &Settled,
    ) -> Result<(), String> {
        let is_new = self.is_new_settlement(owner, token);
        let parse = settlement.parse.unwrap_or_default();
        let created = |ledger: &Self| ledger.created(&settlement.lease.site);
        let before = created(self);
        let expected = self.settle(owner, token, settlement);
        let brought = is_new && created(self) > before;
        let site = &settlement.lease.site;
        let own = (site.clone(), Stage::Parse, settlement.lease.url.to_string());
        let is_alone = !self.tasks.iter().any(|(key, task)| {
            let may_go = key.1 == Stage::Parse && !self.holds_parses(&key.0);
            may_go && task.place == Place::Waiting && *key != own
        });
        let is_due = settlement.parse.is_some() && brought && is_alone && self.lives(owner);
        let is_due = is_due && !self.holds_parses(site) && self.is_served_by(owner, &own);
        match reply {
            Settled::Leased(lease) if expected == Settled::Kept && lease.token == parse && is_due => {
                self.grant(owner, lease)
            }
            Settled::Leased(lease) if expected == Settled::Kept && lease.token == parse && !is_new => {
                let runs = self.leases.contains_key(&parse);
                if runs { Ok(()) } else { differs("a settle again", &expected, reply) }
            }
            Settled::Kept if is_due => differs("settle", "the lease of the parse", reply),
            _ if expected == *reply => Ok(()),
            _ => differs("settle", expected, reply),
        }
    }

    fn is_new_settlement(&self, owner: &str, token: u64) -> bool {
        let last = self.owners.get(owner).and_then(|owner| owner.settled.as_ref());
        last.is_none_or(|(last, _)| *last != token)
    }

    /// Parse tasks of a site that were made or revived.
    fn created(&self, site: &str) -> u64 {
        let books = self.sites.get(site).and_then(|site| site.books.get(&Stage::Parse));
        books.map_or(0, |books| books.created + books.revived)
    }

    pub fn settle(&mut self, owner: &str, token: u64, settlement: &Settlement) -> Settled {
        if let Some((last, answer)) = self.owners.get(owner).and_then(|known| known.settled.as_ref())
            && *last == token
        {
            return answer.clone();
        }
        let settled = self.settle_one(settlement);
        if let Some(known) = self.owners.get_mut(owner).filter(|known| !known.dead) {
            known.settled = Some((token, settled.clone()));
        }
        settled
    }

    pub fn settle_one(&mut self, settlement: &Settlement) -> Settled {
        let token = settlement.lease.token;
        if !self.holds(token) {
            return Settled::Stale;
        }
        let Some(lease) = self.leases.remove(&token) else { return Settled::Stale };
        let key = lease.key;
        let attempts = self.sites[&key.0].attempts;
        let died = self.books(&key).dead;
        if key.1 == Stage::Download {
            self.ends_probe(&key.0, token, &settlement.outcome);
        }
        let Some(task) = self.tasks.get_mut(&key) else { return Settled::Stale };
        let now = self.now;
        match &settlement.outcome {
            outcome if task.errand => self.settle_errand(&key, outcome),
            Outcome::Done { stored, recrawl } => {
                let fence = settlement.lease.fence;
                let page = stored.as_ref().map(|stored| (stored.fetched_at, *recrawl));
                if stored.is_some() && key.1 == Stage::Download {
                    let priority = paced::internals::task::Priority::from_value(task.priority);
                    let urgent = task.lane.as_deref() == Some(NOW);
                    let wish = LaneWish { urgent, tenant: task.tenant.clone(), ..LaneWish::default() };
                    let put =
                        Put { hops: task.hops, wish, ..Put::request(settlement.lease.url.clone(), priority) };
                    self.carry_to_parse(&key);
                    self.put(&key.0, Stage::Parse, &put);
                }
                if let (Some((fetched_at, recrawl)), Stage::Download) = (page, key.1) {
                    self.keep_page(&key, fence, fetched_at, recrawl);
                }
                self.finish(&key);
            }
            Outcome::Excluded { why, .. } => {
                if *why == Exclusion::NoRule {
                    self.keep_no_recrawl(&key);
                }
                self.end_batches(&key, "excluded");
                self.finish(&key);
            }
            Outcome::Redirected { to } => self.finish_before(&key, Some(to.as_str())),
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
            Outcome::Refused { .. } => {
                task.absorb(now);
                task.place = Place::Waiting;
                self.stands_last(&key);
            }
            Outcome::Postponed { after } => {
                let until = now + i64::try_from(after.as_millis()).unwrap_or(0);
                task.absorb(until);
                task.place = Place::Delayed(until);
                self.stands_last(&key);
            }
            Outcome::Dead { .. } => self.die(&key),
            Outcome::Robots(_) | Outcome::RobotsMoved { .. } => unreachable!("only for errands"),
        }
        let unit = self.sites[&key.0].unit.clone();
        if matches!(settlement.outcome, Outcome::Excluded { unused: true, .. }) {
            self.forget_start(&key.0, token);
        }
        self.hold_back(&key.0, &settlement.away);
        self.block(&unit, &settlement.block);
        if self.books(&key).dead > died { Settled::Died } else { Settled::Kept }
    }

    /// Books that a body ended; whether its lease still holds. A block holds in any case.
    pub fn landed(&mut self, lease: &LeaseKey, block: &Block) -> bool {
        let holds = self.holds(lease.token);
        if let Some(lease) = self.leases.get_mut(&lease.token).filter(|_| holds) {
            lease.in_flight = false;
        }
        let unit = self.sites[&lease.site].unit.clone();
        self.block(&unit, block);
        holds
    }

    /// A site where nobody answers is held back alone.
    fn hold_back(&mut self, site: &str, away: &Block) {
        let (Some((wait, _)), Some(site)) = (away, self.sites.get_mut(site)) else { return };
        let until = self.now + i64::try_from(wait.as_millis()).unwrap_or(0);
        if until > site.blocked {
            (site.blocked, site.slow) = (until, after_block(site.slow, until, self.now));
        }
    }

    pub fn block(&mut self, unit: &str, block: &Block) {
        let Some((wait, _)) = block else { return };
        let until = self.now + i64::try_from(wait.as_millis()).unwrap_or(0);
        let now = self.now;
        let unit = self.unit(unit);
        if until > unit.blocked {
            (unit.blocked, unit.slow) = (until, after_block(unit.slow, until, now));
        }
    }

    pub fn settle_errand(&mut self, key: &Key, outcome: &Outcome) {
        let now = self.now;
        let hour = std::time::Duration::from_hours(1);
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
            Outcome::Retry { after, .. } | Outcome::Postponed { after } => unreachable(*after),
            _ => unreachable(hour),
        };
        self.keep_robots(key, &record);
    }

    pub fn keep_robots(&mut self, key: &Key, record: &RobotsRecord) {
        let origin = origin(&key.2);
        let millis = |wait: std::time::Duration| i64::try_from(wait.as_millis()).unwrap_or(0);
        let held_until = self.now + millis(record.holds_for);
        let unreachable = record.is_unreachable();
        let site = &self.sites[&key.0];
        let serves_until = self.now + site.interval().max(self.wait_of(&site.unit)) + 5_000;
        let serves = !unreachable && record.refuses.is_none();
        let until = if serves { held_until.max(serves_until) } else { held_until };
        let before = self.robots.get(&origin).map_or(0, |robots| robots.failures);
        let failures = if unreachable { before + 1 } else { 0 };
        self.robots.insert(origin.clone(), Robots { until, unreachable, failures });
        self.look_at(&key.0, &origin, if unreachable { until } else { self.now });
        let Some(site) = self.sites.get_mut(&key.0) else { return };
        match record.crawl_delay {
            Some(delay) => drop(site.floors.insert(origin, millis(delay))),
            None if unreachable => {}
            None => drop(site.floors.remove(&origin)),
        }
        if record.refuses.is_some() {
            let unit = site.unit.clone();
            let unit = self.unit(&unit);
            unit.blocked = unit.blocked.max(held_until);
        }
        self.finish(key);
    }

    /// The host of these parked pages is looked at then.
    pub fn look_at(&mut self, site: &str, host: &str, at: i64) {
        for ((name, _, url), task) in &mut self.tasks {
            if name == site && origin(url) == host && matches!(task.place, Place::Parked(_)) {
                task.place = Place::Parked(at);
            }
        }
    }

    pub fn finish(&mut self, key: &Key) {
        self.finish_before(key, None);
    }

    fn finish_before(&mut self, key: &Key, next: Option<&str>) {
        self.books(key).done += 1;
        self.end_batches(key, "done");
        if key.1 == Stage::Download {
            let site = self.sites.entry(key.0.clone()).or_default();
            site.known.insert(key.2.clone());
        }
        self.end(key, Ended::Done, next);
    }

    pub fn die(&mut self, key: &Key) {
        self.books(key).dead += 1;
        self.batches_die(key);
        let runs_again = self.tasks.get(key).is_some_and(|task| task.deferral.is_some());
        let holds = self.dies(key, runs_again);
        match (runs_again, holds) {
            (true, true) => drop(self.rerun(key, false)),
            (true, false) => self.end(key, Ended::Dead, None),
            (false, holds) => {
                let tenant = self.tasks[key].tenant.clone();
                self.dead.insert(key.clone(), (self.sites[&key.0].run, tenant));
                if holds {
                    self.tasks.remove(key);
                } else {
                    self.end(key, Ended::Dead, None);
                }
            }
        }
    }

    /// A task is gone, or runs once more, and so is a step of its session.
    fn end(&mut self, key: &Key, how: Ended, next: Option<&str>) {
        let session = self.tasks.get(key).and_then(|task| task.session.clone());
        let again = self.rerun(key, true);
        if again.is_none() {
            self.tasks.remove(key);
        }
        if let Some(name) = session {
            self.step_ended(key, &name, how, next, again == Some(true));
        }
    }

    /// A further run, if there is one; whether it is a step of the session that the task `leaves`.
    pub fn rerun(&mut self, key: &Key, leaves: bool) -> Option<bool> {
        let now = self.now;
        let task = self.tasks.get_mut(key)?;
        let deferral = task.deferral.take()?;
        let at = deferral.at.filter(|at| *at > now);
        let (lane, tenant) = self.gate(&key.0, key.1, &deferral.wish, at.is_some());
        let leaves = leaves && self.tasks[key].session.is_some();
        let step = deferral.step.filter(|_| leaves);
        let turn = step.unwrap_or_else(|| self.next_turn(&key.0));
        let task = self.tasks.get_mut(key)?;
        (task.lane, task.tenant) = (lane, tenant);
        task.batches.clone_from(&deferral.batches);
        task.take_up(&deferral);
        task.errand = false;
        task.place = at.map_or(Place::Waiting, Place::Scheduled);
        task.turn = turn;
        (task.after, task.begun) = (at.filter(|_| step.is_some()), task.begun && !leaves);
        if step.is_some() {
            task.place = Place::Behind;
        } else if leaves {
            task.session = None;
        }
        self.books(key).reruns += 1;
        Some(step.is_some())
    }

    /// It gets a new turn.
    fn stands_last(&mut self, key: &Key) {
        let turn = self.next_turn(&key.0);
        if let Some(task) = self.tasks.get_mut(key) {
            task.turn = turn;
        }
    }

    /// The task goes back and its start is unused.
    pub fn go_back(&mut self, token: u64, to: Place, unused: bool) {
        let Some(lease) = self.leases.remove(&token) else { return };
        let start = if let Place::Delayed(until) = to { until } else { self.now };
        if let Some(task) = self.tasks.get_mut(&lease.key) {
            task.absorb(start);
            task.place = to;
        }
        if unused {
            self.forget_start(&lease.key.0, token);
        }
    }

    /// Leases that ended or whose owner is dead; how often each task was lost, and how long it is kept back.
    pub fn lose_leases(&mut self) -> BTreeMap<Key, (u32, Option<i64>)> {
        let mut told = BTreeMap::new();
        let lost: Vec<u64> = self.leases.iter().filter(|(_, l)| self.is_lost(l)).map(|(t, _)| *t).collect();
        for token in lost {
            let Some(lease) = self.leases.remove(&token) else { continue };
            let now = self.now;
            let Some(task) = self.tasks.get_mut(&lease.key) else { continue };
            task.losses += 1;
            let wait = [0, 0, 10_000, 60_000, 600_000, 3_600_000, -1][task.losses as usize];
            let kept_back = (wait >= 0).then_some(if task.errand { 0 } else { wait });
            told.insert(lease.key.clone(), (task.losses, kept_back));
            match (task.errand, wait) {
                (true, -1) => {
                    let access = RobotsAccess::Unreachable(String::new());
                    let holds_for = std::time::Duration::from_hours(1);
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
        self.forget_the_dead();
        told
    }
}
