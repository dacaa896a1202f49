//! Lists of URLs as they lie in a frontier: chunk by chunk, deflated. Only clients look into a chunk.

use std::io::{self, Read};

use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use serde::{Deserialize, Serialize};

use crate::canonical_url::{CanonicalUrl, MOST_BYTES, fingerprint};

/// URLs of a chunk; the last one of a list may have fewer.
pub const CHUNK: u32 = 1_000;

/// URLs of a list in order, deflated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlChunk(Vec<u8>);

impl UrlChunk {
    /// Packs URLs.
    pub fn of(urls: &[CanonicalUrl]) -> Self {
        let lines = urls.iter().flat_map(|url| [url.as_str(), "\n"]).collect::<String>();
        let mut packed = Vec::new();
        // It reads from memory: that can't fail.
        let _ = DeflateEncoder::new(lines.as_bytes(), Compression::best()).read_to_end(&mut packed);
        Self(packed)
    }

    /// Takes what was packed before.
    pub fn from_packed(packed: Vec<u8>) -> Self {
        Self(packed)
    }

    /// As it is stored.
    pub fn packed(&self) -> &[u8] {
        &self.0
    }

    /// The URLs.
    ///
    /// # Errors
    /// What is stored isn't what was packed.
    pub fn urls(&self) -> io::Result<Vec<CanonicalUrl>> {
        let most = CHUNK as usize * (MOST_BYTES + 1);
        let mut lines = String::new();
        DeflateDecoder::new(&self.0[..]).take(most as u64).read_to_string(&mut lines)?;
        lines.lines().map(|line| CanonicalUrl::parse(line).map_err(io::Error::other)).collect()
    }
}

/// What tells a list from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListKey {
    /// Made of its URLs.
    pub mark: String,
    /// How many they are.
    pub total: u32,
    /// How many of them each of its chunks has; the last one may have fewer.
    pub per_chunk: u32,
}

impl ListKey {
    /// How many chunks it has.
    pub fn chunks(&self) -> u32 {
        self.total.div_ceil(self.per_chunk.max(1))
    }

    /// In which chunk a URL of it is, and its place there.
    pub fn place_of(&self, index: u32) -> (u32, usize) {
        let per_chunk = self.per_chunk.max(1);
        (index / per_chunk, (index % per_chunk) as usize)
    }
}

/// A list of URLs, packed, before it is in a frontier.
#[derive(Clone, Debug)]
pub struct UrlList {
    chunks: Vec<UrlChunk>,
    waiting: Vec<CanonicalUrl>,
    per_chunk: u32,
    total: u32,
    mark: u64,
}

impl Default for UrlList {
    fn default() -> Self {
        Self::in_chunks_of(CHUNK)
    }
}

impl UrlList {
    /// An empty one, so many URLs of which are packed together: at most [`CHUNK`].
    pub fn in_chunks_of(per_chunk: u32) -> Self {
        Self { chunks: Vec::new(), waiting: Vec::new(), per_chunk, total: 0, mark: 0 }
    }

    /// Adds a URL behind the others.
    pub fn push(&mut self, url: CanonicalUrl) {
        self.mark = self.mark.rotate_left(1) ^ fingerprint(url.as_str()).cast_unsigned();
        self.total += 1;
        self.waiting.push(url);
        if self.waiting.len() == self.per_chunk as usize {
            self.pack();
        }
    }

    fn pack(&mut self) {
        let urls = std::mem::take(&mut self.waiting);
        if !urls.is_empty() {
            self.chunks.push(UrlChunk::of(&urls));
        }
    }

    /// What tells it from other lists.
    pub fn key(&self) -> ListKey {
        let Self { total, per_chunk, .. } = *self;
        ListKey { mark: format!("{:016x}", self.mark), total, per_chunk }
    }

    /// Its chunks, once all URLs are there.
    pub fn chunks(&mut self) -> &[UrlChunk] {
        self.pack();
        &self.chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c15_a_list_of_urls_takes_few_bytes_in_chunks_and_comes_back_as_it_was() {
        let url = |n: u32| {
            let url = format!("https://shop.example/catalogue/a-thing-{n}/index.html");
            CanonicalUrl::parse(&url).expect("a URL")
        };
        let mut list = UrlList::default();
        (0..2_500).map(url).for_each(|url| list.push(url));
        let chunks = list.chunks().to_vec();
        assert_eq!((chunks.len(), list.key().chunks(), list.key().total), (3, 3, 2_500));
        let bytes: usize = chunks.iter().map(|chunk| chunk.packed().len()).sum();
        assert!(bytes < 2_500 * 10, "{bytes} bytes for 2,500 URLs");
        let back: Vec<CanonicalUrl> = chunks.iter().flat_map(|chunk| chunk.urls().expect("ours")).collect();
        assert_eq!(back, (0..2_500).map(url).collect::<Vec<_>>());
        assert!(UrlChunk::from_packed(vec![7; 40]).urls().is_err());
        let mut other = UrlList::default();
        (0..2_500).rev().map(url).for_each(|url| other.push(url));
        assert_ne!(list.key(), other.key(), "another order is another list");
    }
}
