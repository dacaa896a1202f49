//! What the archive stands on: where commits go, and where records are read from. What is in them is not known here.

use std::fmt::Debug;
use std::io::{BufRead, Seek};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::member::CountingReader;
use super::{ArchiveError, RecordPlace};

/// Takes commits, one after another; the writer's thread owns it.
pub(super) trait Log: Debug + Send {
    /// When the next commit is due.
    fn due(&self) -> CommitRule;

    /// Makes all parts durable at once, or none of them: the segment they are in, and where in it the first one begins.
    fn append(&mut self, parts: &[&[u8]]) -> Result<(String, u64), ArchiveError>;

    /// Finishes the segment that still grows.
    fn close(&mut self) -> Result<(), ArchiveError>;
}

/// When a commit is due: at once with so much, which is as much as goes into one; with less, once nothing more is to be waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommitRule {
    /// How many visits are enough.
    pub(super) pages: usize,
    /// How many bytes are enough.
    pub(super) bytes: usize,
    /// Not sooner than then.
    pub(super) not_before: Option<Instant>,
    /// The longest that the first visit waits after it came.
    pub(super) longest: Duration,
    /// The longest that the last one does.
    pub(super) quiet: Duration,
}

impl CommitRule {
    /// When it is due if the first visit came then, and the last one so far.
    pub(super) fn at(&self, first: Instant, last: Instant) -> Instant {
        let waited = (first + self.longest).min(last + self.quiet);
        self.not_before.map_or(waited, |then| then.max(waited))
    }
}

/// Reads what any writer has committed. Every method blocks for as long as the reading takes.
pub(super) trait Store: Debug + Send + Sync {
    /// The first `most` bytes of a record, or all of a shorter one, in one read.
    fn read(&self, place: &RecordPlace, most: u64) -> Result<Bytes, ArchiveError>;

    /// Whether the bytes of that place are there, as far as can be told.
    fn has(&self, place: &RecordPlace) -> bool;

    /// Whether a segment grows from commit to commit, so that it may still be written to.
    fn grows(&self) -> bool;

    /// Writes other bytes over parts of a finished segment, all or none of them.
    fn overwrite(&self, segment: &str, patches: &Patches<'_>) -> Result<(), ArchiveError>;

    /// Removes a finished segment.
    fn remove(&self, segment: &str) -> Result<(), ArchiveError>;

    /// All segments in the order of their names, each opened when it is its turn.
    fn segments(self: Arc<Self>) -> Result<Segments, ArchiveError>;
}

/// What is written over parts of a segment.
pub(super) struct Patches<'a> {
    pub(super) ranges: &'a [Range<u64>],
    pub(super) bytes: &'a Filling<'a>,
}

/// The bytes that a range gets.
pub(super) type Filling<'a> = dyn Fn(&Range<u64>) -> Result<Vec<u8>, ArchiveError> + 'a;

/// Segments one after another.
pub(super) type Segments = Box<dyn Iterator<Item = Result<OpenSegment, ArchiveError>> + Send>;

/// A segment to be walked over.
#[derive(Debug)]
pub(super) struct OpenSegment {
    /// Its name.
    pub(super) name: String,
    /// Its name with where it is.
    pub(super) path: PathBuf,
    /// What is in it.
    pub(super) records: CountingReader<Box<dyn SegmentBytes>>,
    /// The file that stands beside a segment for as long as its end may be torn.
    marker: Option<PathBuf>,
}

/// The bytes of a segment, which may still grow.
pub(super) trait SegmentBytes: BufRead + Seek + Debug + Send {}

impl<T: BufRead + Seek + Debug + Send> SegmentBytes for T {}

impl OpenSegment {
    pub(super) fn new(
        name: String,
        path: PathBuf,
        bytes: impl SegmentBytes + 'static,
        marker: Option<PathBuf>,
    ) -> Self {
        Self { name, path, records: CountingReader { inner: Box::new(bytes), at: 0 }, marker }
    }

    /// Whether its end may be torn: it is still written to, or its writer died.
    pub(super) fn is_open(&self) -> bool {
        self.marker.as_ref().is_some_and(|marker| marker.exists())
    }
}
