//! What all machines of a fleet agree on.

use super::{Done, Moment};
use crate::frontier::shelf::Shelf;
use crate::frontier::state::{Agreed, FleetState};
use crate::task::FleetRules;

impl<S: Shelf> Moment<'_, S> {
    /// Puts the rules of a machine in force for all of them, unless newer ones took their place before (N8). What the directory of a
    /// cluster has agreed to holds in each partition.
    pub(super) fn agree(&mut self, rules: FleetRules, mark: u64, by_directory: bool) -> Done<S, Agreed> {
        let before = self.shelf.fleet()?;
        let mut fleet = FleetState::clone(&before);
        if by_directory {
            fleet.replaced.retain(|other| *other != mark);
        }
        let agreed = fleet.agree(rules, mark);
        if fleet != *before {
            self.shelf.save_fleet(&fleet)?;
        }
        Ok(agreed)
    }
}
