//! `Verdicts`: what `robots.txt` says of a URL, by the record that all processes share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use url::Url;

use super::{QuotedRules, RobotsRules, rules_of};
use crate::budget::Budget;
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::{Frontier, FrontierError, KnownRobots};
use crate::site::{RobotsPolicy, Site};
use crate::task::{RobotsAccess, RobotsRecord};

/// An origin without a record is asked about again after this.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// So many rules are kept at most, about 20 MB of usual ones; over that, all are forgotten.
const MOST_RULES: usize = 200_000;

/// What `robots.txt` says of a URL, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether a crawl may ask for it; where nothing is known, it may until something is.
    pub allowed: bool,
    /// The line that decides, counted from 1, as it stands.
    pub line: Option<(usize, String)>,
    /// The verdict in words.
    pub why: String,
}

impl Verdict {
    fn new(allowed: bool, why: impl Into<String>) -> Self {
        Self { allowed, line: None, why: why.into() }
    }

    /// The verdict of a record.
    pub fn of(record: &RobotsRecord, url: &Url) -> Self {
        if let Some(why) = &record.refuses {
            return Self::new(false, format!("forbidden: {why}"));
        }
        match &record.access {
            RobotsAccess::Absent => Self::new(true, "allowed: the host has no robots.txt"),
            RobotsAccess::Unreachable(why) => {
                Self::new(false, format!("unknown: robots.txt can't be had ({why})"))
            }
            RobotsAccess::Rules(text) => Self::by_rules(&QuotedRules::of(text), url, &Budget::without_end()),
        }
    }

    /// The verdict of rules; where the budget is spent it is allowed for now.
    pub fn by_rules(rules: &QuotedRules<'_>, url: &Url, budget: &Budget) -> Self {
        let (allowed, line) = rules.verdict(url, budget);
        let word = if allowed { "allowed" } else { "forbidden" };
        let why = match &line {
            Some((number, line)) => format!("{word} by line {number} of robots.txt: {line}"),
            None => format!("{word}: no line of robots.txt speaks of it"),
        };
        Self { allowed, line, why }
    }
}

/// Robots rules, read from the frontier once a record.
#[derive(Debug)]
pub struct Verdicts {
    /// Without a frontier only what was learnt is known.
    frontier: Option<Frontier>,
    kept: Mutex<KeptRules>,
    /// By origin, records that this process asked for outside of all queues.
    learnt: Mutex<HashMap<String, (RobotsRecord, Arc<RobotsRules>)>>,
}

impl Verdicts {
    /// By what the frontier knows.
    pub fn new(frontier: Option<&Frontier>) -> Self {
        Self { frontier: frontier.cloned(), kept: Mutex::default(), learnt: Mutex::default() }
    }

    /// The rules that hold now for a link to the URL; none where it may be put in any case.
    pub async fn for_links(
        &self,
        site: &Site,
        url: &CanonicalUrl,
    ) -> Result<Option<Arc<RobotsRules>>, FrontierError> {
        if site.pace.robots == RobotsPolicy::Ignore {
            return Ok(None);
        }
        self.rules(&url.origin(), None).await
    }

    /// Whether the site may be asked for the URL, by the record that ends at `until` or by the one that holds now.
    ///
    /// Allowed if there is no such record or robots.txt can't be had: the check is repeated before the fetch, and a URL
    /// not queued now would be lost.
    pub async fn allows(
        &self,
        site: &Site,
        url: &CanonicalUrl,
        until: Option<Timestamp>,
    ) -> Result<bool, FrontierError> {
        if site.pace.robots == RobotsPolicy::Ignore {
            return Ok(true);
        }
        let Some(rules) = self.rules(&url.origin(), until).await? else { return Ok(true) };
        if !rules.may_take_long(url.url()) {
            return Ok(rules.allows(url.url()));
        }
        let url = url.url().clone();
        // Where such a thread panics nothing is known, and nothing is asked for.
        Ok(tokio::task::spawn_blocking(move || rules.allows(&url)).await.unwrap_or(false))
    }

    /// The same in words, with the line that decides. A host whose robots.txt can't be had is not asked for anything.
    pub async fn explain(&self, site: &Site, url: &CanonicalUrl) -> Result<Verdict, FrontierError> {
        if site.pace.robots == RobotsPolicy::Ignore {
            return Ok(Verdict::new(true, "ignored, as the site's file says"));
        }
        Ok(match self.record(&url.origin()).await? {
            Some(record) => Verdict::of(&record, url.url()),
            None => Verdict::new(true, "not known here: the host's robots.txt was not asked for"),
        })
    }

    /// The record of an origin that holds now, or the one that was learnt.
    pub async fn record(&self, origin: &str) -> Result<Option<RobotsRecord>, FrontierError> {
        if let Some((record, _)) = lock(&self.learnt).get(origin) {
            return Ok(Some(record.clone()));
        }
        let Some(frontier) = &self.frontier else { return Ok(None) };
        let now = frontier.clock().now();
        Ok(frontier.robots(origin).await?.filter(|known| known.until > now).map(|known| known.record))
    }

    /// Takes a record that this process asked for; it comes before the frontier's.
    pub fn learn(&self, origin: String, record: RobotsRecord) {
        let rules = Arc::new(rules_of(&record.access));
        lock(&self.learnt).insert(origin, (record, rules));
    }

    /// The rules of the record that ends at `until`, or of the one that holds now and could be had: that is asked of the
    /// frontier at most once a second.
    async fn rules(
        &self,
        origin: &str,
        until: Option<Timestamp>,
    ) -> Result<Option<Arc<RobotsRules>>, FrontierError> {
        if let Some((_, rules)) = lock(&self.learnt).get(origin) {
            return Ok(Some(Arc::clone(rules)));
        }
        let Some(frontier) = &self.frontier else { return Ok(None) };
        let now = frontier.clock().now();
        let kept = lock(&self.kept).by_origin.get(origin).cloned();
        let kept = if let Some(kept) = kept.filter(|kept| kept.serves(until, now)) {
            kept
        } else {
            let asked = RecordRules::of(frontier.robots(origin).await?, now);
            lock(&self.kept).put(origin, asked.clone());
            asked
        };
        Ok(kept.rules.filter(|_| until.is_some() || kept.could_be_had && kept.until > now))
    }
}

/// Parsed rules of the origins that this process asks often, one record each.
#[derive(Debug, Default)]
struct KeptRules {
    by_origin: HashMap<String, RecordRules>,
    /// How many rules there are, each record counted as one more.
    weight: usize,
}

/// What a record says.
#[derive(Clone, Debug)]
struct RecordRules {
    /// Until when it holds.
    until: Timestamp,
    /// When the frontier was asked.
    asked: Timestamp,
    could_be_had: bool,
    /// None where there is no record.
    rules: Option<Arc<RobotsRules>>,
}

impl RecordRules {
    fn of(known: Option<KnownRobots>, asked: Timestamp) -> Self {
        let Some(KnownRobots { record, until, .. }) = known else {
            return Self { until: Timestamp::default(), asked, could_be_had: false, rules: None };
        };
        let could_be_had = !matches!(record.access, RobotsAccess::Unreachable(_));
        Self { until, asked, could_be_had, rules: Some(Arc::new(rules_of(&record.access))) }
    }

    /// Whether this is the record that ends then, or else one that holds or was asked for just now.
    fn serves(&self, until: Option<Timestamp>, now: Timestamp) -> bool {
        let holds = self.could_be_had && self.until > now;
        until.map_or(holds || now.since(self.asked) < ASK_AGAIN, |until| until == self.until)
    }

    fn weight(&self) -> usize {
        self.rules.as_ref().map_or(1, |rules| rules.len() + 1)
    }
}

impl KeptRules {
    fn put(&mut self, origin: &str, record: RecordRules) {
        if self.weight > MOST_RULES {
            *self = Self::default();
        }
        self.weight += record.weight();
        let old = self.by_origin.insert(origin.to_owned(), record);
        self.weight -= old.map_or(0, |old| old.weight());
    }
}

/// A panic elsewhere leaves the maps whole: no entry is ever half written.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1000)
    }

    fn record(access: RobotsAccess, until: i64, asked: i64) -> RecordRules {
        let record = RobotsRecord { access, holds_for: Duration::ZERO, crawl_delay: None, refuses: None };
        RecordRules::of(Some(KnownRobots { record, until: at(until), failures: 0 }), at(asked))
    }

    #[test]
    fn rules_are_found_for_their_own_record_only() {
        let kept = record(RobotsAccess::Absent, 10, 1);
        assert!(kept.serves(Some(at(10)), at(99)) && !kept.serves(Some(at(11)), at(2)), "a newer record");
        assert!(kept.serves(None, at(9)) && !kept.serves(None, at(10)), "it has ended");
    }

    #[test]
    fn what_is_not_known_or_could_not_be_had_is_asked_again_after_a_second() {
        let unreachable = record(RobotsAccess::Unreachable("gone".to_owned()), 100, 1);
        for kept in [unreachable, RecordRules::of(None, at(1))] {
            assert!(kept.serves(None, at(1)) && !kept.serves(None, at(2)));
        }
    }

    #[test]
    fn no_more_than_so_many_rules_are_kept_and_a_newer_record_takes_the_place_of_the_older() {
        let text = "User-agent: *\n".to_owned() + &"Disallow: /a\n".repeat(MOST_RULES / 4);
        let (mut kept, many) = (KeptRules::default(), record(RobotsAccess::Rules(text), 1, 1));
        (0..10).for_each(|_| kept.put("same", many.clone()));
        assert_eq!(kept.weight, MOST_RULES / 4 + 1);
        (0..100).for_each(|n| kept.put(&n.to_string(), many.clone()));
        assert!(kept.by_origin.contains_key("99") && kept.by_origin.len() <= 5, "{}", kept.weight);
    }
}
