//! Batches, booked: every name that a task, its further run or its letter carries is a page of that batch (N4).

use std::collections::BTreeMap;
use std::mem::take;

use paced::internals::frontier::BatchCounts;
use paced::internals::task::{BatchNames, Put, Stage};

use super::ledger::{Key, Ledger, differs};

/// Batches that a put may name: more than a page has room for.
pub const BATCHES: [&str; 10] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9"];
const MOST: usize = 8;
/// For how long a batch is remembered that ended.
const KEPT: i64 = 7 * 86_400_000;

/// Names, in the order in which they came.
pub type Names = Vec<String>;

/// What is counted of a batch on a site, by what it is called.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    began: i64,
    counts: BTreeMap<&'static str, u64>,
    ended: Option<i64>,
}

/// By site and name.
pub type Batches = BTreeMap<(String, String), Batch>;

/// A campaign's name is none of those that count.
fn is_somebodys(name: &str) -> bool {
    !BatchNames::is_of_campaign(name)
}

fn has_room_for(names: &Names, name: &str) -> bool {
    !is_somebodys(name) || names.iter().filter(|own| is_somebodys(own)).count() < MOST
}

/// The names of those that go on as `names`, and how each of the others ended.
pub fn carry(names: &mut Names, carried: Names) -> Vec<(String, &'static str)> {
    let mut ended = Vec::new();
    for name in carried {
        if names.contains(&name) {
            ended.push((name, "merged"));
        } else if has_room_for(names, &name) {
            names.push(name);
        } else {
            ended.push((name, "done"));
        }
    }
    ended
}

impl Ledger {
    fn batch(&mut self, site: &str, name: &str) -> Option<&mut Batch> {
        let now = self.now;
        let batch = self.batches.get_mut(&(site.to_owned(), name.to_owned()))?;
        batch.ended.is_none_or(|at| at > now - KEPT).then_some(batch)
    }

    pub fn carriers(&self, site: &str, name: &str) -> u64 {
        let of_site = self.tasks.iter().filter(|(key, _)| key.0 == site).map(|(_, task)| task);
        let has = |names: &Names| u64::from(names.iter().any(|own| own == name));
        of_site.map(|task| has(&task.batches) + task.deferral.as_ref().map_or(0, |d| has(&d.batches))).sum()
    }

    /// Counts a page that joins or ends.
    pub fn count(&mut self, site: &str, name: &str, what: &'static str) {
        if let Some(batch) = self.batch(site, name) {
            *batch.counts.entry(what).or_default() += 1;
        }
    }

    pub fn count_all(&mut self, site: &str, names: &Names, what: &'static str) {
        for name in names {
            self.count(site, name, what);
        }
    }

    /// The batches of a page that the put joins as well, beside what it is carried on with.
    pub fn join_batches(&mut self, site: &str, names: &mut Names, put: &Put, how: &'static str) {
        for (name, ended) in carry(names, take(&mut self.carried)) {
            self.count(site, &name, ended);
        }
        for name in &put.batches {
            if names.contains(name) || !has_room_for(names, name) {
                continue;
            }
            names.push(name.clone());
            self.begin_batch(site, name);
            self.count(site, name, if put.hops > 0 { "targets" } else { how });
        }
    }

    fn begin_batch(&mut self, site: &str, name: &str) {
        if self.batch(site, name).is_none() {
            let batch = Batch { began: self.now, ..Batch::default() };
            self.batches.insert((site.to_owned(), name.to_owned()), batch);
        }
    }

    /// A request that asks for nothing is told to whoever looks.
    pub fn know_in_batches(&mut self, site: &str, put: &Put) {
        for name in put.batches.clone().into_iter().filter(|_| put.hops == 0) {
            self.begin_batch(site, &name);
            self.count(site, &name, "known");
        }
    }

    /// Whether a page has room for the batches of a put.
    pub fn has_room(&self, key: &Key, put: &Put) -> bool {
        let mut names: Names = put.batches.clone().into_iter().collect();
        let task = self.tasks.get(key);
        let further = task.and_then(|task| task.deferral.as_ref()).map(|deferral| &deferral.batches);
        let letter = self.dead_batches.get(key).filter(|_| task.is_none()).map(|(_, names)| names);
        let own = [task.map(|task| &task.batches), further, letter];
        names.extend(own.into_iter().flatten().flatten().cloned());
        names.sort();
        names.dedup();
        let own = names.iter().filter(|name| is_somebodys(name)).count();
        put.batches.is_empty() || put.hops > 0 || own <= MOST
    }

    /// A dead letter comes back, with the batches that still know of its death.
    pub fn revive_batches(&mut self, key: &Key) -> Names {
        let (died, names) = self.dead_batches.remove(key).unwrap_or_default();
        names.into_iter().filter(|name| self.undo_death(&key.0, name, died)).collect()
    }

    /// A dead letter is put away.
    pub fn drop_dead_batches(&mut self, key: &Key) {
        let (died, names) = self.dead_batches.remove(key).unwrap_or_default();
        for name in names {
            if self.undo_death(&key.0, &name, died) {
                self.count(&key.0, &name, "dropped");
            }
        }
    }

    fn undo_death(&mut self, site: &str, name: &str, died: i64) -> bool {
        let batch = self.batch(site, name).filter(|batch| died >= batch.began);
        let dead = batch.and_then(|batch| batch.counts.get_mut("dead"));
        dead.filter(|dead| **dead > 0).map(|dead| *dead -= 1).is_some()
    }

    /// What a task was of has ended.
    pub fn end_batches(&mut self, key: &Key, how: &'static str) {
        let names = self.tasks.get_mut(key).map(|task| take(&mut task.batches));
        self.count_all(&key.0, &names.unwrap_or_default(), how);
    }

    /// A task is dropped, with what met it: the session that it was a step of.
    pub fn drop_task(&mut self, key: &Key) -> Option<String> {
        let task = self.tasks.remove(key)?;
        self.books(key).dropped += 1;
        self.count_all(&key.0, &task.batches, "dropped");
        let further = task.deferral.map(|deferral| deferral.batches);
        self.count_all(&key.0, &further.unwrap_or_default(), "dropped");
        task.session
    }

    /// A task dies: its pages go on as its further run, or with its letter.
    pub fn batches_die(&mut self, key: &Key) {
        let Some(task) = self.tasks.get_mut(key) else { return };
        let names = take(&mut task.batches);
        if let Some(deferral) = &mut task.deferral {
            for (name, how) in carry(&mut deferral.batches, names) {
                self.count(&key.0, &name, how);
            }
        } else if !names.is_empty() {
            self.count_all(&key.0, &names, "dead");
            self.dead_batches.insert(key.clone(), (self.now, names));
        }
    }

    /// Counts what ended as tasks took up what met them, and notes which batches have ended by now.
    pub fn close_batches(&mut self) {
        let ended: Vec<_> = self
            .tasks
            .iter_mut()
            .flat_map(|(key, task)| take(&mut task.ended).into_iter().map(|e| (key.0.clone(), e)))
            .collect();
        for (site, (name, how)) in ended {
            self.count(&site, &name, how);
        }
        let names: Vec<_> = self.batches.keys().cloned().collect();
        for (site, name) in names {
            // A campaign's goes on with its next portion.
            let (open, now) = (!is_somebodys(&name) || self.carriers(&site, &name) > 0, self.now);
            if let Some(batch) = self.batch(&site, &name) {
                batch.ended = if open { None } else { batch.ended.or(Some(now)) };
            }
        }
    }

    /// How a batch is told: what is open are the tasks that carry it.
    pub fn check_batch(&mut self, site: &str, name: &str, told: Option<&BatchCounts>) -> Result<(), String> {
        let open = self.carriers(site, name);
        let known = self.batch(site, name).map(|batch| (batch.counts.clone(), batch.ended));
        let (Some((counts, ended)), Some(told)) = (known.clone(), told) else {
            let is_same = known.is_none() && told.is_none() && open == 0;
            return if is_same { Ok(()) } else { differs(&format!("N4: {name} of {site}"), known, told) };
        };
        let count = |what: &str| counts.get(what).copied().unwrap_or(0);
        let expected = [
            ["created", "coalesced", "deferred", "revived", "targets", "known"].map(count),
            ["merged", "done", "dead", "excluded", "dropped", "known"].map(count),
        ];
        let shown = [
            [told.created, told.coalesced, told.deferred, told.revived, told.targets, told.known],
            [told.merged, told.done, told.dead, told.excluded, told.dropped, told.known],
        ];
        let ended_at = told.ended_at.map(|at| at - crate::world::START);
        if (expected, ended, open) == (shown, ended_at, told.open()) {
            Ok(())
        } else {
            differs(&format!("N4: {name} of {site}"), (expected, ended, open), (shown, ended_at, told.open()))
        }
    }

    /// The pages of a download that its parse goes on with.
    pub fn carry_to_parse(&mut self, key: &Key) {
        let task = self.tasks.get_mut(key).filter(|_| key.1 == Stage::Download);
        self.carried = task.map(|task| take(&mut task.batches)).unwrap_or_default();
    }
}
