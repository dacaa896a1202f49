//! Marks: how much may wait before puts are refused (M10).

use serde::{Deserialize, Serialize};

use super::{FleetRules, MOST_BATCHES};
use crate::quantity::{spoken_count, written_size};

/// Downloads of a site that wait, at most, where `paced.toml` says nothing else.
pub const MOST_WAITING: u32 = 5_000_000;
/// What they weigh together, at most, in bytes.
pub const MOST_BYTES: u64 = 256 << 20;
/// Downloads of all sites that wait, at most.
pub const MOST_IN_ALL: u32 = 50_000_000;
/// What a waiting task weighs beside its URL, in bytes.
pub const TASK_BYTES: u64 = 100;

/// A mark that a put has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HighWater {
    /// As many downloads of the site wait as may.
    Site,
    /// The downloads of the site that wait weigh as much as they may.
    SiteBytes,
    /// As many downloads of all sites wait as may.
    Frontier,
    /// The page is of as many batches as it can be.
    Batches,
}

impl FleetRules {
    /// Downloads of a site that wait, at most.
    pub fn most_waiting(&self) -> u64 {
        self.most_waiting.unwrap_or(MOST_WAITING.into())
    }

    /// What the downloads of a site that wait weigh, at most, in bytes.
    pub fn most_bytes(&self) -> u64 {
        self.most_bytes.unwrap_or(MOST_BYTES)
    }

    /// Downloads of all sites that wait, at most.
    pub fn most_in_all(&self) -> u64 {
        self.most_in_all.unwrap_or(MOST_IN_ALL.into())
    }

    /// The mark that a site is at of which so many downloads wait, with so many bytes.
    pub fn mark_of_site(&self, waiting: u64, bytes: u64) -> Option<HighWater> {
        let by_number = (waiting >= self.most_waiting()).then_some(HighWater::Site);
        by_number.or((bytes >= self.most_bytes()).then_some(HighWater::SiteBytes))
    }

    /// Why a site takes a page not in for now, and where that is set.
    pub fn told_full(&self, site: &str, mark: HighWater) -> String {
        let (full, most, key, is_set) = match mark {
            HighWater::Site => {
                let most = format!("{} waiting and delayed pages", spoken_count(self.most_waiting()));
                (format!("site `{site}`"), most, "site", self.most_waiting.is_some())
            }
            HighWater::SiteBytes => {
                let most = format!("{} of waiting and delayed pages", written_size(self.most_bytes()));
                (format!("site `{site}`"), most, "site_bytes", self.most_bytes.is_some())
            }
            HighWater::Frontier => {
                let most =
                    format!("{} waiting and delayed pages of all sites", spoken_count(self.most_in_all()));
                ("the frontier".to_owned(), most, "frontier", self.most_in_all.is_some())
            }
            HighWater::Batches => {
                return format!("a page is of {MOST_BATCHES} batches at most, until they are done with it");
            }
        };
        let default = if is_set { "" } else { ", by default" };
        format!("{full} is full: its mark is {most} ([high_water] {key} of paced.toml{default})")
    }
}
