//! `CanonicalUrl`, the only spelling of a URL that is stored, and the `Host` it belongs to. What is in scope is decided elsewhere.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

/// An `http` or `https` URL as WHATWG's URL standard spells it, without fragment, user and password.
///
/// That settles the case of scheme and host, hosts of all languages (in Punycode), the scheme's own port, dot segments,
/// back slashes, spaces, and an empty path. What the standard keeps apart stays apart, as servers may answer it differently:
/// the order of the query, an empty query, percent-encodings however spelled, a dot behind the host, repeated slashes.
/// Reading a canonical URL gives the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CanonicalUrl(Url);

/// The bytes of a URL, at most: servers take about as many, and what multiplies on a page stays small.
pub const MOST_BYTES: usize = 8 << 10;

/// Why a text is no URL that can be crawled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It doesn't parse as a URL.
    #[error("`{text}` is not a URL ({why}); write it whole, as in https://shop.example/")]
    Invalid {
        /// What was given.
        text: String,
        /// The parser's reason.
        why: String,
    },
    /// It is longer than URLs may be.
    #[error("`{start}…` is {bytes} bytes long, and a URL may have {MOST_BYTES}; leave out what isn't needed")]
    TooLong {
        /// How it begins.
        start: String,
        /// Its length, as far as it is known.
        bytes: usize,
    },
    /// It is a URL of a scheme that isn't crawled.
    #[error("`{0}` is neither http nor https")]
    Scheme(String),
}

impl CanonicalUrl {
    /// Reads an absolute URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        short_enough(text)?;
        Self::from_url(parsed(text)?)
    }

    /// Takes a parsed URL, dropping fragment, user and password.
    pub fn from_url(url: Url) -> Result<Self, UrlError> {
        let url = Self::of_any_length(url)?;
        short_enough(url.as_str())?;
        Ok(url)
    }

    fn of_any_length(mut url: Url) -> Result<Self, UrlError> {
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(UrlError::Scheme(url.to_string()));
        }
        url.set_fragment(None);
        // Both calls fail only for URLs without a host, excluded above.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(Self(url))
    }

    /// The same page with the query parameters that `strip` names taken out.
    #[must_use]
    pub fn stripped(self, strip: &StripQuery) -> Self {
        let Some(query) = self.0.query() else { return self };
        let kept: Vec<&str> = query.split('&').filter(|pair| !strip.names(pair)).collect();
        if kept.len() == query.split('&').count() {
            return self;
        }
        let mut url = self.0.clone();
        let kept = (!kept.is_empty()).then(|| kept.join("&"));
        url.set_query(kept.as_deref());
        Self(url)
    }

    /// The URL as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The parsed URL.
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// The host it is on, with the port where that isn't the scheme's own.
    pub fn host(&self) -> Host {
        let name = self.0.host_str().unwrap_or_default();
        Host(match self.0.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        })
    }

    /// Scheme and host: what one `robots.txt` covers (RFC 9309 section 2.3).
    pub fn origin(&self) -> String {
        format!("{}://{}", self.0.scheme(), self.host())
    }

    /// The `robots.txt` that covers it.
    #[must_use]
    pub fn robots_txt(&self) -> Self {
        let mut url = self.0.clone();
        url.set_path("/robots.txt");
        url.set_query(None);
        Self(url)
    }

    /// 63 bits that tell pages of one site apart: the same on every machine and in every version.
    pub fn fingerprint(&self) -> i64 {
        fingerprint(self.as_str())
    }
}

fn parsed(text: &str) -> Result<Url, UrlError> {
    Url::parse(text.trim()).map_err(|e| UrlError::Invalid { text: text.to_owned(), why: e.to_string() })
}

fn short_enough(text: &str) -> Result<(), UrlError> {
    if text.len() <= MOST_BYTES {
        return Ok(());
    }
    Err(UrlError::TooLong { start: text.chars().take(64).collect(), bytes: text.len() })
}

/// A reference as the parser is to see it: before a host, slashes after the first two are ignored (WHATWG URL, "special
/// authority ignore slashes"), where the parser would find an empty host.
pub fn reference(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim_start_matches(|c: char| c <= ' ');
    let rest = trimmed.trim_start_matches(['/', '\\']);
    if trimmed.len() - rest.len() > 2 { Cow::Owned(format!("//{rest}")) } else { Cow::Borrowed(text) }
}

/// 63 bits of BLAKE3 over `text`.
pub fn fingerprint(text: &str) -> i64 {
    let hash = blake3::hash(text.as_bytes());
    let mut first = [0_u8; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    i64::from_be_bytes(first) & i64::MAX
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CanonicalUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for CanonicalUrl {
    type Error = UrlError;

    /// What is stored was accepted once, however long it is.
    fn try_from(text: String) -> Result<Self, UrlError> {
        Self::of_any_length(parsed(&text)?)
    }
}

impl From<CanonicalUrl> for String {
    fn from(url: CanonicalUrl) -> Self {
        url.0.into()
    }
}

/// A host name, with `:port` where the port isn't the scheme's own. It belongs to one site.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Host(String);

impl Host {
    /// Takes a host as it stands in a site file: `shop.example` or `127.0.0.1:8080`.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let whole = text.contains('/') || text.contains('@') || text.trim().is_empty();
        let url = if whole { None } else { CanonicalUrl::parse(&format!("http://{text}/")).ok() };
        url.map(|u| u.host())
            .ok_or_else(|| UrlError::Invalid { text: text.to_owned(), why: "not a host".to_owned() })
    }

    /// The host as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names of query parameters that don't make a page another one; `*` stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripQuery(Vec<String>);

impl StripQuery {
    /// The patterns of a site file, such as `utm_*`.
    pub fn new(patterns: Vec<String>) -> Self {
        Self(patterns)
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    fn names(&self, pair: &str) -> bool {
        let name = pair.split('=').next().unwrap_or(pair);
        self.0.iter().any(|pattern| fits(pattern, name, true))
    }
}

/// Whether a text is what the pattern says, or else begins so; `*` stands for any run of characters.
///
/// The pieces between stars are taken at their first place, one after the other: linear, whatever the pattern.
pub fn fits(pattern: &str, text: &str, to_the_end: bool) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return !to_the_end || rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    if to_the_end { rest.ends_with(last) } else { rest.contains(last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        let strip = StripQuery::new(vec!["utm_*".into(), "gclid".into()]);
        CanonicalUrl::parse(text).expect("a URL").stripped(&strip).to_string()
    }

    #[test]
    fn one_page_has_one_spelling() {
        for (given, stored) in [
            ("HTTP://Shop.Example:80/a/../b#top", "http://shop.example/b"),
            ("https://user:pw@shop.example/", "https://shop.example/"),
            ("https://shop.example/p?utm_source=x&id=1&gclid=9", "https://shop.example/p?id=1"),
            ("https://shop.example/p?utm_source=x", "https://shop.example/p"),
            ("https://shop.example/p?b=2&a=1", "https://shop.example/p?b=2&a=1"),
            ("https://shop.example", "https://shop.example/"),
            ("https://shop.example:/", "https://shop.example/"),
            ("https://shop.example:443/", "https://shop.example/"),
            ("https://shop.example:80/", "https://shop.example:80/"),
            ("https://Bücher.example/ß", "https://xn--bcher-kva.example/%C3%9F"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://[::FFFF:0:1]/", "http://[::ffff:0:1]/"),
            ("https:shop.example\\a", "https://shop.example/a"),
            (" https://shop.example/a b\n", "https://shop.example/a%20b"),
            ("https://shop.example/./a/%2e%2E/b/..", "https://shop.example/"),
            ("https://shop.example/a?#", "https://shop.example/a?"),
            ("https://shop.example/?utm_a&&utm_b", "https://shop.example/?"),
        ] {
            assert_eq!(canonical(given), stored);
            assert_eq!(canonical(stored), stored);
        }
    }

    #[test]
    fn a_parameters_pattern_fits_from_end_to_end_and_costs_no_more_than_its_length() {
        for (pattern, name, fit) in [
            ("utm_*", "utm_source", true),
            ("utm_*", "xutm_source", false),
            ("*id", "sessionid", true),
            ("*id", "ids", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("**", "", true),
            ("", "a", false),
        ] {
            assert_eq!(fits(pattern, name, true), fit, "{pattern} on {name}");
        }
        let (pattern, name) = ("*a".repeat(40) + "b", "a".repeat(8_000));
        assert!(!fits(&pattern, &name, true));
    }

    #[test]
    fn a_url_that_is_too_long_is_refused_unless_it_was_stored_before() {
        let long = format!("https://shop.example/{}", "a".repeat(MOST_BYTES - 21));
        assert!(CanonicalUrl::parse(&long).is_ok());
        let longer = format!("{long}b");
        let why = CanonicalUrl::parse(&longer).expect_err("too long").to_string();
        assert!(why.contains("8193 bytes long") && why.len() < 200, "{why}");
        assert!(CanonicalUrl::parse(&format!("https://shop.example/{}", "é".repeat(3_000))).is_err());
        assert_eq!(CanonicalUrl::try_from(longer.clone()).map(String::from), Ok(longer));
    }

    #[test]
    fn what_the_standard_keeps_apart_is_two_pages() {
        for (one, other) in [
            ("https://shop.example/%7Ea", "https://shop.example/~a"),
            ("https://shop.example/%c3%a9", "https://shop.example/%C3%A9"),
            ("https://shop.example/a", "https://shop.example/a/"),
            ("https://shop.example/a", "https://shop.example/a?"),
            ("https://shop.example/a//b", "https://shop.example/a/b"),
            ("https://shop.example./", "https://shop.example/"),
            ("https://www.shop.example/", "https://shop.example/"),
            ("http://shop.example/", "https://shop.example/"),
            ("https://shop.example/?a=1&b=2", "https://shop.example/?b=2&a=1"),
        ] {
            assert_ne!(canonical(one), canonical(other));
        }
    }

    proptest::proptest! {
        #[test]
        fn a_canonical_url_is_read_as_itself(
            host in r"[a-zA-Z0-9é本.%:@\-]{1,12}",
            rest in r"[/?#&=a-z.%;: \\\t|é{}<>~+\PC]{0,40}",
            strip in r"[a-z*]{0,4}",
        ) {
            let strip = StripQuery::new(vec![strip, "a".to_owned()]);
            for text in [format!("https://{host}{rest}"), format!("http://{host}/?{rest}"), rest] {
                let Ok(once) = CanonicalUrl::parse(&text).map(|url| url.stripped(&strip)) else { continue };
                let again = CanonicalUrl::parse(once.as_str()).map(|url| url.stripped(&strip));
                proptest::prop_assert_eq!(again, Ok(once));
            }
        }
    }

    #[test]
    fn a_host_carries_its_port_only_where_it_is_unusual() {
        let host = |text: &str| CanonicalUrl::parse(text).expect("a URL").host().to_string();
        assert_eq!(host("https://shop.example:443/"), "shop.example");
        assert_eq!(host("http://127.0.0.1:8080/x"), "127.0.0.1:8080");
    }

    #[test]
    fn other_schemes_are_refused() {
        assert!(matches!(CanonicalUrl::parse("mailto:a@b.example"), Err(UrlError::Scheme(_))));
        assert!(matches!(CanonicalUrl::parse("/relative"), Err(UrlError::Invalid { .. })));
    }
}
