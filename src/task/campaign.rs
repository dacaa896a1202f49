//! Campaigns: long lists of URLs of a site that are put portion by portion (C12-C16).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Priority;

/// Bytes of a campaign's name, at most.
const LONGEST_NAME: usize = 64;
/// Pages of a portion that goes by the pace, at least.
pub const LEAST_PORTION: u32 = 16;
/// Pages of a portion, at most.
pub const MOST_PORTION: u32 = 100_000;
/// Ticks that a portion that goes by the pace lasts, at most.
const MOST_TICKS: u32 = 100;
/// The shortest and the longest time between two top-ups, in ms.
pub const TICKS: (i64, i64) = (1_000, 3_600_000);

/// How a campaign is fed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignPlan {
    /// How many of its pages wait or run at once.
    pub portion: CampaignPortion,
    /// From one top-up to the next, in ms.
    pub tick: i64,
    /// How urgent its pages are.
    pub priority: Priority,
    /// The lane that they wait in, where that isn't for the rules to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Whom they are for, where that isn't the site's own tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The batch that they belong to as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
}

impl Default for CampaignPlan {
    fn default() -> Self {
        Self {
            portion: CampaignPortion::default(),
            tick: 10_000,
            priority: Priority::SEED,
            lane: None,
            tenant: None,
            batch: None,
        }
    }
}

impl CampaignPlan {
    /// Whether a campaign can have this name.
    pub fn is_name(name: &str) -> bool {
        let may_be = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(may_be)
    }

    /// How many pages a portion has on a site of that interval, in ms.
    pub fn pages(&self, interval: i64) -> u32 {
        match self.portion {
            CampaignPortion::Pages(pages) => pages,
            CampaignPortion::Ticks(ticks) => {
                let span = self.tick.saturating_mul(ticks.into());
                let pages = span.div_euclid(interval.max(1)).min(MOST_PORTION.into());
                u32::try_from(pages).unwrap_or(0).max(LEAST_PORTION)
            }
        }
    }
}

/// How many pages of a campaign wait or run at once: so many, or what the pace allows in so many ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum CampaignPortion {
    /// So many.
    Pages(u32),
    /// What the pace allows in so many ticks, and 16 at the least.
    Ticks(u32),
}

impl Default for CampaignPortion {
    fn default() -> Self {
        Self::Ticks(2)
    }
}

/// Why a text is no portion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a portion can be 1 to {MOST_PORTION} pages, or `2x`, what the pace allows in 2 ticks (1x to {MOST_TICKS}x)"
)]
pub struct PortionError;

impl FromStr for CampaignPortion {
    type Err = PortionError;

    fn from_str(text: &str) -> Result<Self, PortionError> {
        let (number, most, portion): (_, _, fn(u32) -> Self) = match text.trim().strip_suffix('x') {
            Some(ticks) => (ticks, MOST_TICKS, Self::Ticks),
            None => (text.trim(), MOST_PORTION, Self::Pages),
        };
        let number: u32 = number.parse().map_err(|_| PortionError)?;
        if (1..=most).contains(&number) { Ok(portion(number)) } else { Err(PortionError) }
    }
}

impl fmt::Display for CampaignPortion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pages(pages) => write!(f, "{pages}"),
            Self::Ticks(ticks) => write!(f, "{ticks}x"),
        }
    }
}

impl From<CampaignPortion> for String {
    fn from(portion: CampaignPortion) -> Self {
        portion.to_string()
    }
}

impl TryFrom<String> for CampaignPortion {
    type Error = PortionError;

    fn try_from(text: String) -> Result<Self, PortionError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c12_a_portion_is_so_many_pages_or_what_the_pace_allows_in_some_ticks() {
        let pages = |portion: &str, tick, interval| {
            let portion = portion.parse().expect("a portion");
            CampaignPlan { portion, tick, ..CampaignPlan::default() }.pages(interval)
        };
        assert_eq!(pages("7", 1_000, 1_000), 7);
        assert_eq!(pages("2x", 60_000, 1_000), 120);
        assert_eq!(pages("2x", 10_000, 1_000), 20);
        assert_eq!(pages("2x", 10_000, 60_000), LEAST_PORTION);
        assert_eq!(pages("2x", 3_600_000, 0), MOST_PORTION, "without a pace");
        for text in ["0", "100001", "0x", "101x", "x", "", "-1", "2.5x"] {
            assert_eq!(text.parse::<CampaignPortion>(), Err(PortionError), "{text}");
        }
        assert_eq!(
            "100x".parse::<CampaignPortion>().map(|portion| portion.to_string()).as_deref(),
            Ok("100x")
        );
    }
}
