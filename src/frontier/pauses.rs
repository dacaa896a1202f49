//! Pauses that sites share.

use super::table::{Reply, Step};
use super::{Frontier, FrontierError, GroupPaused, Pause, PausesOfAll};
use crate::task::Stage;

impl Frontier {
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
