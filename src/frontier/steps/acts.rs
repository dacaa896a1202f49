//! What people did to a site, and why, for those who wonder later. What concerns no site that is there is under no name.

use super::{Done, Moment};
use crate::clock::Timestamp;
use crate::frontier::shelf::Shelf;
use crate::frontier::step::Act;
use crate::frontier::view::DatedAct;

/// Acts that are kept of a site.
pub(in crate::frontier) const MOST_ACTS: u32 = 1_000;
/// For how long they are kept, in ms: a year and a month.
pub(in crate::frontier) const ACTS_KEPT_MS: i64 = 400 * 86_400_000;

impl<S: Shelf> Moment<'_, S> {
    /// Keeps what was done; false where there is no such site.
    pub(super) fn note(&mut self, site: &str, act: Act) -> Done<S, bool> {
        let is_there = site.is_empty() || self.shelf.site(site)?.is_some();
        if is_there {
            self.keep_act(site, act)?;
        }
        Ok(is_there)
    }

    /// The same of a site that is there.
    pub(super) fn keep_act(&mut self, site: &str, act: Act) -> Done<S> {
        let act = DatedAct { at: Timestamp::from_millis(self.now), act };
        self.shelf.add_act(site, &act, self.now - ACTS_KEPT_MS)
    }

    /// What was done, the latest first.
    pub(super) fn acts(&mut self, site: &str) -> Done<S, Vec<DatedAct>> {
        let mut acts = self.shelf.acts(site)?;
        let first = Timestamp::from_millis(self.now - ACTS_KEPT_MS);
        acts.retain(|act| act.at > first);
        Ok(acts)
    }
}
