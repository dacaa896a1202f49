//! What this process did, counted as it happens.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::debug;

use crate::clock::Timestamp;
use crate::fetch::Exchange;
use crate::frontier::{Freshness, View};
use crate::manners::grace;
use crate::site::Site;
use crate::task::{Lease, Outcome, RobotsAccess, Settled, Stage};

/// The counters of a process. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub struct Monitor(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    sites: BTreeMap<String, SiteState>,
    last_sent: HashMap<String, Timestamp>,
    workers: usize,
    most_pages: Option<u64>,
    /// Pace units where nobody answered lately.
    away: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct SiteState {
    tally: Tally,
    view: Option<View>,
    freshness: Freshness,
    /// Hosts whose `robots.txt` could not be had when this process asked last, and why.
    unreachable: BTreeMap<String, String>,
    in_flight: HashMap<u64, Instant>,
    /// Those of them whose answer has ended: since when they wait for their page to be durable.
    keeping: HashMap<u64, Instant>,
    /// When a task of it was last granted to this process.
    granted: Option<Instant>,
}

/// What this process did for a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests sent.
    pub starts: u64,
    /// Starts sooner after the one before than the interval, less the grace, in this process.
    pub early: u64,
    /// Pages kept for parsing.
    pub pages: u64,
    /// Items written.
    pub items: u64,
    /// Tasks that died.
    pub dead: u64,
    /// Bytes of bodies, as sent.
    pub bytes: u64,
}

impl Tally {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            starts: self.starts + other.starts,
            early: self.early + other.early,
            pages: self.pages + other.pages,
            items: self.items + other.items,
            dead: self.dead + other.dead,
            bytes: self.bytes + other.bytes,
        }
    }
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

/// What the formula for workers needs of a site that moves.
#[derive(Clone, Debug)]
pub struct Load {
    /// Its name.
    pub site: String,
    /// The interval in force.
    pub interval: Duration,
    /// The most requests in flight.
    pub parallel: u32,
    /// The response time measured, if any.
    pub response: Option<Duration>,
    /// The age of its oldest request in flight: the response time is at least that.
    pub oldest: Duration,
    /// How long the oldest of its answers waits to be durable.
    pub keeping: Duration,
}

impl Monitor {
    /// Counters that end a process's claims after so many pages.
    pub fn limited(most_pages: Option<u64>) -> Self {
        Self(Arc::new(Mutex::new(State { most_pages, ..State::default() })))
    }

    /// A task was granted.
    pub fn started(&self, lease: &Lease) {
        let (mut state, now) = (self.lock(), Instant::now());
        let site = state.site(&lease.site);
        site.granted = Some(now);
        if lease.stage == Stage::Download {
            site.in_flight.insert(lease.token, now);
        }
    }

    /// A task's line came to its end.
    pub fn ended(&self, site: &str, stage: Stage, token: u64) {
        if stage == Stage::Download {
            let mut state = self.lock();
            let site = state.site(site);
            site.in_flight.remove(&token);
            site.keeping.remove(&token);
        }
    }

    /// Downloads of a site in this process's hands.
    pub fn in_flight(&self, site: &str) -> usize {
        self.lock().site(site).in_flight.len()
    }

    /// A request was sent, and its answer has ended.
    pub fn sent(&self, site: &Site, lease: &Lease, exchange: &Exchange) {
        let at = exchange.sent.at;
        let unit = site.unit();
        let status = exchange.answer.as_ref().map_or(0, |fetched| fetched.page.status);
        debug!(site = site.name, url = lease.url.as_str(), status, "sent at {at}");
        let mut state = self.lock();
        let gap = state.last_sent.get(&unit).map(|last| at.since(*last));
        let late = state.last_sent.get(&unit).is_none_or(|last| at > *last);
        if late {
            state.last_sent.insert(unit, at);
        }
        let known = state.site(&site.name);
        known.keeping.insert(lease.token, Instant::now());
        let tally = &mut known.tally;
        tally.starts += 1;
        tally.early += u64::from(late && gap.is_some_and(|gap| gap + grace(lease.interval) < lease.interval));
        tally.bytes += exchange.answer.as_ref().map_or(0, |fetched| fetched.page.body.len() as u64);
    }

    /// A task was settled.
    pub fn settled(&self, site: &str, stage: Stage, outcome: &Outcome, settled: &Settled) {
        let mut state = self.lock();
        let tally = &mut state.site(site).tally;
        let kept = matches!(settled, Settled::Kept | Settled::Leased(_)) && stage == Stage::Download;
        tally.pages += u64::from(kept && matches!(outcome, Outcome::Done { .. }));
        tally.dead += u64::from(*settled == Settled::Died);
    }

    /// What a host's `robots.txt` says was found out.
    pub fn robots(&self, site: &str, origin: &str, access: &RobotsAccess) {
        let mut state = self.lock();
        let unreachable = &mut state.site(site).unreachable;
        match access {
            RobotsAccess::Unreachable(why) => {
                unreachable.insert(origin.to_owned(), why.clone());
            }
            RobotsAccess::Rules(_) | RobotsAccess::Absent => {
                unreachable.remove(origin);
            }
        }
    }

    /// An item was written.
    pub fn item(&self, site: &str) {
        self.lock().site(site).tally.items += 1;
    }

    /// So many workers download at once.
    pub fn workers(&self, workers: usize) {
        self.lock().workers = workers;
    }

    /// Whether a pace unit answers, as far as this process has found out.
    pub fn found(&self, unit: &str, answers: bool) {
        let mut state = self.lock();
        if answers {
            state.away.remove(unit);
        } else {
            state.away.insert(unit.to_owned());
        }
    }

    /// Whether nobody answers there.
    pub fn is_away(&self, unit: &str) -> bool {
        self.lock().away.contains(unit)
    }

    /// How a site stands in the frontier.
    pub fn saw(&self, view: View) {
        let mut state = self.lock();
        let name = view.site.clone();
        state.site(&name).view = Some(view);
    }

    /// The sites of which this process was granted something within that time, or that are blocked since. How the others stand is forgotten.
    pub fn moving(&self, within: Duration) -> Vec<String> {
        let mut moving = Vec::new();
        for (name, site) in &mut self.lock().sites {
            let lately = site.granted.is_some_and(|at| at.elapsed() < within);
            if lately || !site.in_flight.is_empty() || site.is_blocked() {
                moving.push(name.clone());
            } else {
                site.view = None;
            }
        }
        moving
    }

    /// The sites of which this process was ever granted something.
    pub fn worked_on(&self) -> BTreeSet<String> {
        let state = self.lock();
        let granted = state.sites.iter().filter(|(_, site)| site.granted.is_some());
        granted.map(|(name, _)| name.clone()).collect()
    }

    /// How fresh a site's pages are.
    pub fn saw_freshness(&self, site: &str, freshness: Freshness) {
        self.lock().site(site).freshness = freshness;
    }

    /// How many more pages may be claimed.
    pub fn pages_left(&self) -> usize {
        let state = self.lock();
        let Some(most) = state.most_pages else { return usize::MAX };
        let under_way = state.sites.values().map(|site| site.tally.pages + site.in_flight.len() as u64);
        usize::try_from(most.saturating_sub(under_way.sum())).unwrap_or(usize::MAX)
    }

    /// Whether the most pages are kept.
    pub fn is_full(&self) -> bool {
        let state = self.lock();
        let pages: u64 = state.sites.values().map(|site| site.tally.pages).sum();
        state.most_pages.is_some_and(|most| pages >= most)
    }

    /// The load of every site that moves.
    pub fn loads(&self) -> Vec<Load> {
        let state = self.lock();
        let moving = state.sites.values().filter_map(|site| {
            let view = site.view.as_ref()?;
            let age = |since: Option<&Instant>| since.map_or(Duration::ZERO, Instant::elapsed);
            let unanswered = site.in_flight.iter().filter(|(token, _)| !site.keeping.contains_key(*token));
            let moves = !site.in_flight.is_empty() || view.download.waiting > 0;
            moves.then(|| Load {
                site: view.site.clone(),
                interval: Duration::from_millis(view.interval.unsigned_abs()),
                parallel: view.parallel,
                response: view.response.map(|ms| Duration::from_millis(ms.unsigned_abs())),
                oldest: age(unanswered.map(|(_, since)| since).min()),
                keeping: age(site.keeping.values().min()),
            })
        });
        moving.collect()
    }

    /// Every site that was seen, in the order of their names.
    pub(super) fn sites(&self) -> Vec<Counted> {
        let state = self.lock();
        state.sites.values().filter_map(SiteState::counted).collect()
    }

    /// What was done for a site.
    pub fn tally(&self, site: &str) -> Tally {
        self.lock().site(site).tally
    }

    /// What was done for all sites.
    pub fn total(&self) -> Tally {
        let state = self.lock();
        state.sites.values().map(|site| site.tally).fold(Tally::default(), Tally::plus)
    }

    pub(super) fn worker_count(&self) -> usize {
        self.lock().workers
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SiteState {
    fn counted(&self) -> Option<Counted> {
        let unreachable = self.unreachable.iter().next().map(|(origin, why)| format!("{origin}: {why}"));
        let view = self.view.clone()?;
        Some(Counted { view, tally: self.tally, freshness: self.freshness, unreachable })
    }

    fn is_blocked(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.blocked_until.is_some() && !view.finished)
    }
}

impl State {
    fn site(&mut self, name: &str) -> &mut SiteState {
        self.sites.entry(name.to_owned()).or_default()
    }
}
