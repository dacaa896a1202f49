//! What goes first: which task of a lane, and which of the units that are due.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `order` of `paced.toml`: which waiting task of a site and lane goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskOrder {
    /// The most urgent one, then the one that was put first.
    #[default]
    Strict,
    /// The one whose put and [allowance](super::Priority::allowance) come to the earliest time, so that nothing waits for ever (C5).
    Deadline,
}

/// `pick` of `paced.toml`: which of the due units a claim serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnitPick {
    /// One of the quarter that is due longest, by chance.
    #[default]
    Random,
    /// The one that is due longest.
    Earliest,
}

impl TaskOrder {
    /// The words of `order`, the default first.
    pub(crate) const WORDS: [(&str, Self); 2] = [("strict", Self::Strict), ("deadline", Self::Deadline)];
}

impl UnitPick {
    /// The words of `pick`, the default first.
    pub(crate) const WORDS: [(&str, Self); 2] = [("random", Self::Random), ("earliest", Self::Earliest)];
}

impl fmt::Display for TaskOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word(&Self::WORDS, self))
    }
}

impl fmt::Display for UnitPick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word(&Self::WORDS, self))
    }
}

fn word<T: PartialEq>(words: &[(&'static str, T)], of: &T) -> &'static str {
    words.iter().find(|(_, meaning)| meaning == of).map_or("", |(word, _)| word)
}
