//! Dead letters that nobody wants any more.

use super::{Done, Moment};
use crate::canonical_url::CanonicalUrl;
use crate::frontier::shelf::Shelf;
use crate::task::Stage;

impl<S: Shelf> Moment<'_, S> {
    /// Removes dead letters; which of them were there. A page that died in this run stays known: no link brings it back in it.
    pub(super) fn drop_letters(
        &mut self,
        name: &str,
        letters: &[(Stage, CanonicalUrl)],
    ) -> Done<S, Vec<bool>> {
        let Some(mut site) = self.shelf.site(name)? else { return Ok(vec![false; letters.len()]) };
        let mut dropped = Vec::with_capacity(letters.len());
        for (stage, url) in letters {
            let letter = self.shelf.dead(site.page(url), *stage)?;
            if let Some(letter) = &letter {
                self.remove_letter(&mut site, *stage, url)?;
                self.drop_batches(&site, &letter.batches, letter.died_at)?;
                self.release(&mut site, letter.session.as_deref(), false)?;
                if *stage == Stage::Download && letter.run == site.run {
                    self.shelf.add_known(site.page(url), site.run)?;
                }
            }
            dropped.push(letter.is_some());
        }
        self.save(&site)?;
        Ok(dropped)
    }
}
