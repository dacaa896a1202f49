//! Bytes as the end of a segment whose writer was killed. What isn't gzip is taken for records in plain text, each packed
//! by itself, so that what is in a record can be reached.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use paced::internals::archive::{Archive, ArchiveError, Filter, Record, RecordPlace, Visit, scan};
use paced::internals::clock::{Clock, Timestamp};
use tempfile::TempDir;

use super::answered::{answer, answered};

/// What a record begins with, whatever its version.
const START: &[u8] = b"WARC/1";
const BODY: &[u8] = b"<h1>the page that is durable</h1>";

/// A segment with one whole page in it, as its killed writer left it.
struct Left {
    place: RecordPlace,
    bytes: Vec<u8>,
    marker: Vec<u8>,
}

static LEFT: LazyLock<Left> = LazyLock::new(left);

/// A start cuts the torn end off and nothing of what was durable; what is left is a beginning of what was there, is read
/// back, and isn't cut again. Damage is told with its place; nothing else goes wrong.
pub fn hold(bytes: &[u8]) {
    let left = &*LEFT;
    let dir = TempDir::new().expect("a folder");
    let segment = dir.path().join(left.place.segment());
    let whole = [&left.bytes[..], &tail(bytes)].concat();
    fs::write(&segment, &whole).expect("written");
    fs::write(marker(&segment), &left.marker).expect("written");
    walk(dir.path(), &left.place, whole.len());
    let archive = open(dir.path());
    let kept = fs::read(&segment).expect("it is still there");
    assert!(kept.len() >= left.bytes.len() && whole.starts_with(&kept), "{} kept", kept.len());
    assert!(!marker(&segment).exists(), "it is closed");
    assert_eq!(archive.read(&left.place).expect("the durable page").body, BODY);
    for place in walk(dir.path(), &left.place, kept.len()) {
        assert!(place.offset() + place.length() <= kept.len() as u64, "{place} is past the end");
        drop(archive.read(&place));
    }
    fs::write(marker(&segment), &left.marker).expect("written");
    drop(open(dir.path()));
    assert_eq!(fs::read(&segment).expect("it is still there").len(), kept.len(), "cut twice");
}

/// The places of all records found; the durable page comes first.
fn walk(dir: &Path, first: &RecordPlace, length: usize) -> Vec<RecordPlace> {
    let mut places = Vec::new();
    for found in scan(dir, Filter::default()).expect("a walk") {
        match found {
            Ok(Record { place, .. }) => places.extend(place),
            Err(ArchiveError::Damaged { offset, why, .. }) => {
                assert!(offset < length as u64 && !why.is_empty(), "{why} at {offset} of {length}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(places.first(), Some(first));
    places
}

fn tail(bytes: &[u8]) -> Vec<u8> {
    if bytes.starts_with(b"\x1f\x8b") {
        return bytes.to_vec();
    }
    let starts = bytes.windows(START.len()).enumerate().filter(|(_, window)| *window == START);
    let mut cuts: Vec<usize> = starts.map(|(at, _)| at).filter(|at| *at > 0).collect();
    cuts.push(bytes.len());
    let (mut packed, mut from) = (Vec::new(), 0);
    for cut in cuts {
        let mut gzip = GzEncoder::new(&mut packed, Compression::none());
        gzip.write_all(&bytes[from..cut]).and_then(|()| gzip.finish().map(drop)).expect("memory takes it");
        from = cut;
    }
    // Torn where the last byte says.
    let torn = bytes.last().map_or(0, |byte| usize::from(*byte) % 64);
    packed.truncate(packed.len().saturating_sub(torn));
    packed
}

fn left() -> Left {
    let dir = TempDir::new().expect("a folder");
    let archive = open(dir.path());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let place = runtime.block_on(archive.keep(visit())).expect("kept");
    let segment = dir.path().join(place.segment());
    let read = |path: &Path| fs::read(path).expect("it is there");
    Left { bytes: read(&segment), marker: read(&marker(&segment)), place }
}

fn open(dir: &Path) -> Archive {
    Archive::open(dir, "fuzz", Clock::fake(Timestamp::from_millis(1_795_165_200_123))).expect("a page store")
}

fn marker(segment: &Path) -> std::path::PathBuf {
    let mut name = segment.as_os_str().to_owned();
    name.push(".open");
    name.into()
}

fn visit() -> Visit {
    let sent_at = Timestamp::from_millis(1_795_165_200_123);
    answered(answer("https://shop.example/a", sent_at, Bytes::from_static(BODY)))
}
