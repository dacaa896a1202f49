//! The rules that a fleet's machines agreed on, which lanes they make, and which rules they replaced.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DropMark, PausesOfAll, is_default};
use crate::task::{FleetRules, LaneRule};

/// An urgent put goes to the lane `now` while fewer tasks of its site and stage wait there.
pub const MOST_NOW: u64 = 100;
/// So many texts are remembered of the rules in force, and so many of those that they replaced: none of these comes back by a restart.
pub const MARKS_KEPT: usize = 64;

/// The rules in force, and what tells those that they replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetState {
    /// The rules.
    pub rules: FleetRules,
    /// What tells the texts that say so from others, the latest last: machines may differ in what is theirs alone.
    pub marks: Vec<u64>,
    /// Of the texts before, the latest last.
    pub replaced: Vec<u64>,
    /// The rules that tenants were given while it runs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tuned: TunedTenants,
    /// What is paused of all sites.
    #[serde(default, skip_serializing_if = "is_default")]
    pub paused: PausesOfAll,
    /// Sites that are registered are listed by lane as well: a worker for lanes was there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by_lane: bool,
    /// Requests that are to be dropped, the latest last.
    #[serde(default, skip_serializing_if = "is_default")]
    pub drops: Vec<DropMark>,
    /// The newest version that a site had whose name got free, where the clock hadn't passed it yet: whoever gets a name has a
    /// newer one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub freed_version: i64,
}

/// So many tenants at most have rules that they were given while it runs.
pub const MOST_TUNED: usize = 100;

/// The rules that tenants were given while it runs, in place of those of the files (F17), and what tells them from those before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunedTenants {
    /// It rises with each change.
    pub number: i64,
    /// By tenant.
    pub tenants: BTreeMap<String, Vec<LaneRule>>,
}

/// What became of the rules that a machine brought (N8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreed {
    /// They are in force, as they were.
    InForce,
    /// They are in force now, in place of others.
    Replaced,
    /// They were in force before: the newer ones stay.
    Older,
}

impl FleetState {
    /// Takes the rules of a text, unless newer ones replaced that one.
    pub fn agree(&mut self, rules: FleetRules, mark: u64) -> Agreed {
        if self.rules == rules {
            if !self.marks.contains(&mark) {
                self.marks.push(mark);
                keep_latest(&mut self.marks);
            }
            return Agreed::InForce;
        }
        if self.replaced.contains(&mark) {
            return Agreed::Older;
        }
        self.replaced.append(&mut self.marks);
        keep_latest(&mut self.replaced);
        (self.rules, self.marks) = (rules, vec![mark]);
        Agreed::Replaced
    }
}

fn keep_latest(marks: &mut Vec<u64>) {
    let over = marks.len().saturating_sub(MARKS_KEPT);
    marks.drain(..over);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(weight: u32) -> FleetRules {
        FleetRules { lanes: [("slow".to_owned(), weight)].into(), ..FleetRules::default() }
    }

    #[test]
    fn n8_rules_that_were_replaced_do_not_come_back_by_a_restart() {
        let mut state = FleetState::default();
        let (old, new) = (rules(1), rules(2));
        assert_eq!(state.agree(old.clone(), 1), Agreed::Replaced);
        assert_eq!(state.agree(old.clone(), 1), Agreed::InForce);
        assert_eq!(state.agree(new.clone(), 2), Agreed::Replaced);
        assert_eq!(state.agree(old.clone(), 1), Agreed::Older);
        assert_eq!(state.rules, new);
        assert_eq!(state.agree(new, 9), Agreed::InForce, "another text of the same rules");
        for mark in 10..100 {
            assert_eq!(state.agree(rules(mark), u64::from(mark)), Agreed::Replaced);
        }
        assert_eq!(state.replaced.len(), MARKS_KEPT);
        for mark in 200..300 {
            assert_eq!(state.agree(rules(99), mark), Agreed::InForce);
        }
        assert_eq!(state.marks.len(), MARKS_KEPT);
    }

    #[test]
    fn n8_a_machine_whose_file_differs_in_what_is_its_own_turns_nothing_back_either() {
        let mut state = FleetState::default();
        assert_eq!(state.agree(rules(1), 1), Agreed::Replaced);
        assert_eq!(state.agree(rules(1), 2), Agreed::InForce, "the same rules, and another max_rate");
        assert_eq!(state.agree(rules(9), 3), Agreed::Replaced);
        assert_eq!([1, 2].map(|mark| state.agree(rules(1), mark)), [Agreed::Older; 2]);
    }
}
