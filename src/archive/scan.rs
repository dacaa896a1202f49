//! Walking over everything that was kept, a record at a time: what was asked of the sites, and what came back. Bodies
//! are stepped over.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::time::Duration;

use flate2::bufread::GzDecoder;

use super::member::told_length;
use super::recover::is_torn;
use super::store::{OpenSegment, Store};
use super::warc::{self, Fields};
use super::{ArchiveError, RecordPlace};
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
    /// When it was to be sent; none without a pace, and in records of earlier builds.
    pub start_at: Option<Timestamp>,
    /// What its pace unit waited before it, as in force at its last grant. None in records of earlier builds, which tell of the
    /// site alone.
    pub unit_wait: Option<Duration>,
    /// What its site waited before it.
    pub site_wait: Duration,
    /// The lease's fence.
    pub fence: i64,
    /// The key that signed it, by its thumbprint.
    pub signed_by: Option<String>,
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
    pub place: Option<RecordPlace>,
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

/// Records one after another.
pub type Records = Box<dyn Iterator<Item = Result<Record, ArchiveError>> + Send>;

/// What a store holds of requests that `filter` takes.
pub(super) fn records(store: Arc<dyn Store>, filter: Filter) -> Result<Records, ArchiveError> {
    let mut segments = store.segments()?;
    let mut walk: Option<SegmentWalk> = None;
    Ok(Box::new(std::iter::from_fn(move || {
        loop {
            if let Some(found) = walk.as_mut().and_then(|walk| walk.next(&filter)) {
                return Some(found);
            }
            match segments.next()? {
                Ok(segment) => walk = Some(SegmentWalk::over(segment)),
                Err(error) => return Some(Err(error)),
            }
        }
    })))
}

/// One segment being walked over.
#[derive(Debug)]
pub(super) struct SegmentWalk {
    segment: OpenSegment,
    /// A request whose answer is the next record, if it has one.
    asked: Option<(String, Record)>,
    ended: bool,
}

/// What one member turned out to be.
pub(super) enum RecordSeen {
    Request { id: String, record: Box<Record> },
    Answer { to: String, status: Option<u16>, bytes: u64, error: Option<String> },
    Erased { status: Option<u16> },
    Other,
}

impl SegmentWalk {
    pub(super) fn over(segment: OpenSegment) -> Self {
        Self { segment, asked: None, ended: false }
    }

    fn next(&mut self, filter: &Filter) -> Option<Result<Record, ArchiveError>> {
        while !self.ended {
            let start = self.at();
            match self.seen() {
                Ok(Some(seen)) => {
                    if let Some(record) = self.take(seen, start, filter) {
                        return Some(Ok(record));
                    }
                }
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        self.asked.take().map(|(_, record)| Ok(record))
    }

    /// How far it was walked over.
    pub(super) fn at(&self) -> u64 {
        self.segment.records.at
    }

    /// What the next member turned out to be. The end of a segment that grows, or whose writer died, is no damage.
    pub(super) fn seen(&mut self) -> Result<Option<RecordSeen>, ArchiveError> {
        let start = self.at();
        self.member().or_else(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(None),
            _ if !is_torn(&error) => Err(ArchiveError::io("read", &self.segment.path, error)),
            _ if self.segment.is_open() => Ok(None),
            _ => Err(ArchiveError::damaged(&self.segment.name, start, error.to_string())),
        })
    }

    /// Brings requests and answers together; returns a request of which everything is known.
    fn take(&mut self, seen: RecordSeen, start: u64, filter: &Filter) -> Option<Record> {
        match seen {
            RecordSeen::Request { id, record } => {
                let wanted = filter.takes(&record).then_some((id, *record));
                std::mem::replace(&mut self.asked, wanted).map(|(_, unanswered)| unanswered)
            }
            RecordSeen::Answer { to, status, bytes, error } => {
                let (_, record) = self.asked.take_if(|(id, _)| *id == to)?;
                let place = Some(RecordPlace::new(&self.segment.name, start, self.at() - start));
                Some(Record { status, bytes, error, place, ..record })
            }
            // An older build dropped it; the request that it answered stands right before it.
            RecordSeen::Erased { status: Some(status) } => {
                let (_, record) = self.asked.take()?;
                Some(Record { status: Some(status), ..record })
            }
            RecordSeen::Erased { status: None } | RecordSeen::Other => None,
        }
    }

    /// Reads one member, or a record that isn't packed, and stands behind it; `None` at the end.
    fn member(&mut self) -> io::Result<Option<RecordSeen>> {
        let records = &mut self.segment.records;
        if records.is_at_end()? {
            return Ok(None);
        }
        // One byte tells: there may be no more of them in the buffer.
        if records.fill_buf()?.first() != Some(&GZIP) {
            return self.plain_record();
        }
        let start = records.at;
        let gzip = GzDecoder::new(records);
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

    fn plain_record(&mut self) -> io::Result<Option<RecordSeen>> {
        let records = &mut self.segment.records;
        let start = records.at;
        let (seen, left) = match read_record(records) {
            Ok(read) => read,
            // What follows the last record may be empty lines.
            Err(_) if records.is_at_end()? && records.at - start <= RECORD_END => return Ok(None),
            Err(error) => return Err(error),
        };
        let end = records.at.saturating_add(left);
        self.skip_to(end)?;
        Ok(Some(seen))
    }

    /// Steps there, unless the segment ends before: its last byte is looked for.
    fn skip_to(&mut self, at: u64) -> io::Result<()> {
        let records = &mut self.segment.records;
        let cut = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidInput => io::ErrorKind::UnexpectedEof.into(),
            _ => error,
        };
        let step = at.checked_signed_diff(records.at).ok_or(io::ErrorKind::UnexpectedEof)?;
        let is_ahead = step > 0;
        records.inner.seek_relative(step - i64::from(is_ahead)).map_err(cut)?;
        if is_ahead && records.is_at_end()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        records.inner.consume(usize::from(is_ahead));
        records.at = at;
        Ok(())
    }
}

/// What a record is, and how much of its block is left to be stepped over.
fn read_record(plain: &mut impl BufRead) -> io::Result<(RecordSeen, u64)> {
    let fields = Fields::read(plain)?.ok_or_else(no_record)?;
    let text = |name| fields.get(name).unwrap_or_default();
    let length = text("Content-Length").parse().unwrap_or(0);
    Ok(match text("WARC-Type") {
        "request" => {
            let id = text("WARC-Record-ID").to_owned();
            (
                request(&fields)
                    .map_or(RecordSeen::Other, |record| RecordSeen::Request { id, record: Box::new(record) }),
                length,
            )
        }
        "metadata" if fields.get(warc::ERASED).is_some() => {
            (RecordSeen::Erased { status: text(warc::STATUS).parse().ok() }, length)
        }
        kind @ ("response" | "revisit" | "metadata") => {
            let line = first_line(plain, length)?;
            (answer(kind, &fields, &line), length - line.len() as u64)
        }
        _ => (RecordSeen::Other, length),
    })
}

fn no_record() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no WARC record")
}

/// A request that this crawler sent: others lack the fields that audits go by.
fn request(fields: &Fields) -> Option<Record> {
    let text = |name| fields.get(name).map(str::to_owned);
    let wait = |name| Some(Duration::from_millis(fields.get(name)?.parse().ok()?));
    Some(Record {
        site: text("Paced-Site")?,
        unit: text("Paced-Unit")?,
        start_at: fields.get("Paced-Start-At").and_then(|text| text.parse().ok()),
        unit_wait: wait("Paced-Unit-Wait-Ms"),
        site_wait: wait("Paced-Site-Wait-Ms").or_else(|| wait("Paced-Interval-Ms"))?,
        fence: fields.get("Paced-Fence")?.parse().ok()?,
        signed_by: text(warc::SIGNED_BY),
        url: text("WARC-Target-URI")?,
        sent_at: fields.get("WARC-Date")?.parse().ok()?,
        status: None,
        bytes: 0,
        error: None,
        place: None,
    })
}

fn answer(kind: &str, fields: &Fields, line: &[u8]) -> RecordSeen {
    let text = |name| fields.get(name).unwrap_or_default();
    let to = text("WARC-Concurrent-To").to_owned();
    if kind == "metadata" {
        let line = String::from_utf8_lossy(line);
        let error = line.strip_prefix("error:").map(|text| text.trim().to_owned());
        return RecordSeen::Answer { to, status: None, bytes: 0, error };
    }
    let bytes = text("Content-Length").parse().unwrap_or(0);
    RecordSeen::Answer { to, status: warc::status(line), bytes, error: None }
}

fn first_line(plain: &mut impl BufRead, block: u64) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    plain.take(block.min(MAX_LINE)).read_until(b'\n', &mut line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom};
    use std::path::PathBuf;

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
            Ok(self.bytes.get(self.at..=self.at).unwrap_or_default())
        }

        fn consume(&mut self, amount: usize) {
            self.at += amount;
        }
    }

    impl Seek for Dribble {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            let SeekFrom::Current(bytes) = to else { panic!("{to:?}") };
            self.at = self.at.checked_add_signed(isize::try_from(bytes).unwrap_or(0)).unwrap_or(0);
            Ok(self.at as u64)
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
            let bytes = Dribble { bytes, at: 0 };
            let segment = OpenSegment::new("x".to_owned(), PathBuf::from("x"), bytes, None);
            let mut walk = SegmentWalk::over(segment);
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
        let bytes = io::Cursor::new(text.as_bytes());
        let segment = OpenSegment::new("x".to_owned(), PathBuf::from("x"), bytes, None);
        let record = SegmentWalk::over(segment).next(&Filter::default()).expect("a request").expect("whole");
        assert_eq!(
            (record.url.as_str(), record.status, record.place),
            ("http://shop.example/", Some(200), None)
        );
        // Such a build told its site's interval alone.
        let waits = (record.start_at, record.unit_wait, record.site_wait);
        assert_eq!(waits, (None, None, Duration::from_secs(1)));
    }
}
