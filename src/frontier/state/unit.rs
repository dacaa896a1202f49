//! A pace unit: its last start, its block, its timed mutex.

use serde::{Deserialize, Serialize};

use super::{SiteState, is_default};
use crate::frontier::MutexKey;

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
    #[serde(default, skip_serializing_if = "is_default")]
    pub blocked_why: Option<String>,
    /// Somebody else was seen holding the mutex until then, in ms.
    pub held_until: i64,
    /// Somebody else waits for the mutex of this start: the next claim comes so many ms later, to let it in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub courtesy: Option<(u64, i64)>,
    /// The claims missed the turn that was theirs after a lock: after the one that ends at `held_until` they have so many ms.
    #[serde(default, skip_serializing_if = "is_default")]
    pub turn: i64,
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

    /// Its last starts of that site.
    pub fn starts_of(&mut self, site: &str) -> impl Iterator<Item = &mut Start> {
        [&mut self.last, &mut self.before].into_iter().flatten().filter(move |start| start.site == site)
    }

    /// Its last starts of a site that leaves are waited for as long as now.
    pub fn fix_starts_of(&mut self, site: &SiteState) {
        for start in self.starts_of(&site.name) {
            start.fixed.get_or_insert(site.interval());
        }
    }

    /// Its timed mutex.
    pub fn mutex(&self) -> MutexKey {
        MutexKey::unit(&self.name)
    }

    /// Whether a mutex token is that of the unit's own last start.
    pub fn owns(&self, token: &str) -> bool {
        self.last.as_ref().is_some_and(|start| mutex_token(start.token) == token)
    }
}

/// What the token begins with that a start leaves in the mutex.
pub const START_TOKEN: &str = "start-";

/// The token that a start leaves in the mutex.
pub fn mutex_token(lease: u64) -> String {
    format!("{START_TOKEN}{lease:016x}")
}

/// A held mutex.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MutexState {
    /// Who holds it.
    pub token: String,
    /// Until when, in ms.
    pub until: i64,
}
