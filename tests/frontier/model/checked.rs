//! The ledger against what the frontier shows: places, books, indexes.

use std::collections::{BTreeMap, BTreeSet};

use paced::internals::frontier::state::Turn;
use paced::internals::frontier::{Inspection, View};
use paced::internals::task::Stage;

use super::claimed::AHEAD;
use super::game::stage_name;
use super::ledger::{Books, Key, Ledger, NEVER, Place, Task, differs, name};
use crate::world::START;

impl Ledger {
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

    pub fn check_site(&self, view: &View) -> Result<(), String> {
        let name = &view.site;
        for (stage, counts) in [(Stage::Download, &view.download), (Stage::Parse, &view.parse)] {
            let books = self.sites[name].books.get(&stage).copied().unwrap_or_default();
            let (created, revived, reruns) = (counts.created, counts.revived, counts.reruns);
            let (done, dead, dropped) = (counts.done, counts.dead, counts.dropped);
            let told = Books { created, done, dead, dropped, revived, reruns };
            if told != books {
                return differs(&format!("I14: books of {name}, {}", stage_name(stage)), books, told);
            }
            let here = |wanted: &str| {
                let is = |(key, task): &(&Key, &Task)| {
                    key.0 == *name && key.1 == stage && self::name(task.place) == wanted
                };
                self.tasks.iter().filter(is).count() as u64
            };
            let parked = here("parked");
            let behind = here("behind");
            let later = [here("delayed"), here("scheduled") + behind, behind];
            let counted = (here("waiting") + parked, parked, later, here("running"));
            self.check_lanes(name, stage, counts)?;
            if counts.bytes != self.weight(name, stage) {
                return differs(&format!("M10: bytes of {name}"), self.weight(name, stage), counts.bytes);
            }
            let later = [counts.delayed, counts.scheduled, counts.behind];
            let told = (counts.waiting, counts.parked, later, counts.leased);
            if told != counted || counts.imbalance() != 0 {
                return differs(&format!("I14: places of {name}, {}", stage_name(stage)), counted, counts);
            }
        }
        if view.in_flight as usize != self.in_flight(name) {
            return differs(&format!("I2: in flight on {name}"), self.in_flight(name), view.in_flight);
        }
        if (view.interval, view.parallel as usize, view.is_paused(), view.parse_pause().is_some())
            != (
                self.sites[name].interval().max(self.wait_of(&view.unit)),
                self.sites[name].parallel(),
                self.is_paused(name, Stage::Download, self.now),
                self.is_paused(name, Stage::Parse, self.now),
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
        // One that ends by itself is a wait.
        let is_paused = site.paused == Some(NEVER);
        waits && !errand && !is_paused && self.in_flight(name) < site.parallel()
    }

    pub fn check_due(&self, inside: &Inspection) -> Result<(), String> {
        let mut expected: BTreeSet<(Stage, &str)> = BTreeSet::new();
        for (name, site) in &self.sites {
            if self.is_ready(name) {
                expected.insert((Stage::Download, &site.unit));
            }
            let parse = |(key, task): (&Key, &Task)| {
                key.0 == *name && key.1 == Stage::Parse && task.place == Place::Waiting
            };
            if site.parse_paused.is_none() && self.tasks.iter().any(parse) {
                expected.insert((Stage::Parse, &site.unit));
            }
        }
        let told = inside.due.iter().map(|(stage, unit, _)| (*stage, unit.as_str())).collect();
        if expected != told {
            return differs("I9: due index", expected, told);
        }
        for (_, name, score) in inside.due.iter().filter(|due| due.0 == Stage::Download) {
            let unit = &self.units[name];
            let wait = self.wait_of(name);
            let paced = unit.starts.iter().map(|start| start.at + wait).max().unwrap_or(i64::MIN);
            // A block that was never set is no time at all.
            let least = if unit.blocked > 0 { paced.max(unit.blocked) } else { paced };
            let least = least.max(self.shared_wait(name, Stage::Download));
            let from = Turn(*score).from() - START;
            if from < least.saturating_sub(AHEAD.min(wait / 4)) {
                return differs(&format!("I9: score of {name}"), least, from);
            }
        }
        Ok(())
    }

    /// I15: what is left when all is done.
    pub fn check_empty(&self, inside: &Inspection) -> Result<(), String> {
        if self.tasks.is_empty() && inside.tasks.is_empty() && inside.due.is_empty() {
            return Ok(());
        }
        differs("I15: what is left", "nothing", (&inside.tasks, &inside.due))
    }
}
