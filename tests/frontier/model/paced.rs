//! Starts and the mutex, booked: whoever starts keeps an interval from the start before (I1).

use paced::internals::frontier::{LockReply, Rearm};
use paced::internals::task::Stage;

use super::ledger::{LEASE, Ledger, Place, Start, differs};

impl Ledger {
    pub fn rearm(&mut self, token: u64, answer: &Rearm) -> Result<(), String> {
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
            self.go_back(token, Place::Waiting, true);
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
            let due = last.map(|last| last.at + last.interval.min(self.wait_after(name, last)));
            if due.is_some_and(|due| due > now) {
                return Err(format!("an outsider got the lock of {name} at {now}, before {due:?}: {last:?}"));
            }
            self.unit(name).outsider = now + expire;
        }
        Ok(())
    }
}
