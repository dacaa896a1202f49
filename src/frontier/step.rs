//! The frontier's steps as values: what is asked and what is answered. One step is one atomic move of a backend.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::mutex_key::MutexKey;
use super::state::{SiteSettings, WorkScope};
use super::view::{Freshness, Inspection, KnownRobots, Latest, LetterPlace, Owner, View, Whereabouts};
use crate::canonical_url::CanonicalUrl;
use crate::task::{DeadLetter, Lease, LeaseKey, Put, PutReply, Settled, Settlement, Stage};

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
    ParseAgain { site: String, url: CanonicalUrl },
    Feed { most: u32 },
    Claim(Claim),
    Rearm { lease: LeaseKey },
    Landed { lease: LeaseKey, block: Option<(Duration, String)> },
    Back { lease: LeaseKey, unused: bool },
    Block { site: String, wait: Duration, why: String },
    Extend { leases: Vec<LeaseKey> },
    Settle { owner: String, token: u64, settlements: Vec<Settlement> },
    Tune { site: String, tuning: Tuning },
    SetGroupInterval { unit: String, interval: i64 },
    Enlist { owner: String, pid: u32, scope: Option<WorkScope> },
    Bury { owner: String },
    Owners,
    TryLock { mutex: MutexKey, token: String, expire: i64 },
    Unlock { mutex: MutexKey, token: String },
    ExtendLock { mutex: MutexKey, token: String, expire: i64 },
    HoldsLock { mutex: MutexKey, token: String },
    LockLeft { mutex: MutexKey },
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
    Latest(Option<Latest>),
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
    /// The process that asks. What it works on was said when it joined.
    pub owner: String,
    /// The first lease's token; the i-th gets `token + i`. Asked again with the same one, the grant is the same.
    pub token: u64,
    /// Downloads wanted.
    pub download: u32,
    /// Parses wanted.
    pub parse: u32,
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
    /// The process that asked was declared dead, or never joined: it gets nothing under this name. One that lives joins anew.
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

impl Step {
    /// Whether a request's start waits for it: the permit that it answers with ages until it is told. Or whether starts are
    /// not to be granted any more, which no claim may overtake.
    pub(crate) fn is_urgent(&self) -> bool {
        matches!(
            self,
            Self::Claim(_)
                | Self::Rearm { .. }
                | Self::Block { .. }
                | Self::Landed { block: Some(_), .. }
                | Self::TryLock { .. }
                | Self::Unlock { .. }
        )
    }

    /// Whether nobody is kept from a start, or from going on with something else, while the step waits for a few ms.
    pub(crate) fn can_wait(&self) -> bool {
        matches!(self, Self::Put { .. } | Self::Settle { .. } | Self::Landed { block: None, .. })
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
