//! Pages in memory between their download and their parse: few are read back from the archive so.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::page::Headers;

/// The most bytes of bodies kept for the parse line; what doesn't fit is read from the archive.
const ROOM: usize = 16 * 1024 * 1024;

/// A page with its body decompressed.
#[derive(Clone, Debug)]
pub(super) struct FreshPage {
    pub headers: Headers,
    pub body: Bytes,
}

/// Pages by the place where they are kept, the oldest first: few, as most are parsed at once.
#[derive(Debug, Default)]
pub(super) struct FreshPages(Mutex<(VecDeque<(String, FreshPage)>, usize)>);

impl FreshPages {
    /// Lays a page down; the oldest go when there is no room.
    pub(super) fn lay(&self, place: String, page: FreshPage) {
        let (pages, bytes) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *bytes += page.body.len();
        pages.push_back((place, page));
        while *bytes > ROOM {
            let Some((_, oldest)) = pages.pop_front() else { return };
            *bytes -= oldest.body.len();
        }
    }

    /// Takes a page up, if it is still here.
    pub(super) fn take(&self, place: &str) -> Option<FreshPage> {
        let (pages, bytes) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pages.iter().position(|(known, _)| known == place)?;
        let (_, page) = pages.remove(at)?;
        *bytes -= page.body.len();
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bytes: usize) -> FreshPage {
        FreshPage { headers: Headers::default(), body: Bytes::from(vec![0; bytes]) }
    }

    #[test]
    fn a_page_is_taken_once_and_the_oldest_go_first() {
        let fresh_pages = FreshPages::default();
        fresh_pages.lay("a".into(), page(ROOM / 2));
        fresh_pages.lay("b".into(), page(ROOM / 2));
        fresh_pages.lay("c".into(), page(1));
        assert!(fresh_pages.take("a").is_none());
        assert!(fresh_pages.take("b").is_some());
        assert!(fresh_pages.take("b").is_none());
        assert!(fresh_pages.take("c").is_some());
    }
}
