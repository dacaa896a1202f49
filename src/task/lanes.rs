//! Lanes: in which of them a task waits, and what `paced.toml` says of them to a whole fleet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Stage, TaskOrder, UnitPick};

/// The lane that is always there; a task that names none waits in it.
pub const LANE: &str = "general";
/// The lane that goes before all others: it is always there, and has no weight.
pub const NOW: &str = "now";

/// Where a task is asked to wait, and for whom it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaneWish {
    /// This lane, whatever the rules say; such a task isn't counted (F7).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// [`NOW`], while there is room.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub urgent: bool,
    /// Whose tasks it is counted among; none is whom its site is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

impl LaneWish {
    /// That of a later put for the same page; what went before all others does so still.
    #[must_use]
    pub fn joined_by(self, later: Self) -> Self {
        let lane = self.lane.filter(|lane| lane == NOW).or(later.lane);
        Self { lane, urgent: self.urgent || later.urgent, tenant: later.tenant }
    }
}

/// The rules that hold for all machines of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetRules {
    /// Weights of lanes by name, from 1; [`LANE`] has 1 where it isn't named.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lanes: BTreeMap<String, u32>,
    /// The least restrictive first: of those that match, the last one decides (F3).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fairness: Vec<LaneRule>,
    /// For these tenants, in place of the rules above (F17).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tenants: BTreeMap<String, Vec<LaneRule>>,
    /// Downloads of a site that wait, at most (M10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_waiting: Option<u64>,
    /// What they weigh together, at most, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_bytes: Option<u64>,
    /// Downloads of all sites that wait, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_in_all: Option<u64>,
    /// Which task of a lane goes first: a site takes it with its next run (C5).
    #[serde(skip_serializing_if = "is_default")]
    pub order: TaskOrder,
    /// Which of the due units a claim serves.
    #[serde(skip_serializing_if = "is_default")]
    pub pick: UnitPick,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A tenant with more than `threshold` tasks within `per` gets another lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneRule {
    /// That lane.
    pub lane: String,
    /// So many go where they would, the next ones there (F2).
    pub threshold: u32,
    /// Within so long, in ms.
    pub per: i64,
    /// Of one stage alone; each is counted apart (F10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
}

impl LaneRule {
    fn is_for(&self, stage: Stage) -> bool {
        self.stage.is_none_or(|only| only == stage)
    }
}

impl FleetRules {
    /// The rules for a tenant's tasks of a stage; it may have been given others while it runs.
    pub fn of<'a>(
        &'a self,
        tuned: Option<&'a Vec<LaneRule>>,
        tenant: &str,
        stage: Stage,
    ) -> impl Iterator<Item = &'a LaneRule> + Clone + use<'a> {
        let rules = tuned.or(self.tenants.get(tenant)).unwrap_or(&self.fairness);
        rules.iter().filter(move |rule| rule.is_for(stage))
    }

    /// Whether there is such a lane.
    pub fn has_lane(&self, lane: &str) -> bool {
        [LANE, NOW].contains(&lane) || self.lanes.contains_key(lane)
    }

    /// Why a lane can't be named that isn't there, with those that are (F15).
    pub fn no_such_lane(&self, lane: &str) -> Option<String> {
        let known = self.known_lanes();
        (!self.has_lane(lane)).then(|| {
            format!(
                "there is no lane `{lane}`; name {NOW}, or one of {known} (lanes of paced.toml hold from the next crawl, seed or work on)"
            )
        })
    }

    /// The lanes that a site may name, the one that is always there first, as a list for people.
    pub fn known_lanes(&self) -> String {
        let others = self.lanes.keys().map(String::as_str).filter(|lane| *lane != LANE);
        std::iter::once(LANE).chain(others).collect::<Vec<_>>().join(", ")
    }

    fn weight(&self, lane: &str) -> u32 {
        self.lanes.get(lane).copied().unwrap_or(1).max(1)
    }

    /// The lane of the next start, of those that have something ready: [`NOW`] before all others, else one by its weight (F13, F18).
    /// They are told in order.
    pub fn draw<'a>(&self, ready: &[&'a str], dice: u32) -> Option<&'a str> {
        if ready.contains(&NOW) {
            return Some(NOW);
        }
        let all: u32 = ready.iter().map(|lane| self.weight(lane)).sum();
        let mut left = dice.checked_rem(all)?;
        ready.iter().copied().find(|lane| {
            let weight = self.weight(lane);
            let is_it = left < weight;
            left = left.wrapping_sub(weight);
            is_it
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(lanes: &[(&str, u32)]) -> FleetRules {
        let lanes = lanes.iter().map(|(lane, weight)| ((*lane).to_owned(), *weight)).collect();
        FleetRules { lanes, ..FleetRules::default() }
    }

    #[test]
    fn f13_f18_each_lane_is_drawn_by_its_weight_and_an_empty_one_never() {
        let rules = rules(&[("general", 6), ("slow", 3), ("superslow", 1)]);
        let all = ["general", "slow", "superslow"];
        let share = |ready: &[&str], lane: &str| {
            (0..10).filter(|dice| rules.draw(ready, *dice) == Some(lane)).count()
        };
        assert_eq!(all.map(|lane| share(&all, lane)), [6, 3, 1]);
        assert_eq!(rules.draw(&["superslow"], 7), Some("superslow"), "alone it has every start (F12)");
        assert_eq!(rules.draw(&[], 7), None);
        assert_eq!((0..4).filter(|dice| rules.draw(&["gone", "slow"], *dice) == Some("gone")).count(), 1);
    }

    #[test]
    fn f16_now_goes_before_all_others() {
        let rules = rules(&[("slow", 100)]);
        assert!((0..200).all(|dice| rules.draw(&["general", "now", "slow"], dice) == Some(NOW)));
    }
}
