//! A campaign: where its list is put up to, and how it is fed.

use serde::{Deserialize, Serialize};

use super::{BatchCounts, is_default};
use crate::frontier::url_list::ListKey;
use crate::task::{CampaignPlan, CampaignPortion, Priority};

/// Campaigns that a frontier keeps, those that ended too.
pub const CAMPAIGNS_KEPT: usize = 100;
/// For how long one is kept after its end, in ms.
pub const CAMPAIGN_KEPT_MS: i64 = 30 * 86_400_000;
/// For how long a list that isn't whole is kept, in ms.
pub const UPLOAD_KEPT_MS: i64 = 86_400_000;
/// The shortest time between two marks of its progress, in ms: of the last two, the older one is an hour old at most.
pub const MARK_MS: i64 = 1_800_000;

/// What is kept of a campaign beside its list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CampaignState {
    /// How it is fed.
    pub plan: CampaignPlan,
    /// Its list.
    pub list: ListKey,
    /// The chunks of it that are there.
    pub chunks: u32,
    /// When its list was begun, in ms.
    pub made_at: i64,
    /// When it began, in ms; none while its list isn't whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_at: Option<i64>,
    /// When its last page ended, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// Somebody paused it.
    #[serde(skip_serializing_if = "is_default")]
    pub paused: bool,
    /// The rest of its list isn't put any more.
    #[serde(skip_serializing_if = "is_default")]
    pub stopped: bool,
    /// What waits of it goes.
    #[serde(skip_serializing_if = "is_default")]
    pub drops: bool,
    /// The next URL of its list, from 0.
    pub next: u32,
    /// When it is topped up next, in ms.
    pub next_tick: i64,
    /// How many of its pages had ended at some times, in ms: the last two.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<(i64, u64)>,
}

impl CampaignState {
    /// Whether URLs of its list are put.
    pub fn is_fed(&self) -> bool {
        self.began_at.is_some() && !self.paused && !self.stopped && self.next < self.list.total
    }

    /// Its URLs that are still to be put.
    pub fn unfed(&self) -> u32 {
        if self.stopped { 0 } else { self.list.total.saturating_sub(self.next) }
    }

    /// How many more of its pages may be put now, of which so many wait or run, on a site of that interval, in ms. It is topped up
    /// at a tick, and where less than half of a portion is left.
    pub fn room(&self, open: u64, interval: i64, now: i64) -> u32 {
        let portion = self.plan.pages(interval);
        let is_due = now >= self.next_tick || open * 2 < u64::from(portion);
        if !self.is_fed() || !is_due {
            return 0;
        }
        let room = u64::from(portion).saturating_sub(open);
        u32::try_from(room).unwrap_or(portion).min(self.unfed())
    }

    /// Marks how many of its pages have ended by now.
    pub fn mark(&mut self, ended: u64, now: i64) {
        if self.marks.last().is_none_or(|(at, _)| now - at >= MARK_MS) {
            self.marks.push((now, ended));
            self.marks.drain(..self.marks.len().saturating_sub(2));
        }
    }

    /// Nothing of it is left, with so many pages that wait or run.
    pub fn is_done(&self, open: u64) -> bool {
        self.began_at.is_some() && self.unfed() == 0 && open == 0
    }

    /// It began, and nobody has noted its end.
    pub fn is_to_be_ended(&self) -> bool {
        self.began_at.is_some() && self.ended_at.is_none()
    }

    /// Whether it is forgotten.
    pub fn is_over(&self, now: i64) -> bool {
        match self.began_at {
            Some(_) => self.ended_at.is_some_and(|at| at <= now - CAMPAIGN_KEPT_MS),
            None => self.made_at <= now - UPLOAD_KEPT_MS,
        }
    }
}

/// What is set of a campaign that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CampaignTuning {
    /// How many of its pages wait or run at once.
    Portion(CampaignPortion),
    /// From one top-up to the next, in ms.
    Tick(i64),
    /// How urgent the pages are that are put from then on.
    Priority(Priority),
    /// No further page is put until it goes on.
    Paused(bool),
    /// No further page is put any more; what waits of it goes, or is let end.
    Stopped {
        /// It is let end.
        keep: bool,
    },
}

/// How many of a campaign's pages are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CampaignCounts {
    /// They wait or run.
    pub open: u64,
    /// They ended well, or were excluded.
    pub done: u64,
    /// They died.
    pub dead: u64,
    /// They were dropped.
    pub dropped: u64,
    /// They waited or ran already as they were put: for somebody else as well.
    pub coalesced: u64,
}

impl CampaignCounts {
    /// Those that are no longer open.
    pub fn ended(&self) -> u64 {
        self.done + self.dead + self.dropped
    }
}

impl From<BatchCounts> for CampaignCounts {
    fn from(batch: BatchCounts) -> Self {
        Self {
            open: batch.open(),
            // A redirect's origin is done, and so is its target then: they are one page.
            done: (batch.done + batch.excluded).saturating_sub(batch.targets),
            dead: batch.dead,
            dropped: batch.dropped,
            coalesced: batch.coalesced + batch.deferred,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c12_it_is_topped_up_at_a_tick_and_where_less_than_half_is_left() {
        let plan = CampaignPlan { portion: CampaignPortion::Pages(10), ..CampaignPlan::default() };
        let list = ListKey { total: 100, ..ListKey::default() };
        let began_at = Some(0);
        let one = CampaignState { plan, list, began_at, next_tick: 5_000, ..CampaignState::default() };
        assert_eq!(one.room(5, 1_000, 4_999), 0);
        assert_eq!(one.room(4, 1_000, 4_999), 6);
        assert_eq!(one.room(9, 1_000, 5_000), 1);
        assert_eq!(one.room(11, 1_000, 5_000), 0, "its portion was made smaller");
        assert_eq!(CampaignState { next: 98, ..one.clone() }.room(0, 1_000, 5_000), 2);
        for other in [
            CampaignState { paused: true, ..one.clone() },
            CampaignState { stopped: true, ..one.clone() },
            CampaignState { began_at: None, ..one.clone() },
            CampaignState { next: 100, ..one },
        ] {
            assert_eq!(other.room(0, 1_000, 5_000), 0, "{other:?}");
        }
    }
}
