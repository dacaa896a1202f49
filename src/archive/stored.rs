//! Reading one record back. Walking through whole segments is elsewhere.

use std::io::BufReader;
use std::time::Duration;

use bytes::Bytes;
use flate2::bufread::GzDecoder;

use super::store::Store;
use super::warc::{self, Fields};
use super::{ArchiveError, RecordPlace, member};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::page::Headers;

/// So many bytes of a record hold its header.
const BEGINNING: u64 = 16 * 1024;

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
pub(super) fn read(store: &dyn Store, place: &RecordPlace) -> Result<StoredResponse, ArchiveError> {
    let packed = store.read(place, u64::MAX)?;
    let read = parse(&packed).map_err(|why| ArchiveError::damaged(place.segment(), place.offset(), why))?;
    read.ok_or_else(|| ArchiveError::Missing { place: place.clone() })
}

/// The answer that a record holds; none where it was erased.
fn parse(packed: &[u8]) -> Result<Option<StoredResponse>, String> {
    let plain = if packed.starts_with(warc::MAGIC) {
        Bytes::copy_from_slice(packed)
    } else {
        Bytes::from(member::inflate(packed).map_err(|e| e.to_string())?)
    };
    let mut rest: &[u8] = &plain;
    let fields = Fields::read(&mut rest).map_err(|e| e.to_string())?.ok_or("no WARC record")?;
    match field(&fields, "WARC-Type")? {
        "response" => {}
        _ if fields.get(warc::ERASED).is_some() => return Ok(None),
        other => return Err(format!("a {other} record")),
    }
    let start = plain.len() - rest.len();
    let length: usize = field(&fields, "Content-Length")?.parse().map_err(|_| "no length")?;
    let block = plain.get(start..start.saturating_add(length)).ok_or("a part is missing")?;
    let (status, headers, head) = http_head(block).ok_or("no HTTP head")?;
    let body = plain.slice(start + head..start + length);
    let (headers, body) = unchunked(headers, body);
    let response_ms = fields.get("Paced-Response-Ms").and_then(|text| text.parse().ok());
    // Some programs write it as WARC 1.0 has it in its grammar.
    let url = field(&fields, "WARC-Target-URI")?.trim_start_matches('<').trim_end_matches('>');
    Ok(Some(StoredResponse {
        url: CanonicalUrl::parse(url).map_err(|e| e.to_string())?,
        fetched_at: field(&fields, "WARC-Date")?.parse().map_err(|_| "no date")?,
        status,
        headers,
        body,
        response: Duration::from_millis(response_ms.unwrap_or(0)),
    }))
}

fn field<'a>(fields: &'a Fields, name: &str) -> Result<&'a str, String> {
    fields.get(name).ok_or_else(|| format!("no {name}"))
}

/// Status, header fields and length of an HTTP head.
fn http_head(block: &[u8]) -> Option<(u16, Headers, usize)> {
    let (end, length) = end_of_head(block)?;
    let mut lines = block[..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let status = warc::status(lines.next()?)?;
    let headers = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
        Some((name, line[colon + 1..].trim_ascii().to_vec()))
    });
    Some((status, Headers(headers.collect()), length))
}

/// Where the lines of an HTTP head end, and where the body begins: behind the first empty line, however lines end.
fn end_of_head(block: &[u8]) -> Option<(usize, usize)> {
    let mut start = 0;
    for line in block.split_inclusive(|byte| *byte == b'\n') {
        if line.trim_ascii().is_empty() && line.ends_with(b"\n") {
            return Some((start, start + line.len()));
        }
        start += line.len();
    }
    None
}

/// Other programs keep a body in the chunks that it came in. What only calls itself chunked stays as it is.
fn unchunked(headers: Headers, body: Bytes) -> (Headers, Bytes) {
    let is_coding = |name: &str| name.eq_ignore_ascii_case("transfer-encoding");
    let chunked = |(name, value): &(String, Vec<u8>)| {
        is_coding(name) && value.to_ascii_lowercase().ends_with(b"chunked")
    };
    if !headers.0.iter().any(chunked) {
        return (headers, body);
    }
    let whole = dechunk(&body).map_or(body, Bytes::from);
    (Headers(headers.0.into_iter().filter(|(name, _)| !is_coding(name)).collect()), whole)
}

/// The data of all chunks (RFC 9112 section 7.1); none where they are no such thing, or the last one is missing.
fn dechunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(&rest[..end]).ok()?;
        let size = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
        rest = &rest[end + 1..];
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(rest.get(..size)?);
        rest = &rest[size..];
        rest = rest.strip_prefix(b"\r\n")?;
    }
}

/// What a revisit refers to.
#[derive(Debug)]
pub(super) struct RefersTo {
    /// The stored record's own name, where it could be read.
    pub(super) id: Option<String>,
    /// The URL it is of, where it could be read.
    pub(super) url: Option<String>,
    /// Its date.
    pub(super) date: String,
}

/// What the record at `place` says of itself. A body confirmed many times keeps its first date, which the caller may
/// no longer know.
pub(super) fn origin(store: &dyn Store, place: &RecordPlace, fetched_at: Timestamp) -> RefersTo {
    let fields = store.read(place, BEGINNING).ok().and_then(|packed| {
        Fields::read(&mut BufReader::with_capacity(4096, GzDecoder::new(&*packed))).ok().flatten()
    });
    let told = |name| fields.as_ref()?.get(name).map(str::to_owned);
    RefersTo {
        id: told("WARC-Record-ID"),
        url: told("WARC-Target-URI"),
        date: told("WARC-Date").unwrap_or_else(|| fetched_at.to_string()),
    }
}
