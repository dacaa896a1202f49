//! What `robots.txt` says of a URL, by the record that all processes share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::{Frontier, FrontierError};
use crate::robots::{Rules, RulesCache, rules_of};
use crate::site::{RobotsPolicy, Site};
use crate::task::RobotsAccess;

/// An origin without a record is asked about again after this.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Robots rules, read from the frontier once a record.
#[derive(Debug)]
pub(super) struct Verdicts {
    frontier: Frontier,
    rules: RulesCache,
    /// By origin, until when its record holds, and when that was asked.
    ends: Mutex<HashMap<String, (Option<Timestamp>, Timestamp)>>,
}

impl Verdicts {
    pub(super) fn new(frontier: Frontier) -> Self {
        Self { frontier, rules: RulesCache::new(RulesCache::RULES), ends: Mutex::default() }
    }

    /// Whether the site may be asked for the URL. Without a record that holds now, or where robots.txt can't be had, it may: whether
    /// it is fetched is decided once there is one, and a page that is never put would be lost.
    pub(super) async fn allows(
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

    /// The rules of an origin: those of the record that ends at `until`, or of whichever holds now.
    async fn rules(
        &self,
        site: &Site,
        origin: &str,
        until: Option<Timestamp>,
    ) -> Result<Option<Arc<Rules>>, FrontierError> {
        let now = self.frontier.clock().now();
        let until = match until {
            Some(until) => Some(until),
            None => self.current(origin, now).await?,
        };
        let Some(until) = until else { return Ok(None) };
        if let Some(rules) = self.rules.get(&site.name, origin, until) {
            return Ok(Some(rules));
        }
        let Some(known) = self.frontier.robots(origin).await? else { return Ok(None) };
        let rules = Arc::new(rules_of(&known.record.access));
        self.rules.put(&site.name, origin, known.until, Arc::clone(&rules));
        Ok(Some(rules))
    }

    /// The end of the record that holds now and has rules, asked of the frontier at most once a second.
    async fn current(&self, origin: &str, now: Timestamp) -> Result<Option<Timestamp>, FrontierError> {
        let seen = self.lock().get(origin).copied();
        if let Some((until, asked)) = seen
            && (until.is_some_and(|until| until > now) || now.since(asked) < ASK_AGAIN)
        {
            return Ok(until.filter(|until| *until > now));
        }
        let known = self.frontier.robots(origin).await?;
        let decides = known.filter(|known| !matches!(known.record.access, RobotsAccess::Unreachable(_)));
        let until = decides.map(|known| known.until);
        self.lock().insert(origin.to_owned(), (until, now));
        Ok(until.filter(|until| *until > now))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Option<Timestamp>, Timestamp)>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
