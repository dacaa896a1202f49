//! Pauses that sites share: that of a group, and the one of all sites. Each is a mark of its own beside a site's, and the same
//! whoever joins later. Their units keep them.

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::task::Stage;

/// When a pause ends that only somebody ends, in ms: in 2065, after the last position that can be given.
pub const FOR_GOOD: i64 = 3_000_000_000_000;

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Why.
    pub why: String,
    /// When it ends by itself, in ms; without a time somebody ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

impl Pause {
    /// One that somebody ends.
    pub fn of(why: &str) -> Self {
        Self { why: why.to_owned(), until: None }
    }

    /// When it ends, in ms.
    fn ends(&self) -> i64 {
        self.until.unwrap_or(FOR_GOOD).min(FOR_GOOD)
    }
}

/// The pauses of one mark: each stage has its own, under its letter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    /// Nothing is asked for.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    pub download: Option<Pause>,
    /// No stored page is parsed.
    #[serde(rename = "p", default, skip_serializing_if = "is_default")]
    pub parse: Option<Pause>,
}

impl Pauses {
    /// That of a stage, over or not.
    pub fn of(&self, stage: Stage) -> Option<&Pause> {
        match stage {
            Stage::Download => self.download.as_ref(),
            Stage::Parse => self.parse.as_ref(),
        }
    }

    /// That of a stage, where it is in force.
    pub fn in_force(&self, stage: Stage, now: i64) -> Option<&Pause> {
        self.of(stage).filter(|pause| pause.ends() > now)
    }

    /// Whether one of them is in force.
    pub fn are_in_force(&self, now: i64) -> bool {
        Stage::ALL.iter().any(|stage| self.in_force(*stage, now).is_some())
    }

    /// Pauses a stage, or ends its pause.
    pub fn set(&mut self, stage: Stage, pause: Option<Pause>) {
        match stage {
            Stage::Download => self.download = pause,
            Stage::Parse => self.parse = pause,
        }
    }
}

/// What a unit's sites share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPauses {
    /// Those of their group.
    #[serde(default, skip_serializing_if = "is_default")]
    pub group: Pauses,
    /// A copy of those of all sites.
    #[serde(default, skip_serializing_if = "is_default")]
    pub all: Pauses,
}

impl SharedPauses {
    /// Until when nothing of a stage is granted, in ms; 0 where nobody paused it.
    pub fn until(&self, stage: Stage) -> i64 {
        let pauses = [&self.group, &self.all].into_iter().filter_map(|pauses| pauses.of(stage));
        pauses.map(Pause::ends).max().unwrap_or(0)
    }
}

/// The pauses of all sites, and what tells them from those before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PausesOfAll {
    /// It rises with each change.
    pub number: i64,
    /// Of each stage.
    pub pauses: Pauses,
}

/// What became of pausing a group, or of ending that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupPaused {
    /// There is no such group.
    Unknown,
    /// It is done; whether a pause of it was in force before.
    Was(bool),
}

/// So many marks of requests that are to be dropped are kept, and each for so long, in ms.
pub const DROPS_KEPT: usize = 1_000;
/// Longer than a request takes.
pub const DROPS_KEPT_MS: i64 = 600_000;

/// Whose requests in flight are to be dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DroppedOf {
    /// A site's.
    Site(String),
    /// Those of all sites of a pace unit.
    Unit(String),
    /// All.
    All,
}

/// Requests that were granted until then are to be dropped, and their tasks go back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropMark {
    /// In ms.
    pub at: i64,
    /// Whose.
    pub of: DroppedOf,
}

impl DropMark {
    /// Whether it means a request.
    pub fn means(&self, site: &str, unit: &str, granted_at: i64) -> bool {
        let is_of = match &self.of {
            DroppedOf::Site(name) => name == site,
            DroppedOf::Unit(name) => name == unit,
            DroppedOf::All => true,
        };
        is_of && granted_at <= self.at
    }

    /// Whether it is still told.
    pub fn is_kept(&self, now: i64) -> bool {
        self.at > now - DROPS_KEPT_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c13_of_several_pauses_the_latest_end_counts_and_none_is_later_than_no_end() {
        let until = |until| Some(Pause { why: String::new(), until });
        let of = |pause| Pauses { download: pause, parse: None };
        let ends = |group, all| SharedPauses { group: of(group), all: of(all) }.until(Stage::Download);
        assert_eq!(ends(None, None), 0);
        assert_eq!(ends(until(Some(5)), until(Some(7))), 7);
        assert_eq!(ends(until(Some(7)), until(Some(5))), 7);
        assert_eq!(ends(until(None), until(Some(5))), FOR_GOOD);
        assert_eq!(ends(until(Some(i64::MAX)), None), FOR_GOOD);
    }
}
