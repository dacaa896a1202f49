//! The fingerprint by which a page is known. The script makes the same (`fingerprint` in `tasks.lua`) where no client sent
//! it; to make it here spares the server a sixth of the work for a page.

use sha1::{Digest, Sha1};

use crate::canonical_url::CanonicalUrl;

/// The bytes of a block of SHA-1.
pub(in crate::frontier::redis) const BLOCK: usize = 64;
/// Those of them that a text may take up: its length is told in the rest.
pub(in crate::frontier::redis) const TEXT: usize = 55;

/// The low part of a fingerprint, by which its set is chosen, is below this.
pub(in crate::frontier::redis) const LOW: u32 = 1_000_000_000;

/// A whole number below 2^63, in decimal digits: the last nine choose the set in which it is kept.
pub(super) fn mark(url: &CanonicalUrl) -> String {
    let url = url.as_str();
    let blanks = (TEXT + BLOCK - url.len() % BLOCK) % BLOCK;
    let hash = Sha1::new().chain_update(url).chain_update(" ".repeat(blanks)).finalize();
    let word = |at: usize| u32::from_be_bytes([hash[at], hash[at + 1], hash[at + 2], hash[at + 3]]);
    format!("{}{:09}", u64::from(word(4)) + 1, word(0) % LOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Told by Redis: `redis.sha1hex` of the URL and its blanks begins with these digits.
    #[test]
    fn a_mark_is_made_of_the_first_two_words_of_the_hash() {
        let long = "https://shop.example/p/a-long-name-of-a-thing-that-goes-over-55-bytes/1234567890";
        for (url, expected) in [
            ("https://shop.example/", "3360842481007756756"),
            ("https://shop.example/p/1?a=b", "1349385186271699611"),
            (long, "1083778459159677438"),
        ] {
            assert_eq!(mark(&CanonicalUrl::parse(url).expect("a URL")), expected, "{url}");
        }
    }
}
