//! Lanes as people read and name them.

use super::Trouble;
use crate::frontier::Frontier;
use crate::frontier::state::StageCounts;
use crate::site::is_plain_name;
use crate::task::{LANE, NOW};

/// How many tasks of a stage are ready in each lane, the one that goes first before the others. None where all stand in the lane that
/// is always there.
pub(in crate::cli) fn by_lane(counts: &StageCounts) -> Option<String> {
    let lanes = ready_by_lane(counts);
    if lanes.iter().all(|(lane, count)| *lane == LANE || *count == 0) {
        return None;
    }
    let told = lanes.iter().filter(|(_, count)| *count > 0).map(|(lane, count)| format!("{count} in {lane}"));
    Some(told.collect::<Vec<_>>().join(", "))
}

/// How many tasks of a stage are ready in each lane: first in the one that goes before the others, then in the one that is always
/// there.
pub(in crate::cli) fn ready_by_lane(counts: &StageCounts) -> Vec<(&str, u64)> {
    let general = counts.ready().saturating_sub(counts.lanes.values().sum());
    let others = counts.lanes.iter().map(|(lane, count)| (lane.as_str(), *count));
    let mut lanes: Vec<(&str, u64)> = others.chain([(LANE, general)]).collect();
    lanes.sort_by_key(|(lane, _)| (*lane != NOW, *lane != LANE));
    lanes
}

/// Refuses a lane that the fleet doesn't have, and names those that it has (F15).
pub(in crate::cli) async fn must_be_there(lane: &str, frontier: &Frontier) -> Result<(), Trouble> {
    match frontier.fleet_rules().await?.no_such_lane(lane) {
        None => Ok(()),
        Some(refusal) => Err(Trouble::usage(refusal)),
    }
}

/// Reads the name of a tenant.
pub(in crate::cli) fn tenant(text: &str) -> Result<String, String> {
    let why = || format!("`{text}` is no tenant; write letters, digits, `-`, `_` and `.`");
    is_plain_name(text).then(|| text.to_owned()).ok_or_else(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_told_in_the_order_of_their_turn_where_there_are_several() {
        let told = |waiting, parked, lanes: &[(&str, u64)]| {
            let lanes = lanes.iter().map(|(lane, count)| ((*lane).to_owned(), *count)).collect();
            by_lane(&StageCounts { waiting, parked, lanes, ..StageCounts::default() })
        };
        assert_eq!(told(9, 0, &[]), None);
        assert_eq!(told(12, 1, &[("a", 2), ("now", 3)]).as_deref(), Some("3 in now, 6 in general, 2 in a"));
        assert_eq!(told(5, 0, &[("slow", 5)]).as_deref(), Some("5 in slow"));
    }
}
