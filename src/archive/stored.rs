//! Reading one record back. Walking through whole segments is elsewhere.

use std::io::{self, BufReader};
use std::time::Duration;

use bytes::Bytes;
use flate2::bufread::GzDecoder;

use super::store::Store;
use super::warc::{self, Fields};
use super::{ArchiveError, Place, member};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::page::Headers;

/// An answer of a site, as it was kept.
#[derive(Clone, Debug)]
pub struct StoredResponse {
    /// The URL that was asked for.
    pub url: CanonicalUrl,
    /// When the request was sent.
    pub fetched_at: Timestamp,
    /// The HTTP status.
    pub status: u16,
    /// The header fields, without `transfer-encoding` and with the `content-length` of the body as kept.
    pub headers: Headers,
    /// The body as sent: not decompressed, not decoded.
    pub body: Bytes,
    /// From the send to the end of the body.
    pub response: Duration,
}

/// Reads the answer at a place, in one read.
pub(super) fn read(store: &dyn Store, place: &Place) -> Result<StoredResponse, ArchiveError> {
    let packed = store.record(place)?;
    parse(&packed).map_err(|why| ArchiveError::damaged(place.segment(), place.offset(), why))
}

fn parse(packed: &[u8]) -> Result<StoredResponse, String> {
    let plain = Bytes::from(member::inflate(packed).map_err(|e| e.to_string())?);
    let mut rest: &[u8] = &plain;
    let fields = Fields::read(&mut rest).map_err(|e| e.to_string())?.ok_or("no WARC record")?;
    match field(&fields, "WARC-Type")? {
        "response" => {}
        other => return Err(format!("a {other} record")),
    }
    let start = plain.len() - rest.len();
    let length: usize = field(&fields, "Content-Length")?.parse().map_err(|_| "no length")?;
    let block = plain.get(start..start.saturating_add(length)).ok_or("a part is missing")?;
    let (status, headers, head) = http_head(block).ok_or("no HTTP head")?;
    Ok(StoredResponse {
        url: CanonicalUrl::parse(field(&fields, "WARC-Target-URI")?).map_err(|e| e.to_string())?,
        fetched_at: field(&fields, "WARC-Date")?.parse().map_err(|_| "no date")?,
        status,
        headers,
        body: plain.slice(start + head..start + length),
        response: Duration::from_millis(number(&fields, "Paced-Response-Ms")),
    })
}

fn field<'a>(fields: &'a Fields, name: &str) -> Result<&'a str, String> {
    fields.get(name).ok_or_else(|| format!("no {name}"))
}

fn number(fields: &Fields, name: &str) -> u64 {
    fields.get(name).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Status, header fields and length of an HTTP head.
fn http_head(block: &[u8]) -> Option<(u16, Headers, usize)> {
    let end = block.windows(4).position(|four| four == b"\r\n\r\n")?;
    let mut lines = block[..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let status = warc::status(lines.next()?)?;
    let headers = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
        Some((name, line[colon + 1..].trim_ascii().to_vec()))
    });
    Some((status, Headers(headers.collect()), end + 4))
}

/// What a revisit refers to.
#[derive(Debug)]
pub(super) struct Origin {
    /// The stored record's own name, where it could be read.
    pub(super) id: Option<String>,
    /// The URL it is of, where it could be read.
    pub(super) url: Option<String>,
    /// Its date.
    pub(super) date: String,
}

/// What the record at `place` says of itself. A body confirmed many times keeps its first date, which the caller may
/// no longer know.
pub(super) fn origin(store: &dyn Store, place: &Place, fetched_at: Timestamp) -> Origin {
    let fields = store.beginning(place).ok().and_then(|packed| header(&packed).ok().flatten());
    let told = |name| fields.as_ref()?.get(name).map(str::to_owned);
    Origin {
        id: told("WARC-Record-ID"),
        url: told("WARC-Target-URI"),
        date: told("WARC-Date").unwrap_or_else(|| fetched_at.to_string()),
    }
}

fn header(packed: &[u8]) -> io::Result<Option<Fields>> {
    Fields::read(&mut BufReader::with_capacity(4096, GzDecoder::new(packed)))
}
