//! What an operator is told of: what failed or ended, of which site, in one sentence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::short_reason;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A run ended without a page, or can't go on.
    RunFailed,
    /// A crawl left a site as it is: it stood still for too long.
    SiteGivenUp,
    /// A site refuses without saying for how long.
    Walled,
    /// Too many of a run's pages are dead.
    DeadShare,
    /// All pages of a campaign came to their end.
    CampaignDone,
}

impl EventKind {
    /// All of them, as `paced.toml` names them.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("run_failed", Self::RunFailed),
        ("site_given_up", Self::SiteGivenUp),
        ("walled", Self::Walled),
        ("dead_share", Self::DeadShare),
        ("campaign_done", Self::CampaignDone),
    ];

    /// Its name.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// What an operator is to be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// Of which site; empty where it is of several.
    pub site: String,
    /// What happened and what to do, in one sentence.
    pub text: String,
    /// Counts that belong to it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, u64>,
}

impl Event {
    /// One of a site. A sentence that is long is cut.
    pub fn new(kind: EventKind, site: &str, text: impl Into<String>) -> Self {
        Self { kind, site: site.to_owned(), text: short_reason(text), figures: BTreeMap::new() }
    }

    /// With a count.
    #[must_use]
    pub fn with(mut self, figure: &str, count: u64) -> Self {
        self.figures.insert(figure.to_owned(), count);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c19_each_kind_is_stored_by_the_name_that_paced_toml_has_for_it() {
        for (word, kind) in EventKind::WORDS {
            assert_eq!((kind.word(), serde_json::json!(kind)), (word, serde_json::json!(word)));
        }
    }
}
