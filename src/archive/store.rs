//! What the archive stands on: where commits go, and where records are read from. What is in them is not known here.

use std::fmt::Debug;
use std::io::{self, BufRead, Cursor};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{ArchiveError, Place};

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
    fn read(&self, place: &Place, most: u64) -> Result<Bytes, ArchiveError>;

    /// Whether the bytes of that place are there, as far as can be told.
    fn has(&self, place: &Place) -> bool;

    /// Whether a segment grows from commit to commit, so that it may still be written to.
    fn grows(&self) -> bool;

    /// Writes other bytes over these ranges of a finished segment, all or none of them.
    fn overwrite(
        &self,
        segment: &str,
        ranges: &[Range<u64>],
        bytes: &Filling<'_>,
    ) -> Result<(), ArchiveError>;

    /// Removes a finished segment.
    fn remove(&self, segment: &str) -> Result<(), ArchiveError>;

    /// All segments in the order of their names, each opened when it is its turn.
    fn segments(self: Arc<Self>) -> Result<Segments, ArchiveError>;
}

/// The bytes that a range gets.
pub(super) type Filling<'a> = dyn Fn(&Range<u64>) -> Result<Vec<u8>, ArchiveError> + 'a;

/// Segments one after another.
pub(super) type Segments = Box<dyn Iterator<Item = Result<Opened, ArchiveError>> + Send>;

/// A segment to be walked over.
#[derive(Debug)]
pub(super) struct Opened {
    /// Its name.
    pub(super) name: String,
    /// Its name with where it is.
    pub(super) path: PathBuf,
    /// What is in it.
    pub(super) source: Box<dyn Source>,
}

/// The bytes of a segment, which may still grow.
pub(super) trait Source: BufRead + Debug + Send {
    /// Steps over so many bytes, or back to where it has been just now.
    fn step(&mut self, bytes: i64) -> io::Result<()>;

    /// How long it is by now.
    fn length(&self) -> io::Result<u64>;

    /// Whether its end may be torn: it is still written to, or its writer died.
    fn is_open(&self) -> bool;
}

/// A segment that was read as a whole.
impl Source for Cursor<Bytes> {
    fn step(&mut self, bytes: i64) -> io::Result<()> {
        let at = self.position().checked_add_signed(bytes).ok_or(io::ErrorKind::InvalidInput)?;
        self.set_position(at);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.get_ref().len() as u64)
    }

    fn is_open(&self) -> bool {
        false
    }
}
