//! What is under way in this process: its tasks with their leases, the sites that they are of, and how many more pages it may
//! ask for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::scaling::Load;
use crate::canonical_url::CanonicalUrl;
use crate::clock::since_boot;
use crate::frontier::state::{DropMark, LEASE_MS, TOLD_MS};
use crate::frontier::{UNTIL_A_CLAIM, View};
use crate::manners::departure::MOST_AHEAD;
use crate::recent::Recent;
use crate::task::{Lease, LeaseKey, Stage};

/// The most sites of which it is known that something was granted.
const MOST_SITES: usize = 32_768;

/// The tasks of this process, and what they are of.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    table: Mutex<Table>,
    /// Pages kept so far, and the most there may be.
    pages: AtomicUsize,
    most_pages: Option<usize>,
}

#[derive(Debug, Default)]
struct Table {
    /// By the token of their lease.
    tasks: HashMap<u64, TaskUnderWay>,
    /// Those of which anything was granted, the last ones of very many.
    sites: Recent<String, SiteUnderWay, MOST_SITES>,
    /// How the sites stand that are looked at.
    views: Arc<Vec<View>>,
}

#[derive(Debug)]
struct TaskUnderWay {
    lease: LeaseKey,
    since: Instant,
    /// The time since boot right before its lease was asked for, or last renewed; none once it was lost.
    noted: Option<Duration>,
    /// Since when its answer waits to be durable.
    answered: Option<Instant>,
    /// It needs no slot any more: its page is kept.
    kept: bool,
    /// Its request, once it is about to be sent.
    request: Option<RequestUnderWay>,
}

/// A request that may be dropped.
#[derive(Debug)]
struct RequestUnderWay {
    unit: String,
    /// In ms of the frontier's time.
    granted_at: i64,
    dropped: CancellationToken,
}

#[derive(Debug)]
struct SiteUnderWay {
    /// When a start of it made this process the one that tells how it stands.
    told: Option<Instant>,
    /// The newest download that was granted.
    newest: Option<NewestGrant>,
    downloads: usize,
    /// Until when its queue lasts at the least, in time since boot.
    supplied_until: Duration,
    /// Until when there surely is a place in flight for its next request, in time since boot.
    has_places_until: Duration,
}

/// How a site stood when a download of it was granted.
#[derive(Clone, Copy, Debug)]
struct NewestGrant {
    at: Instant,
    interval: Duration,
    parallel: u32,
    response: Option<Duration>,
}

/// A task in this process's hands: its lease is renewed until this is dropped, however it ends.
#[derive(Debug)]
pub(super) struct RunningTask {
    under_way: Arc<UnderWay>,
    token: u64,
}

impl UnderWay {
    /// Nothing yet; nothing more is claimed once so many pages are kept.
    pub(super) fn new(most_pages: Option<u64>) -> Self {
        let most_pages = most_pages.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        Self { most_pages, ..Self::default() }
    }

    /// A task was granted that was asked for when the machine had run for so long.
    pub(super) fn begin(self: &Arc<Self>, lease: &Lease, noted: Duration) -> RunningTask {
        let (mut table, since) = (self.lock(), Instant::now());
        let task = TaskUnderWay {
            lease: lease.key(),
            since,
            noted: Some(noted),
            answered: None,
            kept: false,
            request: None,
        };
        table.tasks.insert(lease.token, task);
        let new = || SiteUnderWay {
            told: None,
            newest: None,
            downloads: 0,
            supplied_until: noted,
            has_places_until: noted,
        };
        let site = table.sites.get_or(lease.site.clone(), new);
        if lease.tells {
            site.told = Some(since);
        }
        site.supplied_until = noted + Duration::from_millis(lease.supply.unsigned_abs());
        if lease.stage == Stage::Download {
            // Whoever takes them, one goes in each wait.
            site.has_places_until = noted + lease.departure.wait() * lease.places;
            site.newest = Some(NewestGrant::of(lease, since));
            site.downloads += 1;
        }
        RunningTask { under_way: Arc::clone(self), token: lease.token }
    }

    /// Its request is about to be sent, paid to that unit; cancelled where it is to be dropped.
    pub(super) fn asks(&self, lease: &Lease, unit: String) -> CancellationToken {
        let (granted_at, dropped) = (lease.granted_at.as_millis(), CancellationToken::new());
        if let Some(task) = self.lock().tasks.get_mut(&lease.token) {
            task.request = Some(RequestUnderWay { unit, granted_at, dropped: dropped.clone() });
        }
        dropped
    }

    /// Whether any request is under way.
    pub(super) fn has_requests(&self) -> bool {
        self.lock().tasks.values().any(|task| task.request.is_some())
    }

    /// Drops the requests that one of these marks means; how many of each site.
    pub(super) fn drop_requests(&self, marks: &[DropMark]) -> BTreeMap<String, usize> {
        let (mut table, mut dropped) = (self.lock(), BTreeMap::new());
        for task in table.tasks.values_mut() {
            let site = &task.lease.site;
            let is_meant = |request: &mut RequestUnderWay| {
                marks.iter().any(|mark| mark.means(site, &request.unit, request.granted_at))
            };
            if let Some(request) = task.request.take_if(is_meant) {
                request.dropped.cancel();
                *dropped.entry(site.clone()).or_default() += 1;
            }
        }
        dropped
    }

    /// Its answer has ended.
    pub(super) fn answered(&self, token: u64) {
        if let Some(task) = self.lock().tasks.get_mut(&token) {
            task.request = None;
            task.answered = Some(Instant::now());
        }
    }

    /// Its page is durable, and its slot free: what is left is to say so.
    pub(super) fn kept(&self, token: u64) {
        if let Some(task) = self.lock().tasks.get_mut(&token) {
            task.kept = true;
        }
    }

    /// Whether so much waits in a site, as far as is known, that no start misses what takes a little longer.
    pub(super) fn is_supplied(&self, site: &str, now: Duration) -> bool {
        self.lock().sites.peek(site).is_some_and(|site| now + A_WHILE <= site.supplied_until)
    }

    /// Whether a site surely has places in flight for a while: no start of it waits for one that is given back a little later.
    pub(super) fn has_places(&self, site: &str, now: Duration) -> bool {
        let until = self.lock().sites.peek(site).map_or(Duration::ZERO, |site| site.has_places_until);
        now + UNTIL_A_CLAIM + MOST_AHEAD <= until
    }

    /// Tasks of a site end without a start, which takes no interval: how long its queue lasts is not known until its next grant.
    pub(super) fn is_in_doubt(&self, site: &str) {
        if let Some(site) = self.lock().sites.get(site) {
            site.supplied_until = Duration::ZERO;
        }
    }

    /// A page was kept for good.
    pub(super) fn page_kept(&self) {
        self.pages.fetch_add(1, Ordering::SeqCst);
    }

    /// How many more pages may be claimed.
    pub(super) fn pages_left(&self) -> usize {
        let Some(most) = self.most_pages else { return usize::MAX };
        let is_download = |task: &&TaskUnderWay| task.lease.stage == Stage::Download;
        let downloads = self.lock().tasks.values().filter(is_download).count();
        most.saturating_sub(self.pages.load(Ordering::SeqCst) + downloads)
    }

    /// Whether the most pages are kept.
    pub(crate) fn is_full(&self) -> bool {
        self.most_pages.is_some_and(|most| self.pages.load(Ordering::SeqCst) >= most)
    }

    /// Downloads of a site in this process's hands.
    pub(super) fn downloads_of(&self, site: &str) -> usize {
        self.lock().sites.peek(site).map_or(0, |site| site.downloads)
    }

    /// How the sites that are looked at stand.
    pub(crate) fn saw(&self, views: &Arc<Vec<View>>) {
        self.lock().views = Arc::clone(views);
    }

    /// The sites of which this process tells how they stand, by name: those of which a start made it so lately, and those that
    /// are blocked since. Their other starts may be anybody's.
    pub(crate) fn told(&self) -> Vec<String> {
        let table = self.lock();
        let is_told = |site: &SiteUnderWay| site.told.is_some_and(|at| at.elapsed() < TOLD);
        let told = table.sites.iter().filter(|(_, site)| is_told(site)).map(|(name, _)| name);
        let is_blocked = |view: &&View| view.blocked_until.is_some() && !view.finished;
        let blocked = table.views.iter().filter(is_blocked).map(|view| &view.site);
        told.chain(blocked).cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Whether nothing at all is under way here.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().tasks.is_empty()
    }

    /// How many leases this process holds.
    pub(super) fn leases(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Whether anything of a site was granted.
    pub(crate) fn has_worked_on(&self, site: &str) -> bool {
        self.lock().sites.peek(site).is_some()
    }

    /// The load of every site that moves.
    pub(super) fn loads(&self) -> Vec<Load> {
        let table = self.lock();
        let (now, booted) = (Instant::now(), since_boot());
        let mut ages: HashMap<&str, (Duration, Duration)> = HashMap::new();
        let is_counted = |task: &&TaskUnderWay| task.lease.stage == Stage::Download && !task.kept;
        for task in table.tasks.values().filter(is_counted) {
            let (oldest, keeping) = ages.entry(&task.lease.site).or_default();
            match task.answered {
                Some(answered) => *keeping = (*keeping).max(now - answered),
                None => *oldest = (*oldest).max(now - task.since),
            }
        }
        let loads = table.sites.iter().filter_map(|(name, site)| {
            let newest = site.newest.filter(|newest| site.downloads > 0 || now - newest.at < LATELY)?;
            let ages = ages.get(name.as_str()).copied();
            let (oldest, keeping) = ages.or((site.supplied_until > booted).then_some(Default::default()))?;
            let NewestGrant { interval, parallel, response, .. } = newest;
            Some(Load { site: name.clone(), interval, parallel, response, oldest, keeping })
        });
        loads.collect()
    }

    /// The task that is under way for the longest: for how long, and its URL.
    pub(super) fn oldest(&self) -> Option<(Duration, CanonicalUrl)> {
        let table = self.lock();
        let oldest = table.tasks.values().min_by_key(|task| task.since)?;
        Some((oldest.since.elapsed(), oldest.lease.url.clone()))
    }

    /// Leases that are half over by then, in time since boot. Each began after it was asked for, and a slow answer is a part of it.
    pub(super) fn half_over(&self, by: Duration) -> Vec<LeaseKey> {
        let table = self.lock();
        let due = table.tasks.values().filter(|task| task.noted.is_some_and(|noted| noted + LEASE / 2 <= by));
        due.map(|task| task.lease.clone()).collect()
    }

    /// When a lease ends at the earliest, in time since boot; none if it is lost.
    pub(super) fn ends(&self, token: u64) -> Option<Duration> {
        let noted = self.lock().tasks.get(&token).and_then(|task| task.noted);
        noted.map(|noted| noted + LEASE)
    }

    /// A lease was renewed, which was asked for then; or it is lost.
    pub(super) fn renewed(&self, token: u64, noted: Option<Duration>) {
        if let Some(task) = self.lock().tasks.get_mut(&token) {
            task.noted = noted;
        }
    }

    /// This process was taken for dead: each of its leases may be lost, and is asked about at the next beat.
    pub(super) fn doubt_all(&self) {
        self.lock()
            .tasks
            .values_mut()
            .filter_map(|task| task.noted.as_mut())
            .for_each(|noted| *noted = Duration::ZERO);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NewestGrant {
    fn of(lease: &Lease, at: Instant) -> Self {
        let response = lease.response.map(|ms| Duration::from_millis(ms.unsigned_abs()));
        Self { at, interval: lease.departure.wait(), parallel: lease.parallel, response }
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        let mut table = self.under_way.lock();
        let Some(task) = table.tasks.remove(&self.token) else { return };
        if let Some(site) = table.sites.get(&task.lease.site) {
            site.downloads -= usize::from(task.lease.stage == Stage::Download);
        }
    }
}

/// The longest that a page's links take to its queue if they wait for claims to travel with: its settlement, and their put.
const A_WHILE: Duration = UNTIL_A_CLAIM.saturating_mul(3);
/// A site moves if something of it was granted to this process within this time.
const LATELY: Duration = Duration::from_mins(1);
/// For how long this process tells how a site stands after a start that made it so.
const TOLD: Duration = Duration::from_millis(TOLD_MS.unsigned_abs());
/// How long a lease lasts.
pub(super) const LEASE: Duration = Duration::from_millis(LEASE_MS.unsigned_abs());

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    /// The lease of a download.
    pub(in crate::work) fn lease(token: u64) -> Lease {
        let text = format!(
            r#"{{"token":{token},"site":"shop","stage":"download","url":"http://127.0.0.1/{token}","fence":1,"granted_at":"2026-11-20T09:00:00Z",
            "ends_at":"2026-11-20T09:00:30Z","attempts":0,"origin":"link","priority":240,"depth":0,"hops":0,"departure":{{"at":0,"unit":0,"site":0}},
            "robots":null,"robots_until":null,"stored":null,"version":1,"supply":0,"places":0,"parallel":8,
            "response":null,"tells":false,"probe_of":null,"urgent":false}}"#
        );
        serde_json::from_str(&text).expect("a lease")
    }

    #[test]
    fn a_lease_is_renewed_until_its_task_ends_however_or_it_is_lost() {
        let under_way = Arc::new(UnderWay::default());
        let tokens = |leases: Vec<LeaseKey>| leases.iter().map(|lease| lease.token).collect::<Vec<_>>();
        let half_over = |under_way: &UnderWay, by| tokens(under_way.half_over(S(by)));
        let first = under_way.begin(&lease(1), S(100));
        let second = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _second = under_way.begin(&lease(2), S(100));
            panic!("a task that broke");
        }));
        assert!(second.is_err());
        assert_eq!(half_over(&under_way, 114), [0; 0]);
        assert_eq!(half_over(&under_way, 115), [1]);
        assert_eq!(half_over(&under_way, 116), [1], "it is due until it was renewed");
        under_way.renewed(1, Some(S(116)));
        assert_eq!(half_over(&under_way, 130), [0; 0]);
        assert_eq!(half_over(&under_way, 131), [1]);
        under_way.renewed(1, None);
        assert_eq!(half_over(&under_way, 1_000), [0; 0]);
        assert_eq!(under_way.oldest().expect("it still runs").1.as_str(), "http://127.0.0.1/1");
        drop(first);
        assert!(under_way.oldest().is_none());
    }

    #[test]
    fn r5_a_lease_lasts_from_before_it_was_asked_for_until_it_is_lost() {
        let under_way = Arc::new(UnderWay::default());
        // The claim was sent after 100 s, and took 20 s.
        let task = under_way.begin(&lease(1), S(100));
        assert_eq!(under_way.ends(1), Some(S(130)));
        under_way.renewed(1, Some(S(120)));
        assert_eq!(under_way.ends(1), Some(S(150)));
        under_way.doubt_all();
        assert_eq!(under_way.ends(1), Some(S(30)), "this process was taken for dead");
        assert_eq!(under_way.half_over(S(121)).len(), 1);
        under_way.renewed(1, None);
        under_way.doubt_all();
        assert!(under_way.ends(1).is_none() && under_way.half_over(S(121)).is_empty(), "it is lost");
        drop(task);
        assert_eq!(under_way.ends(1), None, "it has ended");
    }

    #[test]
    fn a_site_is_supplied_while_its_queue_surely_lasts_for_a_while_by_its_newest_grant() {
        let under_way = Arc::new(UnderWay::default());
        let granted = |token, supply| Lease { supply, ..lease(token) };
        assert!(!under_way.is_supplied("shop", S(0)), "nothing is known of it");
        let _first = under_way.begin(&granted(1, 2_000), S(100));
        assert_eq!(
            [100_000, 101_700, 101_701].map(|ms| under_way.is_supplied("shop", Duration::from_millis(ms))),
            [true, true, false]
        );
        under_way.is_in_doubt("shop");
        assert!(!under_way.is_supplied("shop", S(100)), "what waits may end without a start");
        let _again = under_way.begin(&granted(3, 2_000), S(100));
        assert!(under_way.is_supplied("shop", S(100)), "by its newest grant");
        let _second = under_way.begin(&granted(2, 200), S(100));
        assert!(!under_way.is_supplied("shop", S(100)), "others took what waited");
    }

    #[test]
    fn i17_nothing_is_kept_of_tasks_that_ended_and_of_many_sites_that_of_the_last_ones() {
        let under_way = Arc::new(UnderWay::default());
        let of_site = |n: usize| Lease { site: format!("s{n}"), ..lease(n as u64) };
        let first = under_way.begin(&of_site(0), S(1));
        (1..2 * MOST_SITES).for_each(|n| drop(under_way.begin(&of_site(n), S(1))));
        assert!(!under_way.has_worked_on("s0") && under_way.has_worked_on(&of_site(2 * MOST_SITES - 1).site));
        drop(first);
        let table = under_way.lock();
        assert!(table.tasks.is_empty() && table.sites.len() <= MOST_SITES);
    }

    #[test]
    fn a_site_has_places_while_starts_at_its_pace_surely_leave_some_whoever_makes_them() {
        let under_way = Arc::new(UnderWay::default());
        let departure = |wait| crate::task::Departure { at: 0, unit: 0, site: wait };
        let granted = |token, wait, places| Lease { departure: departure(wait), places, ..lease(token) };
        let has_places = |ms: u64| under_way.has_places("shop", Duration::from_millis(ms));
        assert!(!has_places(0), "nothing is known of it");
        let first = under_way.begin(&granted(1, 1_000, 2), S(100));
        assert_eq!([100_000, 101_850, 101_851].map(has_places), [true, true, false]);
        let parse = Lease { stage: Stage::Parse, ..granted(2, 0, 0) };
        let _parse = under_way.begin(&parse, S(100));
        assert!(has_places(100_000), "a parse takes none");
        let _second = under_way.begin(&granted(3, 1_000, 0), S(100));
        assert!(!has_places(100_000), "the last one was taken");
        drop(first);
        let _fast = under_way.begin(&granted(4, 0, 50), S(101));
        assert!(!has_places(101_000), "without pace they may be taken at once");
    }

    #[test]
    fn pages_under_way_count_against_the_most_until_they_are_kept_or_given_back() {
        let under_way = Arc::new(UnderWay::new(Some(2)));
        let (kept, back) = (under_way.begin(&lease(1), S(1)), under_way.begin(&lease(2), S(1)));
        assert_eq!((under_way.pages_left(), under_way.downloads_of("shop")), (0, 2));
        drop(back);
        under_way.page_kept();
        drop(kept);
        assert_eq!((under_way.pages_left(), under_way.is_full()), (1, false));
        under_way.page_kept();
        assert_eq!((under_way.pages_left(), under_way.is_full()), (0, true));
        assert_eq!((under_way.has_worked_on("shop"), under_way.has_worked_on("other")), (true, false));
    }
}
