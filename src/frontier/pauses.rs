//! What sites share: pauses, and the interval of a group.

use super::state::{DropMark, DroppedOf};
use super::table::{Reply, Step};
use super::{Frontier, FrontierError, GroupPaused, Pause, PausesOfAll, TuneReply};
use crate::task::Stage;

impl Frontier {
    /// Sets what a group waits between its starts, in ms, for the very next claim; none gives it back to the files.
    pub async fn tune_group(&self, group: &str, interval: Option<i64>) -> Result<TuneReply, FrontierError> {
        ask!(self, TuneGroup { group: group.to_owned(), interval })
    }

    /// Pauses a stage of a group, or ends that: in force for the very next claim, of who joins the group later as well.
    pub async fn pause_group(
        &self,
        group: &str,
        stage: Stage,
        pause: Option<Pause>,
    ) -> Result<GroupPaused, FrontierError> {
        ask!(self, PauseGroup { group: group.to_owned(), stage, pause })
    }

    /// The same of all sites: in force for the very next claim after this is done. Whether such a pause was in force before.
    pub async fn pause_all(&self, stage: Stage, pause: Option<Pause>) -> Result<bool, FrontierError> {
        let (was, of_all) = self.begin_pause_of_all(stage, pause).await?;
        let mut next = Some(String::new());
        while let Some(after) = next {
            next = self.tell_paused(of_all.clone(), &after).await?;
        }
        Ok(was)
    }

    /// Has every process drop its requests of a site, of a group's unit, or of all, that were granted until now: with its next beat.
    /// Their tasks go back, no attempt counted, and their starts stay.
    pub async fn drop_requests(&self, of: DroppedOf) -> Result<(), FrontierError> {
        ask!(self, DropRequests { of })
    }

    /// Which requests are to be dropped.
    pub async fn drops(&self) -> Result<Vec<DropMark>, FrontierError> {
        ask!(self, Drops {})
    }

    /// Its first step: for the sites that are registered from now on.
    pub async fn begin_pause_of_all(
        &self,
        stage: Stage,
        pause: Option<Pause>,
    ) -> Result<(bool, PausesOfAll), FrontierError> {
        ask!(self, PauseAll { stage, pause })
    }

    /// Another one: for a portion of those that are there, and where the next one begins.
    pub async fn tell_paused(
        &self,
        of_all: PausesOfAll,
        after: &str,
    ) -> Result<Option<String>, FrontierError> {
        ask!(self, TellPaused { of_all, after: after.to_owned() })
    }
}
