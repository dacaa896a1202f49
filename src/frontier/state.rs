//! What the frontier knows of a site, a pace unit and a task, and the pure rules on them. How it is stored is elsewhere.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::task::{DeadLetter, Exclusion, Failure, Origin, Priority, RobotsRecord, Stage, StoredPage};

/// How long a lease lives unless it is renewed, in ms.
pub const LEASE_MS: i64 = 30_000;
/// Losses after which a task is dead.
pub const MAX_LOSSES: u32 = 6;
/// How long a task that went back waits, in ms.
pub const BACK_MS: i64 = 1_000;

/// What a site's file says to the frontier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteSettings {
    /// Least time between starts, in ms; 0 is no pace.
    pub interval: i64,
    /// Most requests in flight.
    pub parallel: u32,
    /// Attempts before a task is dead.
    pub attempts: u32,
    /// Whether `robots.txt` is obeyed.
    pub robots: bool,
    /// `max_pages` of the rules by name, and of the site under the empty name.
    pub budgets: BTreeMap<String, u64>,
}

/// A site's record: it goes only by being forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteState {
    /// The site's name.
    pub name: String,
    /// The pace unit it belongs to: its group, or itself.
    pub unit: String,
    /// Counts the changes of the site's file.
    pub version: i64,
    /// The file's values.
    pub settings: SiteSettings,
    /// Values set while it runs; they win over the file.
    #[serde(default)]
    pub tuned: Tuned,
    /// The pass over the site; 0 before the first.
    pub run: i64,
    /// When the run began, in ms.
    pub run_began: i64,
    /// The last fence given.
    pub fence: i64,
    /// Requests in flight.
    pub running: u32,
    /// The lease of the `robots.txt` task under way: nothing else of the site is granted meanwhile.
    pub errand: Option<u64>,
    /// The pace that each origin's `robots.txt` asks for, in ms.
    #[serde(default)]
    pub floors: BTreeMap<String, i64>,
    /// Places and counters of the download stage.
    pub download: StageCounts,
    /// Places and counters of the parse stage.
    pub parse: StageCounts,
    /// Pages put in this run, by rule and, under the empty name, in all.
    #[serde(default)]
    pub spent: BTreeMap<String, u64>,
    /// Starts granted in this run that stand.
    #[serde(default)]
    pub starts: u64,
    /// Response time, a moving average in ms.
    pub response: Option<i64>,
}

/// Values set while a site runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuned {
    /// Wins over the file's interval, in ms.
    pub interval: Option<i64>,
    /// Wins over the file's parallel.
    pub parallel: Option<u32>,
    /// No download is granted while set.
    #[serde(default)]
    pub paused: Option<String>,
}

/// Where the tasks of one site and stage are, and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCounts {
    /// Tasks that may be claimed.
    pub waiting: u64,
    /// Tasks that wait for a back-off's end.
    pub delayed: u64,
    /// Tasks put for a later time.
    pub scheduled: u64,
    /// Tasks under a lease.
    pub leased: u64,
    /// Dead letters kept.
    pub letters: u64,
    /// Puts that made a task.
    pub created: u64,
    /// Dead letters that came back.
    pub revived: u64,
    /// Further runs after a request met a running task.
    pub reruns: u64,
    /// Tasks done, excluded and redirected ones included.
    pub done: u64,
    /// Tasks that died, letters kept or not.
    pub dead: u64,
    /// Tasks given up.
    pub dropped: u64,
    /// Puts that a waiting task stood for already.
    pub coalesced: u64,
    /// Requests that met a running task.
    pub deferred: u64,
    /// Links to pages seen before.
    pub known: u64,
    /// Deferrals that a lost lease or a retry took up.
    pub absorbed: u64,
    /// Links over a budget.
    pub over_budget: u64,
    /// Done by being redirected.
    pub redirected: u64,
    /// Leases lost.
    pub lost: u64,
    /// Attempts that failed and are tried again.
    pub retried: u64,
    /// Done by being unwanted, by reason.
    #[serde(default)]
    pub excluded: BTreeMap<Exclusion, u64>,
}

impl StageCounts {
    /// What came in must be somewhere (I14): 0 when the books balance.
    pub fn imbalance(&self) -> i128 {
        let entered = self.created + self.revived + self.reruns;
        let left = self.done + self.dead + self.dropped;
        let here = self.waiting + self.delayed + self.scheduled + self.leased;
        i128::from(entered) - i128::from(left) - i128::from(here)
    }

    /// Nothing of the run is left here; what was put for a later time doesn't count.
    pub fn is_finished(&self) -> bool {
        self.waiting + self.delayed + self.leased == 0
    }

    fn place(&mut self, place: &Place) -> &mut u64 {
        match place {
            Place::Waiting => &mut self.waiting,
            Place::Delayed { scheduled: true, .. } => &mut self.scheduled,
            Place::Delayed { scheduled: false, .. } => &mut self.delayed,
            Place::Running(_) => &mut self.leased,
        }
    }
}

impl SiteState {
    /// A site that was never seen before.
    pub fn new(name: &str, unit: &str, settings: SiteSettings) -> Self {
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            version: 1,
            settings,
            tuned: Tuned::default(),
            run: 0,
            run_began: 0,
            fence: 0,
            running: 0,
            errand: None,
            floors: BTreeMap::new(),
            download: StageCounts::default(),
            parse: StageCounts::default(),
            spent: BTreeMap::new(),
            starts: 0,
            response: None,
        }
    }

    /// The least time between starts as in force: tuned wins over the file, robots' floor over both. In ms.
    pub fn interval(&self) -> i64 {
        let wanted = self.tuned.interval.unwrap_or(self.settings.interval);
        let floor = if self.settings.robots { self.floors.values().copied().max().unwrap_or(0) } else { 0 };
        wanted.max(floor)
    }

    /// The most requests in flight as in force.
    pub fn parallel(&self) -> u32 {
        self.tuned.parallel.unwrap_or(self.settings.parallel)
    }

    /// Whether a claim of this stage could be given a task (I9).
    pub fn is_ready(&self, stage: Stage) -> bool {
        match stage {
            Stage::Parse => self.parse.waiting > 0,
            Stage::Download => {
                self.download.waiting > 0
                    && self.tuned.paused.is_none()
                    && self.running < self.parallel()
                    && self.errand.is_none()
            }
        }
    }

    /// The run is over: nothing waiting, delayed by back-off or running, in both stages.
    pub fn is_finished(&self) -> bool {
        self.download.is_finished() && self.parse.is_finished()
    }

    /// The counters of a stage.
    pub fn counts(&mut self, stage: Stage) -> &mut StageCounts {
        match stage {
            Stage::Download => &mut self.download,
            Stage::Parse => &mut self.parse,
        }
    }

    /// Books a task into a place.
    pub fn enters(&mut self, stage: Stage, place: &Place) {
        *self.counts(stage).place(place) += 1;
    }

    /// Books a task out of a place.
    pub fn leaves(&mut self, stage: Stage, place: &Place) {
        let count = self.counts(stage).place(place);
        *count = count.saturating_sub(1);
        if let Place::Running(run) = place
            && run.in_flight
        {
            self.running = self.running.saturating_sub(1);
        }
    }

    /// The next fence: larger than any before, and than any that a lost record may have held.
    pub fn next_fence(&mut self, now: i64) -> i64 {
        self.fence = (self.fence + 1).max(now);
        self.fence
    }

    /// Whether a link of this rule still fits the budgets.
    pub fn has_budget(&self, rule: Option<&str>) -> bool {
        let fits = |name: &str| match self.settings.budgets.get(name) {
            Some(most) => self.spent.get(name).copied().unwrap_or(0) < *most,
            None => true,
        };
        fits("") && rule.is_none_or(fits)
    }

    /// Books a page against the budgets; names without one aren't kept.
    pub fn spend(&mut self, rule: Option<&str>) {
        for name in ["", rule.unwrap_or("")].iter().take(if rule.is_some() { 2 } else { 1 }) {
            if self.settings.budgets.contains_key(*name) {
                *self.spent.entry((*name).to_owned()).or_default() += 1;
            }
        }
    }

    /// Takes one more response time into the average.
    pub fn observe(&mut self, response: i64) {
        self.response = Some(self.response.map_or(response, |average| (average * 7 + response) / 8));
    }
}

/// What shares one pace: a group of sites, or a site that has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitState {
    /// The unit's name.
    pub name: String,
    /// The group's own interval, in ms; 0 without one.
    pub interval: i64,
    /// The last start that stands.
    pub last: Option<Start>,
    /// The start before it, for when the last one is given back unused.
    pub before: Option<Start>,
    /// No start before this time, in ms.
    pub blocked_until: i64,
    /// Why not.
    pub blocked_why: Option<String>,
    /// Somebody else was seen holding the mutex until then, in ms.
    pub held_until: i64,
    /// Somebody else waits for the mutex of this start: the next claim comes so many ms later, to let it in.
    #[serde(default)]
    pub courtesy: Option<(u64, i64)>,
    /// When the parse stage was last served, in ms.
    pub parsed_at: i64,
}

/// One start that was granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// When, in ms.
    pub at: i64,
    /// Of which site: its interval holds afterwards.
    pub site: String,
    /// By which lease.
    pub token: u64,
    /// What is waited after it where its site is not of this unit any more, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<i64>,
}

impl UnitState {
    /// A unit that was never asked.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// When the next start may be, given the interval in force after the last one.
    pub fn due(&self, interval: i64) -> i64 {
        let paced = self.last.as_ref().map_or(0, |start| start.at + interval + self.courtesy_after(start));
        paced.max(self.blocked_until).max(self.held_until)
    }

    fn courtesy_after(&self, start: &Start) -> i64 {
        self.courtesy.filter(|(token, _)| *token == start.token).map_or(0, |(_, wait)| wait)
    }

    /// The name of its timed mutex.
    pub fn mutex(&self) -> String {
        unit_mutex(&self.name)
    }

    /// Whether a mutex token is that of the unit's own last start.
    pub fn owns(&self, token: &str) -> bool {
        self.last.as_ref().is_some_and(|start| mutex_token(start.token) == token)
    }
}

/// The name of a unit's timed mutex.
pub fn unit_mutex(unit: &str) -> String {
    format!("site/{unit}")
}

/// The token that a start leaves in the mutex.
pub fn mutex_token(lease: u64) -> String {
    format!("start-{lease:016x}")
}

/// A held mutex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MutexState {
    /// Who holds it.
    pub token: String,
    /// Until when, in ms.
    pub until: i64,
}

/// One URL of a site at one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The site's name.
    pub site: String,
    /// Download or parse.
    pub stage: Stage,
    /// The page.
    pub url: CanonicalUrl,
    /// Where it stands.
    pub place: Place,
    /// How urgent.
    pub priority: Priority,
    /// Its turn among equals.
    pub position: i64,
    /// Links between a seed and this page.
    pub depth: u32,
    /// Who asked.
    pub origin: Origin,
    /// When it was put, in ms.
    pub put_at: i64,
    /// What few tasks have.
    pub rare: Rare,
}

/// What few tasks have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rare {
    /// Redirects followed on the way here.
    #[serde(skip_serializing_if = "is_zero")]
    pub hops: u32,
    /// Attempts that failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// Leases that were lost.
    #[serde(skip_serializing_if = "is_zero")]
    pub losses: u32,
    /// Not after this time, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// Parse: where the page is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<StoredPage>,
    /// A request that met the running task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferral: Option<Deferral>,
    /// It is its host's `robots.txt`, to be asked for at this URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errand: Option<CanonicalUrl>,
    /// Failures so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Failure>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A request that met a running task: one further run follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferral {
    /// The most urgent of the requests.
    pub priority: Priority,
    /// The fewest links away from a seed.
    pub depth: u32,
    /// Redirects that the latest of them followed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
    /// The earliest time that they asked for, in ms; none is at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// The latest expiry; none is for ever.
    pub expires: Option<i64>,
    /// The latest payload.
    pub stored: Option<StoredPage>,
}

impl Deferral {
    /// Whether a run that starts at `start` serves it.
    pub fn is_served_by(&self, start: i64) -> bool {
        self.at.is_none_or(|at| at <= start)
    }
}

/// Where a task stands: a state is a place, and a task is in exactly one (I3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It may be claimed.
    Waiting,
    /// It waits for a time.
    Delayed {
        /// Until when, in ms.
        until: i64,
        /// It was put for that time; else it backs off.
        scheduled: bool,
    },
    /// A worker has it.
    Running(Running),
}

/// A task in a worker's hands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The lease's token.
    pub token: u64,
    /// The process that holds it.
    pub owner: String,
    /// When it was granted, in ms.
    pub granted_at: i64,
    /// When the lease ends, in ms.
    pub ends_at: i64,
    /// The fence it was given.
    pub fence: i64,
    /// The request counts against `parallel`.
    pub in_flight: bool,
    /// The pace it was granted under, in ms.
    pub interval: i64,
}

impl Task {
    /// The lease, for a task in a worker's hands.
    pub fn running(&self) -> Option<&Running> {
        match &self.place {
            Place::Running(running) => Some(running),
            _ => None,
        }
    }

    /// A further run takes the place of this one: new attempts, the request's own values.
    pub fn take_up(&mut self, deferral: Deferral) {
        self.priority = deferral.priority;
        self.depth = self.depth.min(deferral.depth);
        self.origin = Origin::Request;
        self.rare.hops = deferral.hops;
        self.rare.expires = deferral.expires;
        if deferral.stored.is_some() {
            self.rare.stored = deferral.stored;
        }
        self.rare.attempts = 0;
        self.rare.losses = 0;
        self.rare.errand = None;
        self.rare.history.clear();
    }
}

/// How long a task waits after its n-th lost lease, in ms; the first one puts it back at once.
pub fn delay_after_loss(losses: u32) -> i64 {
    match losses {
        0 | 1 => 0,
        2 => 10_000,
        3 => 60_000,
        4 => 600_000,
        _ => 3_600_000,
    }
}

/// The later of two expiries, none being for ever.
pub fn later_expiry(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.zip(other).map(|(a, b)| a.max(b))
}

/// One origin's `robots.txt` as the frontier keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsState {
    /// What was found.
    pub record: RobotsRecord,
    /// Until when it holds, in ms.
    pub until: i64,
    /// Unreachable records in a row.
    pub failures: u32,
}

/// A page that was fetched before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageState {
    /// Where it is kept.
    pub stored: StoredPage,
    /// The fence of the fetch: a smaller one never replaces it (I6).
    pub fence: i64,
    /// When it should be fetched again, in ms.
    pub recrawl_at: Option<i64>,
}

/// A dead letter as the frontier keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadState {
    /// The last failure.
    pub why: Failure,
    /// Attempts made.
    pub attempts: u32,
    /// All failures, oldest first.
    pub history: Vec<Failure>,
    /// When it died, in ms.
    pub died_at: i64,
    /// The run in which it died.
    pub run: i64,
}

/// One process that claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerState {
    /// Its leases are over.
    pub dead: bool,
    /// Its process id, for people.
    pub pid: u32,
    /// The sites it crawls.
    pub crawls: Vec<String>,
    /// Its last claim: the first token, and how many were granted.
    pub claimed: Option<(u64, u64)>,
    /// Its last settle and the answers.
    pub settled: Option<(u64, Vec<crate::task::Settled>)>,
}

impl DeadState {
    /// The letter as people see it.
    pub fn letter(&self, site: &str, stage: Stage, url: &CanonicalUrl) -> DeadLetter {
        DeadLetter {
            site: site.to_owned(),
            stage,
            url: url.clone(),
            why: self.why.clone(),
            attempts: self.attempts,
            history: self.history.clone(),
            died_at: Timestamp::from_millis(self.died_at),
        }
    }
}

impl Place {
    /// The place's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delayed { scheduled: true, .. } => "scheduled",
            Self::Delayed { scheduled: false, .. } => "delayed",
            Self::Running(_) => "running",
        }
    }
}
