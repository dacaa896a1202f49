//! A page to read.

use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::page::Headers;

/// A page to read: its body with content codings undone (`content_coding::decode`), not yet text.
#[derive(Clone, Copy, Debug)]
pub struct Fetched<'a> {
    /// The page's URL.
    pub url: &'a CanonicalUrl,
    /// When it was fetched, or last confirmed.
    pub fetched_at: Timestamp,
    /// The header fields it came with.
    pub headers: &'a Headers,
    /// The decoded body.
    pub body: &'a [u8],
}
