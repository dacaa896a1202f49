//! Sessions: downloads of one site that run one at a time, in order (C6).

use serde::{Deserialize, Serialize};

/// Bytes of a session's name, at most.
const LONGEST_NAME: usize = 64;

/// What happens to a session one of whose steps died.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The step holds the session until somebody revives or drops it.
    #[default]
    Block,
    /// The next one goes on.
    Skip,
}

/// The session that a put is a step of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionWish {
    /// Its name, of which each site has its own.
    pub name: String,
    /// What a step that dies does to it from now on; none leaves that as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
}

impl SessionWish {
    /// One that leaves all else as it is.
    pub fn of(name: impl Into<String>) -> Self {
        Self { name: name.into(), on_failure: None }
    }

    /// Whether a session can have this name.
    pub fn is_name(name: &str) -> bool {
        let may_be = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(may_be)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_a_short_plain_name() {
        assert!(["a", "roll-out:2026.11_b", &"x".repeat(64)].into_iter().all(SessionWish::is_name));
        assert!(!["", "a b", "é", "a\n", "a/b", &"x".repeat(65)].into_iter().any(SessionWish::is_name));
    }
}
