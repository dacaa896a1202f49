//! One gzip member (RFC 1952), which holds one record. What the record says is not known here.

use std::io::{self, BufRead, Read, Write};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};

/// Where the subfield's two numbers stand in a member of ours: after the 10 bytes of the fixed header, the length of
/// the extra field, and the subfield's own name and length.
const SKIP_AT: usize = 16;

/// Appends one member to `out`. Its extra field `sl` tells both lengths, as WARC 0.9 proposed, so that a reader may
/// step over a body without inflating it; others ignore it.
pub(super) fn append(out: &mut Vec<u8>, parts: &[&[u8]], level: Compression) {
    let start = out.len();
    let extra = [b's', b'l', 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut gzip = GzBuilder::new().extra(extra).write(&mut *out, level);
    for part in parts {
        gzip.write_all(part).expect("writing to memory can't fail");
    }
    gzip.finish().expect("writing to memory can't fail");
    let plain: usize = parts.iter().map(|part| part.len()).sum();
    if let (Ok(packed), Ok(plain)) = (u32::try_from(out.len() - start), u32::try_from(plain)) {
        out[start + SKIP_AT..][..4].copy_from_slice(&packed.to_le_bytes());
        out[start + SKIP_AT + 4..][..4].copy_from_slice(&plain.to_le_bytes());
    }
}

/// The length of the member that `gzip` reads, where the member tells it.
pub(super) fn told_length<R: BufRead>(gzip: &GzDecoder<R>) -> Option<u64> {
    let extra = gzip.header()?.extra()?;
    let lengths = extra.strip_prefix(b"sl\x08\x00")?;
    let packed = u32::from_le_bytes(*lengths.first_chunk()?);
    (packed > 0).then_some(u64::from(packed))
}

/// What a whole member holds.
pub(super) fn inflate(member: &[u8]) -> io::Result<Vec<u8>> {
    let mut gzip = GzDecoder::new(member);
    let mut plain = Vec::new();
    gzip.read_to_end(&mut plain)?;
    Ok(plain)
}

/// A reader that knows how far it has read.
#[derive(Debug)]
pub(super) struct Counted<R> {
    pub(super) inner: R,
    pub(super) at: u64,
}

impl<R: BufRead> Counted<R> {
    /// Whether nothing is left.
    pub(super) fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.inner.fill_buf()?.is_empty())
    }
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.inner.consume(amount);
        self.at += amount as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_tells_its_own_length_and_holds_what_was_put_in() {
        let mut out = b"before".to_vec();
        append(&mut out, &[b"one ", b"record"], Compression::default());
        let member = &out[6..];
        assert_eq!(told_length(&GzDecoder::new(member)), Some(member.len() as u64));
        assert_eq!(inflate(member).ok().as_deref(), Some(&b"one record"[..]));
    }

    #[test]
    fn a_member_that_lacks_a_byte_is_an_error() {
        let mut out = Vec::new();
        append(&mut out, &[b"one record"], Compression::default());
        for cut in 0..out.len() {
            assert!(inflate(&out[..cut]).is_err(), "cut at {cut}");
        }
    }
}
