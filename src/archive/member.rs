//! One gzip member (RFC 1952), which holds one record. What the record says is not known here.

use std::cell::RefCell;
use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;
use libdeflater::{CompressionLvl, Compressor, crc32};

/// A member begins with this (RFC 1952 section 2.3): gzip, deflate, with an extra field, no time, no system. The extra field
/// holds one subfield `sl` of 8 bytes.
const BEGINNING: [u8; 16] = [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, 12, 0, b's', b'l', 8, 0];
/// The two numbers of the subfield; as many bytes are behind the packed ones, for the CRC and the plain length.
const NUMBERS: usize = 8;

/// Where the flags are, and the one of a comment (RFC 1952 section 2.3.1).
const FLAGS: usize = 3;
const HAS_COMMENT: u8 = 16;
/// Readers take no longer comment than 64 KiB.
const LONGEST_BLANK: u64 = 60_000;
/// A blank of so many bytes has room for its record.
const SHORTEST_REST: u64 = 1_024;

thread_local! {
    /// Its tables take longer to make than a short member takes to pack.
    static PACKER: RefCell<Packer> = RefCell::new(Packer::new());
}

/// Packs members, one after the other, in memory of its own.
pub(super) struct Packer {
    compressor: Compressor,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

/// The memory that a packer keeps for its next member, in bytes of each kind.
const KEPT: usize = 256 * 1024;

impl Packer {
    /// Lends this thread's own.
    pub(super) fn lend<T>(packs: impl FnOnce(&mut Self) -> T) -> T {
        PACKER.with_borrow_mut(packs)
    }

    /// Level 1, as what takes the usual level 6 four times as long is a fourteenth smaller.
    pub(super) fn new() -> Self {
        let compressor = Compressor::new(CompressionLvl::new(1).unwrap_or_default());
        Self { compressor, plain: Vec::new(), packed: Vec::new() }
    }

    /// Appends one member to `out`, which holds the parts one after the other. Its extra field `sl` tells both lengths, as
    /// WARC 0.9 proposed, so that a reader may step over a body without inflating it; others ignore it.
    pub(super) fn append(&mut self, out: &mut Vec<u8>, parts: &[&[u8]]) {
        let Self { compressor, plain, packed } = self;
        plain.clear();
        for part in parts {
            plain.extend_from_slice(part);
        }
        packed.resize(packed.len().max(compressor.deflate_compress_bound(plain.len())), 0);
        let length = compressor.deflate_compress(plain, packed).expect("there is room for the worst case");
        let whole = BEGINNING.len() + NUMBERS + length + NUMBERS;
        // Longer ones tell no lengths.
        let numbers = u32::try_from(whole).ok().zip(u32::try_from(plain.len()).ok()).unwrap_or_default();
        out.reserve(whole);
        out.extend_from_slice(&BEGINNING);
        out.extend_from_slice(&numbers.0.to_le_bytes());
        out.extend_from_slice(&numbers.1.to_le_bytes());
        out.extend_from_slice(&packed[..length]);
        out.extend_from_slice(&crc32(plain).to_le_bytes());
        // RFC 1952 section 2.3.1: the length modulo 2^32.
        out.extend_from_slice(&(plain.len() as u64).to_le_bytes()[..4]);
        for buffer in [plain, packed] {
            if buffer.capacity() > KEPT {
                *buffer = Vec::new();
            }
        }
    }
}

/// As many bytes as asked for, or none where they are too few: members that hold one record of no content each, `record`, and
/// are as long as they have to be by a comment in their header.
pub(super) fn blank(mut length: u64, record: impl Fn() -> Vec<u8>) -> Option<Vec<u8>> {
    let (mut packer, mut out) = (Packer::new(), Vec::new());
    while length > 0 {
        let rest = length.saturating_sub(LONGEST_BLANK);
        let this = if rest == 0 { length } else { LONGEST_BLANK - SHORTEST_REST.saturating_sub(rest) };
        length -= this;
        let mut member = Vec::new();
        packer.append(&mut member, &[&record()]);
        let comment = usize::try_from(this).ok()?.checked_sub(member.len() + 1)?;
        member[FLAGS] |= HAS_COMMENT;
        let head = BEGINNING.len() + NUMBERS;
        let filled = std::iter::repeat_n(b' ', comment).chain([0]);
        member.splice(head..head, filled);
        let told = u32::try_from(member.len()).ok()?.to_le_bytes();
        member[BEGINNING.len()..][..4].copy_from_slice(&told);
        out.append(&mut member);
    }
    Some(out)
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
pub(super) struct CountingReader<R> {
    pub(super) inner: R,
    pub(super) at: u64,
}

impl<R: BufRead> CountingReader<R> {
    /// Whether nothing is left.
    pub(super) fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.inner.fill_buf()?.is_empty())
    }
}

impl<R: BufRead> Read for CountingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for CountingReader<R> {
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
        Packer::new().append(&mut out, &[b"one ", b"record"]);
        let member = &out[6..];
        assert_eq!(told_length(&GzDecoder::new(member)), Some(member.len() as u64));
        assert_eq!(inflate(member).ok().as_deref(), Some(&b"one record"[..]));
    }

    #[test]
    fn one_member_after_the_other_is_whole_and_a_large_one_leaves_no_memory_behind() {
        let mut packer = Packer::new();
        for length in [10, 3 * KEPT, 100, 0, KEPT / 2, 7] {
            let plain: Vec<u8> = (0..=u8::MAX).cycle().step_by(7).take(length).collect();
            let mut out = Vec::new();
            packer.append(&mut out, &[&plain]);
            assert_eq!(told_length(&GzDecoder::new(&out[..])), Some(out.len() as u64));
            assert_eq!(inflate(&out).ok(), Some(plain));
            assert!(packer.plain.capacity() <= KEPT && packer.packed.capacity() <= KEPT);
        }
    }

    #[test]
    fn blanks_fill_any_length_that_a_record_has() {
        let record = || b"WARC/1.1\r\n".to_vec();
        assert_eq!(blank(30, record), None);
        for length in [100, 59_999, 60_000, 60_001, 61_023, 61_024, 120_500, 1_000_000] {
            let blank = blank(length, record).expect("there is room");
            assert_eq!(blank.len() as u64, length);
            let mut left = &blank[..];
            while !left.is_empty() {
                let told = told_length(&GzDecoder::new(left)).and_then(|told| usize::try_from(told).ok());
                let (member, rest) = left.split_at(told.expect("it tells"));
                assert_eq!(inflate(member).ok(), Some(record()), "{length}");
                left = rest;
            }
        }
    }

    #[test]
    fn a_page_is_packed_into_a_fraction_of_its_size() {
        let page = "<li class=\"card\"><a href=\"/product/7\">A product</a></li>\n".repeat(500);
        let mut out = Vec::new();
        Packer::new().append(&mut out, &[page.as_bytes()]);
        assert!(out.len() < page.len() / 10, "{} of {}", out.len(), page.len());
        assert_eq!(inflate(&out).ok().as_deref(), Some(page.as_bytes()));
    }

    #[test]
    fn a_member_that_lacks_a_byte_is_an_error() {
        let mut out = Vec::new();
        Packer::new().append(&mut out, &[b"one record"]);
        for cut in 0..out.len() {
            assert!(inflate(&out[..cut]).is_err(), "cut at {cut}");
        }
    }
}
