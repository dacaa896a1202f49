//! What operators are to be told, as the frontier keeps it: of each kind and site the latest event, until a day after it.

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::clock::Timestamp;
use crate::task::Event;

/// Events that are kept, told ones included: the oldest goes first.
pub const MOST_EVENTS: u64 = 1_000;
/// For how long one is kept, in ms: what nobody took in a day is no news.
pub const EVENT_KEPT_MS: i64 = 24 * 3_600_000;
/// For how long no other event of its kind and site is taken in, in ms.
pub const QUIET_MS: i64 = 3_600_000;
/// How long whoever took one has to tell it, in ms: longer than a command may run.
pub const EVENT_LEASE_MS: i64 = 45_000;
/// How long after each time that it couldn't be told it is tried again, in ms.
pub const EVENT_PAUSES: [i64; 4] = [60_000, 300_000, 1_800_000, 7_200_000];

/// An event, and how far it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventState {
    /// When it happened, in ms.
    pub at: i64,
    /// What is to be told.
    pub event: Event,
    /// When it may be taken next, in ms; none once it was told or given up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub next: Option<i64>,
    /// Of whoever took it last, until it is ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub token: Option<u64>,
    /// How often it couldn't be told.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failures: u32,
    /// When that was last, in ms, and why, unless it was told since.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failed: Option<(i64, String)>,
}

/// An event in the hands of a process that is to tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenEvent {
    /// When it happened.
    pub at: Timestamp,
    /// How often it couldn't be told.
    pub failures: u32,
    /// What is to be told.
    pub event: Event,
}

/// What becomes of an event that was told, or couldn't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventEnd {
    /// It was told.
    Told,
    /// It is to be told again, in so many ms.
    Again(i64),
    /// It couldn't be told too often.
    GivenUp,
    /// Somebody else has it, or it is gone.
    Stale,
}

impl EventState {
    /// One that happens now.
    pub fn new(event: Event, now: i64) -> Self {
        Self { at: now, event, next: Some(now), token: None, failures: 0, failed: None }
    }

    /// Whoever brings that token has it in hand, for a while.
    pub fn take(&mut self, token: u64, now: i64) -> TakenEvent {
        (self.token, self.next) = (Some(token), Some(now + EVENT_LEASE_MS));
        TakenEvent { at: Timestamp::from_millis(self.at), failures: self.failures, event: self.event.clone() }
    }

    /// It was told, or couldn't be for that reason.
    pub fn end(&mut self, failed: Option<String>, now: i64) -> EventEnd {
        (self.token, self.next) = (None, None);
        self.failed = failed.map(|why| (now, why));
        if self.failed.is_none() {
            return EventEnd::Told;
        }
        let pause = EVENT_PAUSES.get(self.failures as usize).copied();
        self.failures = self.failures.saturating_add(1);
        self.next = pause.map(|pause| now + pause);
        pause.map_or(EventEnd::GivenUp, EventEnd::Again)
    }
}
