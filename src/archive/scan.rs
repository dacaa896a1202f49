//! Walking over everything that was kept, a record at a time: what was asked of the sites, and what came back. Bodies
//! are stepped over.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flate2::bufread::GzDecoder;

use super::member::{CountingReader, told_length};
use super::recover::is_torn;
use super::store::{Opened, Segments, Source, Store};
use super::warc::{self, Fields};
use super::{ArchiveError, Place};
use crate::clock::Timestamp;

/// The first line of an answer's block is not longer than this.
const MAX_LINE: u64 = 4096;
/// The byte that a gzip member begins with (RFC 1952 section 2.3.1).
const GZIP: u8 = 0x1f;
/// Two line ends stand behind a record, and some programs write more.
const RECORD_END: u64 = 16;

/// One request that was sent, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The site's name.
    pub site: String,
    /// The pace unit: the site's group, or the site.
    pub unit: String,
    /// The interval in force when it was sent.
    pub interval: Duration,
    /// The lease's fence.
    pub fence: i64,
    /// What was asked for.
    pub url: String,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// The HTTP status, where an answer came.
    pub status: Option<u16>,
    /// The answer's length, head and body as kept.
    pub bytes: u64,
    /// Why no answer came, where that is known.
    pub error: Option<String>,
    /// Where the answer is; nowhere, where none came or an older build dropped it.
    pub place: Option<Place>,
}

/// Which requests are wanted; by default all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those of these sites; empty: of all.
    pub sites: Vec<String>,
    /// Only those sent then or later.
    pub since: Option<Timestamp>,
    /// Only those sent before.
    pub until: Option<Timestamp>,
}

impl Filter {
    fn takes(&self, record: &Record) -> bool {
        (self.sites.is_empty() || self.sites.contains(&record.site))
            && self.since.is_none_or(|since| record.sent_at >= since)
            && self.until.is_none_or(|until| record.sent_at < until)
    }
}

/// The walk that `scan` begins.
pub struct Scan {
    filter: Filter,
    segments: Segments,
    walk: Option<Walk>,
}

impl Scan {
    pub(super) fn over(store: Arc<dyn Store>, filter: Filter) -> Result<Self, ArchiveError> {
        Ok(Self { filter, segments: store.segments()?, walk: None })
    }
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("filter", &self.filter).field("walk", &self.walk).finish_non_exhaustive()
    }
}

impl Iterator for Scan {
    type Item = Result<Record, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(walk) = &mut self.walk {
                match walk.next(&self.filter) {
                    Some(found) => return Some(found),
                    None => self.walk = None,
                }
            }
            match self.segments.next()? {
                Ok(segment) => self.walk = Some(Walk::over(segment)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// One segment being walked over.
#[derive(Debug)]
pub(super) struct Walk {
    name: String,
    path: PathBuf,
    records: CountingReader<Box<dyn Source>>,
    /// A request whose answer is the next record, if it has one.
    asked: Option<(String, Record)>,
    ended: bool,
}

/// What one member turned out to be.
pub(super) enum Seen {
    Request { id: String, record: Record },
    Answer { to: String, answer: Answer },
    Erased { status: Option<u16> },
    Other,
}

pub(super) struct Answer {
    status: Option<u16>,
    bytes: u64,
    error: Option<String>,
}

impl Walk {
    pub(super) fn over(segment: Opened) -> Self {
        let Opened { name, path, source } = segment;
        Self { name, path, records: CountingReader { inner: source, at: 0 }, asked: None, ended: false }
    }

    fn next(&mut self, filter: &Filter) -> Option<Result<Record, ArchiveError>> {
        while !self.ended {
            let start = self.records.at;
            match self.member() {
                Ok(Some(seen)) => {
                    if let Some(record) = self.take(seen, start, filter) {
                        return Some(Ok(record));
                    }
                }
                Ok(None) => self.ended = true,
                Err(e) => {
                    self.ended = true;
                    if !self.is_tail(&e) {
                        return Some(Err(self.error(start, e)));
                    }
                }
            }
        }
        self.asked.take().map(|(_, record)| Ok(record))
    }

    /// How far it was walked over.
    pub(super) fn at(&self) -> u64 {
        self.records.at
    }

    /// What the next member turned out to be.
    pub(super) fn seen(&mut self) -> Result<Option<Seen>, ArchiveError> {
        let start = self.records.at;
        match self.member() {
            Err(e) if self.is_tail(&e) => Ok(None),
            seen => seen.map_err(|e| self.error(start, e)),
        }
    }

    /// The end of a segment that grows, or whose writer died, is no damage.
    fn is_tail(&self, error: &io::Error) -> bool {
        let cut = error.kind() == io::ErrorKind::UnexpectedEof;
        cut || (is_torn(error) && self.records.inner.is_open())
    }

    fn error(&self, start: u64, error: io::Error) -> ArchiveError {
        if is_torn(&error) {
            ArchiveError::damaged(&self.name, start, error.to_string())
        } else {
            ArchiveError::io("read", &self.path, error)
        }
    }

    /// Brings requests and answers together; returns a request of which everything is known.
    fn take(&mut self, seen: Seen, start: u64, filter: &Filter) -> Option<Record> {
        match seen {
            Seen::Request { id, record } => {
                let wanted = filter.takes(&record).then_some((id, record));
                std::mem::replace(&mut self.asked, wanted).map(|(_, unanswered)| unanswered)
            }
            Seen::Answer { to, answer } => {
                let (_, record) = self.asked.take_if(|(id, _)| *id == to)?;
                let Answer { status, bytes, error } = answer;
                let place = Some(Place::new(&self.name, start, self.records.at - start));
                Some(Record { status, bytes, error, place, ..record })
            }
            // An older build dropped it; the request that it answered stands right before it.
            Seen::Erased { status: Some(status) } => {
                let (_, record) = self.asked.take()?;
                Some(Record { status: Some(status), ..record })
            }
            Seen::Erased { status: None } | Seen::Other => None,
        }
    }

    /// Reads one member, or a record that isn't packed, and stands behind it; `None` at the end.
    fn member(&mut self) -> io::Result<Option<Seen>> {
        if self.records.is_at_end()? {
            return Ok(None);
        }
        // One byte tells: there may be no more of them in the buffer.
        if self.records.fill_buf()?.first() != Some(&GZIP) {
            return self.plain_record();
        }
        let start = self.records.at;
        let gzip = GzDecoder::new(&mut self.records);
        let told = told_length(&gzip);
        let mut plain = BufReader::with_capacity(1024, gzip);
        let (seen, left) = read_record(&mut plain)?;
        match told {
            Some(length) => self.skip_to(start + length)?,
            None if io::copy(&mut plain, &mut io::sink())? > left.saturating_add(RECORD_END) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "more than one record in a gzip member; pack each record by itself",
                ));
            }
            None => {}
        }
        Ok(Some(seen))
    }

    fn plain_record(&mut self) -> io::Result<Option<Seen>> {
        let start = self.records.at;
        let (seen, left) = match read_record(&mut self.records) {
            Ok(read) => read,
            // What follows the last record may be empty lines.
            Err(_) if self.records.is_at_end()? && self.records.at - start <= RECORD_END => return Ok(None),
            Err(error) => return Err(error),
        };
        let end = self.records.at.checked_add(left).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.skip_to(end)?;
        Ok(Some(seen))
    }

    fn skip_to(&mut self, at: u64) -> io::Result<()> {
        if self.records.inner.length()? < at {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let step = at.cast_signed().wrapping_sub(self.records.at.cast_signed());
        self.records.inner.step(step)?;
        self.records.at = at;
        Ok(())
    }
}

/// What a record is, and how much of its block is left to be stepped over.
fn read_record(plain: &mut impl BufRead) -> io::Result<(Seen, u64)> {
    let fields = Fields::read(plain)?.ok_or_else(no_record)?;
    let text = |name| fields.get(name).unwrap_or_default();
    let length = text("Content-Length").parse().unwrap_or(0);
    Ok(match text("WARC-Type") {
        "request" => {
            let id = text("WARC-Record-ID").to_owned();
            (request(&fields).map_or(Seen::Other, |record| Seen::Request { id, record }), length)
        }
        "metadata" if fields.get(warc::ERASED).is_some() => {
            (Seen::Erased { status: text(warc::STATUS).parse().ok() }, length)
        }
        kind @ ("response" | "revisit" | "metadata") => {
            let line = first_line(plain, length)?;
            let answer = answer(kind, &fields, &line);
            let to = text("WARC-Concurrent-To").to_owned();
            (Seen::Answer { to, answer }, length - line.len() as u64)
        }
        _ => (Seen::Other, length),
    })
}

fn no_record() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no WARC record")
}

/// A request that this crawler sent: others lack the fields that audits go by.
fn request(fields: &Fields) -> Option<Record> {
    let text = |name| fields.get(name).map(str::to_owned);
    Some(Record {
        site: text("Paced-Site")?,
        unit: text("Paced-Unit")?,
        interval: Duration::from_millis(fields.get("Paced-Interval-Ms")?.parse().ok()?),
        fence: fields.get("Paced-Fence")?.parse().ok()?,
        url: text("WARC-Target-URI")?,
        sent_at: fields.get("WARC-Date")?.parse().ok()?,
        status: None,
        bytes: 0,
        error: None,
        place: None,
    })
}

fn answer(kind: &str, fields: &Fields, line: &[u8]) -> Answer {
    if kind == "metadata" {
        let line = String::from_utf8_lossy(line);
        let error = line.strip_prefix("error:").map(|text| text.trim().to_owned());
        return Answer { status: None, bytes: 0, error };
    }
    let bytes = fields.get("Content-Length").and_then(|text| text.parse().ok()).unwrap_or(0);
    Answer { status: warc::status(line), bytes, error: None }
}

fn first_line(plain: &mut impl BufRead, block: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    plain.take(block.min(MAX_LINE)).read_until(b'\n', &mut line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment whose bytes come one at a time.
    #[derive(Debug)]
    struct Dribble {
        bytes: Vec<u8>,
        at: usize,
    }

    impl Read for Dribble {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = (&self.bytes[self.at..]).read(&mut into[..1])?;
            self.at += count;
            Ok(count)
        }
    }

    impl BufRead for Dribble {
        fn fill_buf(&mut self) -> io::Result<&[u8]> {
            Ok(&self.bytes[self.at..(self.at + 1).min(self.bytes.len())])
        }

        fn consume(&mut self, amount: usize) {
            self.at += amount;
        }
    }

    impl Source for Dribble {
        fn step(&mut self, bytes: i64) -> io::Result<()> {
            self.at = self.at.checked_add_signed(isize::try_from(bytes).unwrap_or(0)).unwrap_or(0);
            Ok(())
        }

        fn length(&self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn is_open(&self) -> bool {
            false
        }
    }

    #[test]
    fn members_and_plain_records_are_walked_over_however_few_bytes_are_buffered() {
        let packed = warc::info("x.warc.gz", Timestamp::from_millis(0));
        let plain = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 5\r\n\r\nblock\r\n\r\n";
        for (bytes, damage_at) in [
            ([&packed[..], &packed, plain, plain].concat(), None),
            ([&packed[..], b"junk", &packed].concat(), Some(packed.len() as u64)),
            ([&plain[..], b"\r\n\r\n"].concat(), None),
        ] {
            let source = Box::new(Dribble { bytes, at: 0 });
            let opened = Opened { name: "x".to_owned(), path: PathBuf::from("x"), source };
            let mut walk = Walk::over(opened);
            match (walk.next(&Filter::default()), damage_at) {
                (None, None) => {}
                (Some(Err(ArchiveError::Damaged { offset, .. })), Some(at)) => assert_eq!(offset, at),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_request_whose_answer_an_older_build_dropped_is_answered_and_has_no_place() {
        let text = "WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: <a>\r\nWARC-Date: 2026-11-20T09:00:00Z\r\n\
            WARC-Target-URI: http://shop.example/\r\nPaced-Site: shop\r\nPaced-Unit: shop\r\n\
            Paced-Interval-Ms: 1000\r\nPaced-Fence: 1\r\nContent-Length: 0\r\n\r\n\r\n\r\n\
            WARC/1.1\r\nWARC-Type: metadata\r\nPaced-Erased: yes\r\nPaced-Status: 200\r\n\
            Content-Length: 0\r\n\r\n\r\n\r\n";
        let source = Box::new(io::Cursor::new(bytes::Bytes::from_static(text.as_bytes())));
        let opened = Opened { name: "x".to_owned(), path: PathBuf::from("x"), source };
        let record = Walk::over(opened).next(&Filter::default()).expect("a request").expect("whole");
        assert_eq!(
            (record.url.as_str(), record.status, record.place),
            ("http://shop.example/", Some(200), None)
        );
    }
}
