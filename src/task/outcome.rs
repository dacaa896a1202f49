//! How a task ended: its outcome, the settlement that brings it, and the letter that is kept of one that failed for good.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{BatchNames, Lease, Stage, StoredPage};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;

/// How a worker leaves a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It is done; a download leaves the stored page, which goes on to the parse stage.
    Done {
        /// The page kept, for a download that brought one.
        stored: Option<StoredPage>,
        /// When it should be fetched again, counted from now.
        recrawl: Option<Duration>,
    },
    /// It is done without being wanted.
    Excluded {
        /// Why.
        why: Exclusion,
        /// No request was sent: the start is given back.
        unused: bool,
    },
    /// It is done here; its target was put before this.
    Redirected {
        /// Where it went.
        to: CanonicalUrl,
    },
    /// It failed and may succeed later; at the last attempt it is dead.
    Retry {
        /// How long to wait.
        after: Duration,
        /// What happened.
        why: Failure,
    },
    /// It was refused by a wall, which the frontier knows: it goes back behind the others, no attempt counted.
    Refused {
        /// What happened.
        why: Failure,
    },
    /// What it leads to has no room for now (M10): it is done again after that, behind the others, no attempt counted.
    Postponed {
        /// How long to wait.
        after: Duration,
    },
    /// It failed for good.
    Dead {
        /// What happened.
        why: Failure,
    },
    /// A host's `robots.txt` brought a record, or none after all.
    Robots(RobotsRecord),
    /// A host's `robots.txt` is elsewhere on the same site.
    RobotsMoved {
        /// Where.
        to: CanonicalUrl,
    },
}

/// Why a task was not wanted after all: a kind of done, counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exclusion {
    /// `robots.txt` forbids it.
    Robots,
    /// It is out of scope.
    Scope,
    /// Its media type isn't among `accept_types`.
    Type,
    /// Its time was over.
    Expired,
    /// No page rule takes it any more.
    NoRule,
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Robots => "robots",
            Self::Scope => "scope",
            Self::Type => "type",
            Self::Expired => "expired",
            Self::NoRule => "no rule",
        })
    }
}

/// What went wrong, in words, with the HTTP status where there was one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// One line for people.
    pub reason: String,
    /// The last status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// Bytes of a reason, at most: a header value may be part of it, and the frontier keeps it with each try.
const MOST_OF_A_REASON: usize = 512;

impl Failure {
    /// A failure without an HTTP status.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: short_reason(reason), status: None }
    }

    /// A failure that an HTTP status told.
    pub fn status(status: u16, reason: impl Into<String>) -> Self {
        Self { reason: short_reason(reason), status: Some(status) }
    }
}

/// A reason as it is kept: cut where it is long.
pub(crate) fn short_reason(reason: impl Into<String>) -> String {
    let mut reason = reason.into();
    if reason.len() > MOST_OF_A_REASON {
        reason.truncate(reason.floor_char_boundary(MOST_OF_A_REASON - '…'.len_utf8()));
        reason.push('…');
    }
    reason
}

/// What is known of one origin's `robots.txt`, shared by every process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsRecord {
    /// How the fetch ended.
    pub access: RobotsAccess,
    /// How long it holds, counted from when it is settled.
    pub holds_for: Duration,
    /// The pace that it asks for, which is a floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crawl_delay: Option<Duration>,
    /// Set where it asks for more than the site's file allows: the unit is blocked with this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuses: Option<String>,
}

impl RobotsRecord {
    /// None could be had.
    pub fn unreachable(why: impl Into<String>, holds_for: Duration) -> Self {
        let access = RobotsAccess::Unreachable(why.into());
        Self { access, holds_for, crawl_delay: None, refuses: None }
    }

    /// Whether none could be had.
    pub fn is_unreachable(&self) -> bool {
        matches!(self.access, RobotsAccess::Unreachable(_))
    }
}

/// How the fetch of a `robots.txt` ended (RFC 9309 section 2.3.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RobotsAccess {
    /// Its rules, as text.
    Rules(String),
    /// There is none (4xx): everything is allowed.
    Absent,
    /// It could not be had (5xx, network): everything is forbidden for now.
    Unreachable(String),
}

/// A site refuses without saying for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallSighting {
    /// What it answered, in words.
    pub why: String,
    /// It is the site's own matter; else the whole unit refuses.
    pub of_site: bool,
    /// What tells it from a page of the site's own, as `manners::wall::looks` has it.
    pub looks: u32,
    /// How long the first probe waits, in ms.
    pub first: i64,
    /// A random number, for how much longer.
    pub dice: u32,
}

/// An outcome with the lease that it ends, and what the answer said about the site's pace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    /// The task's lease.
    pub lease: Lease,
    /// How it ended.
    pub outcome: Outcome,
    /// The site asked to be left alone for so long, and why.
    pub block: Option<(Duration, String)>,
    /// Nobody there answers: this site alone, not its group, is left alone for so long, and why.
    pub away: Option<(Duration, String)>,
    /// How long the answer took.
    pub response: Option<Duration>,
    /// Under this token the page's parse is leased to the same process at once, where no other parse may go.
    pub parse: Option<u64>,
    /// What of its page was more than a page may have.
    pub too_much: TooMuch,
}

impl Settlement {
    /// One that brings nothing beside the outcome.
    pub fn of(lease: Lease, outcome: Outcome) -> Self {
        let too_much = TooMuch::default();
        Self { lease, outcome, block: None, away: None, response: None, parse: None, too_much }
    }
}

/// What of a page was more than a page may have: a site counts it, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooMuch {
    /// Links that were dropped.
    pub links: u32,
    /// Structured data or values were left out.
    pub left_out: bool,
    /// Its parse took more than its site's file allows.
    pub too_dear: bool,
}

/// What became of a settlement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Settled {
    /// As asked.
    Kept,
    /// As asked, and this is the lease of the page's parse.
    Leased(Box<Lease>),
    /// A retry that was the last attempt: the task is dead.
    Died,
    /// The lease was lost; nothing changed.
    Stale,
}

/// A task that failed for good, kept with its reason until it is revived or dropped (I13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The site's name.
    pub site: String,
    /// Where it died.
    pub stage: Stage,
    /// The page.
    pub url: CanonicalUrl,
    /// The last failure.
    pub why: Failure,
    /// How often it was tried.
    pub attempts: u32,
    /// Failures, oldest first.
    pub history: Vec<Failure>,
    /// When it died.
    pub died_at: Timestamp,
    /// Links between a seed and its page.
    pub depth: u32,
    /// The session that it holds until it is revived or dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its batches.
    #[serde(default, skip_serializing_if = "BatchNames::is_empty")]
    pub batches: BatchNames,
    /// Whom the page was for, and is again once it is revived; none is whom its site is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_at_512_bytes() {
        assert_eq!(Failure::new("x".repeat(512)).reason.len(), 512);
        let long = Failure::status(503, "é".repeat(257)).reason;
        assert!(long.len() <= 512 && long.ends_with("é…"), "{long}");
    }
}
