//! Pages in memory between their download and their parse: few are read back from the archive so.

use std::collections::{HashMap, VecDeque};
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

/// Pages by the place where they are kept.
#[derive(Debug, Default)]
pub(super) struct FreshPages(Mutex<PagesInOrder>);

#[derive(Debug, Default)]
struct PagesInOrder {
    pages: HashMap<String, FreshPage>,
    order: VecDeque<String>,
    bytes: usize,
}

impl FreshPages {
    /// Lays a page down; the oldest go when there is no room.
    pub(super) fn lay(&self, place: String, page: FreshPage) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += page.body.len();
        kept.order.push_back(place.clone());
        kept.pages.insert(place, page);
        while kept.bytes > ROOM {
            let Some(oldest) = kept.order.pop_front() else { return };
            kept.drop_page(&oldest);
        }
    }

    /// Takes a page up, if it is still here.
    pub(super) fn take(&self, place: &str) -> Option<FreshPage> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let page = kept.drop_page(place);
        if kept.order.len() > 2 * kept.pages.len() + 64 {
            let PagesInOrder { pages, order, .. } = &mut *kept;
            order.retain(|place| pages.contains_key(place));
        }
        page
    }
}

impl PagesInOrder {
    fn drop_page(&mut self, place: &str) -> Option<FreshPage> {
        let page = self.pages.remove(place)?;
        self.bytes -= page.body.len();
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
