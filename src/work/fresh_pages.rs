//! Pages in memory between their download and their parse: few are read back from the archive so.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::page::Headers;

/// The most bytes kept for the parse line, headers and all; what doesn't fit is read from the archive.
const ROOM: usize = 16 * 1024 * 1024;

/// A page with its body decompressed.
#[derive(Clone, Debug)]
pub(super) struct FreshPage {
    pub headers: Headers,
    pub body: Bytes,
}

impl FreshPage {
    /// What it takes in memory, with the name of its place.
    fn bytes(&self, place: &str) -> usize {
        let field = |(name, value): &(String, Vec<u8>)| {
            size_of_val(name) + size_of_val(value) + name.len() + value.len()
        };
        let fields: usize = self.headers.0.iter().map(field).sum();
        size_of::<(String, Self)>() + place.len() + fields + self.body.len()
    }
}

/// Pages by the place where they are kept, the oldest first: few, as most are parsed at once.
#[derive(Debug, Default)]
pub(super) struct FreshPages(Mutex<(VecDeque<(String, FreshPage)>, usize)>);

impl FreshPages {
    /// Lays a page down; the oldest go when there is no room.
    pub(super) fn lay(&self, place: String, page: FreshPage) {
        let (pages, bytes) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *bytes += page.bytes(&place);
        pages.push_back((place, page));
        while *bytes > ROOM {
            let Some((place, oldest)) = pages.pop_front() else { return };
            *bytes -= oldest.bytes(&place);
        }
    }

    /// Takes a page up, if it is still here.
    pub(super) fn take(&self, place: &str) -> Option<FreshPage> {
        let (pages, bytes) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pages.iter().position(|(known, _)| known == place)?;
        let (_, page) = pages.remove(at)?;
        *bytes -= page.bytes(place);
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
    fn i17_many_pages_take_no_more_than_their_room_headers_and_places_counted() {
        let fresh_pages = FreshPages::default();
        let field = ("set-cookie".to_owned(), vec![b'a'; 4_000]);
        let heavy = FreshPage { headers: Headers(vec![field; 10]), body: Bytes::new() };
        let kept = |fresh_pages: &FreshPages| {
            let (pages, bytes) = &*fresh_pages.0.lock().expect("whole");
            assert!(*bytes <= ROOM);
            pages.len()
        };
        (0..1_000).for_each(|n| fresh_pages.lay(n.to_string(), heavy.clone()));
        assert!(kept(&fresh_pages) * 40_000 <= ROOM, "{} pages of 40 kB", kept(&fresh_pages));
        // Without header and body they still take something.
        let place = |n: usize| format!("{n:01000}");
        (0..20_000).for_each(|n| fresh_pages.lay(place(n), page(0)));
        let last = kept(&fresh_pages);
        assert!(last * 1_000 <= ROOM, "{last} places of 1 kB");
        (20_000 - last..20_000).for_each(|n| assert!(fresh_pages.take(&place(n)).is_some()));
        let (pages, bytes) = &*fresh_pages.0.lock().expect("whole");
        assert_eq!((pages.len(), *bytes), (0, 0));
    }

    #[test]
    fn a_page_is_taken_once_and_the_oldest_go_first() {
        let fresh_pages = FreshPages::default();
        fresh_pages.lay("a".into(), page(ROOM / 2 - 400));
        fresh_pages.lay("b".into(), page(ROOM / 2 - 400));
        fresh_pages.lay("c".into(), page(800));
        assert!(fresh_pages.take("a").is_none());
        assert!(fresh_pages.take("b").is_some());
        assert!(fresh_pages.take("b").is_none());
        assert!(fresh_pages.take("c").is_some());
    }
}
