//! Sessions of a site, as people see them.

use crate::canonical_url::CanonicalUrl;
use crate::frontier::state::SessionState;
use crate::task::Priority;

/// A session that a dead step holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldSession {
    /// Its name.
    pub name: String,
    /// That step.
    pub url: CanonicalUrl,
}

/// How a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    /// Its books.
    pub session: SessionState,
    /// The first steps behind its head, in order.
    pub next: Vec<SessionStep>,
}

/// A step of a session that waits for those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStep {
    /// The page.
    pub url: CanonicalUrl,
    /// How urgent.
    pub priority: Priority,
}
