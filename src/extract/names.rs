//! Names of tags and attributes that were looked up lately. A page has few and has them often, and the table of all names is slow.

use html5ever::LocalName;

const SLOTS: usize = 64;
/// 2^64 divided by the golden ratio: what is multiplied by it differs in its highest bits (Knuth, volume 3, section 6.4).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The last name of each slot; which slot a name has is told by its letters.
pub(super) struct KnownNames([(Letters, LocalName); SLOTS]);

/// A name of up to 15 bytes and its length, as numbers: they are compared at once.
type Letters = [u64; 2];

impl Default for KnownNames {
    fn default() -> Self {
        Self(std::array::from_fn(|_| ([0, 0], LocalName::default())))
    }
}

impl KnownNames {
    /// The name that is spelled so.
    pub(super) fn get(&mut self, bytes: &[u8]) -> LocalName {
        let Some(letters) = letters(bytes) else { return local_name(bytes) };
        let slot = &mut self.0[slot(letters)];
        if slot.0 != letters {
            *slot = (letters, local_name(bytes));
        }
        slot.1.clone()
    }
}

fn letters(name: &[u8]) -> Option<Letters> {
    let mut bytes = [0; 16];
    bytes[..15].get_mut(..name.len())?.copy_from_slice(name);
    bytes[15] = u8::try_from(name.len()).ok()?;
    let (first, last) = bytes.split_first_chunk()?;
    Some([u64::from_le_bytes(*first), u64::from_le_bytes(last.try_into().ok()?)])
}

fn slot([first, last]: Letters) -> usize {
    usize::from((first ^ last).wrapping_mul(SPREAD).to_be_bytes()[0]) % SLOTS
}

fn local_name(bytes: &[u8]) -> LocalName {
    LocalName::from(String::from_utf8_lossy(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_itself_whatever_was_looked_up_before() {
        let lengths = (0..40).map(|length| "x".repeat(length));
        let zeroes = ["", "\0", "a\0", "\0a", "a\0\0"].map(str::to_owned);
        let numbered = (0..2_000).map(|n| format!("data-{n}"));
        let names: Vec<String> = lengths.chain(zeroes).chain(numbered).collect();
        let mut known = KnownNames::default();
        for name in names.iter().chain(names.iter().rev()) {
            assert_eq!(&*known.get(name.as_bytes()), name);
            assert_eq!(&*known.get(name.as_bytes()), name);
        }
        assert_eq!(&*known.get(b"a\xff"), "a\u{fffd}");
    }

    #[test]
    fn the_names_of_a_shop_have_slots_enough() {
        let names = "a alt article b body button charset class content data-id div footer h1 h2 head header height href html img \
            lang li link main meta name nav p rel scope script section span src table td th title tr type ul width";
        let slots = names.split_whitespace().filter_map(|name| Some(slot(letters(name.as_bytes())?)));
        let used = slots.collect::<std::collections::HashSet<_>>().len();
        assert!(used * 3 >= names.split_whitespace().count() * 2, "{used} slots");
    }
}
