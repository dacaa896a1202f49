//! Content codings undone (RFC 9110 section 8.4): from the bytes as stored to the bytes as meant. Charsets are elsewhere.

use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use bytes::Bytes;
use flate2::bufread::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use crate::page::Headers;

/// The `Accept-Encoding` that every request carries: the codings that [`decode`] undoes.
pub const ACCEPT_ENCODING: &str = "gzip, deflate, br";

/// More codings than this on one body are an attack: each may blow the body up again.
const MAX_CODINGS: usize = 4;

const CHUNK: usize = 64 * 1024;

/// Why a body can't be decoded. Fetching it again may help only where it is `Broken`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    /// The decoded body is larger than the site's `max_body`.
    #[error("the body is larger than {limit} bytes once decoded; raise `max_body` if it is wanted")]
    TooLarge {
        /// The cap, in bytes.
        limit: u64,
    },
    /// A coding that isn't known here, nor was asked for; or too many on one body.
    #[error("the body has the content coding `{0}`, which was not asked for")]
    Unknown(String),
    /// The body isn't what its coding says, or ends too early.
    #[error("the body is broken {0}: {1}")]
    Broken(String, String),
}

impl CodingError {
    /// Whether the same request may bring a body that decodes.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Broken(..))
    }
}

/// Undoes the codings that `Content-Encoding` lists, last one first, stopping past `max` decoded bytes.
///
/// A body without a coding is shared, not copied. A body that ends before its coding does is an error, however good
/// its beginning: half a page would look like a page that lost its other half.
pub fn decode(headers: &Headers, body: &Bytes, max: u64) -> Result<Bytes, CodingError> {
    let codings = codings(headers);
    if codings.len() > MAX_CODINGS {
        return Err(CodingError::Unknown(codings.join(", ")));
    }
    let mut bytes = body.clone();
    for coding in codings.iter().rev() {
        bytes = undo(coding, bytes, max)?;
        if !within(bytes.len(), max) {
            break;
        }
    }
    if within(bytes.len(), max) { Ok(bytes) } else { Err(CodingError::TooLarge { limit: max }) }
}

/// The first `most` bytes of the body of an answer that brings no page. What is broken, or coded twice, says nothing.
pub fn beginning(headers: &Headers, body: &Bytes, most: usize) -> Bytes {
    let undone = match &codings(headers)[..] {
        [] => Ok(body.clone()),
        [coding] => undo(coding, body.clone(), most as u64),
        _ => return Bytes::new(),
    };
    let bytes = undone.unwrap_or_default();
    bytes.slice(..bytes.len().min(most))
}

/// Undoes one coding; of what is longer than `max`, a bit more than that.
fn undo(coding: &str, bytes: Bytes, max: u64) -> Result<Bytes, CodingError> {
    if bytes.is_empty() {
        return Ok(bytes);
    }
    let decoded = match coding {
        "gzip" | "x-gzip" => gunzip(&bytes, max),
        "deflate" => inflate_either(&bytes, max),
        "br" => {
            let mut decoded = Vec::new();
            read_capped(Decompressor::new(&*bytes, CHUNK), &mut decoded, max).map(|()| decoded)
        }
        _ => return Err(CodingError::Unknown(coding.to_owned())),
    };
    decoded.map(Bytes::from).map_err(|error| CodingError::Broken(coding.to_owned(), why(&error)))
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
        _ => error.to_string(),
    }
}

fn codings(headers: &Headers) -> Vec<String> {
    headers
        .all("content-encoding")
        .flat_map(|value| value.split(','))
        .map(|coding| coding.trim().to_ascii_lowercase())
        .filter(|coding| !coding.is_empty() && coding != "identity")
        .collect()
}

/// All members of a gzip file (RFC 1952 section 2.2); what follows the last is ignored, as browsers do.
fn gunzip(mut body: &[u8], max: u64) -> io::Result<Vec<u8>> {
    let mut decoded = Vec::new();
    loop {
        let mut member = GzDecoder::new(body);
        read_capped(&mut member, &mut decoded, max)?;
        body = member.into_inner();
        if !within(decoded.len(), max) || !body.starts_with(&[0x1f, 0x8b]) {
            return Ok(decoded);
        }
    }
}

/// Reads all of it, or so much that it is over the cap.
fn read_capped(from: impl Read, into: &mut Vec<u8>, max: u64) -> io::Result<()> {
    let room = max.saturating_add(1).saturating_sub(into.len() as u64);
    from.take(room).read_to_end(into).map(drop)
}

/// `deflate` means the zlib format (RFC 9110 section 8.4.1.2), but some servers send the bare stream.
fn inflate_either(body: &[u8], max: u64) -> io::Result<Vec<u8>> {
    let zlib =
        body.len() >= 2 && body[0] & 0x0f == 8 && (u16::from(body[0]) << 8 | u16::from(body[1])) % 31 == 0;
    if !zlib {
        return inflate(body, false, max);
    }
    inflate(body, true, max).or_else(|why| inflate(body, false, max).map_err(|_| why))
}

fn inflate(body: &[u8], zlib: bool, max: u64) -> io::Result<Vec<u8>> {
    let mut stream = Decompress::new(zlib);
    let mut decoded = Vec::new();
    loop {
        let (seen, made) = (stream.total_in(), decoded.len());
        decoded.reserve(CHUNK);
        let rest = &body[usize::try_from(seen).map_err(io::Error::other)?..];
        let status = stream.decompress_vec(rest, &mut decoded, FlushDecompress::None)?;
        if status == Status::StreamEnd || !within(decoded.len(), max) {
            return Ok(decoded);
        }
        if stream.total_in() == seen && decoded.len() == made {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn within(length: usize, max: u64) -> bool {
    u64::try_from(length).is_ok_and(|length| length <= max)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"<h1>A page that is long enough, long enough, long enough to be packed</h1>";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes it")
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes it")
    }

    fn raw(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory takes it")
    }

    fn decoded(codings: &[&str], body: Vec<u8>, max: u64) -> Result<Bytes, CodingError> {
        let field = |coding: &&str| ("content-encoding".to_owned(), coding.as_bytes().to_vec());
        decode(&Headers(codings.iter().map(field).collect()), &body.into(), max)
    }

    #[test]
    fn every_coding_that_is_asked_for_is_undone() {
        let two_members = [gzip(&TEXT[..20]), gzip(&TEXT[20..])].concat();
        let padded = [gzip(TEXT), vec![0; 8]].concat();
        for (codings, body) in [
            (vec![], TEXT.to_vec()),
            (vec!["identity"], TEXT.to_vec()),
            (vec!["gzip"], gzip(TEXT)),
            (vec!["X-GZip"], gzip(TEXT)),
            (vec!["gzip"], two_members),
            (vec!["gzip"], padded),
            (vec!["deflate"], zlib(TEXT)),
            (vec!["deflate"], raw(TEXT)),
            (vec!["gzip, deflate"], zlib(&gzip(TEXT))),
            (vec!["gzip", "deflate"], zlib(&gzip(TEXT))),
        ] {
            let got = decoded(&codings, body, 1000);
            assert_eq!(got.as_deref(), Ok(TEXT), "{codings:?}");
        }
    }

    #[test]
    fn an_unencoded_body_is_shared_and_not_copied() {
        let body = Bytes::from_static(TEXT);
        let same = decode(&Headers::default(), &body, 1000).expect("no coding");
        assert_eq!(same.as_ptr(), body.as_ptr());
    }

    #[test]
    fn an_empty_body_needs_no_decoding() {
        assert_eq!(decoded(&["gzip"], Vec::new(), 10).as_deref(), Ok(&[][..]));
    }

    #[test]
    fn a_bomb_stops_at_the_cap() {
        let zeros = vec![0; 4 << 20];
        for (coding, body) in [("gzip", gzip(&zeros)), ("deflate", zlib(&zeros)), ("deflate", raw(&zeros))] {
            let got = decoded(&[coding], body, 100_000);
            assert_eq!(got, Err(CodingError::TooLarge { limit: 100_000 }), "{coding}");
        }
        assert_eq!(decoded(&[], vec![0; 11], 10), Err(CodingError::TooLarge { limit: 10 }));
        assert_eq!(decoded(&["gzip"], gzip(TEXT), TEXT.len() as u64).as_deref(), Ok(TEXT));
    }

    #[test]
    fn of_an_answer_that_brings_no_page_the_beginning_is_read_however_long_it_is() {
        let long = TEXT.repeat(100_000);
        let of = |coding: &str, body: Vec<u8>| {
            let headers = Headers(vec![("content-encoding".to_owned(), coding.as_bytes().to_vec())]);
            beginning(&headers, &body.into(), 1_000)
        };
        for (coding, body) in [
            ("identity", long.clone()),
            ("gzip", gzip(&long)),
            ("deflate", zlib(&long)),
            ("deflate", raw(&long)),
        ] {
            assert_eq!(of(coding, body), long[..1_000], "{coding}");
        }
        assert_eq!(of("gzip", gzip(TEXT)), TEXT);
        assert!(of("gzip", TEXT.to_vec()).is_empty() && of("x-mine", TEXT.to_vec()).is_empty());
    }

    #[test]
    fn a_body_cut_short_is_broken_however_good_its_beginning() {
        for (coding, whole) in [("gzip", gzip(TEXT)), ("deflate", zlib(TEXT)), ("deflate", raw(TEXT))] {
            for end in 1..whole.len() {
                let got = decoded(&[coding], whole[..end].to_vec(), 1000);
                assert!(matches!(got, Err(CodingError::Broken(..))), "{coding} cut at {end}: {got:?}");
            }
        }
    }

    #[test]
    fn what_is_no_such_coding_is_refused() {
        assert_eq!(decoded(&["zstd"], TEXT.to_vec(), 1000), Err(CodingError::Unknown("zstd".to_owned())));
        for coding in ["gzip", "br", "deflate"] {
            let got = decoded(&[coding], TEXT.to_vec(), 1000);
            assert!(got.as_ref().is_err_and(CodingError::is_transient), "{coding}: {got:?}");
        }
        let many = decoded(&["gzip, gzip, gzip, gzip, gzip"], TEXT.to_vec(), 1000);
        assert!(matches!(many, Err(CodingError::Unknown(..))), "{many:?}");
    }
}
