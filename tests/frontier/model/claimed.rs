//! A claim, booked: what it promoted, tidied away and granted must each be right (I1-I3, I6, I8, I11-I13, L1).

use std::collections::{BTreeMap, BTreeSet};

use paced::internals::frontier::{Claim, Grant, Inspection, WorkScope};
use paced::internals::task::{LANE, Lease, NOW, Stage};

use super::ledger::{Dues, Held, Key, LEASE, Ledger, NEVER, Place, Task, differs, origin};
use super::stepped::Ended;
use crate::world::START;

/// An outsider that asked in vain is let in first, for no longer than the longest turn of one who missed several, in ms.
const COURTESY: i64 = 4_000;
/// How long ahead a start may be granted.
pub const AHEAD: i64 = 50;

impl Ledger {
    pub fn claim(
        &mut self,
        claim: &Claim,
        grant: &Grant,
        inside: &Inspection,
        dues: &Dues,
    ) -> Result<(), String> {
        let Some(owner) = self.owners.get_mut(&claim.owner).filter(|owner| !owner.dead) else {
            let nothing = Grant { buried: true, ..Grant::default() };
            return if *grant == nothing { Ok(()) } else { differs("a stranger's claim", nothing, grant) };
        };
        let scope = owner.scope.clone();
        if let Some((token, tokens)) = owner.claimed.clone()
            && token == claim.token
        {
            let held: Vec<u64> = tokens.into_iter().filter(|token| self.leases.contains_key(token)).collect();
            let got: Vec<u64> = grant.leases.iter().map(|lease| lease.token).collect();
            return if held == got { Ok(()) } else { differs("I5: a claim sent again", held, got) };
        }
        let tokens: Vec<u64> = grant.leases.iter().map(|lease| lease.token).collect();
        owner.claimed = Some((claim.token, tokens.clone()));
        let numbered = (claim.token..).take(tokens.len());
        if !numbered.eq(tokens.iter().copied()) {
            return Err(format!("tokens are not the claim's: {tokens:?}"));
        }
        let told = grant.lost.iter().map(|lost| {
            ((lost.site.clone(), lost.stage, lost.url.to_string()), (lost.losses, lost.kept_back))
        });
        self.let_in_now.clear();
        let (told, lost) = (told.collect::<BTreeMap<_, _>>(), self.lose_leases());
        if told != lost {
            return differs("lost leases that a claim tells of", lost, told);
        }
        self.promote();
        self.look_at_hosts();
        self.look_at_parse_pauses();
        self.tidy(grant, inside)?;
        for lease in &grant.leases {
            let lane = self.tasks.get(&key_of(lease)).and_then(|task| task.lane.as_deref());
            let is_served = lease.robots.is_some() || scope.serves(lane.unwrap_or(LANE));
            if !scope.includes(&lease.site) || !is_served {
                return Err(format!("N7: {} in {lane:?} of {} was not asked for", lease.url, lease.site));
            }
            self.grant(&claim.owner, lease)?;
        }
        self.check_order(&scope, grant)?;
        self.check_lanes_served(claim, &scope, grant, dues)?;
        let count = |stage| grant.leases.iter().filter(|lease| lease.stage == stage).count();
        if count(Stage::Download) > claim.download as usize || count(Stage::Parse) > claim.parse as usize {
            return Err(format!("I16: more than was asked for: {grant:?}"));
        }
        self.check_next(claim, &scope, grant, dues)
    }

    fn promote(&mut self) {
        let now = self.now;
        for task in self.tasks.values_mut() {
            if matches!(task.place, Place::Delayed(until) | Place::Scheduled(until) if until <= now) {
                task.place = Place::Waiting;
            }
        }
    }

    /// What waited and neither waits nor runs now was tidied away: each with a reason, and none out of its turn.
    fn tidy(&mut self, grant: &Grant, inside: &Inspection) -> Result<(), String> {
        let after: BTreeMap<Key, &str> = inside
            .tasks
            .iter()
            .map(|(site, stage, url, place)| ((site.clone(), *stage, url.clone()), place.as_str()))
            .collect();
        let granted = |key: &Key| grant.leases.iter().any(|lease| key_of(lease) == *key);
        let gone = |(key, task): &(&Key, &Task)| {
            task.place == Place::Waiting && after.get(*key) != Some(&"waiting") && !granted(key)
        };
        // One that goes may let another in, which may go as well.
        let first = |ledger: &Self| {
            let gone = ledger.tasks.iter().filter(gone);
            let first = gone.min_by_key(|(key, task)| ledger.order(&key.0, task));
            first.map(|(key, task)| (key.clone(), task.clone()))
        };
        while let Some((key, task)) = first(self) {
            let waits = |(other, rest): &(&Key, &Task)| {
                (&other.0, other.1, &rest.lane) == (&key.0, key.1, &task.lane)
                    && rest.place == Place::Waiting
                    && self.order(&other.0, rest) < self.order(&key.0, &task)
                    && !granted(other)
            };
            if let Some((before, _)) = self.tasks.iter().find(waits).filter(|_| !self.is_walled(&key.0)) {
                return Err(format!("I8: {} was put off before {}", key.2, before.2));
            }
            self.put_off(&key, &task, after.get(&key).copied().unwrap_or("absent"))?;
        }
        Ok(())
    }

    fn put_off(&mut self, key: &Key, task: &Task, now_at: &str) -> Result<(), String> {
        let errand = task.errand && self.sites[&key.0].robots;
        if !errand && task.expires.is_some_and(|expires| expires <= self.now + AHEAD) {
            self.end_batches(key, "excluded");
            self.finish(key);
            return if now_at == "absent" { Ok(()) } else { differs("an expired page", "absent", now_at) };
        }
        let origin = origin(&key.2);
        if key.1 == Stage::Parse || !self.sites[&key.0].robots {
            return Err(format!("{} was put off without a reason", key.2));
        }
        let record = self.robots.get(&origin).filter(|robots| robots.until > self.now).cloned();
        let is_allowed = record.as_ref().is_some_and(|record| !record.unreachable);
        if !self.sites[&key.0].has(&origin) && (task.errand || !is_allowed) {
            self.exclude_from_scope(key);
            return if now_at == "absent" {
                Ok(())
            } else {
                differs("a dropped host's page", "absent", now_at)
            };
        }
        if task.errand {
            return Err(format!("{} was put off though it is a robots.txt", key.2));
        }
        let Some(record) = record else {
            let robots_txt = (key.0.clone(), Stage::Download, format!("{origin}/robots.txt"));
            let until = match self.tasks.get(&robots_txt) {
                Some(Task { place: Place::Running(_), errand: false, .. }) => self.now + 1_000,
                Some(Task { place: Place::Delayed(_), errand: true, .. }) => NEVER,
                other => return Err(format!("{} was put off for a robots.txt that is {other:?}", key.2)),
            };
            self.park(key, until);
            return if now_at == "parked" {
                Ok(())
            } else {
                differs("a waiting host's page", "parked", now_at)
            };
        };
        if !record.unreachable {
            return Err(format!("{} was put off though its robots.txt was read", key.2));
        }
        self.park(key, record.until);
        if now_at == "parked" { Ok(()) } else { differs("an unreachable host's page", "parked", now_at) }
    }

    /// The page waits for its host, which all that wait for it are looked at with.
    fn park(&mut self, key: &Key, until: i64) {
        if let Some(task) = self.tasks.get_mut(key) {
            task.place = Place::Parked(until);
        }
        self.look_at(&key.0, &origin(&key.2), until);
    }

    /// Hosts whose time has come: their pages wait for their turn again, or for what robots.txt says now.
    fn look_at_hosts(&mut self) {
        let now = self.now;
        let due = self.tasks.iter().filter_map(|((site, _, url), task)| match task.place {
            Place::Parked(until) if until <= now => Some((until, site.clone(), origin(url))),
            _ => None,
        });
        for (_, site, origin) in due.collect::<BTreeSet<_>>() {
            let record = self.robots.get(&origin).filter(|robots| robots.until > now);
            if !self.sites[&site].has(&origin) {
                self.exclude_parked(&site, &origin);
                continue;
            }
            let at = match record {
                _ if !self.sites[&site].robots => None,
                Some(record) => record.unreachable.then_some(record.until),
                None => Some(self.ask_for_robots(&site, &origin)),
            };
            match at {
                Some(at) => self.look_at(&site, &origin, at),
                None => self.return_parked(&site, &origin),
            }
        }
    }

    /// Pages that waited for a host which is the site's no more.
    fn exclude_parked(&mut self, site: &str, host: &str) {
        let parked = self.tasks.iter().filter(|((name, _, url), task)| {
            name == site && origin(url) == host && matches!(task.place, Place::Parked(_))
        });
        for key in parked.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.exclude_from_scope(&key);
        }
    }

    fn exclude_from_scope(&mut self, key: &Key) {
        self.keep_no_recrawl(key);
        self.end_batches(key, "excluded");
        self.finish(key);
    }

    fn return_parked(&mut self, site: &str, host: &str) {
        for ((name, _, url), task) in &mut self.tasks {
            if name == site && origin(url) == host && matches!(task.place, Place::Parked(_)) {
                task.place = Place::Waiting;
            }
        }
    }

    /// A robots.txt is made or raised; when its host is looked at again.
    fn ask_for_robots(&mut self, site: &str, origin: &str) -> i64 {
        let key = (site.to_owned(), Stage::Download, format!("{origin}/robots.txt"));
        match self.tasks.get(&key) {
            Some(Task { place: Place::Running(_), errand, .. }) => {
                return if *errand { NEVER } else { self.now + 1_000 };
            }
            Some(Task { place: Place::Delayed(until), errand: true, .. }) if *until > self.now => {
                return NEVER;
            }
            Some(_) => {}
            None => self.make_robots(&key),
        }
        if let Some(task) = self.tasks.get_mut(&key) {
            (task.place, task.priority, task.errand) = (Place::Waiting, 0, true);
            if let Some(name) = task.session.take() {
                self.step_ended(&key, &name, Ended::Dropped, None, false);
            }
        }
        NEVER
    }

    pub fn grant(&mut self, owner: &str, lease: &Lease) -> Result<(), String> {
        let key = key_of(lease);
        let (now, token) = (self.now, lease.token);
        if lease.robots.is_some() {
            self.raise(&key, lease.departure.at - START)?;
        }
        let Some(task) = self.tasks.get(&key) else { return Err(format!("{key:?} was nowhere")) };
        if task.place != Place::Waiting {
            return Err(format!("I3, I12: {key:?} was granted out of {:?}", task.place));
        }
        if task.expires.is_some_and(|expires| expires <= now) && lease.robots.is_none() {
            return Err(format!("I12: {key:?} had expired"));
        }
        let told = (lease.attempts, lease.priority.value(), lease.hops, lease.tenant.clone());
        if told != (task.attempts, task.priority, task.hops, task.tenant.clone()) {
            return differs(&format!("lease of {}", key.2), task, lease);
        }
        if lease.attempts >= self.sites[&key.0].attempts.max(1) && lease.attempts > 4 {
            return Err(format!("I13: {} attempts of {}", lease.attempts, key.2));
        }
        if lease.granted_at.as_millis() - START != now || lease.ends_at.as_millis() - START != now + LEASE {
            return Err(format!("times of {lease:?} at {now}"));
        }
        if key.1 == Stage::Parse && self.is_paused(&key.0, Stage::Parse, now) {
            return Err(format!("I11: parses of {} are paused: {lease:?}", key.0));
        }
        self.check_probe(owner, lease)?;
        let site = self.sites.get_mut(&key.0).ok_or("no such site")?;
        if lease.fence <= site.fence {
            return Err(format!("I6: fence {} after {}", lease.fence, site.fence));
        }
        site.fence = lease.fence;
        if key.1 == Stage::Download {
            self.check_gates(&key, lease)?;
        }
        let in_flight = key.1 == Stage::Download;
        if let Some(task) = self.tasks.get_mut(&key) {
            task.place = Place::Running(token);
            task.errand = lease.robots.is_some();
            task.begun = task.session.is_some();
        }
        let held = Held { key, owner: owner.to_owned(), granted: now, ends: now + LEASE, in_flight };
        self.leases.insert(token, held);
        Ok(())
    }

    fn check_gates(&mut self, key: &Key, lease: &Lease) -> Result<(), String> {
        let (name, now) = (&key.0, self.now);
        let unit = self.sites[name].unit.clone();
        let site = &self.sites[name];
        if self.is_paused(name, Stage::Download, lease.departure.at - START) {
            return Err(format!("I11: {name} is paused: {lease:?}"));
        }
        if self.in_flight(name) >= site.parallel() {
            return Err(format!("I2: {} in flight on {name} already", self.in_flight(name)));
        }
        let errand = |(other, task): (&Key, &Task)| other.0 == *name && task.errand && !task.is_idle();
        if self.tasks.iter().any(errand) {
            return Err(format!("beside a robots.txt under way: {lease:?}"));
        }
        if self.units[&unit].outsider > now {
            return Err(format!("somebody else holds the mutex of {unit}: {lease:?}"));
        }
        let starts = lease.departure.at - START;
        let fresh = self.robots.get(&origin(&key.2)).filter(|robots| robots.until > starts);
        match (site.robots, lease.robots.is_some(), fresh) {
            (true, false, None) => return Err(format!("without a robots record: {lease:?}")),
            (true, false, Some(robots)) if robots.unreachable => {
                return Err(format!("its robots.txt is unreachable: {lease:?}"));
            }
            (false, true, _) => return Err(format!("robots.txt of a site that ignores it: {lease:?}")),
            (true, true, _) if !site.has(&origin(&key.2)) => {
                return Err(format!("robots.txt of a host that the site has no more: {lease:?}"));
            }
            _ => {}
        }
        let at = self.start(name, lease.token, &lease.departure)?;
        self.probe(name, lease.token, at)?;
        if at > now + AHEAD {
            return Err(format!("{lease:?} was granted more than {AHEAD} ms ahead at {now}"));
        }
        Ok(())
    }

    /// A robots.txt under way is made by the claim, or raised from where it was.
    fn raise(&mut self, key: &Key, starts: i64) -> Result<(), String> {
        if !key.2.ends_with("/robots.txt") {
            return Err(format!("{} is no robots.txt", key.2));
        }
        if self.expired_before_it_was_needed(key, starts) {
            self.end_batches(key, "excluded");
            self.finish(key);
        }
        if let Some(task) = self.tasks.get_mut(key) {
            if matches!(task.place, Place::Delayed(until) if task.errand && until > self.now) {
                return Err(format!("I12: a robots.txt that went back, before its second: {task:?}"));
            }
            if task.is_idle() {
                // An errand that waits already was raised when it was made.
                task.priority = if task.errand { task.priority } else { 0 };
                task.place = Place::Waiting;
                // It is no step any more.
                if let Some(name) = task.session.take() {
                    self.step_ended(key, &name, Ended::Dropped, None, false);
                }
            }
            return Ok(());
        }
        self.make_robots(key);
        Ok(())
    }

    fn make_robots(&mut self, key: &Key) {
        let mut task = Task::new(Place::Waiting, 0, self.next_turn(&key.0));
        task.batches = self.revive_batches(key);
        self.tasks.insert(key.clone(), task);
        let held = self.held_by(key);
        let revived = self.dead.remove(key).is_some();
        if let Some(held) = held.filter(|_| revived) {
            self.release(&key.0, &held, false);
        }
        let books = self.books(key);
        if revived {
            books.revived += 1;
        } else {
            books.created += 1;
        }
    }

    /// An ordinary robots.txt that expired and stood before the page that needs one: tidied away, then made anew.
    fn expired_before_it_was_needed(&self, key: &Key, starts: i64) -> bool {
        let Some(task) = self.tasks.get(key).filter(|_| !self.is_refused_first(key)) else { return false };
        let page = |(other, page): &(&Key, &Task)| {
            (&other.0, other.1) == (&key.0, key.1) && *other != key && page.place == Place::Waiting
        };
        let needed = self.tasks.iter().filter(page).map(|(_, page)| self.order(&key.0, page)).min();
        let expired = task.expires.is_some_and(|expires| expires <= starts);
        expired
            && !task.errand
            && task.place == Place::Waiting
            && needed.is_none_or(|page| self.order(&key.0, task) < page)
    }

    /// I8: of those that may run now, none of the site and stage waits that should have gone before.
    fn check_order(&self, scope: &WorkScope, grant: &Grant) -> Result<(), String> {
        for lease in grant.leases.iter().filter(|lease| lease.robots.is_none() && !lease.is_probe()) {
            let key = key_of(lease);
            let own = &self.tasks[&key];
            let before = |(other, task): &(&Key, &Task)| {
                let is_beside = (&other.0, other.1) == (&key.0, key.1) && task.place == Place::Waiting;
                let goes_now = |task: &Task| task.lane.as_deref() == Some(NOW) && scope.serves(NOW);
                let is_first = task.lane == own.lane && self.order(&key.0, task) < self.order(&key.0, own);
                let was_there = !self.let_in_now.contains(*other);
                is_beside && was_there && (is_first || goes_now(task) && !goes_now(own))
            };
            if let Some((other, task)) = self.tasks.iter().find(before) {
                return Err(format!("I8: {} went before {}: {task:?}", key.2, other.2));
            }
        }
        Ok(())
    }

    /// L1: `next_in` is never later than the first moment at which something can be claimed.
    fn check_next(&self, claim: &Claim, scope: &WorkScope, grant: &Grant, dues: &Dues) -> Result<(), String> {
        let mut first: Option<(i64, String)> = None;
        let mut may = |at: i64, why: &str| {
            if first.as_ref().is_none_or(|(least, _)| at < *least) {
                first = Some((at, why.to_owned()));
            }
        };
        for (key, task) in self.tasks.iter().filter(|_| claim.download + claim.parse > 0) {
            let waits_for_others =
                task.place == Place::Waiting && !scope.serves(task.lane.as_deref().unwrap_or(LANE));
            if !scope.includes(&key.0) || waits_for_others {
                continue;
            }
            match task.place {
                Place::Delayed(until) | Place::Scheduled(until) => may(until, "a delayed task's time"),
                Place::Running(token) => {
                    let lease = &self.leases[&token];
                    may(if self.is_lost(lease) { self.now } else { lease.ends }, "a lease's end");
                }
                Place::Waiting if key.1 == Stage::Parse && claim.parse > 0 => {
                    if let Some(at) = self.parse_is_due(&key.0) {
                        may(at, "a parse");
                    }
                }
                Place::Waiting if self.awaits_resume(&key.0) => {}
                Place::Waiting if key.1 == Stage::Download && claim.download > 0 && self.is_ready(&key.0) => {
                    may(self.due(&key.0, dues)?, &format!("the due time of {}", key.0));
                }
                Place::Parked(NEVER) | Place::Waiting | Place::Behind => {}
                Place::Parked(until) => may(until, "an unreachable host's time"),
            }
        }
        match (first, grant.next_in) {
            (Some((at, why)), next) if next.is_none_or(|wait| self.now + wait.max(0) > at.max(self.now)) => {
                Err(format!("L1: at {} next_in is {next:?}, though {why} is at {at}", self.now))
            }
            (_, Some(wait)) if wait < 0 => Err(format!("L1: next_in {wait}")),
            _ => Ok(()),
        }
    }

    /// N7: who serves some lanes alone is given something where anything in them may go.
    fn check_lanes_served(
        &self,
        claim: &Claim,
        scope: &WorkScope,
        grant: &Grant,
        dues: &Dues,
    ) -> Result<(), String> {
        let wanted = |stage| if stage == Stage::Download { claim.download } else { claim.parse } as usize;
        let granted = |stage| grant.leases.iter().filter(|lease| lease.stage == stage).count();
        let may_go = |(key, task): &(&Key, &Task)| {
            let waits = task.place == Place::Waiting && scope.serves(task.lane.as_deref().unwrap_or(LANE));
            let is_due = match key.1 {
                Stage::Parse => self.parse_is_due(&key.0).is_some_and(|at| at <= self.now),
                Stage::Download => {
                    let due = dues.get(&key.0).is_some_and(|due| *due <= self.now);
                    due && self.is_ready(&key.0) && !self.awaits_resume(&key.0)
                }
            };
            waits && is_due && granted(key.1) < wanted(key.1)
        };
        match self.tasks.iter().filter(|_| matches!(scope, WorkScope::Lanes(_))).find(may_go) {
            Some((key, task)) => Err(format!("N7: {key:?} may go, but was left: {task:?}")),
            None => Ok(()),
        }
    }

    /// A site's due time as it is told, which is not later than anything could make it.
    fn due(&self, name: &str, dues: &Dues) -> Result<i64, String> {
        let site = &self.sites[name];
        let unit = &self.units[&site.unit];
        let told = dues.get(name).copied().unwrap_or(0);
        let held = unit.outsider.max(self.now);
        let starts = self.units.values().flat_map(|unit| &unit.starts).chain(&site.starts);
        let wait = self.wait_of(&site.unit).max(site.interval()) + COURTESY;
        let paced = starts.map(|start| start.at + wait.max(start.wait)).max().unwrap_or(i64::MIN);
        let given_back = self.now + self.longest_wait(&site.unit);
        let walls = [&site.wall, &unit.wall].into_iter().flatten();
        let probe = walls.map(|wall| wall.latest(self.now)).max().unwrap_or(0);
        let latest = paced
            .max(unit.blocked)
            .max(site.blocked)
            .max(held)
            .max(given_back)
            .max(unit.not_before)
            .max(probe);
        let latest = latest.max(self.shared_wait(&site.unit, Stage::Download));
        let latest = latest.max(site.paused.filter(|until| *until < NEVER).unwrap_or(i64::MIN));
        if told > latest { differs(&format!("L1: due of {name}"), latest, told) } else { Ok(told) }
    }

    /// A start that was given back over a later one may still be waited for.
    fn longest_wait(&self, unit: &str) -> i64 {
        let members = self.sites.values().filter(|site| site.unit == unit);
        members.map(super::ledger::Site::interval).max().unwrap_or(0).max(5_000)
    }
}

fn key_of(lease: &Lease) -> Key {
    (lease.site.clone(), lease.stage, lease.url.to_string())
}
