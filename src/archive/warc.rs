//! The spelling of WARC 1.1 records: header fields, digests, and the HTTP heads inside. Which records a visit makes is
//! decided elsewhere.

use std::fmt::{Display, Write as _};
use std::io::{self, BufRead, Read};

use data_encoding::BASE32;
use sha1::{Digest, Sha1};
use uuid::Uuid;

use super::member::Packer;
use crate::clock::Timestamp;

/// The content type of a request's block.
pub(super) const HTTP_REQUEST: &str = "application/http;msgtype=request";
/// The content type of a response's block.
pub(super) const HTTP_RESPONSE: &str = "application/http;msgtype=response";
/// The content type of blocks that are named fields (WARC 1.1 section 6.2).
pub(super) const WARC_FIELDS: &str = "application/warc-fields";
/// A 304 confirmed a stored body (WARC 1.1 section 6.7.3).
pub(super) const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// The key that signed a request, by its thumbprint.
pub(super) const SIGNED_BY: &str = "Paced-Signed-By";
/// A field of nothing else than records that were erased.
pub(super) const ERASED: &str = "Paced-Erased";
/// The HTTP status of an answer that an older build dropped, while its request stays.
pub(super) const STATUS: &str = "Paced-Status";

/// What every record begins with, whatever its version.
pub(super) const MAGIC: &[u8] = b"WARC/";
const VERSION: &str = "WARC/1.1";
/// No record that is worth reading has a longer header.
const MAX_HEADER: u64 = 256 * 1024;

/// The named fields of a record's header, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The first field of that name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Reads a record's header, up to the empty line that ends it. `None`: this is no WARC record.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut from = from.take(MAX_HEADER);
        let mut line = Vec::new();
        // Some programs leave more empty lines between records than there should be.
        while from.read_until(b'\n', &mut line)? > 0 && line.trim_ascii().is_empty() {
            line.clear();
        }
        if !line.starts_with(MAGIC) {
            return Ok(None);
        }
        let mut fields = Self::default();
        loop {
            line.clear();
            from.read_until(b'\n', &mut line)?;
            let text = String::from_utf8_lossy(&line);
            match (text.trim_end(), text.split_once(':')) {
                _ if !line.ends_with(b"\n") => return Ok(None),
                ("", _) => return Ok(Some(fields)),
                (folded, _) if line.starts_with(b" ") || line.starts_with(b"\t") => fields.fold(folded),
                (_, Some((name, value))) => fields.0.push((name.trim().to_owned(), value.trim().to_owned())),
                (_, None) => return Ok(None),
            }
        }
    }

    /// Goes on with the last value: a line that begins with a space (WARC 1.1 section 4).
    fn fold(&mut self, line: &str) {
        if let Some((_, value)) = self.0.last_mut() {
            value.push(' ');
            value.push_str(line.trim_start());
        }
    }
}

/// The header of a record that is being written, without its end.
#[derive(Debug)]
pub(super) struct Header(String);

impl Header {
    /// The fields that every record begins with.
    pub(super) fn of(kind: &str, id: &str, date: Timestamp) -> Self {
        let start = Self(format!("{VERSION}\r\n"));
        start.with("WARC-Type", kind).with("WARC-Record-ID", id).with("WARC-Date", date)
    }

    /// Adds a field; a line break in the value becomes a space.
    #[must_use]
    pub(super) fn with(mut self, name: &str, value: impl Display) -> Self {
        let _ = write!(self.0, "{name}: ");
        let start = self.0.len();
        let _ = write!(self.0, "{value}");
        if self.0[start..].contains(char::is_control) {
            let line = one_line(&self.0[start..]);
            self.0.replace_range(start.., &line);
        }
        self.0.push_str("\r\n");
        self
    }

    /// Adds a field where there is a value.
    #[must_use]
    pub(super) fn with_some(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The whole header, for a block of so many bytes.
    fn text(self, block_length: usize) -> String {
        self.with("Content-Length", block_length).0 + "\r\n"
    }
}

/// The record that a segment begins with, as one gzip member.
pub(super) fn info(segment: &str, now: Timestamp) -> Vec<u8> {
    let block = format!(
        "software: paced/{}\r\nformat: WARC File Format 1.1\r\nconformsTo: \
         http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n",
        env!("CARGO_PKG_VERSION")
    );
    let header = Header::of("warcinfo", &record_id(), now)
        .with("WARC-Filename", segment)
        .with("Content-Type", WARC_FIELDS);
    let mut out = Vec::new();
    append(&mut out, &mut Packer::new(), header, block.as_bytes(), None);
    out
}

/// A record that says nothing but that there was one.
pub(super) fn erased(now: Timestamp) -> Vec<u8> {
    let header = Header::of("metadata", &record_id(), now).with(ERASED, "yes");
    [header.text(0).as_bytes(), b"\r\n\r\n"].concat()
}

/// Appends one record as one gzip member. What is kept of an answer is its head and its body: then the body has the digest,
/// else the whole block. They are nearly the same bytes, and hashing them twice costs as much as packing them.
pub(super) fn append(
    out: &mut Vec<u8>,
    packer: &mut Packer,
    header: Header,
    head: &[u8],
    body: Option<&[u8]>,
) {
    let header = match body {
        None => header.with("WARC-Block-Digest", digest(head)),
        Some(body) => header.with("WARC-Payload-Digest", digest(body)),
    };
    let body = body.unwrap_or_default();
    let header = header.text(head.len() + body.len());
    packer.append(out, &[header.as_bytes(), head, body, b"\r\n\r\n"]);
}

/// `sha1:` and the digest in base 32, as WARC tools compare it.
fn digest(bytes: &[u8]) -> String {
    format!("sha1:{}", BASE32.encode(&Sha1::digest(bytes)))
}

/// A name for a record that no other has.
pub(super) fn record_id() -> String {
    format!("<urn:uuid:{}>", Uuid::new_v4())
}

/// An HTTP head: its first line and its fields, with the empty line that ends it.
pub(super) fn http_head<'a>(first: &str, fields: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut head = one_line(first).into_bytes();
    head.extend_from_slice(b"\r\n");
    for (name, value) in fields {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend(value.iter().map(|byte| if is_break(*byte) { b' ' } else { *byte }));
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The status in an HTTP status line.
pub(super) fn status(line: &[u8]) -> Option<u16> {
    let line = line.strip_prefix(b"HTTP/")?;
    let space = line.iter().position(|byte| *byte == b' ')?;
    std::str::from_utf8(line.get(space + 1..space + 4)?).ok()?.parse().ok()
}

/// One line of `text`: what people read must not end the record.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n' | 0)
}
