//! One URL of a site at one stage: what is asked for, what is granted, and in `outcome` how it ended. How it is stored is the
//! matter of `frontier`.

mod batches;
mod campaign;
mod event;
mod lanes;
mod marks;
mod order;
mod outcome;
mod priority;
mod session;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::page::Validators;
pub use batches::{BatchNames, MOST_BATCHES, OF_CAMPAIGN};
pub use campaign::{CampaignPlan, CampaignPortion, LEAST_PORTION, MOST_PORTION, PortionError, TICKS};
pub use event::{Event, EventKind};
pub use lanes::{FleetRules, LANE, LaneRule, LaneWish, NOW};
pub use marks::{HighWater, MOST_BYTES, MOST_IN_ALL, MOST_WAITING, TASK_BYTES};
pub use order::{TaskOrder, UnitPick};
pub(crate) use outcome::short_reason;
pub use outcome::{
    DeadLetter, Exclusion, Failure, Outcome, RobotsAccess, RobotsRecord, Settled, Settlement, TooMuch,
    WallSighting,
};
pub use priority::{Priority, PriorityError};
pub use session::{OnFailure, SessionWish};

/// The two halves of a page's way. Pace, mutex, `parallel`, block and pause gate `Download` alone (V12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// From the site to the archive.
    Download,
    /// From the archive to items and links.
    Parse,
}

impl Stage {
    /// Both, in the order of a page's way.
    pub const ALL: [Self; 2] = [Self::Download, Self::Parse];
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Download => "download",
            Self::Parse => "parse",
        })
    }
}

/// Who asks for a page. The difference decides what happens while it runs or is known (section "state is a place").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A seed, a `put`, a re-crawl: it wants a fetch that starts after now.
    Request,
    /// A link found on a page: it wants the page fetched once in this run.
    Link,
}

/// What is asked of the frontier for one URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Put {
    /// The page.
    pub url: CanonicalUrl,
    /// Who asks.
    pub origin: Origin,
    /// How urgent.
    pub priority: Priority,
    /// Links between a seed and this page.
    pub depth: u32,
    /// Redirects followed on the way here.
    pub hops: u32,
    /// Not before this time.
    pub at: Option<Timestamp>,
    /// Not after this time: it is then excluded without a request.
    pub expires: Option<Timestamp>,
    /// A request alone: it asks nothing of a page that was fetched since then, or is fetched now.
    pub unless_newer: Option<Timestamp>,
    /// Pull a page that waits for its `at` to now.
    pub again: bool,
    /// The page rule that takes it, whose budget a link must fit.
    pub rule: Option<String>,
    /// Where it waits, and for whom it is.
    pub wish: LaneWish,
    /// The session that it is a step of.
    pub session: Option<SessionWish>,
    /// The batches that it joins.
    pub batches: BatchNames,
}

impl Put {
    /// A seed of a run.
    pub fn seed(url: CanonicalUrl) -> Self {
        Self::request(url, Priority::SEED)
    }

    /// A request for the page, now.
    pub fn request(url: CanonicalUrl, priority: Priority) -> Self {
        Self {
            url,
            origin: Origin::Request,
            priority,
            depth: 0,
            hops: 0,
            at: None,
            expires: None,
            unless_newer: None,
            again: false,
            rule: None,
            wish: LaneWish::default(),
            session: None,
            batches: BatchNames::default(),
        }
    }

    /// A link found on a page `depth - 1` links away from a seed.
    pub fn link(url: CanonicalUrl, depth: u32) -> Self {
        Self { origin: Origin::Link, depth, ..Self::request(url, Priority::LINK) }
    }
}

/// What became of a `Put`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PutReply {
    /// A new task waits, or is delayed until its time (M1).
    Created,
    /// A task that waits or is delayed already stands for it (M2).
    Coalesced,
    /// The page is being fetched; one further run follows (M3).
    Deferred,
    /// A dead letter waits again, as if new.
    Revived,
    /// The page has been seen in this run, and a link asks no more than that; or it is as new as a request asks for.
    Known,
    /// A link over its rule's or its site's `max_pages`; nothing changed.
    OverBudget,
    /// As much waits as may (M10), or the page is of as many batches as it can be; nothing changed, and the page is to be put again
    /// later.
    Refused(HighWater),
    /// The page is a step of another session, or runs outside of this one; nothing changed.
    Busy,
}

/// A task granted to one worker, for as long as it is renewed.
///
/// Taken by value by whatever settles it: what is settled can't be used again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Proves that this worker holds the task; a stale one changes nothing (I5).
    pub token: u64,
    /// The site's name.
    pub site: String,
    /// Download or parse.
    pub stage: Stage,
    /// What to fetch or parse.
    pub url: CanonicalUrl,
    /// Increases with every grant of a site (I6).
    pub fence: i64,
    /// When it was granted.
    pub granted_at: Timestamp,
    /// When it is lost unless renewed.
    pub ends_at: Timestamp,
    /// Attempts that failed before this one.
    pub attempts: u32,
    /// Who asked.
    pub origin: Origin,
    /// How urgent.
    pub priority: Priority,
    /// Links between a seed and this page.
    pub depth: u32,
    /// Redirects followed on the way here.
    pub hops: u32,
    /// Download: when its request may start, and the waits that begin then.
    pub departure: Departure,
    /// It is a host's `robots.txt`; its answer goes into `Settlement::robots`.
    pub robots: Option<RobotsFetch>,
    /// Until when the host's robots record holds; none where robots are ignored.
    pub robots_until: Option<Timestamp>,
    /// Download: what is known of the page from before. Parse: where the page is kept.
    pub stored: Option<StoredPage>,
    /// The rule version of the site when it was granted.
    pub version: i64,
    /// For how long the downloads that wait in its site last at the least, in ms from the grant on: until then no start waits for
    /// what this task brings.
    pub supply: i64,
    /// How many more requests its site may have in flight after the grant.
    pub places: u32,
    /// The most requests in flight of its site, as in force.
    pub parallel: u32,
    /// Response time of its site, a moving average in ms.
    pub response: Option<i64>,
    /// The first start of its site in a minute: of all processes this one tells people how the site stands.
    pub tells: bool,
    /// It tries whether a wall is still there, which looks so (`manners::wall::looks`).
    pub probe_of: Option<u32>,
    /// Whom it is for, where that isn't whom its site is for: what it brings is for that one too.
    pub tenant: Option<String>,
    /// It goes before all others: so does where it leads by a redirect.
    pub urgent: bool,
    /// The session that it is a step of: where it leads by a redirect takes its place in it.
    pub session: Option<String>,
    /// Its batches: where it leads by a redirect takes its place in them.
    #[serde(default, skip_serializing_if = "BatchNames::is_empty")]
    pub batches: BatchNames,
}

/// When a request may start, in ms by the frontier's clock, and the waits that this start begins, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// Not before, and not later than the grace.
    pub at: i64,
    /// What the pace unit waits after it.
    pub unit: i64,
    /// What the site waits after it.
    pub site: i64,
}

impl Departure {
    /// When the request may start.
    pub const fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.at)
    }

    /// Whether there is anything to wait for between two starts.
    pub const fn is_paced(&self) -> bool {
        self.unit > 0 || self.site > 0
    }

    /// The longer of the two waits, which grace goes by; zero without a pace.
    pub fn wait(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.unit.max(self.site)).unwrap_or(0))
    }
}

/// Names a page. With a stage it names the page's task or dead letter there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageKey<'a> {
    /// The site's name.
    pub site: &'a str,
    /// The page's URL.
    pub url: &'a CanonicalUrl,
}

/// Names a lease: the task that was granted, and the token that proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseKey {
    /// The lease's token.
    pub token: u64,
    /// The site's name.
    pub site: String,
    /// Download or parse.
    pub stage: Stage,
    /// The task's URL.
    pub url: CanonicalUrl,
}

impl LeaseKey {
    /// The task's page.
    pub fn page(&self) -> PageKey<'_> {
        PageKey { site: &self.site, url: &self.url }
    }
}

impl Lease {
    /// Whether it tries if a wall is still there.
    pub fn is_probe(&self) -> bool {
        self.probe_of.is_some()
    }

    /// What names it in the steps that follow.
    pub fn key(&self) -> LeaseKey {
        let Self { token, site, stage, url, .. } = self;
        LeaseKey { token: *token, site: site.clone(), stage: *stage, url: url.clone() }
    }
}

/// What is special about a `robots.txt` task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsFetch {
    /// What to ask for: the host's `robots.txt`, or where it was redirected to.
    pub fetch: CanonicalUrl,
    /// Unreachable records of this host in a row, before this one.
    pub failures: u32,
}

/// Where a page is kept, and what its site gave to recognise it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPage {
    /// The page store's own name for it.
    pub place: String,
    /// When the stored body was fetched, or last confirmed.
    pub fetched_at: Timestamp,
    /// Its entity tag and modification date.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
}
