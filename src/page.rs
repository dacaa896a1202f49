//! What was fetched: one answer of a site, as it came over the wire. What is on it is found elsewhere.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;

/// One HTTP answer, its body still as sent: not decompressed, not decoded.
#[derive(Clone, Debug)]
pub struct Page {
    /// The URL that was asked for.
    pub url: CanonicalUrl,
    /// When the request was sent.
    pub sent_at: Timestamp,
    /// The protocol that was spoken.
    pub version: http::Version,
    /// The HTTP status.
    pub status: u16,
    /// The header fields, in the order in which they came, names in lower case.
    pub headers: Headers,
    /// The body as sent.
    pub body: Bytes,
    /// From the send to the end of the body.
    pub response: Duration,
    /// Who answered, where that is known.
    pub remote: Option<SocketAddr>,
}

impl Page {
    /// The first header field of that name, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }
}

/// Header fields in their order, names in lower case, values as bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, Vec<u8>)>);

impl Headers {
    /// The first field of that name, where it is text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every field of that name that is text.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(n, _)| n.eq_ignore_ascii_case(name))
            .filter_map(|(_, value)| std::str::from_utf8(value).ok())
    }
}

/// In bytes.
const LONGEST_VALIDATOR: usize = 256;

/// What a site gave with a page so that it can be asked whether the page has changed (RFC 9110 section 8.8).
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Validators {
    /// The entity tag, as sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The modification date, as sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Validators {
    /// The validators in an answer's header. One that is long isn't kept: each page would carry it for good.
    pub fn of(headers: &Headers) -> Self {
        let is_short = |text: &&str| text.len() <= LONGEST_VALIDATOR;
        let text = |name| headers.get(name).filter(is_short).map(str::to_owned);
        Self { etag: text("etag"), last_modified: text("last-modified") }
    }

    /// Whether there is nothing to ask with.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_validator_of_more_than_256_bytes_is_not_kept() {
        for (length, is_kept) in [(256, true), (257, false)] {
            let field = |name: &str| (name.to_owned(), "x".repeat(length).into_bytes());
            for name in ["etag", "last-modified"] {
                let of = Validators::of(&Headers(vec![field(name)]));
                assert_eq!(!of.is_empty(), is_kept, "{name} of {length} bytes");
            }
        }
    }
}
