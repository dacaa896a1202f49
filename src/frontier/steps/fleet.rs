//! What all machines of a fleet agree on.

use super::{Done, Moment};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::Agreed;
use crate::task::FleetRules;

impl<S: Shelf> Moment<'_, S> {
    /// Puts the rules of a machine in force for all of them, unless newer ones took their place before (N8).
    pub(super) fn agree(&mut self, rules: FleetRules, mark: u64) -> Done<S, Agreed> {
        let mut fleet = self.shelf.fleet()?;
        let agreed = fleet.agree(rules, mark);
        if agreed == Agreed::Replaced {
            self.shelf.save_fleet(&fleet)?;
        }
        Ok(agreed)
    }
}
