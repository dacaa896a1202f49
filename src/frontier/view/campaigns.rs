//! Campaigns, as people and their feeder see them.

use crate::frontier::state::{CampaignCounts, CampaignState};

/// A name that a campaign has, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CampaignName {
    /// The name.
    pub name: String,
    /// Its site.
    pub site: String,
    /// What tells it from an earlier or a later campaign of that name.
    pub number: i64,
}

/// How a campaign stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CampaignStatus {
    /// Its record.
    pub campaign: CampaignState,
    /// Where its pages are.
    pub counts: CampaignCounts,
    /// What its site waits between two starts, its group's wait included, in ms.
    pub interval: i64,
    /// How many more of its pages may be put now.
    pub room: u32,
    /// When it is looked at, in ms.
    pub at: i64,
}

/// In what a campaign is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CampaignPhase {
    /// Its list isn't whole.
    Uploading,
    /// It is fed, or its last pages are under way.
    Running,
    /// No further page is put until somebody resumes it.
    Paused,
    /// It was stopped, and its last pages are under way.
    Stopping,
    /// It was stopped before all was put.
    Stopped,
    /// All of its pages ended.
    Ended,
}

impl CampaignPhase {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Uploading => "uploading",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Ended => "ended",
        }
    }
}

impl CampaignStatus {
    /// In what it is.
    pub fn phase(&self) -> CampaignPhase {
        let CampaignState { began_at, stopped, paused, .. } = self.campaign;
        match self.campaign.is_done(self.counts.open) {
            _ if began_at.is_none() => CampaignPhase::Uploading,
            true if stopped => CampaignPhase::Stopped,
            true => CampaignPhase::Ended,
            false if stopped => CampaignPhase::Stopping,
            false if paused => CampaignPhase::Paused,
            false => CampaignPhase::Running,
        }
    }

    /// Whether pages of it are still to be fetched.
    pub fn is_under_way(&self) -> bool {
        use CampaignPhase::{Paused, Running, Stopping};
        matches!(self.phase(), Running | Paused | Stopping)
    }

    /// Its pages that haven't ended: those that are to be put, wait or run.
    pub fn left(&self) -> u64 {
        u64::from(self.campaign.unfed()) + self.counts.open
    }

    /// How long its pages last by the pace of its site, in ms.
    pub fn paced_eta(&self) -> Option<i64> {
        let left = i64::try_from(self.left()).unwrap_or(i64::MAX);
        self.is_under_way().then(|| left.saturating_mul(self.interval))
    }

    /// How long they last if they go on ending as fast as in the last hour, or since it began; none before one ended.
    pub fn observed_eta(&self) -> Option<i64> {
        let (at, ended) = *self.campaign.marks.first()?;
        let ended = self.counts.ended().checked_sub(ended).filter(|ended| *ended > 0)?;
        let passed = i128::from((self.at - at).max(1));
        let left = i128::from(self.left()) * passed / i128::from(ended);
        self.is_under_way().then(|| i64::try_from(left).unwrap_or(i64::MAX))
    }
}
