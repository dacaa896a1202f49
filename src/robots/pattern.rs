//! One path of an `Allow` or `Disallow` line, and whether a URL's path fits it. Which line decides is elsewhere.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::canonical_url;

/// A path of a rule, in the two spellings in which it is compared.
///
/// RFC 9309 section 2.2.2 wants `%62` taken for `b`, and section 2.2.3 `%2A` and `%24` for the signs themselves; the most used
/// parsers take them as they are written. The rules are asked both ways, and a URL must be allowed both ways.
#[derive(Clone, Debug)]
pub struct Pattern {
    written: String,
    /// Only where it differs.
    decoded: Option<String>,
}

/// How percent-encoded letters are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As they are written.
    Written,
    /// Decoded, where they are unreserved (RFC 3986 section 2.3); a `*` or `$` that stands for itself is encoded.
    Decoded,
}

impl Pattern {
    /// Reads a path as it stands in the file; `/` and `*` alone begin one.
    pub fn parse(path: &[u8]) -> Option<Self> {
        matches!(path.first(), Some(b'/' | b'*')).then(|| {
            let written = spell(&encoded(path), Spelling::Written).into_owned();
            let decoded = with_plain_signs(&spell(&written, Spelling::Decoded));
            Self { decoded: (decoded != written).then_some(decoded), written }
        })
    }

    /// The path in that spelling. Of those that fit, the one with the most octets decides (RFC 9309 section 2.2.2).
    pub fn text(&self, spelling: Spelling) -> &str {
        match (spelling, &self.decoded) {
            (Spelling::Decoded, Some(decoded)) => decoded,
            _ => &self.written,
        }
    }

    /// Whether a URL's path in that spelling fits.
    pub fn fits(&self, path: &str, spelling: Spelling) -> bool {
        fits(self.text(spelling), path)
    }
}

/// Whether the path fits: `*` stands for anything, a `$` at the end for the end (RFC 9309 section 2.2.3).
fn fits(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('$') {
        Some(pattern) => canonical_url::fits(pattern, path, true),
        None => canonical_url::fits(pattern, path, false),
    }
}

/// The octets that a URL's path never shows bare, percent-encoded.
fn encoded(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for &byte in path {
        if byte.is_ascii_graphic() && !b"\"<>`{}".contains(&byte) {
            text.push(char::from(byte));
        } else {
            push_encoded(&mut text, byte);
        }
    }
    text
}

/// A path in one spelling: hexadecimal digits in upper case, and unreserved letters decoded if so wanted.
pub fn spell(path: &str, spelling: Spelling) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut text = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let octet = rest.get(1..3).and_then(hexadecimal);
        let Some(octet) = octet else {
            text.push('%');
            rest = &rest[1..];
            continue;
        };
        if spelling == Spelling::Decoded && is_unreserved(octet) {
            text.push(char::from(octet));
        } else {
            push_encoded(&mut text, octet);
        }
        rest = &rest[3..];
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The path of a URL in one spelling: no `*` or `$` in it means anything but itself.
pub fn spell_path(path: &str, spelling: Spelling) -> Cow<'_, str> {
    let path = spell(path, spelling);
    if spelling == Spelling::Decoded && path.contains(['*', '$']) {
        return Cow::Owned(path.replace('*', "%2A").replace('$', "%24"));
    }
    path
}

/// A pattern in which a `$` stands bare only at its end, where it means something.
fn with_plain_signs(pattern: &str) -> String {
    match pattern.strip_suffix('$') {
        Some(rest) => rest.replace('$', "%24") + "$",
        None => pattern.replace('$', "%24"),
    }
}

fn hexadecimal(digits: &str) -> Option<u8> {
    let is_pair = digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_pair.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"-._~".contains(&octet)
}

/// Puts an octet in its percent-encoding (RFC 3986 section 2.1).
pub(super) fn push_encoded(text: &mut String, octet: u8) {
    let _ = write!(text, "%{octet:02X}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_fits_up_to_the_patterns_end_and_stars_stand_for_anything() {
        for (pattern, path, fit) in [
            ("/", "/a", true),
            ("/fish", "/fishes?x", true),
            ("/fish", "/Fish", false),
            ("/fish/", "/fish", false),
            ("/*.php", "/a/b.php?x", true),
            ("/*.php$", "/b.php?x", false),
            ("/*.php$", "/b.php.php", true),
            ("*/cats", "/cats.html", true),
            ("****/cats", "/a/cats", true),
            ("/a*$", "/abc", true),
            ("/a$b", "/a$bc", true),
            ("/$", "/", true),
            ("/$", "/a", false),
            ("/a*a$", "/a", false),
        ] {
            assert_eq!(fits(pattern, path), fit, "{pattern} on {path}");
        }
    }

    #[test]
    fn a_pattern_is_spelt_as_urls_are() {
        for (pattern, written, decoded) in [
            ("/a b", "/a%20b", "/a%20b"),
            ("/ツ", "/%E3%83%84", "/%E3%83%84"),
            ("/%7e%62", "/%7E%62", "/~b"),
            ("/%2f%zz%", "/%2F%zz%", "/%2F%zz%"),
            ("/a$b%2a*$", "/a$b%2A*$", "/a%24b%2A*$"),
        ] {
            let pattern = Pattern::parse(pattern.as_bytes()).expect("a pattern");
            assert_eq!(pattern.written, written);
            assert_eq!(pattern.decoded.as_deref().unwrap_or(&pattern.written), decoded);
        }
    }

    #[test]
    fn a_hostile_pattern_costs_no_more_than_a_tame_one() {
        let pattern = "/*a".repeat(40) + "$";
        let path = "/a".repeat(2_000) + "b";
        assert!(!fits(&pattern, &path));
    }
}
