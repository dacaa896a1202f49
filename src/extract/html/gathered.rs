//! Texts and attribute values of a page, as the tokenizer brings them, piece by piece.

use std::mem::take;
use std::ops::Range;

use html5ever::tendril::{ByteTendril, StrTendril};

/// Bytes that stand in the page as they are, or else a copy of them.
///
/// Most do: the tree then shares the page's own memory with them.
#[derive(Debug, Default)]
pub(super) struct JoinedText {
    stands: Range<usize>,
    copied: ByteTendril,
}

impl JoinedText {
    /// Puts a piece to the others.
    #[inline]
    pub(super) fn push(&mut self, page: &StrTendril, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        if self.copied.is_empty()
            && let Some(place) = place(page, piece)
        {
            if self.stands.is_empty() {
                self.stands = place;
                return;
            }
            if self.stands.end == place.start {
                self.stands.end = place.end;
                return;
            }
        }
        self.copied.push_slice(&page.as_bytes()[take(&mut self.stands)]);
        self.copied.push_slice(piece);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stands.is_empty() && self.copied.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.stands = 0..0;
        self.copied.clear();
    }

    /// What was gathered, as text; nothing is left of it.
    pub(super) fn take(&mut self, page: &StrTendril) -> StrTendril {
        let (stands, copied) = (take(&mut self.stands), take(&mut self.copied));
        if !copied.is_empty() {
            return copied.try_reinterpret().unwrap_or_else(|bytes| tendril(&bytes));
        }
        match (u32::try_from(stands.start), u32::try_from(stands.len())) {
            (Ok(start), Ok(length)) => page.try_subtendril(start, length).ok(),
            _ => None,
        }
        .unwrap_or_else(|| tendril(&page.as_bytes()[stands]))
    }
}

/// Text again, unless the tokenizer cut a character in two.
pub(super) fn tendril(bytes: &[u8]) -> StrTendril {
    StrTendril::from_slice(&String::from_utf8_lossy(bytes))
}

/// Where in the page the piece lies, if it is a part of the page's own memory.
fn place(page: &StrTendril, piece: &[u8]) -> Option<Range<usize>> {
    let start = piece.as_ptr().addr().checked_sub(page.as_ptr().addr())?;
    let end = start.checked_add(piece.len())?;
    (end <= page.len()).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "one two three four five ä";

    /// What is gathered of pieces that are parts of the page (`Ok`) or not (`Err`).
    fn gather(pieces: &[Result<Range<usize>, &str>]) -> (StrTendril, bool) {
        let page = StrTendril::from_slice(TEXT);
        let mut gathered = JoinedText::default();
        for piece in pieces {
            let bytes = piece.clone().map_or_else(str::as_bytes, |place| &page.as_bytes()[place]);
            gathered.push(&page, bytes);
        }
        assert_eq!(gathered.is_empty(), pieces.is_empty());
        let text = gathered.take(&page);
        assert!(gathered.is_empty());
        let shares = text.is_shared_with(&page);
        (text, shares)
    }

    #[test]
    fn what_stands_in_the_page_shares_its_memory_and_all_else_is_copied() {
        for (pieces, text, shares) in [
            (&[][..], "", false),
            (&[Ok(0..13)], "one two three", true),
            (&[Ok(0..3), Ok(3..7), Ok(7..13)], "one two three", true),
            (&[Ok(0..7), Ok(8..13)], "one twothree", false),
            (&[Ok(8..13), Ok(0..7)], "threeone two", false),
            (&[Ok(0..7), Err("\n"), Ok(8..13)], "one two\nthree", false),
            (&[Err("one"), Ok(3..13)], "one two three", false),
            (&[Ok(14..25)], "four five \u{fffd}", false),
            (&[Ok(14..26)], "four five ä", true),
            (&[Ok(25..26), Ok(0..3)], "\u{fffd}one", false),
        ] {
            let (found, shared) = gather(pieces);
            assert_eq!((&*found, shared), (text, shares), "{pieces:?}");
        }
    }

    #[test]
    fn nothing_is_left_behind() {
        let page = StrTendril::from_slice(TEXT);
        let mut gathered = JoinedText::default();
        for pieces in [[&page.as_bytes()[..3], b"x"], [b"x", &page.as_bytes()[..3]]] {
            for piece in pieces {
                gathered.push(&page, piece);
            }
            gathered.clear();
            assert!(gathered.is_empty());
        }
        gathered.push(&page, &page.as_bytes()[4..7]);
        assert_eq!(&*gathered.take(&page), "two");
    }
}
