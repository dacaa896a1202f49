//! What people and other programs see of a frontier: how sites, tasks, dead letters and processes stand.

mod campaigns;
mod events;
mod held_back;
mod page;
mod queue;
mod sessions;
mod site;

use serde::{Deserialize, Serialize};

use super::state::{LastBeat, SignOfLife, WorkScope};
use super::step::Act;
use crate::clock::Timestamp;
use crate::task::{RobotsRecord, Stage};

pub use campaigns::{CampaignName, CampaignPhase, CampaignStatus};
pub use events::{EventsStatus, UntoldEvent};
pub use held_back::{KnownPause, KnownWall, Whose};
pub use page::{LatestPage, LetterPlace, UnitStatus, UrlStatus};
pub use queue::{QueuePlace, Queued};
pub use sessions::{HeldSession, SessionStatus, SessionStep};
pub use site::{Freshness, Says, View};

/// A process that claims, or did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// What it works on.
    pub scope: WorkScope,
    /// Its leases are over.
    pub dead: bool,
    /// It is to claim nothing more and to end.
    pub drained: bool,
    /// Its last beat that told something.
    pub beat: Option<LastBeat>,
}

impl Owner {
    /// Whether it lives and may have tasks of a site in hand.
    pub fn works_on(&self, site: &str) -> bool {
        !self.dead && self.scope.includes(site)
    }

    /// Whether it takes further tasks of a stage: of both, as long as it hasn't told; of none once it is drained.
    pub fn takes(&self, stage: Stage) -> bool {
        if self.drained {
            return false;
        }
        let Some(SignOfLife { downloads, parses, .. }) = self.beat.as_ref().map(|beat| &beat.tells) else {
            return true;
        };
        match stage {
            Stage::Download => downloads.is_some() || parses.is_none(),
            Stage::Parse => parses.is_some() || downloads.is_none(),
        }
    }
}

/// A portion of the names of all sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteNames {
    /// Some names; one that is there from the first portion to the last is in one of them, or more.
    pub(crate) names: Vec<String>,
    /// Where the next portion begins; none behind the last.
    pub(crate) next: Option<String>,
}

impl SiteNames {
    /// The most in a portion, or as many as the server has at one place.
    pub(crate) const MOST: u32 = 1_000;
}

/// What is known of an origin's `robots.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRobots {
    /// What was found.
    pub record: RobotsRecord,
    /// Until when it holds.
    pub until: Timestamp,
    /// Unreachable records in a row.
    pub failures: u32,
}

/// What a person did, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatedAct {
    /// When.
    pub at: Timestamp,
    /// What, who and why.
    #[serde(flatten)]
    pub act: Act,
}

/// Everything in a frontier, for tests of small ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Site, stage, URL and place of every task.
    pub tasks: Vec<(String, Stage, String, String)>,
    /// Stage, unit and score of every entry of the due index.
    pub due: Vec<(Stage, String, i64)>,
    /// Site, stage and URL of every dead letter.
    pub dead: Vec<(String, Stage, String)>,
    /// Fingerprints of known pages.
    pub known: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n7_a_process_takes_what_its_role_is_and_both_until_it_has_told() {
        let owner = |downloads, parses| Owner {
            name: "w~1".to_owned(),
            pid: 1,
            scope: WorkScope::All,
            dead: false,
            drained: false,
            beat: Some(LastBeat {
                at: Timestamp::default(),
                tells: SignOfLife { downloads, parses, ..SignOfLife::default() },
            }),
        };
        let takes = |owner: &Owner| [Stage::Download, Stage::Parse].map(|stage| owner.takes(stage));
        assert_eq!(takes(&owner(Some(8), Some(2))), [true, true]);
        assert_eq!(takes(&owner(Some(8), None)), [true, false]);
        assert_eq!(takes(&owner(None, Some(2))), [false, true]);
        assert_eq!(takes(&owner(None, None)), [true, true], "it hasn't begun");
        assert_eq!(takes(&Owner { beat: None, ..owner(None, Some(2)) }), [true, true], "an older build");
        assert_eq!(takes(&Owner { drained: true, ..owner(Some(8), Some(2)) }), [false, false]);
    }
}
