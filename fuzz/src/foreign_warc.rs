//! A WARC file of another program. Bytes that aren't gzip are the recipe of records, which are stored as they are, each packed
//! by itself, and all packed as one; each of these is also cut off somewhere.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use paced::internals::archive::{Archive, ArchiveError, Filter, Record, StoredResponse, scan};
use paced::internals::clock::{Clock, Timestamp};
use tempfile::TempDir;

use super::cost::Linear;
use super::recipe::grown;

const MOST_BYTES: usize = 512 << 10;
/// What a record begins with, whatever its version.
const START: &[u8] = b"WARC/";
const GZIP: &[u8] = b"\x1f\x8b";
/// Records that are read and packed by themselves; those behind them belong to the last one.
const MOST_RECORDS: usize = 200;
/// A byte that is no UTF-8 becomes three. Packed ones become 1,032 at the most (RFC 1951: 258 letters take two bits).
const PLAIN: Linear = Linear { least: 1 << 10, each: 4 };
const PACKED: Linear = Linear { least: 4 << 10, each: 4 * 1_032 };

/// A folder with a page store open on it, to which nothing is written.
static STORE: LazyLock<(TempDir, Archive)> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let archive = Archive::open(folder.path(), "fuzz", Clock::fake(Timestamp::from_millis(0)));
    (folder, archive.expect("a page store"))
});

/// A walk ends with what is there or names the place of the damage; a record is read whole or isn't; what was cut off takes
/// nothing with it that stood before; and nothing is given out that the file is too short for.
pub fn hold(bytes: &[u8]) {
    if bytes.starts_with(GZIP) {
        return file("x.warc.gz", bytes, &[]);
    }
    let plain = grown(bytes, MOST_BYTES);
    let cuts = starts(&plain);
    file("x.warc", &plain, &cuts);
    let (mut packed, mut places) = (Vec::new(), Vec::new());
    for (at, start) in cuts.iter().enumerate() {
        places.push(packed.len());
        let end = cuts.get(at + 1).copied().unwrap_or(plain.len());
        pack(&plain[*start..end], &mut packed);
    }
    file("x.warc.gz", &packed, &places);
    let mut whole = Vec::new();
    pack(&plain, &mut whole);
    file("x.warc.gz", &whole, &[0]);
}

/// Walks over a file and over its beginning, and reads the records that begin at these places.
fn file(name: &str, bytes: &[u8], places: &[usize]) {
    let (folder, archive) = &*STORE;
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("written");
    let bound = if bytes.starts_with(GZIP) { PACKED } else { PLAIN };
    let all = walk(folder.path(), bytes.len(), bound);
    for (at, place) in places.iter().enumerate() {
        let end = places.get(at + 1).copied().unwrap_or(bytes.len());
        read(archive, name, *place, end - place, bound);
    }
    for record in &all {
        let Some(place) = &record.place else { continue };
        assert!(place.offset() + place.length() <= bytes.len() as u64, "{place} is past the end");
        drop(archive.read(place));
    }
    // Where the last byte says.
    let left = bytes.len() * usize::from(bytes.last().copied().unwrap_or(0)) / 256;
    fs::write(&path, &bytes[..left]).expect("written");
    let before = walk(folder.path(), left, bound);
    // The last one may lack its answer.
    let sure = before.len().saturating_sub(1);
    assert_eq!(before.get(..sure), all.get(..sure), "cut at {left} of {}", bytes.len());
    fs::remove_file(&path).expect("it was there");
}

/// The records of the only file.
fn walk(folder: &Path, length: usize, bound: Linear) -> Vec<Record> {
    let (mut records, mut damages, mut given) = (Vec::new(), 0, 0);
    for found in scan(folder, Filter::default()).expect("a walk") {
        match found {
            Ok(record) => {
                given += size(&record);
                records.push(record);
            }
            Err(ArchiveError::Damaged { offset, why, .. }) => {
                damages += 1;
                assert!(offset < length as u64 && !why.is_empty(), "{why} at {offset} of {length}");
                given += why.len();
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(damages <= 1, "{damages} damages of one file");
    bound.holds(given, length, "bytes of records");
    records
}

fn size(record: &Record) -> usize {
    let Record { site, unit, url, error, .. } = record;
    site.len() + unit.len() + url.len() + error.as_ref().map_or(0, String::len)
}

fn read(archive: &Archive, name: &str, offset: usize, length: usize, bound: Linear) {
    let place = format!("{name}:{offset}:{length}").parse().expect("a place");
    match archive.read(&place) {
        Ok(StoredResponse { url, headers, body, .. }) => {
            let fields: usize = headers.0.iter().map(|(name, value)| name.len() + value.len()).sum();
            bound.holds(url.as_str().len() + fields + body.len(), length, "bytes of an answer");
        }
        Err(ArchiveError::Damaged { why, .. }) => {
            assert!(!why.is_empty());
            bound.holds(why.len(), length, "bytes of a reason");
        }
        Err(ArchiveError::Missing { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Where records begin, or may.
fn starts(plain: &[u8]) -> Vec<usize> {
    let windows = plain.windows(START.len()).enumerate();
    let mut starts: Vec<usize> =
        windows.filter(|(_, window)| *window == START).map(|(at, _)| at).take(MOST_RECORDS).collect();
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    starts
}

fn pack(plain: &[u8], into: &mut Vec<u8>) {
    let mut gzip = GzEncoder::new(into, Compression::fast());
    gzip.write_all(plain).and_then(|()| gzip.finish().map(drop)).expect("memory takes it");
}
