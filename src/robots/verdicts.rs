//! `Verdicts`: what `robots.txt` says of a URL, by the record that all processes share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use url::Url;

use super::{Rules, RulesCache, deciding_line, rules_of};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::{Frontier, FrontierError, KnownRobots};
use crate::site::{RobotsPolicy, Site};
use crate::task::{RobotsAccess, RobotsRecord};

/// An origin without a record is asked about again after this.
const ASK_AGAIN: Duration = Duration::from_secs(1);

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
                Self::new(false, format!("forbidden: robots.txt can't be had ({why})"))
            }
            RobotsAccess::Rules(text) => {
                let allowed = rules_of(&record.access).allows(url);
                let word = if allowed { "allowed" } else { "forbidden" };
                match deciding_line(text.as_bytes(), url) {
                    Some((number, line)) => {
                        let why = format!("{word} by line {number} of robots.txt: {line}");
                        Self { allowed, line: Some((number, line)), why }
                    }
                    None => Self::new(allowed, format!("{word}: no line of robots.txt speaks of it")),
                }
            }
        }
    }
}

/// Robots rules, read from the frontier once a record.
#[derive(Debug)]
pub struct Verdicts {
    /// Without a frontier only what was learnt is known.
    frontier: Option<Frontier>,
    rules: RulesCache,
    /// By origin, until when its record holds, and when that was asked.
    ends: Mutex<HashMap<String, (Option<Timestamp>, Timestamp)>>,
    /// By origin, records that this process asked for outside of all queues.
    learnt: Mutex<HashMap<String, RobotsRecord>>,
}

impl Verdicts {
    /// By what the frontier knows.
    pub fn new(frontier: Option<&Frontier>) -> Self {
        Self {
            frontier: frontier.cloned(),
            rules: RulesCache::new(RulesCache::RULES),
            ends: Mutex::default(),
            learnt: Mutex::default(),
        }
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
        Ok(self.rules(site, &url.origin(), until).await?.is_none_or(|rules| rules.allows(url.url())))
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
        if let Some(record) = lock(&self.learnt).get(origin) {
            return Ok(Some(record.clone()));
        }
        let Some(frontier) = &self.frontier else { return Ok(None) };
        let now = frontier.clock().now();
        Ok(frontier.robots(origin).await?.filter(|known| known.until > now).map(|known| known.record))
    }

    /// Takes a record that this process asked for; it comes before the frontier's.
    pub fn learn(&self, origin: String, record: RobotsRecord) {
        lock(&self.learnt).insert(origin, record);
    }

    async fn rules(
        &self,
        site: &Site,
        origin: &str,
        until: Option<Timestamp>,
    ) -> Result<Option<Arc<Rules>>, FrontierError> {
        if let Some(record) = lock(&self.learnt).get(origin) {
            return Ok(Some(Arc::new(rules_of(&record.access))));
        }
        let Some(frontier) = &self.frontier else { return Ok(None) };
        let until = match until {
            Some(until) => Some(until),
            None => self.current(frontier, origin).await?,
        };
        let Some(until) = until else { return Ok(None) };
        if let Some(rules) = self.rules.get(&site.name, origin, until) {
            return Ok(Some(rules));
        }
        let Some(known) = frontier.robots(origin).await? else { return Ok(None) };
        let rules = Arc::new(rules_of(&known.record.access));
        self.rules.put(&site.name, origin, known.until, Arc::clone(&rules));
        Ok(Some(rules))
    }

    /// The end of the record that holds now and has rules, asked of the frontier at most once a second.
    async fn current(&self, frontier: &Frontier, origin: &str) -> Result<Option<Timestamp>, FrontierError> {
        let now = frontier.clock().now();
        let seen = lock(&self.ends).get(origin).copied();
        if let Some((until, asked)) = seen
            && (until.is_some_and(|until| until > now) || now.since(asked) < ASK_AGAIN)
        {
            return Ok(until.filter(|until| *until > now));
        }
        let decides = |known: &KnownRobots| !matches!(known.record.access, RobotsAccess::Unreachable(_));
        let until = frontier.robots(origin).await?.filter(decides).map(|known| known.until);
        lock(&self.ends).insert(origin.to_owned(), (until, now));
        Ok(until.filter(|until| *until > now))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
