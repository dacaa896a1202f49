//! What this process remembers of answers that are a refusal only when there are several, and of sites without room.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::canonical_url::CanonicalUrl;
use crate::clock::since_boot;
use crate::manners::wall::{Met, RulePage, RuleRecord, ServerErrors, Suspicion};
use crate::recent::Recent;

/// This process's memory of answers that are a refusal only when there are several.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<RefusalMemory>);

#[derive(Debug, Default)]
struct RefusalMemory {
    /// By pace unit.
    errors: Recent<String, ServerErrors, MOST>,
    /// By site, and in it by rule.
    records: Recent<String, HashMap<String, RuleRecord>, MOST>,
    /// By site and the one that has no room for its links, since when that was said.
    full: Recent<(String, String), Duration, MOST>,
}

/// Units, and sites, that are remembered.
const MOST: usize = 16_384;

/// That a site has no room is said again after this.
const SAID_AGAIN: Duration = Duration::from_mins(10);

/// Rules of one site that have a record.
const MOST_RULES: usize = 50;

/// What is still to be done about a row of refusals without a mark.
pub(super) enum Heard {
    Nothing,
    /// It is to be tried.
    Suspected(Suspicion),
    /// This was the page that tries it, and it is refused too.
    Confirmed(Suspicion),
}

impl RefusalMemory {
    /// The record of a rule, a new one unless the site has too many.
    fn record(&mut self, site: &str, rule: &str) -> Option<&mut RuleRecord> {
        let rules = self.records.get_or(site.to_owned(), HashMap::new);
        let has_room = rules.contains_key(rule) || rules.len() < MOST_RULES;
        has_room.then(|| rules.entry(rule.to_owned()).or_default())
    }
}

impl Refusals {
    fn memory(&self) -> MutexGuard<'_, RefusalMemory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears a status of a unit; whether that was one 503 too many.
    pub(super) fn is_one_error_too_many(&self, unit: String, is_error: bool) -> bool {
        let mut memory = self.memory();
        if !is_error && memory.errors.peek(&unit).is_none() {
            return false;
        }
        memory.errors.get_or(unit, ServerErrors::default).hear(is_error)
    }

    /// Whether it is time to say that links of a site into another one have to wait.
    pub(super) fn is_said_again(&self, site: &str, owner: &str) -> bool {
        let (mut memory, key, now) = (self.memory(), (site.to_owned(), owner.to_owned()), since_boot());
        if memory.full.peek(&key).is_some_and(|said| now < *said + SAID_AGAIN) {
            return false;
        }
        memory.full.put(key, now);
        true
    }

    /// A page gave what its rule wants.
    pub(super) fn worked(&self, site: &str, rule: &str, page: &RulePage) {
        if let Some(record) = self.memory().record(site, rule) {
            record.worked(page);
        }
    }

    /// A page gave nothing of what its rule wants; whether that is worth a word.
    pub(super) fn found_nothing(&self, site: &str, rule: &str, page: &CanonicalUrl, met: Met) -> bool {
        self.memory().record(site, rule).is_some_and(|record| record.found_nothing(page, met))
    }

    /// Hears an answer to a page of a rule that has worked.
    pub(super) fn hear(&self, site: &str, rule: &str, page: &RulePage, met: Met) -> Heard {
        let (mut memory, now) = (self.memory(), since_boot());
        let Some(record) = memory.records.get(site).and_then(|rules| rules.get_mut(rule)) else {
            return Heard::Nothing;
        };
        match record.tried_by(&page.url).cloned() {
            Some(open) if open.is_confirmed_by(met) => {
                record.confirmed();
                Heard::Confirmed(open)
            }
            Some(_) if met != Met::Other => {
                record.cleared(now);
                Heard::Nothing
            }
            _ => record.hear(page, met, now).map_or(Heard::Nothing, Heard::Suspected),
        }
    }

    /// What was suspected is nothing after all.
    pub(super) fn dismiss(&self, site: &str, rule: &str) {
        let mut memory = self.memory();
        if let Some(record) = memory.records.get(site).and_then(|rules| rules.get_mut(rule)) {
            record.cleared(since_boot());
        }
    }
}
