//! What this process did, counted as it happens.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::debug;

use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::fetch::Exchange;
use crate::frontier::{Freshness, View};
use crate::manners::is_early;
use crate::recent::Recent;
use crate::site::Site;
use crate::task::{Departure, RobotsAccess};

/// The most sites, and the most pace units, of which something is kept.
const MOST: usize = 32_768;

/// The counters of a process. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub struct Monitor(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    sites: Recent<String, SiteCounts, MOST>,
    /// What was done for all sites, also for those that are forgotten.
    total: Tally,
    /// The last request of each pace unit.
    last_sent: Recent<String, Option<Timestamp>, MOST>,
    workers: usize,
}

#[derive(Debug, Default)]
struct SiteCounts {
    tally: Tally,
    last_sent: Option<Timestamp>,
    freshness: Freshness,
    /// Hosts whose `robots.txt` could not be had when this process asked last, and why.
    unreachable: BTreeMap<String, String>,
}

/// What this process did for a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests sent.
    pub starts: u64,
    /// Starts sooner after the one before in the unit or in the site than its wait, less the grace, in this process.
    pub early: u64,
    /// Pages kept for parsing.
    pub pages: u64,
    /// Items written.
    pub items: u64,
    /// Tasks that died.
    pub dead: u64,
}

/// A site that was seen: how it stands, and what was done for it.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) view: View,
    pub(super) tally: Tally,
    pub(super) freshness: Freshness,
    /// A host whose `robots.txt` can't be had, and why.
    pub(super) unreachable: Option<String>,
}

impl Monitor {
    /// A request was sent, and its answer has ended.
    pub fn sent(&self, site: &Site, url: &CanonicalUrl, departure: Departure, exchange: &Exchange) {
        let at = exchange.sent.at;
        let status = exchange.answer.as_ref().map_or(0, |fetched| fetched.page.status);
        debug!(site = site.name, url = url.as_str(), status, "sent at {at}");
        let mut state = self.lock();
        let last_of_unit = state.last_sent.get_or(site.unit(), Option::default);
        let is_early_in_unit = follows_early(last_of_unit, at, departure.unit);
        let is_early_in_site = follows_early(&mut state.site(&site.name).last_sent, at, departure.site);
        let early = u64::from(is_early_in_unit || is_early_in_site);
        state.count(&site.name, Tally { starts: 1, early, ..Tally::default() });
    }

    /// A task was settled: a page was kept for parsing, or the task died, or neither.
    pub fn settled(&self, site: &str, kept: bool, died: bool) {
        let tally = Tally { pages: u64::from(kept), dead: u64::from(died), ..Tally::default() };
        self.lock().count(site, tally);
    }

    /// What a host's `robots.txt` says was found out.
    pub fn robots(&self, site: &str, origin: &str, access: &RobotsAccess) {
        let mut state = self.lock();
        let unreachable = &mut state.site(site).unreachable;
        if let RobotsAccess::Unreachable(why) = access {
            unreachable.insert(origin.to_owned(), why.clone());
        } else {
            unreachable.remove(origin);
        }
    }

    /// An item was written.
    pub fn item(&self, site: &str) {
        self.lock().count(site, Tally { items: 1, ..Tally::default() });
    }

    /// So many workers download at once.
    pub fn workers(&self, workers: usize) {
        self.lock().workers = workers;
    }

    /// How fresh a site's pages are.
    pub fn saw_freshness(&self, site: &str, freshness: Freshness) {
        self.lock().site(site).freshness = freshness;
    }

    /// The sites that were looked at, with what was counted of each.
    pub(super) fn counted(&self, views: &[View]) -> Vec<Counted> {
        let mut state = self.lock();
        let counted = |view: &View| {
            let SiteCounts { tally, freshness, unreachable, .. } = state.site(&view.site);
            let unreachable = unreachable.iter().next().map(|(origin, why)| format!("{origin}: {why}"));
            Counted { view: view.clone(), tally: *tally, freshness: *freshness, unreachable }
        };
        views.iter().map(counted).collect()
    }

    /// What was done for a site.
    pub fn tally(&self, site: &str) -> Tally {
        self.lock().site(site).tally
    }

    /// What was done for all sites.
    pub fn total(&self) -> Tally {
        self.lock().total
    }

    pub(super) fn worker_count(&self) -> usize {
        self.lock().workers
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a request came too early after the last one; it becomes the last one, unless its answer only ended later.
fn follows_early(last: &mut Option<Timestamp>, at: Timestamp, wait: i64) -> bool {
    let before = *last;
    *last = before.max(Some(at));
    let wait = Duration::from_millis(wait.unsigned_abs());
    before.is_some_and(|before| at > before && is_early(at.since(before), wait))
}

impl Counts {
    fn site(&mut self, name: &str) -> &mut SiteCounts {
        self.sites.get_or(name.to_owned(), SiteCounts::default)
    }

    /// So much more was done for a site.
    fn count(&mut self, site: &str, more: Tally) {
        let tally = &mut self.site(site).tally;
        *tally = tally.and(more);
        self.total = self.total.and(more);
    }
}

impl Tally {
    fn and(self, more: Self) -> Self {
        Self {
            starts: self.starts + more.starts,
            early: self.early + more.early,
            pages: self.pages + more.pages,
            items: self.items + more.items,
            dead: self.dead + more.dead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i17_of_many_sites_the_last_ones_counters_stay_and_all_are_in_the_total() {
        const SITES: u64 = 2 * MOST as u64;
        let monitor = Monitor::default();
        for n in 0..SITES {
            let site = format!("s{n}");
            monitor.settled(&site, true, n % 2 == 0);
            monitor.item(&site);
            monitor.robots(&site, "http://a", &RobotsAccess::Unreachable("503".to_owned()));
        }
        assert!(monitor.lock().sites.len() <= MOST);
        let counted = |pages, items, dead| Tally { pages, items, dead, ..Tally::default() };
        assert_eq!(monitor.total(), counted(SITES, SITES, SITES / 2));
        let last = format!("s{}", SITES - 1);
        assert_eq!([monitor.tally(&last), monitor.tally("s0")], [counted(1, 1, 0), Tally::default()]);
    }
}
