//! Parsed rules of the hosts that this process asks often. The record they come from is the frontier's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Rules;
use crate::clock::Timestamp;

/// A bounded store of parsed rules, one entry an origin, good until that origin's record ends.
#[derive(Debug)]
pub struct RulesCache {
    most: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<(String, String), Entry>,
    weight: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    until: Timestamp,
    rules: Arc<Rules>,
    last_use: u64,
}

impl RulesCache {
    /// `most` where nothing else is wanted: about 20 MB of usual rules.
    pub const RULES: usize = 200_000;

    /// A store of at most `most` rules, each file counted as one more.
    pub fn new(most: usize) -> Self {
        Self { most, inner: Mutex::default() }
    }

    /// The rules of an origin, where they are kept and come from the record that ends at `until`.
    pub fn get(&self, site: &str, origin: &str, until: Timestamp) -> Option<Arc<Rules>> {
        let mut inner = self.lock();
        inner.uses += 1;
        let now = inner.uses;
        let entry = inner.entries.get_mut(&(site.to_owned(), origin.to_owned()))?;
        entry.last_use = now;
        (entry.until == until).then(|| Arc::clone(&entry.rules))
    }

    /// Keeps the rules of an origin, in the place of older ones; what was used longest ago goes when there is no room.
    pub fn put(&self, site: &str, origin: &str, until: Timestamp, rules: Arc<Rules>) {
        let mut inner = self.lock();
        inner.uses += 1;
        inner.weight += weight(&rules);
        let entry = Entry { until, rules, last_use: inner.uses };
        if let Some(old) = inner.entries.insert((site.to_owned(), origin.to_owned()), entry) {
            inner.weight -= weight(&old.rules);
        }
        while inner.weight > self.most && inner.entries.len() > 1 {
            inner.drop_oldest();
        }
    }

    /// A panic elsewhere leaves the map whole: no entry is ever half written.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for RulesCache {
    fn default() -> Self {
        Self::new(Self::RULES)
    }
}

impl Inner {
    fn drop_oldest(&mut self) {
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.last_use).map(|(key, _)| key.clone());
        if let Some(entry) = oldest.and_then(|key| self.entries.remove(&key)) {
            self.weight -= weight(&entry.rules);
        }
    }
}

fn weight(rules: &Rules) -> usize {
    rules.len() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1000)
    }

    fn rules() -> Arc<Rules> {
        Arc::new(Rules::parse(b"User-agent: *\nDisallow: /a"))
    }

    #[test]
    fn rules_are_found_for_their_own_record_only() {
        let cache = RulesCache::default();
        cache.put("a", "https://a.example", until(1), rules());
        assert!(cache.get("a", "https://a.example", until(1)).is_some());
        assert!(cache.get("a", "https://a.example", until(2)).is_none(), "a newer record");
        assert!(cache.get("b", "https://a.example", until(1)).is_none(), "another site");
    }

    #[test]
    fn what_was_used_longest_ago_goes_when_there_is_no_room() {
        let cache = RulesCache::new(4);
        cache.put("a", "1", until(1), rules());
        cache.put("a", "2", until(1), rules());
        assert!(cache.get("a", "1", until(1)).is_some());
        cache.put("a", "3", until(1), rules());
        let kept = ["1", "2", "3"].map(|origin| cache.get("a", origin, until(1)).is_some());
        assert_eq!(kept, [true, false, true]);
    }

    #[test]
    fn a_newer_record_takes_the_place_of_the_older() {
        let cache = RulesCache::new(4);
        for second in 0..10 {
            cache.put("a", "1", until(second), rules());
        }
        cache.put("a", "2", until(1), rules());
        assert!(cache.get("a", "1", until(9)).is_some() && cache.get("a", "2", until(1)).is_some());
    }
}
