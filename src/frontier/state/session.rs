//! A session: downloads of one site that run one at a time, in order.

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::canonical_url::CanonicalUrl;
use crate::task::OnFailure;

/// Sessions of a site that are remembered after their end, at most.
pub const ENDED_KEPT: u64 = 1_000;
/// For how long they are, in ms.
pub const ENDED_MS: i64 = 86_400_000;

/// What is kept of a session beside its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionState {
    /// The step that may be claimed, or runs; no other one may.
    pub head: Option<CanonicalUrl>,
    /// The head is a dead letter.
    #[serde(skip_serializing_if = "is_default")]
    pub held: bool,
    /// What a step that dies does to it.
    pub on_failure: OnFailure,
    /// When its first step was put, in ms.
    pub began_at: i64,
    /// When its last step ended, in ms; none while it has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// Steps put, further runs and those that were revived included.
    pub created: u64,
    /// Steps done, excluded and redirected ones included.
    pub done: u64,
    /// Steps that died.
    pub dead: u64,
    /// Steps that were dropped, or asked for otherwise.
    pub dropped: u64,
}

/// How a session stands among those of its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionPlace {
    /// Its head is a dead letter.
    Held,
    /// It has steps.
    Open,
    /// It ended then, in ms.
    Ended(i64),
}

impl SessionState {
    /// How it stands.
    pub fn place(&self) -> SessionPlace {
        match self.ended_at {
            Some(at) => SessionPlace::Ended(at),
            None if self.held => SessionPlace::Held,
            None => SessionPlace::Open,
        }
    }

    /// It ended so long ago that it is forgotten.
    pub fn is_over(&self, now: i64) -> bool {
        self.ended_at.is_some_and(|at| at <= now - ENDED_MS)
    }

    /// Its steps that wait or run.
    pub fn left(&self) -> u64 {
        self.created.saturating_sub(self.done + self.dead + self.dropped)
    }
}

impl SessionPlace {
    /// A number for an index: those that are held come first, then those that ended, by when, then the others.
    pub const fn number(self) -> i64 {
        match self {
            Self::Held => Self::HELD,
            Self::Ended(at) => at,
            Self::Open => Self::OPEN,
        }
    }

    /// The number of those that are held.
    pub const HELD: i64 = 0;
    /// The number of those that have steps: 2 to the 53rd, which a server counts up to.
    pub const OPEN: i64 = 1 << 53;
}
