//! Records beside the tasks: robots, pages, dead letters, processes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::task::{
    BatchNames, DeadLetter, Failure, PageKey, RobotsAccess, RobotsRecord, Settled, Stage, StoredPage,
};

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

/// What the steps need of an origin's `robots.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsBrief {
    /// Until when it holds, in ms.
    pub until: i64,
    /// Unreachable records in a row.
    pub failures: u32,
    /// Why it could not be had.
    pub unreachable: Option<String>,
    /// The pace that it asks for.
    pub crawl_delay: Option<Duration>,
}

impl RobotsState {
    /// All but the rules' text.
    pub fn brief(&self) -> RobotsBrief {
        let unreachable = match &self.record.access {
            RobotsAccess::Unreachable(why) => Some(why.clone()),
            _ => None,
        };
        let (until, failures, crawl_delay) = (self.until, self.failures, self.record.crawl_delay);
        RobotsBrief { until, failures, unreachable, crawl_delay }
    }
}

/// A host of a site that can't be reached, and when it is looked at again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AwayHost {
    /// In ms.
    pub at: i64,
    /// The site.
    pub site: String,
    /// The host, with its scheme.
    pub origin: String,
}

impl AwayHost {
    /// Its `robots.txt` is under way: the record of that tells when.
    pub const NEVER: i64 = i64::MAX;
    /// No host, but the end of a pause of the site's parses, which is looked at as well.
    pub const PARSE_PAUSE: &str = "parse";
}

/// A page that was fetched before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageState {
    /// Where it is kept.
    pub stored: StoredPage,
    /// The fence of the fetch: a smaller one never replaces it (I6).
    pub fence: i64,
    /// Links between a seed and this page, as it was fetched.
    #[serde(default, skip_serializing_if = "is_default")]
    pub depth: u32,
    /// How long it stays fresh, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recrawl: Option<i64>,
    /// When it is asked for again, in ms; there with a `recrawl` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recrawl_at: Option<i64>,
}

impl PageState {
    /// Pages of one `recrawl` are counted by when they were fetched, in so many parts of it.
    pub const SLOTS: i64 = 128;

    /// Counts a `recrawl` from now on; without one the page isn't asked for again. No two pages of a site and a period are asked for
    /// at the same time: the latest of them is at `last`. If that is this page, it gives its time back.
    pub fn recrawl_from(&mut self, now: i64, recrawl: Option<i64>, last: Option<i64>) {
        let is_latest = self.recrawl == recrawl && self.recrawl_at == last;
        let free = last.map_or(0, |last| if is_latest { last } else { last + 1 });
        self.recrawl = recrawl;
        self.recrawl_at = recrawl.map(|period| (now + period.max(1)).max(free));
    }

    /// The beginning of the part of its period in which it was fetched, in ms: by it the page is fresh or not.
    pub fn fetched_slot(&self) -> i64 {
        let width = (self.recrawl.unwrap_or_default() / Self::SLOTS).max(1);
        let fetched_at = self.stored.fetched_at.as_millis();
        fetched_at - fetched_at.rem_euclid(width)
    }

    /// Until when it is fresh, in ms; none without a `recrawl`.
    pub fn fresh_until(&self) -> Option<i64> {
        self.recrawl.map(|period| self.fetched_slot() + period)
    }
}

/// A page that is asked for again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recrawl {
    /// When, in ms.
    pub at: i64,
    /// Its site.
    pub site: String,
    /// Which one.
    pub url: CanonicalUrl,
}

impl Recrawl {
    /// The page.
    pub fn page(&self) -> PageKey<'_> {
        PageKey { site: &self.site, url: &self.url }
    }
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
    /// Links between a seed and its page.
    #[serde(default, skip_serializing_if = "is_default")]
    pub depth: u32,
    /// The session that it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The batches that count it.
    #[serde(default, skip_serializing_if = "BatchNames::is_empty")]
    pub batches: BatchNames,
    /// Whom the page was for; none is whom its site is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// What a process works on: it is said when the process joins, and when it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkScope {
    /// All sites, whoever registers them and whenever.
    #[default]
    All,
    /// The sites of these names and no others.
    Sites(Arc<BTreeSet<String>>),
    /// Of all sites what is in these lanes, and nothing else (N7).
    Lanes(Arc<BTreeSet<String>>),
}

impl WorkScope {
    /// The sites of these names and no others.
    pub fn of(names: impl IntoIterator<Item = String>) -> Self {
        Self::Sites(Arc::new(names.into_iter().collect()))
    }

    /// Whether a site is worked on.
    pub fn includes(&self, site: &str) -> bool {
        match self {
            Self::All | Self::Lanes(_) => true,
            Self::Sites(names) => names.contains(site),
        }
    }

    /// What is in these lanes, and nothing else.
    pub fn of_lanes(lanes: impl IntoIterator<Item = String>) -> Self {
        Self::Lanes(Arc::new(lanes.into_iter().collect()))
    }

    /// Whether tasks of a lane are worked on.
    pub fn serves(&self, lane: &str) -> bool {
        match self {
            Self::All | Self::Sites(_) => true,
            Self::Lanes(lanes) => lanes.contains(lane),
        }
    }
}

/// One process that claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerState {
    /// Its leases are over.
    pub dead: bool,
    /// Its process id, for people.
    pub pid: u32,
    /// What it works on.
    #[serde(default)]
    pub scope: WorkScope,
    /// It has said that it downloads, and works on all sites.
    #[serde(default)]
    pub downloads: bool,
    /// It is to claim nothing more and to end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub drained: bool,
    /// Kept apart from what seldom changes.
    #[serde(skip)]
    pub last: LastAnswers,
}

/// What a process tells of itself with its beats, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignOfLife {
    /// Its version.
    pub version: String,
    /// Its machine.
    pub host: String,
    /// How many downloads it may have under way; none where it has none to do, or hasn't begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downloads: Option<u32>,
    /// How many parses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parses: Option<u32>,
    /// The leases that it holds.
    #[serde(default)]
    pub leases: u32,
}

/// The last beat of a process that claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastBeat {
    /// When.
    pub at: Timestamp,
    /// What it told.
    pub tells: SignOfLife,
}

/// What a process that claims was answered last, for when it asks again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastAnswers {
    /// Its last claim: the first token, and how many were granted.
    pub claimed: Option<(u64, u64)>,
    /// Its last settle and the answers.
    pub settled: Option<(u64, Vec<Settled>)>,
}

impl OwnerState {
    /// Whether all else is the same.
    pub fn is_same_but_for_answers(&self, other: &Self) -> bool {
        let seldom = |it: &Self| (it.dead, it.pid, it.downloads, it.drained);
        seldom(self) == seldom(other) && self.scope == other.scope
    }
}

impl DeadState {
    /// The letter as people see it.
    pub fn letter(&self, page: PageKey<'_>, stage: Stage) -> DeadLetter {
        DeadLetter {
            site: page.site.to_owned(),
            stage,
            url: page.url.clone(),
            why: self.why.clone(),
            attempts: self.attempts,
            history: self.history.clone(),
            died_at: Timestamp::from_millis(self.died_at),
            depth: self.depth,
            session: self.session.clone(),
            batches: self.batches.clone(),
            tenant: self.tenant.clone(),
        }
    }
}
