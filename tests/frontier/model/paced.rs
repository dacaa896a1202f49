//! Starts and the mutex, booked: whoever starts keeps an interval from the start before (I1).

use paced::internals::frontier::{LockReply, Rearm, TuneReply};
use paced::internals::task::{Departure, Stage};

use super::ledger::{LEASE, Ledger, Place, Site, Start, differs};
use super::walled::slowed;
use crate::world::START;

/// The longest interval that may be set, in ms.
const DAY: i64 = 86_400_000;

impl Ledger {
    pub fn rearm(&mut self, token: u64, answer: &Rearm) -> Result<(), String> {
        if !self.holds(token) {
            return if *answer == Rearm::Stale { Ok(()) } else { differs("re-arm", Rearm::Stale, answer) };
        }
        let (key, now) = (self.leases[&token].key.clone(), self.now);
        if key.1 == Stage::Parse {
            let none = Rearm::Departs(Departure::default());
            return if *answer == none { Ok(()) } else { differs("re-arm", none, answer) };
        }
        let unit = self.sites[&key.0].unit.clone();
        let blocked = self.blocked(&key.0);
        let is_void = self.is_paused(&key.0, Stage::Download, now) || blocked > now;
        if is_void || self.is_walled_against(&key.0, token) {
            self.go_back(token, Place::Waiting, true);
            return if *answer == Rearm::WentBack { Ok(()) } else { differs("re-arm", "WentBack", answer) };
        }
        let left = self.unit(&unit).outsider - now;
        if left > 0 {
            let held = Rearm::Held(left);
            return if *answer == held { Ok(()) } else { differs("re-arm", held, answer) };
        }
        let Rearm::Departs(departure) = answer else { return differs("re-arm", "Departs", answer) };
        self.move_start(&key.0, token);
        let at = self.start(&key.0, token, departure)?;
        if let Some(lease) = self.leases.get_mut(&token) {
            (lease.granted, lease.ends) = (now, at + LEASE);
        }
        Ok(())
    }

    /// A start that was given back: if it was a probe, that was never sent.
    pub fn forget_start(&mut self, site: &str, token: u64) {
        self.walls(site).into_iter().for_each(|wall| wall.forget_probe(token));
        self.move_start(site, token);
    }

    /// A start that is over, of its unit and of its site.
    fn move_start(&mut self, site: &str, token: u64) {
        let unit = self.sites[site].unit.clone();
        self.unit(&unit).starts.retain(|start| start.token != token);
        if let Some(site) = self.sites.get_mut(site) {
            site.starts.retain(|start| start.token != token);
        }
    }

    /// Books a start: it comes after both waits in force now, that of its unit and that of its site (I1).
    pub fn start(&mut self, site: &str, token: u64, departure: &Departure) -> Result<i64, String> {
        let unit = self.sites[site].unit.clone();
        let (at, wait, interval) = (departure.at - START, self.wait_of(&unit), self.sites[site].interval());
        if (departure.unit, departure.site) != (wait, interval) {
            return differs("the waits of a departure", (wait, interval), departure);
        }
        if at < self.now || at < self.blocked(site) {
            return Err(format!("I11: a start of {site} at {at}, granted at {}", self.now));
        }
        spaced(&unit, &self.unit(&unit).starts, at, wait)?;
        spaced(site, &self.sites[site].starts, at, interval)?;
        if at < self.unit(&unit).not_before {
            return Err(format!("I1: a start of {unit} at {at}, before what a site brought that joined"));
        }
        let start = Start { token, at, wait };
        self.unit(&unit).starts.push(start.clone());
        if let Some(site) = self.sites.get_mut(site) {
            site.starts.push(start);
        }
        Ok(at)
    }

    /// Until when a site is left alone, by itself or with its unit.
    fn blocked(&self, site: &str) -> i64 {
        let site = &self.sites[site];
        self.units.get(&site.unit).map_or(0, |unit| unit.blocked).max(site.blocked)
    }

    /// What a unit waits between its starts, as in force now.
    pub fn wait_of(&self, unit: &str) -> i64 {
        slowed(self.units.get(unit).and_then(|unit| unit.slow), self.usual_wait_of(unit))
    }

    /// The same but for a slow start.
    pub fn usual_wait_of(&self, unit: &str) -> i64 {
        let tuned = self.units.get(unit).and_then(|unit| unit.tuned).unwrap_or(0);
        match self.least_wait_of_group(unit) {
            None => self.sites.get(unit).map_or(0, Site::interval),
            Some(least) => least.max(tuned),
        }
    }

    /// What a group waits, whatever it was set to.
    fn least_wait_of_group(&self, unit: &str) -> Option<i64> {
        let members = self.sites.values().filter(|site| site.unit == unit);
        match self.units.get(unit)?.group? {
            0 => Some(members.map(|site| site.file.0).max().unwrap_or(0)),
            interval => Some(interval),
        }
    }

    /// A group's interval is made longer alone, and for as long as it has sites (F17).
    pub fn tune_group(
        &mut self,
        group: &str,
        interval: Option<i64>,
        answer: TuneReply,
    ) -> Result<(), String> {
        let is_known = self.sites.values().any(|site| site.unit == group);
        let least = self.least_wait_of_group(group).filter(|_| is_known);
        let expected = match (least, interval) {
            (None, _) => TuneReply::Unknown,
            (Some(least), Some(interval)) if !(least..=DAY).contains(&interval) => {
                TuneReply::Interval(least, DAY)
            }
            _ => TuneReply::Done,
        };
        if expected == TuneReply::Done {
            self.unit(group).tuned = interval;
        }
        if expected == answer { Ok(()) } else { differs("tune a group", expected, answer) }
    }

    /// A group without sites is what its files say when it has some again.
    pub fn tidy_groups(&mut self) {
        for (name, unit) in &mut self.units {
            unit.tuned = unit.tuned.filter(|_| self.sites.values().any(|site| site.unit == *name));
        }
    }

    /// An outsider that shares the pace never gets the lock within the interval after a start that stands.
    pub fn lock(&mut self, name: &str, expire: i64, answer: LockReply) -> Result<(), String> {
        let now = self.now;
        if self.unit(name).outsider > now {
            // Its own token asks again: the answer is the same, and nothing changes.
            return if matches!(answer, LockReply::Taken(_)) {
                Ok(())
            } else {
                differs("lock", "Taken", answer)
            };
        }
        if matches!(answer, LockReply::Taken(_)) {
            let last = self.units[name].starts.iter().max_by_key(|start| start.at);
            // Where it was raised while the outsider itself held the lock, the old one counts.
            let due = last.map(|last| last.at + last.wait.min(self.wait_of(name)));
            if due.is_some_and(|due| due > now) {
                return Err(format!("an outsider got the lock of {name} at {now}, before {due:?}: {last:?}"));
            }
            self.unit(name).outsider = now + expire;
        }
        Ok(())
    }
}

fn spaced(whose: &str, starts: &[Start], at: i64, wait: i64) -> Result<(), String> {
    match starts.iter().max_by_key(|start| start.at) {
        Some(last) if at < last.at + wait => Err(format!(
            "I1: a start of {whose} at {at}, {} ms after {last:?}, where {wait} ms were in force",
            at - last.at
        )),
        _ => Ok(()),
    }
}
