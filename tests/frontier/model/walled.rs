//! Walls, booked: once one is known, nothing starts there but probes, one at a time, ever later (W3), and what follows is slow at
//! first (W6).

use paced::internals::task::{Lease, LeaseKey, Outcome, Stage, WallSighting};

use super::ledger::{Key, Ledger, Place, Site, Unit, differs, origin};

/// The longest time between two probes.
const MOST: i64 = 6 * 3_600_000;
/// After so long without a refusal what happened is forgotten.
const FORGIVEN: i64 = 30 * 60_000;
/// So many starts are slow at first, and so many at each step.
const SLOW: (u32, u32) = (60, 20);
/// A block that is shorter has no slow start.
const LONG: i64 = 60_000;

#[derive(Clone, Debug)]
pub struct Wall {
    url: String,
    since: i64,
    /// What the first probe waits.
    first: i64,
    /// The start that was granted before, and may go out after it.
    ahead: Option<u64>,
    /// Starts since it is known.
    starts: Vec<i64>,
    /// How often the wait was doubled.
    doubled: u32,
    /// The lease of the last probe, and how many were refused.
    probe: Option<u64>,
    refused: u32,
    /// A person asked for a probe.
    hurried: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Slow {
    left: u32,
    until: i64,
    doubled: u32,
}

/// A wait in a slow start.
pub fn slowed(slow: Option<Slow>, wait: i64) -> i64 {
    let (all, step) = SLOW;
    match slow {
        Some(slow) if slow.left > all - step => 4 * wait,
        Some(slow) if slow.left > all - 2 * step => 2 * wait,
        _ => wait,
    }
}

/// What follows a block.
pub fn after_block(before: Option<Slow>, until: i64, now: i64) -> Option<Slow> {
    if until - now < LONG {
        return before;
    }
    Some(Slow { left: SLOW.0, until: until + FORGIVEN, doubled: remembered(before, now) })
}

fn remembered(before: Option<Slow>, now: i64) -> u32 {
    before.filter(|slow| now < slow.until).map_or(0, |slow| slow.doubled)
}

impl Wall {
    fn left_behind(&self, now: i64) -> Slow {
        Slow { left: SLOW.0, until: now + FORGIVEN, doubled: self.doubled.saturating_sub(1) }
    }

    /// Whether its next probe is of the page that it refused first: every other one is.
    fn asks_for_the_first(&self) -> bool {
        self.refused.is_multiple_of(2)
    }

    /// A probe, or a start granted before, that was never sent.
    pub fn forget_probe(&mut self, token: u64) {
        // What a probe waits that was granted since is settled.
        if self.ahead.take_if(|ahead| *ahead == token).is_some() && self.probe.is_none() {
            self.doubled = self.doubled.saturating_sub(1);
        }
        if self.probe.take_if(|probe| *probe == token).is_some() {
            self.starts.pop();
            self.doubled = self.doubled.saturating_sub(1);
        }
    }

    /// No probe has to wait for longer.
    pub fn latest(&self, now: i64) -> i64 {
        let wait = (self.first << self.doubled.min(30)).min(MOST);
        let last = self.starts.last().copied().unwrap_or(self.since);
        (last + wait + wait / 10 + 1).max(now + 2 * self.first)
    }

    /// A probe that starts then: not too soon, and not too many of them.
    fn start(&mut self, token: u64, at: i64) -> Result<(), String> {
        self.starts.push(at);
        self.doubled += 1;
        self.probe = Some(token);
        let within = |time: i64| self.starts.iter().filter(|start| **start < self.since + time).count();
        let before = usize::from(self.ahead.is_some());
        let (minute, hour) = (before + within(self.first), before + within(60 * self.first));
        if !self.hurried && (minute > 1 || hour > 5) {
            return Err(format!("W3: {minute} and {hour} starts after a wall: {self:?}"));
        }
        Ok(())
    }
}

impl Ledger {
    /// What stands before a site: its own wall, and its unit's.
    pub fn walls(&mut self, site: &str) -> Vec<&mut Wall> {
        let unit = self.sites[site].unit.clone();
        let unit = self.units.entry(unit).or_default();
        let own = self.sites.get_mut(site).and_then(|site| site.wall.as_mut());
        own.into_iter().chain(unit.wall.as_mut()).collect()
    }

    pub fn is_walled(&self, site: &str) -> bool {
        let site = &self.sites[site];
        site.wall.is_some() || self.units.get(&site.unit).is_some_and(|unit| unit.wall.is_some())
    }

    /// Whether a probe that waits needs this `robots.txt`: it is met before all others.
    pub fn is_refused_first(&self, robots_txt: &Key) -> bool {
        let site = &self.sites[&robots_txt.0];
        let unit = self.units.get(&site.unit).and_then(|unit| unit.wall.as_ref());
        site.wall.iter().chain(unit).filter(|wall| wall.asks_for_the_first()).any(|wall| {
            let key = (robots_txt.0.clone(), Stage::Download, wall.url.clone());
            let waits = self.tasks.get(&key).is_some_and(|task| task.place == Place::Waiting);
            waits && origin(&wall.url) == origin(&robots_txt.2)
        })
    }

    /// Whether a start under that token is void, as it is no probe of a wall.
    pub fn is_walled_against(&mut self, site: &str, token: u64) -> bool {
        self.walls(site).iter().any(|wall| wall.probe != Some(token))
    }

    /// A download is granted: behind a wall it is the only one.
    pub fn probe(&mut self, site: &str, token: u64, at: i64) -> Result<(), String> {
        let under_way: Vec<u64> = self.walls(site).iter().filter_map(|wall| wall.probe).collect();
        if let Some(other) = under_way.iter().find(|other| self.leases.contains_key(other)) {
            return Err(format!("W3: a probe of {site} beside another one, {other}"));
        }
        for wall in self.walls(site) {
            wall.start(token, at)?;
        }
        let now = self.now;
        let tick = |slow: &mut Option<Slow>| {
            *slow = slow.filter(|slow| now < slow.until);
            if let Some(slow) = slow {
                slow.left = slow.left.saturating_sub(1);
            }
        };
        let unit = self.sites[site].unit.clone();
        tick(&mut self.unit(&unit).slow);
        tick(&mut self.sites.entry(site.to_owned()).or_default().slow);
        Ok(())
    }

    /// A body that refuses; whether its lease holds.
    pub fn refuse(&mut self, lease: &LeaseKey, refusal: &WallSighting, told: bool) -> Result<(), String> {
        for wall in self.walls(&lease.site) {
            wall.refused += u32::from(wall.probe.take_if(|probe| *probe == lease.token).is_some());
        }
        let asked = self.leases.get(&lease.token).map(|held| held.granted);
        self.find_wall(&lease.site, lease.url.as_str(), refusal, asked);
        let holds = self.landed(lease, &None);
        if holds == told { Ok(()) } else { differs("refuse", holds, told) }
    }

    fn find_wall(&mut self, name: &str, url: &str, refusal: &WallSighting, asked: Option<i64>) {
        let (now, unit) = (self.now, self.sites[name].unit.clone());
        let slow = [self.sites[name].slow, self.unit(&unit).slow];
        let is_old = |slow: &Slow| asked.is_none_or(|asked| asked < slow.until - FORGIVEN);
        if self.is_walled(name) || slow.iter().flatten().any(is_old) {
            return;
        }
        let starts = if refusal.of_site { &self.sites[name].starts } else { &self.unit(&unit).starts };
        let last = starts.iter().max_by_key(|start| start.at);
        let ahead = last.filter(|start| start.at > now).map(|start| start.token);
        let doubled = remembered(slow[usize::from(!refusal.of_site)], now) + u32::from(ahead.is_some());
        let wall = Wall {
            url: url.to_owned(),
            since: now,
            first: refusal.first,
            ahead,
            starts: Vec::new(),
            doubled,
            probe: None,
            refused: 0,
            hurried: false,
        };
        if refusal.of_site {
            self.sites.entry(name.to_owned()).or_default().wall = Some(wall);
        } else {
            self.unit(&unit).wall = Some(wall);
        }
    }

    /// A person has asked for a page.
    pub fn probed(&mut self, site: &str, url: &str, refusal: Option<&WallSighting>) {
        let now = self.now;
        let Some(refusal) = refusal else { return self.pass(site, |_| true) };
        for wall in self.walls(site) {
            wall.doubled += 1;
            wall.refused += 1;
            wall.starts.push(now);
            wall.hurried = true;
        }
        self.find_wall(site, url, refusal, Some(now));
    }

    pub fn resume(&mut self, site: &str, told: bool) -> Result<(), String> {
        for wall in self.walls(site) {
            wall.hurried = true;
        }
        let is_walled = self.is_walled(site);
        if is_walled == told { Ok(()) } else { differs("resume", is_walled, told) }
    }

    /// A task ended: a probe that came to an answer ends the walls.
    pub fn ends_probe(&mut self, site: &str, token: u64, outcome: &Outcome) {
        let is_answer = match outcome {
            Outcome::Done { .. } | Outcome::Redirected { .. } => true,
            Outcome::Dead { why } => why.status.is_some(),
            _ => false,
        };
        if is_answer {
            self.pass(site, |wall| wall.probe == Some(token));
        }
        // It had to be read first.
        if matches!(outcome, Outcome::Robots(record) if !record.is_unreachable()) {
            let probed = self.walls(site).into_iter().filter(|wall| wall.probe == Some(token));
            probed.for_each(|wall| wall.forget_probe(token));
        }
    }

    fn pass(&mut self, site: &str, is_over: impl Fn(&Wall) -> bool) {
        let (now, unit) = (self.now, self.sites[site].unit.clone());
        let Unit { wall, slow, .. } = self.unit(&unit);
        end(wall, slow, now, &is_over);
        let Site { wall, slow, .. } = self.sites.entry(site.to_owned()).or_default();
        end(wall, slow, now, &is_over);
    }

    /// A lease says whether it is a probe, and a probe is the page that was refused first, if that waits in a lane which its process
    /// serves.
    pub fn check_probe(&mut self, owner: &str, lease: &Lease) -> Result<(), String> {
        let site = &lease.site;
        let expected = lease.stage == Stage::Download && self.is_walled(site);
        if expected != lease.is_probe() {
            return differs(&format!("W3: a probe of {site}"), expected, lease);
        }
        let walls = self.walls(site);
        let urls: Vec<String> =
            walls.iter().filter(|wall| wall.asks_for_the_first()).map(|wall| wall.url.clone()).collect();
        let waits = |url: &&String| {
            let key = (site.clone(), Stage::Download, (*url).clone());
            let waits = self.tasks.get(&key).is_some_and(|task| task.place == Place::Waiting);
            waits && self.is_served_by(owner, &key)
        };
        let waiting: Vec<&String> = urls.iter().filter(waits).collect();
        let is_it = waiting.is_empty() || waiting.contains(&&lease.url.to_string());
        if !expected || lease.robots.is_some() || is_it {
            return Ok(());
        }
        differs(&format!("W3: the probe of {site}"), waiting, lease)
    }
}

fn end(wall: &mut Option<Wall>, slow: &mut Option<Slow>, now: i64, is_over: &impl Fn(&Wall) -> bool) {
    if let Some(wall) = wall.take_if(|wall| is_over(wall)) {
        *slow = Some(wall.left_behind(now));
    }
}
