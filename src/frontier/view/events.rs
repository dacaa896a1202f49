//! Events that operators are to be told, as people see them.

use crate::clock::Timestamp;
use crate::task::EventKind;

/// How far they are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventsStatus {
    /// How many wait, or are being told.
    pub waiting: u64,
    /// The latest that couldn't be told, and wasn't told since.
    pub failed: Option<UntoldEvent>,
}

/// An event that couldn't be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntoldEvent {
    /// When that was tried last.
    pub at: Timestamp,
    /// What happened.
    pub kind: EventKind,
    /// Of which site; empty where it is of several.
    pub site: String,
    /// Why it couldn't be told.
    pub why: String,
    /// It isn't tried again.
    pub given_up: bool,
}
