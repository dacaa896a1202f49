//! Whose pause is meant, and pauses as other programs read them.

use clap::Args;
use serde_json::{Value, json};

use super::Trouble;
use crate::clock::Timestamp;
use crate::frontier::state::DroppedOf;
use crate::frontier::{Act, Frontier, GroupPaused, Pause, View};
use crate::site::unit_of_group;
use crate::task::Stage;

/// Whose pause it is: that of sites, of a group, or of all.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct OfWhom {
    /// Sites: names, or files
    #[arg(value_name = "SITE")]
    pub(in crate::cli) sites: Vec<String>,
    /// All sites of a group, those that join it later too
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) group: Option<String>,
    /// All sites, those that are registered later too
    #[arg(long)]
    pub(in crate::cli) all: bool,
}

impl OfWhom {
    /// Those whose sites share it; none: it is that of single sites.
    pub(in crate::cli) fn shared(&self) -> Option<SharedBy> {
        if self.all { Some(SharedBy::All) } else { self.group.clone().map(SharedBy::Group) }
    }
}

/// Whose sites share a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum SharedBy {
    /// A group's.
    Group(String),
    /// All.
    All,
}

impl SharedBy {
    /// As a subject.
    pub(in crate::cli) fn told(&self) -> String {
        match self {
            Self::Group(group) => format!("the group {group}"),
            Self::All => "all sites".to_owned(),
        }
    }

    /// As it is asked for.
    pub(in crate::cli) fn option(&self) -> String {
        match self {
            Self::Group(group) => format!("--group {group}"),
            Self::All => "--all".to_owned(),
        }
    }

    /// As other programs read it.
    pub(in crate::cli) fn object(&self) -> Value {
        match self {
            Self::Group(group) => json!({ "group": group }),
            Self::All => json!({ "all": true }),
        }
    }

    /// Their requests in flight.
    pub(in crate::cli) fn requests(&self) -> DroppedOf {
        match self {
            Self::Group(group) => DroppedOf::Unit(unit_of_group(group)),
            Self::All => DroppedOf::All,
        }
    }

    /// Pauses a stage of them, or ends that; whether such a pause was in force.
    pub(in crate::cli) async fn pause(
        &self,
        frontier: &Frontier,
        stage: Stage,
        pause: Option<Pause>,
    ) -> Result<bool, Trouble> {
        match self {
            Self::All => Ok(frontier.pause_all(stage, pause).await?),
            Self::Group(group) => match frontier.pause_group(&unit_of_group(group), stage, pause).await? {
                GroupPaused::Was(was) => Ok(was),
                GroupPaused::Unknown => Err(Trouble::usage(format!(
                    "there is no group `{group}`: name one that `group` has in a site's file"
                ))),
            },
        }
    }

    /// Does that, and keeps who did it: for all sites before the first one is told, as what is killed half way holds for some.
    pub(in crate::cli) async fn noted(
        &self,
        frontier: &Frontier,
        act: Act,
        change: impl AsyncFnOnce() -> Result<bool, Trouble>,
    ) -> Result<bool, Trouble> {
        if *self == Self::All {
            frontier.note("", act).await?;
            return change().await;
        }
        let was = change().await?;
        frontier.note("", act).await?;
        Ok(was)
    }
}

/// The clock that their starts go by: the frontier's, once it has answered.
pub(in crate::cli) async fn now_of(frontier: &Frontier) -> Result<Timestamp, Trouble> {
    frontier.fleet_rules().await?;
    Ok(frontier.clock().now())
}

/// The pauses in force as other programs read them.
pub(in crate::cli) fn pauses(view: &View) -> Vec<Value> {
    let pauses = view.pauses.iter();
    pauses
        .map(|pause| {
            json!({ "whose": pause.whose, "stage": pause.stage, "why": pause.why, "until": pause.until })
        })
        .collect()
}
