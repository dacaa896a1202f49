//! How a page stands: its tasks, its dead letters, and what is kept of it.

use std::time::Duration;

use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::task::{BatchNames, DeadLetter, Failure, Priority, Stage, StoredPage};

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
pub struct UrlStatus {
    /// Its tasks, at most one a stage.
    pub tasks: Vec<UnitStatus>,
    /// Its dead letters, at most one a stage.
    pub letters: Vec<DeadLetter>,
    /// The page as it was last kept.
    pub latest: Option<LatestPage>,
    /// When it is asked for again.
    pub recrawl_at: Option<Timestamp>,
    /// It was met in the present run.
    pub is_known: bool,
}

impl UrlStatus {
    /// Where its newest stored body is kept.
    pub fn stored(&self) -> Option<&StoredPage> {
        self.latest.as_ref().map(|latest| &latest.stored)
    }

    /// Links between a seed and this page, as its task has it, else as it was fetched.
    pub fn depth(&self) -> Option<u32> {
        let of_page = || self.latest.as_ref().map(|latest| latest.depth);
        self.tasks.first().map(|task| task.depth).or_else(of_page)
    }
}

/// A page as it was last kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatestPage {
    /// Where its body is.
    pub stored: StoredPage,
    /// Links between a seed and this page, as it was fetched.
    pub depth: u32,
}

/// A task as people look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitStatus {
    /// Download or parse.
    pub stage: Stage,
    /// `waiting`, `parked`, `behind`, `delayed`, `scheduled` or `running`.
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
    /// Its lane, unless that is the one that is always there.
    pub lane: Option<String>,
    /// Whom it is for, where that isn't whom its site is for.
    pub tenant: Option<String>,
    /// The session that it is a step of.
    pub session: Option<String>,
    /// Its batches, and those of its further run.
    pub batches: BatchNames,
}

impl UnitStatus {
    /// By when it is to go at the latest, where its site goes by deadlines; none: before all others.
    pub fn go_by(&self) -> Option<Timestamp> {
        let allowance = Duration::from_millis(self.priority.allowance().unsigned_abs());
        (self.priority != Priority::ROBOTS).then(|| self.put_at.plus(allowance))
    }
}
