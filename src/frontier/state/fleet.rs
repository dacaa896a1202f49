//! The rules that a fleet's machines agreed on, which lanes they make, and which rules they replaced.

use serde::{Deserialize, Serialize};

use crate::task::FleetRules;

/// An urgent put goes to the lane `now` while fewer tasks of its site and stage wait there.
pub const MOST_NOW: u64 = 100;
/// So many replaced texts of the rules are remembered, that none of them comes back by a restart.
pub const REPLACED: usize = 16;

/// The rules in force, and what tells those that they replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetState {
    /// The rules.
    pub rules: FleetRules,
    /// What tells their text from others.
    pub mark: u64,
    /// Of the texts before, the latest last.
    pub replaced: Vec<u64>,
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
            return Agreed::InForce;
        }
        if self.replaced.contains(&mark) {
            return Agreed::Older;
        }
        self.replaced.push(self.mark);
        let over = self.replaced.len().saturating_sub(REPLACED);
        self.replaced.drain(..over);
        (self.rules, self.mark) = (rules, mark);
        Agreed::Replaced
    }
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
        for mark in 10..40 {
            assert_eq!(state.agree(rules(mark), u64::from(mark)), Agreed::Replaced);
        }
        assert_eq!(state.replaced.len(), REPLACED);
    }
}
