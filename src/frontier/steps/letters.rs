//! Dead letters that nobody wants any more.

use super::places::save;
use crate::canonical_url::CanonicalUrl;
use crate::frontier::shelf::Shelf;
use crate::task::{PageKey, Stage};

/// Removes dead letters; which of them were there. A page that died in this run stays known: no link brings it back in it.
pub(super) fn drop_letters<S: Shelf>(
    shelf: &mut S,
    name: &str,
    letters: &[(Stage, CanonicalUrl)],
) -> Result<Vec<bool>, S::Error> {
    let Some(mut site) = shelf.site(name)? else { return Ok(vec![false; letters.len()]) };
    let mut dropped = Vec::with_capacity(letters.len());
    for (stage, url) in letters {
        let page = PageKey { site: name, url };
        let letter = shelf.dead(page, *stage)?;
        if let Some(letter) = &letter {
            shelf.remove_dead(page, *stage)?;
            let count = &mut site.counts(*stage).letters;
            *count = count.saturating_sub(1);
            if *stage == Stage::Download && letter.run == site.run {
                shelf.add_known(page, site.run)?;
            }
        }
        dropped.push(letter.is_some());
    }
    save(shelf, &site)?;
    Ok(dropped)
}
