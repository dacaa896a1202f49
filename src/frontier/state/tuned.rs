//! What people set of a site while it runs, and what they are told of it.

use serde::{Deserialize, Serialize};

use super::{Pause, Pauses};

/// The longest interval that may be set while a site runs, in ms: a day.
pub const LONGEST_INTERVAL: i64 = 86_400_000;
/// The most pages of a run that may be set while a site runs.
pub const MOST_PAGES: u64 = 1_000_000_000_000;

/// Values set while a site runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuned {
    /// Wins over the file's interval, in ms.
    pub interval: Option<i64>,
    /// Wins over the file's parallel.
    pub parallel: Option<u32>,
    /// Wins over the file's `max_pages` of a run where it is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<u64>,
    /// Wins over the file's lane, for tasks that are made from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Why no download is granted.
    #[serde(default)]
    pub paused: Option<String>,
    /// The pause ends by itself then, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<i64>,
    /// Why no parse is granted, and until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parse_paused: Option<Pause>,
}

impl Tuned {
    /// Pauses, or ends a pause.
    pub fn pause(&mut self, pause: Option<Pause>) {
        let (why, until) = pause.map_or((None, None), |pause| (Some(pause.why), pause.until));
        (self.paused, self.paused_until) = (why, until);
    }

    /// Forgets a pause that is over.
    pub fn tidy(&mut self, now: i64) {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.pause(None);
        }
    }

    /// Both pauses.
    pub fn pauses(&self) -> Pauses {
        let download = self.paused.clone().map(|why| Pause { why, until: self.paused_until });
        Pauses { download, parse: self.parse_paused.clone() }
    }

    /// Whether a pause is in force.
    pub fn is_paused(&self, now: i64) -> bool {
        self.paused.is_some() && self.paused_until.is_none_or(|until| until > now)
    }

    /// A pause that only somebody ends.
    pub(super) fn is_paused_for_good(&self) -> bool {
        self.paused.is_some() && self.paused_until.is_none()
    }
}

/// A value set while a site runs; `None` gives it back to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tuning {
    /// The interval, in ms.
    Interval(Option<i64>),
    /// The most requests in flight.
    Parallel(Option<u32>),
    /// The most pages of a run.
    MaxPages(Option<u64>),
    /// The lane of tasks that are made from now on.
    Lane(Option<String>),
    /// Paused: no download is granted.
    Paused(Option<Pause>),
    /// Paused: no parse is granted.
    ParsePaused(Option<Pause>),
}

impl Tuning {
    /// A pause that somebody ends.
    pub fn pause(why: &str) -> Self {
        Self::Paused(Some(Pause::of(why)))
    }
}

/// What became of setting values while a site runs: all of them are in force, or none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TuneReply {
    /// They are in force.
    Done,
    /// There is no such site.
    Unknown,
    /// Its interval may be this long at least and at most, in ms.
    Interval(i64, i64),
    /// It may have so many requests in flight, at least and at most.
    Parallel(u32, u32),
    /// Its runs may have so many pages, at least and at most: it is raised alone.
    MaxPages(u64, u64),
    /// Its file sets no bound to the pages of a run.
    Unbounded,
}
