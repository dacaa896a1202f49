//! The frontier's steps as values: what is asked and what is answered. One step is one atomic move of a backend.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::state::{SiteSettings, StageCounts};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::task::{
    DeadLetter, Failure, Lease, Priority, Put, PutReply, RobotsRecord, Settled, Settlement, Stage, StoredPage,
};

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Register(Registration),
    BeginRun { site: String, seeds: Vec<Put>, fresh: bool },
    GiveUp { site: String },
    Sweep { site: String },
    Forget { site: String },
    Unbook { site: String },
    Rename { site: String, to: String },
    Rebook { site: String, to: String },
    Put { site: String, puts: Vec<Put> },
    ParseAgain { site: String, url: crate::canonical_url::CanonicalUrl },
    Feed { most: u32 },
    Claim(Claim),
    Rearm { token: u64 },
    Landed { token: u64 },
    Back { token: u64, unused: bool },
    Extend { tokens: Vec<u64> },
    Settle { owner: String, token: u64, settlements: Vec<Settlement> },
    Tune { site: String, tuning: Tuning },
    SetGroupInterval { unit: String, interval: i64 },
    Enlist { owner: String, pid: u32, crawls: Vec<String> },
    Bury { owner: String },
    Owners,
    TryLock { mutex: String, token: String, expire: i64 },
    Unlock { mutex: String, token: String },
    ExtendLock { mutex: String, token: String, expire: i64 },
    HoldsLock { mutex: String, token: String },
    LockLeft { mutex: String },
    Sites,
    View { site: String },
    Text { site: String },
    SiteOf { host: String },
    Robots { origin: String },
    Stored { site: String, url: CanonicalUrl },
    Whereabouts { site: String, url: CanonicalUrl },
    Freshness { site: String },
    DeadLetters { site: String, after: Option<LetterPlace>, most: u64 },
    DropLetters { site: String, letters: Vec<(Stage, CanonicalUrl)> },
    Inspect,
}

/// What a step answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Nothing,
    More(bool),
    Registered(Registered),
    Run(Run),
    Puts(Option<Vec<PutReply>>),
    Fed(Feeding),
    Grant(Grant),
    Rearm(Rearm),
    Alive(Vec<bool>),
    Settled(Vec<Settled>),
    Lock(Lock),
    Left(Option<i64>),
    Done(bool),
    Forgotten(Forgotten),
    Renamed(Renamed),
    Names(Vec<String>),
    Owners(Vec<Owner>),
    View(Option<Box<View>>),
    Text(Option<String>),
    Robots(Option<KnownRobots>),
    Stored(Option<StoredPage>),
    Whereabouts(Box<Whereabouts>),
    Letters(Vec<DeadLetter>),
    Freshness(Freshness),
    Inspection(Box<Inspection>),
}

/// A site as it is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The site's name.
    pub name: String,
    /// The file's text, for processes that haven't the file.
    pub text: String,
    /// Its group, and the group's own interval in ms.
    pub group: Option<(String, i64)>,
    /// Its hosts: each belongs to one site.
    pub hosts: Vec<String>,
    /// The values that the frontier works by.
    pub settings: SiteSettings,
}

/// What became of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {
    /// The rules are in force, under this version.
    Version(i64),
    /// They are not; the reason names what to do.
    Refused(String),
}

/// A pass over a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its number, from 1.
    pub number: i64,
    /// It began now; else it goes on where it was.
    pub begun: bool,
}

/// What a claim asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The process that asks.
    pub owner: String,
    /// The first lease's token; the i-th gets `token + i`. Asked again with the same one, the grant is the same.
    pub token: u64,
    /// Downloads wanted.
    pub download: u32,
    /// Parses wanted.
    pub parse: u32,
    /// Only these sites, at most 100; empty: all.
    pub only: Vec<String>,
    /// Random numbers for the choice among due units.
    pub dice: Vec<u32>,
}

/// What a claim gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The tasks, each under a lease.
    pub leases: Vec<Lease>,
    /// The time until something more can be claimed if nothing else happens, in ms; none: only another event helps (L1).
    pub next_in: Option<i64>,
    /// The process that asked was declared dead: it gets nothing any more under this name. One that lives joins anew.
    pub buried: bool,
    /// The leases that this claim found lost, by site and URL.
    pub lost: Vec<Lost>,
}

/// A lease that was over before its task was settled: its worker is gone, or was silent for too long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lost {
    /// The task's site.
    pub site: String,
    /// The task's URL.
    pub url: CanonicalUrl,
    /// Download or parse.
    pub stage: Stage,
    /// How often it was lost, this time included.
    pub losses: u32,
    /// How long the task is kept back, in ms; none where it is given up, as its worker died each time.
    pub kept_back: Option<i64>,
}

/// What a feed did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feeding {
    /// Pages that were put.
    pub put: u64,
    /// The time until the next page is due, in ms: 0 where a bounded step left some over, none where no page is. Pages of
    /// a site that has no room don't count.
    pub next_in: Option<i64>,
}

/// What became of asking for a new start for a permit that grew late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rearm {
    /// Send then: so many ms from now.
    StartIn(i64),
    /// Somebody else holds the mutex for so many ms: ask again then.
    Held(i64),
    /// The site is paused or blocked: the task went back.
    WentBack,
    /// The lease is lost.
    Stale,
}

/// A value set while a site runs; `None` gives it back to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tuning {
    /// The interval, in ms.
    Interval(Option<i64>),
    /// The most requests in flight.
    Parallel(Option<u32>),
    /// Paused, and why.
    Paused(Option<String>),
}

/// What became of asking for a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// It is the asker's, from this moment on, in ms since 1970 by the frontier's clock.
    Taken(i64),
    /// It is somebody else's for so many ms more.
    Held(i64),
}

/// A process that claims, or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// The sites it crawls; none where it works on all.
    pub crawls: Vec<String>,
    /// Its leases are over.
    pub dead: bool,
}

impl Owner {
    /// Whether it lives and may have tasks of a site in hand: one that names no sites works on all.
    pub fn works_on(&self, site: &str) -> bool {
        !self.dead && (self.crawls.is_empty() || self.crawls.iter().any(|crawled| crawled == site))
    }
}

/// What is known of an origin's `robots.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRobots {
    /// What was found.
    pub record: RobotsRecord,
    /// Until when it holds.
    pub until: Timestamp,
    /// Unreachable records in a row.
    pub failures: u32,
}

/// How a site stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its name.
    pub site: String,
    /// Its pace unit.
    pub unit: String,
    /// When this was read.
    pub at: Timestamp,
    /// The run, from 1; 0 before the first.
    pub run: i64,
    /// When the run began.
    pub run_began: Timestamp,
    /// Whether the run is over.
    pub finished: bool,
    /// The interval in force, in ms.
    pub interval: i64,
    /// The most requests in flight, as in force.
    pub parallel: u32,
    /// Requests in flight.
    pub in_flight: u32,
    /// The download stage's books.
    pub download: StageCounts,
    /// The parse stage's books.
    pub parse: StageCounts,
    /// When the oldest waiting download was put.
    pub oldest: Option<Timestamp>,
    /// Response time, a moving average in ms.
    pub response: Option<i64>,
    /// Starts granted in this run that stand.
    pub starts: u64,
    /// The last start that stands.
    pub last_start: Option<Timestamp>,
    /// The earliest next start.
    pub due: Timestamp,
    /// Blocked until then.
    pub blocked_until: Option<Timestamp>,
    /// Why it is blocked.
    pub blocked_why: Option<String>,
    /// Why it is paused.
    pub paused: Option<String>,
    /// Version of its rules.
    pub version: i64,
    /// What has a say in the pace.
    pub says: Says,
}

impl View {
    /// Starts a second that the pace allows; none without a pace.
    pub fn allowed(&self) -> Option<f64> {
        let interval = Duration::from_millis(self.interval.unsigned_abs());
        (!interval.is_zero()).then(|| interval.as_secs_f64().recip())
    }

    /// How long the downloads that are left take at the pace in force; none where that can't be told, as the run is over or
    /// all of them are kept back for later.
    pub fn eta(&self) -> Option<Duration> {
        let (waiting, delayed) = (self.download.waiting, self.download.delayed);
        let all_are_kept_back = waiting == 0 && self.in_flight == 0 && delayed > 0;
        if self.finished || all_are_kept_back {
            return None;
        }
        Some(Duration::from_millis((waiting + delayed).saturating_mul(self.interval.unsigned_abs())))
    }
}

/// What has a say in a site's pace; the values in force follow from these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Says {
    /// The file's interval, in ms.
    pub interval: i64,
    /// Set while it runs, wins over the file's, in ms.
    pub tuned_interval: Option<i64>,
    /// The most that a `robots.txt` of its hosts asks for, in ms, and of which origin; a floor.
    pub robots: Option<(i64, String)>,
    /// Its group's interval, in ms; a floor.
    pub group: Option<i64>,
    /// The file's `parallel`.
    pub parallel: u32,
    /// Set while it runs, wins over the file's.
    pub tuned_parallel: Option<u32>,
}

/// How far the forgetting of a site is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// There is no such site.
    Unknown,
    /// It still has tasks or dead letters: so many, of which so many are in a worker's hands.
    Busy {
        /// All of them.
        tasks: u64,
        /// Those under a lease.
        leased: u64,
    },
    /// Its last start is less than an interval ago, or it is blocked: that is not to be forgotten.
    NotYet {
        /// For so long, in ms.
        wait: i64,
    },
    /// Some of what is known of its pages is left.
    Partly,
    /// It is gone. Its last start stays, so that nobody asks its hosts early.
    Wholly,
}

/// What became of the renaming of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renamed {
    /// There is no such site.
    Unknown,
    /// There is a site of the new name.
    Taken,
    /// Tasks are in workers' hands.
    Busy {
        /// So many.
        leased: u64,
    },
    /// The new name would lie in another partition of the cluster.
    Elsewhere,
    /// It has the new name.
    Done,
}

/// Where a dead letter stands among those of its site, which are in order of death.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LetterPlace {
    /// When it died, in ms.
    pub died_at: i64,
    /// Where.
    pub stage: Stage,
    /// Which page.
    pub url: CanonicalUrl,
}

impl LetterPlace {
    /// The place of a letter.
    pub fn of(letter: &DeadLetter) -> Self {
        Self { died_at: letter.died_at.as_millis(), stage: letter.stage, url: letter.url.clone() }
    }
}

/// Where a URL stands in a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// Its tasks, at most one a stage.
    pub tasks: Vec<Standing>,
    /// Its dead letters, at most one a stage.
    pub letters: Vec<DeadLetter>,
    /// The page as it was last kept.
    pub stored: Option<StoredPage>,
    /// When it is asked for again.
    pub recrawl_at: Option<Timestamp>,
    /// It was met in the present run.
    pub is_known: bool,
}

/// A task as people look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Download or parse.
    pub stage: Stage,
    /// `waiting`, `delayed`, `scheduled` or `running`.
    pub place: String,
    /// Delayed: until then. Running: when the lease ends, unless it is renewed.
    pub until: Option<Timestamp>,
    /// Running: the process that has it.
    pub owner: Option<String>,
    /// How urgent.
    pub priority: Priority,
    /// When it was put.
    pub put_at: Timestamp,
    /// Links between a seed and this page.
    pub depth: u32,
    /// Attempts that failed.
    pub attempts: u32,
    /// Leases that were lost.
    pub losses: u32,
    /// The last failure.
    pub failure: Option<Failure>,
}

/// How many pages of a site were fetched, or confirmed, no longer than their `recrawl` ago.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// Those that are.
    pub fresh: u64,
    /// All that have a `recrawl`.
    pub all: u64,
    /// When that one of them was fetched, or confirmed, for which this is longest ago.
    pub oldest: Option<Timestamp>,
}

impl Freshness {
    /// The share in percent; none where no page has a `recrawl`.
    pub fn percent(self) -> Option<u64> {
        (self.all > 0).then(|| self.fresh * 100 / self.all)
    }
}

/// Everything in a frontier, for tests of small ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Site, stage, URL and place of every task.
    pub tasks: Vec<(String, Stage, String, String)>,
    /// Stage, unit and score of every entry of the due index.
    pub due: Vec<(Stage, String, i64)>,
    /// Site, stage and URL of every dead letter.
    pub dead: Vec<(String, Stage, String)>,
    /// Fingerprints of known pages.
    pub known: u64,
}

impl Step {
    /// Whether a request's start waits for it: the permit that it answers with ages until it is told.
    pub(crate) fn is_urgent(&self) -> bool {
        matches!(self, Self::Claim(_) | Self::Rearm { .. } | Self::TryLock { .. } | Self::Unlock { .. })
    }

    /// Whether nobody is kept from a start, or from going on with something else, while the step waits for a few ms.
    pub(crate) fn can_wait(&self) -> bool {
        matches!(self, Self::Put { .. } | Self::Settle { .. } | Self::Landed { .. })
    }

    /// Whether the step changes nothing.
    pub(crate) fn only_reads(&self) -> bool {
        matches!(
            self,
            Self::Owners
                | Self::HoldsLock { .. }
                | Self::LockLeft { .. }
                | Self::Sites
                | Self::View { .. }
                | Self::Text { .. }
                | Self::SiteOf { .. }
                | Self::Robots { .. }
                | Self::Stored { .. }
                | Self::Whereabouts { .. }
                | Self::Freshness { .. }
                | Self::DeadLetters { .. }
                | Self::Inspect
        )
    }
}
