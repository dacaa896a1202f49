//! What holds a site back, as people look at it: pauses, with whose they are, and walls.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::quantity::spoken;
use crate::site::group_of_unit;
use crate::task::Stage;

/// A pause as people look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPause {
    /// Whose pause it is.
    pub whose: Whose,
    /// What is paused.
    pub stage: Stage,
    /// Why, and by whom.
    pub why: String,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
}

/// Whose a pause is. Each ends by itself, whatever becomes of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// That of a site.
    Site,
    /// That of its group.
    Group,
    /// That of all sites.
    All,
}

impl KnownPause {
    /// Whose and why; with its end, where there are others.
    fn told(&self, unit: &str, with_end: bool) -> String {
        let end = self.until.filter(|_| with_end).map(|until| format!(" (until {until})"));
        let (why, end) = (&self.why, end.unwrap_or_default());
        match self.whose {
            Whose::Site => format!("{why}{end}"),
            Whose::Group => format!("the group {}, {why}{end}", group_of_unit(unit)),
            Whose::All => format!("all sites, {why}{end}"),
        }
    }

    /// A site's own, without an end.
    #[cfg(test)]
    pub(crate) fn of(why: &str) -> Self {
        Self { whose: Whose::Site, stage: Stage::Download, why: why.to_owned(), until: None }
    }
}

/// When the last pause of a stage ends by itself; none where there is none, and where one doesn't.
pub(super) fn end_of(pauses: &[KnownPause], stage: Stage) -> Option<Timestamp> {
    let of_stage = pauses.iter().filter(|pause| pause.stage == stage);
    let ends: Option<Vec<Timestamp>> = of_stage.map(|pause| pause.until).collect();
    ends?.into_iter().max()
}

/// Whose pauses of a stage there are and why, in words.
pub(super) fn told(pauses: &[KnownPause], unit: &str, stage: Stage) -> Option<String> {
    let of_stage: Vec<&KnownPause> = pauses.iter().filter(|pause| pause.stage == stage).collect();
    let told: Vec<String> = of_stage.iter().map(|pause| pause.told(unit, of_stage.len() > 1)).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

impl KnownWall {
    /// What it is, on one line.
    pub fn told(&self, now: Timestamp) -> String {
        let Self { why, since, probe_at, refused, .. } = self;
        let probes = match refused {
            0 => "no probe yet".to_owned(),
            1 => "1 probe was refused".to_owned(),
            many => format!("{many} probes were refused"),
        };
        format!("walled since {since}: {why}; {probes}, the next one in {}", spoken(probe_at.since(now)))
    }
}

/// A wall as people look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownWall {
    /// What the site answered.
    pub why: String,
    /// When that was first seen.
    pub since: Timestamp,
    /// The page that it refused first.
    pub url: String,
    /// When the next probe may start.
    pub probe_at: Timestamp,
    /// Probes that were refused.
    pub refused: u32,
    /// What tells it from a page of the site's own, as `manners::wall::looks` has it.
    pub looks: u32,
}
