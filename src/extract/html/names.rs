//! Names of tags and attributes that were looked up lately. A page has few and has them often, and the table of all names is slow.

use html5ever::LocalName;

const SLOTS: usize = 64;
/// 2^128 divided by the golden ratio: what is multiplied by it differs in its highest bits (Knuth, volume 3, section 6.4).
const SPREAD: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;

/// A name as it is spelled, letter by letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RawName {
    /// The letters of a short name, and zeroes behind them: two names are compared at once.
    letters: [u8; SHORT],
    length: usize,
    /// A name that is too long for that.
    long: Vec<u8>,
}

/// Letters that a short name has at most.
const SHORT: usize = 16;

impl RawName {
    /// Puts letters to the others.
    #[inline]
    pub(super) fn push(&mut self, letters: &[u8]) {
        let end = self.length + letters.len();
        match (letters, self.letters.get_mut(self.length..end)) {
            // A name comes as its first letter and the others.
            ([letter], Some(free)) => free[0] = *letter,
            (letters, Some(free)) => free.copy_from_slice(letters),
            (letters, None) => self.push_long(letters),
        }
        self.length = end;
    }

    #[cold]
    fn push_long(&mut self, letters: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.letters[..self.length]);
            self.letters = [0; SHORT];
        }
        self.long.extend_from_slice(letters);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn clear(&mut self) {
        (self.letters, self.length) = ([0; SHORT], 0);
        self.long.clear();
    }

    fn name(&self) -> LocalName {
        let letters = self.letters.get(..self.length).unwrap_or(&self.long);
        LocalName::from(String::from_utf8_lossy(letters))
    }

    fn slot(&self) -> usize {
        usize::from(u128::from_le_bytes(self.letters).wrapping_mul(SPREAD).to_be_bytes()[0]) % SLOTS
    }
}

/// The letters, length and name of what each slot had last; which slot a name has is told by its letters.
pub(super) struct KnownNames([(([u8; SHORT], usize), LocalName); SLOTS]);

impl Default for KnownNames {
    fn default() -> Self {
        Self(std::array::from_fn(|_| (([0; SHORT], 0), LocalName::default())))
    }
}

impl KnownNames {
    /// The name that is spelled so.
    #[inline]
    pub(super) fn get(&mut self, spelled: &RawName) -> LocalName {
        if spelled.length > SHORT {
            return spelled.name();
        }
        let slot = &mut self.0[spelled.slot()];
        let spelling = (spelled.letters, spelled.length);
        if slot.0 != spelling {
            *slot = (spelling, spelled.name());
        }
        slot.1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(name: &[u8], pieces: usize) -> RawName {
        let mut spelled = RawName::default();
        name.chunks(pieces).for_each(|letters| spelled.push(letters));
        spelled
    }

    #[test]
    fn each_name_is_itself_whatever_was_looked_up_before_and_however_it_was_spelled() {
        let lengths = (0..40).map(|length| ('a'..='z').cycle().take(length).collect());
        let zeroes = ["\0", "a\0", "\0a", "a\0\0"].map(str::to_owned);
        let numbered = (0..2_000).map(|n| format!("data-{n}"));
        let names: Vec<String> = lengths.chain(zeroes).chain(numbered).collect();
        let mut known = KnownNames::default();
        for (name, pieces) in names.iter().chain(names.iter().rev()).zip((1..40).cycle()) {
            let spelled = spelled(name.as_bytes(), pieces);
            assert_eq!(spelled, self::spelled(name.as_bytes(), 3));
            assert_eq!(spelled.is_empty(), name.is_empty());
            assert_eq!(&*known.get(&spelled), name);
            assert_eq!(&*known.get(&spelled), name);
        }
        assert_eq!(&*known.get(&spelled(b"a\xff", 2)), "a\u{fffd}");
    }

    #[test]
    fn a_name_is_spelled_anew_once_cleared() {
        let mut again = RawName::default();
        for name in ["a-name-that-is-rather-long", "short", "x", "another-name-that-is-long"] {
            again.push(name.as_bytes());
            assert_eq!(again, spelled(name.as_bytes(), 4));
            again.clear();
            assert_eq!(again, RawName::default());
        }
    }

    #[test]
    fn the_names_of_a_shop_have_slots_enough() {
        let names = "a alt article b body button charset class content data-id div footer h1 h2 head header height href html img \
            lang li link main meta name nav p rel scope script section span src table td th title tr type ul width";
        let slots = names.split_whitespace().map(|name| spelled(name.as_bytes(), 8).slot());
        let used = slots.collect::<std::collections::HashSet<_>>().len();
        assert!(used * 3 >= names.split_whitespace().count() * 2, "{used} slots");
    }
}
