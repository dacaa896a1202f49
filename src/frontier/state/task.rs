//! A task, and where it stands.

use serde::{Deserialize, Serialize};

use super::{LEASE_MS, is_default};
use crate::canonical_url::CanonicalUrl;
use crate::task::{BatchNames, Departure, Failure, LaneWish, Origin, PageKey, Priority, Stage, StoredPage};

/// 2026-01-01T00:00:00Z in ms: where positions count from. One number is both a task's turn among equals and the time of
/// its putting. Positions fit 39 bits until 2043; a burst of n puts in one ms runs at most n ms ahead of the clock.
pub const EPOCH: i64 = 1_767_225_600_000;

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
    /// Its turn among equals of its site and, counted from [`EPOCH`], when it was put, in ms.
    pub position: i64,
    /// Links between a seed and this page.
    pub depth: u32,
    /// Who asked.
    pub origin: Origin,
    /// What few tasks have.
    pub rare: Rare,
}

/// What few tasks have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rare {
    /// Redirects followed on the way here.
    #[serde(skip_serializing_if = "is_default")]
    pub hops: u32,
    /// Attempts that failed.
    #[serde(skip_serializing_if = "is_default")]
    pub attempts: u32,
    /// Leases that were lost.
    #[serde(skip_serializing_if = "is_default")]
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
    /// The lane that it keeps until it is settled; none is the one that is always there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Who it is for; none is whom its site is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The session that it is a step of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// In a session: the time that it was put for, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// In a session: it was granted once.
    #[serde(skip_serializing_if = "is_default")]
    pub begun: bool,
    /// It was granted and came back, refused or unused.
    #[serde(skip_serializing_if = "is_default")]
    pub returned: bool,
    /// The batches that count it.
    #[serde(skip_serializing_if = "BatchNames::is_empty")]
    pub batches: BatchNames,
    /// Failures so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Failure>,
}

/// A request that met a running task: one further run follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferral {
    /// The most urgent of the requests.
    pub priority: Priority,
    /// The fewest links away from a seed.
    pub depth: u32,
    /// Redirects that the latest of them followed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hops: u32,
    /// The earliest time that they asked for, in ms; none is at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// The latest expiry; none is for ever.
    pub expires: Option<i64>,
    /// The latest payload.
    pub stored: Option<StoredPage>,
    /// Where the latest of them asked to wait, and for whom it was.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wish: LaneWish,
    /// The position of the further run, where it is a step of the session as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<i64>,
    /// The batches that count the further run.
    #[serde(default, skip_serializing_if = "BatchNames::is_empty")]
    pub batches: BatchNames,
}

impl Deferral {
    /// Whether a run that starts at `start` serves it.
    pub fn is_served_by(&self, start: i64) -> bool {
        self.at.is_none_or(|at| at <= start)
    }

    /// One that stands for a later request as well, but for the batches of that.
    #[must_use]
    pub fn joined_by(self, later: Self) -> Self {
        // That of a step is what its session goes by.
        let priority = match (self.turn, later.turn) {
            (Some(_), None) => self.priority,
            (None, Some(_)) => later.priority,
            _ => self.priority.min(later.priority),
        };
        Self {
            priority,
            depth: self.depth.min(later.depth),
            at: self.at.zip(later.at).map(|(one, other)| one.min(other)),
            expires: later_expiry(self.expires, later.expires),
            stored: later.stored.or(self.stored),
            hops: later.hops,
            wish: self.wish.joined_by(later.wish),
            turn: self.turn.or(later.turn),
            batches: self.batches,
        }
    }
}

/// Where a task stands: a state is a place, and a task is in exactly one (I3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It may be claimed.
    Waiting,
    /// It waits for its host, which can't be reached.
    Parked,
    /// It waits for the steps of its session that go before it.
    Behind,
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
    /// When its start was granted last, in ms.
    pub granted_at: i64,
    /// When the lease ends, in ms.
    pub ends_at: i64,
    /// The fence it was given.
    pub fence: i64,
    /// The request counts against `parallel`.
    pub in_flight: bool,
    /// When its request may start, and the waits that begin then.
    #[serde(default)]
    pub departure: Departure,
}

impl Running {
    /// A lease granted now.
    pub fn granted(
        stage: Stage,
        token: u64,
        owner: &str,
        fence: i64,
        departure: Departure,
        now: i64,
    ) -> Self {
        let in_flight = stage == Stage::Download;
        Self {
            token,
            owner: owner.to_owned(),
            granted_at: now,
            ends_at: now + LEASE_MS,
            fence,
            in_flight,
            departure,
        }
    }
}

impl Task {
    /// The page that it is of.
    pub fn page(&self) -> PageKey<'_> {
        PageKey { site: &self.site, url: &self.url }
    }

    /// The lease, for a task in a worker's hands.
    pub fn running(&self) -> Option<&Running> {
        match &self.place {
            Place::Running(running) => Some(running),
            _ => None,
        }
    }

    /// Its batches, then those of its further run.
    pub fn batches(&self) -> impl Iterator<Item = &String> {
        let further = self.rare.deferral.iter().flat_map(|deferral| &deferral.batches);
        self.rare.batches.iter().chain(further)
    }

    /// Where it stands in its lane in the order of deadlines.
    pub fn deadline(&self) -> (i64, i64) {
        deadline(self.priority, self.position)
    }

    /// The lane where it may be claimed, unless that is the one that is always there.
    pub fn queued_in(&self) -> Option<&str> {
        self.rare.lane.as_deref().filter(|_| self.place == Place::Waiting)
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
        self.rare.returned = false;
        self.rare.errand = None;
        self.rare.history.clear();
    }

    /// Its turn among the steps of its session: the more urgent first, then the earlier.
    pub fn step(&self) -> (Priority, i64, i64) {
        (self.priority, self.rare.after.unwrap_or(EPOCH + self.position), self.position)
    }
}

/// By when a task is to go at the latest, counted from [`EPOCH`] in ms, and its turn among those of one time. A
/// `robots.txt` goes before all others.
pub fn deadline(priority: Priority, position: i64) -> (i64, i64) {
    if priority == Priority::ROBOTS {
        return (i64::MIN, position);
    }
    (position + priority.allowance(), position)
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

impl Place {
    /// The names of the places, as stores and people have them.
    pub(crate) const WAITING: &'static str = "waiting";
    pub(crate) const PARKED: &'static str = "parked";
    pub(crate) const DELAYED: &'static str = "delayed";
    pub(crate) const SCHEDULED: &'static str = "scheduled";
    pub(crate) const RUNNING: &'static str = "running";
    pub(crate) const BEHIND: &'static str = "behind";

    /// The place's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Waiting => Self::WAITING,
            Self::Parked => Self::PARKED,
            Self::Behind => Self::BEHIND,
            Self::Delayed { scheduled: true, .. } => Self::SCHEDULED,
            Self::Delayed { scheduled: false, .. } => Self::DELAYED,
            Self::Running(_) => Self::RUNNING,
        }
    }
}
