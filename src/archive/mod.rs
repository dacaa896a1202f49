//! The page store: every request sent and what came of it, in WARC 1.1 segments on a local folder. What is on a page
//! is found elsewhere.

mod audit;
mod error;
mod member;
mod place;
mod recover;
mod scan;
mod segment;
mod stored;
mod visit;
mod warc;
mod writer;

pub use audit::{Audit, EarlyStart, Gaps, UnitReport};
pub use error::ArchiveError;
pub use place::{Place, PlaceError};
pub use scan::{Filter, Record, Scan, scan};
pub use segment::writer_name;
pub use stored::StoredResponse;
pub use visit::{SentRequest, Visit, VisitOutcome};
pub use writer::{COMMIT_PAGES, COMMIT_WAIT};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use tokio::sync::oneshot;

use crate::clock::Clock;
use writer::{Keep, Order};

/// A segment that has grown over this many bytes is closed, and the next one begun.
pub const SEGMENT_BYTES: u64 = 1 << 30;

/// A folder of pages: one growing segment for this process, and everything that was kept before.
///
/// Cheap to clone; all clones write to the same segment. Several processes may use one folder, each with a segment of
/// its own, and any of them reads what another has kept.
#[derive(Clone, Debug)]
pub struct Archive(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    orders: Sender<Order>,
    commits: Arc<AtomicU64>,
}

impl Archive {
    /// Opens the folder, making it where it is missing, and cuts the torn tails that killed processes left.
    ///
    /// `writer` goes into the names of the segments (see [`writer_name`]); what isn't a letter, a digit, `.`, `_` or
    /// `-` is replaced. The first segment is made with the first page that is kept.
    pub fn open(dir: &Path, writer: &str, clock: Clock) -> Result<Self, ArchiveError> {
        Self::open_sized(dir, writer, clock, SEGMENT_BYTES)
    }

    /// As [`Archive::open`], with segments of about `segment_bytes`.
    pub fn open_sized(
        dir: &Path,
        writer: &str,
        clock: Clock,
        segment_bytes: u64,
    ) -> Result<Self, ArchiveError> {
        std::fs::create_dir_all(dir).map_err(|e| ArchiveError::io("make the folder", dir, e))?;
        recover::torn_tails(dir)?;
        let commits = Arc::new(AtomicU64::new(0));
        let series = segment::Series::new(dir, writer, clock);
        let orders = writer::start(series, segment_bytes, Arc::clone(&commits))
            .map_err(|e| ArchiveError::io("start the writer of", dir, e))?;
        Ok(Self(Arc::new(Inner { dir: dir.to_owned(), orders, commits })))
    }

    /// Keeps a visit and returns, once it is on the disk, where its body is: the response just kept, or for a 304 the
    /// body it confirms. A failed visit's place is that of the record that tells the error.
    ///
    /// Many callers share one commit. Dropping the future doesn't take the visit back.
    pub async fn keep(&self, visit: Visit) -> Result<Place, ArchiveError> {
        let dir = self.0.dir.clone();
        let encoded = tokio::task::spawn_blocking(move || visit::encode(&visit, &dir))
            .await
            .map_err(|_| ArchiveError::Closed)?;
        let (reply, kept) = oneshot::channel();
        self.0.orders.send(Order::Keep(Keep { encoded, reply })).map_err(|_| ArchiveError::Closed)?;
        kept.await.map_err(|_| ArchiveError::Closed)?
    }

    /// Reads a stored answer back, in one positioned read; blocks for that long.
    ///
    /// It works on segments that still grow, of this process or another.
    pub fn read(&self, place: &Place) -> Result<StoredResponse, ArchiveError> {
        stored::read(&self.0.dir, place)
    }

    /// Whether the bytes of that place are there; looks at the file's length, not into it.
    pub fn has(&self, place: &Place) -> bool {
        std::fs::metadata(self.0.dir.join(place.segment())).is_ok_and(|file| file.len() >= place.end())
    }

    /// Finishes what is being kept and closes the segment. Whatever is asked to be kept later is refused.
    pub async fn close(&self) -> Result<(), ArchiveError> {
        let (reply, closed) = oneshot::channel();
        if self.0.orders.send(Order::Close(reply)).is_err() {
            return Ok(());
        }
        closed.await.unwrap_or(Ok(()))
    }

    /// How often visits were made durable so far: the number of `fdatasync` calls that kept pages.
    pub fn commits(&self) -> u64 {
        self.0.commits.load(Ordering::Relaxed)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.0.dir
    }
}
