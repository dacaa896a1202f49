//! Fresh pages, handed from the download line to this process's parse line in memory, so that few are read back.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::page::Headers;

/// The most bytes of bodies kept for the parse line; what doesn't fit is read from the archive.
const ROOM: usize = 16 * 1024 * 1024;

/// A page with its body decompressed.
#[derive(Clone, Debug)]
pub(super) struct Fresh {
    pub headers: Headers,
    pub body: Bytes,
}

/// Pages by the place where they are kept.
#[derive(Debug, Default)]
pub(super) struct Handover(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    pages: HashMap<String, Fresh>,
    order: VecDeque<String>,
    bytes: usize,
}

impl Handover {
    /// Lays a page down; the oldest go when there is no room.
    pub(super) fn lay(&self, place: String, page: Fresh) {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.bytes += page.body.len();
        shelf.order.push_back(place.clone());
        shelf.pages.insert(place, page);
        while shelf.bytes > ROOM {
            let Some(oldest) = shelf.order.pop_front() else { return };
            shelf.drop_page(&oldest);
        }
    }

    /// Takes a page up, if it is still here.
    pub(super) fn take(&self, place: &str) -> Option<Fresh> {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let page = shelf.drop_page(place);
        if shelf.order.len() > 2 * shelf.pages.len() + 64 {
            let Shelf { pages, order, .. } = &mut *shelf;
            order.retain(|place| pages.contains_key(place));
        }
        page
    }
}

impl Shelf {
    fn drop_page(&mut self, place: &str) -> Option<Fresh> {
        let page = self.pages.remove(place)?;
        self.bytes -= page.body.len();
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bytes: usize) -> Fresh {
        Fresh { headers: Headers::default(), body: Bytes::from(vec![0; bytes]) }
    }

    #[test]
    fn a_page_is_taken_once_and_the_oldest_go_first() {
        let handover = Handover::default();
        handover.lay("a".into(), page(ROOM / 2));
        handover.lay("b".into(), page(ROOM / 2));
        handover.lay("c".into(), page(1));
        assert!(handover.take("a").is_none());
        assert!(handover.take("b").is_some());
        assert!(handover.take("b").is_none());
        assert!(handover.take("c").is_some());
    }
}
