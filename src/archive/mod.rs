//! The page store: every request sent and what came of it, in WARC 1.1 segments in a local folder or a bucket. What is
//! on a page is found elsewhere.

#[cfg(feature = "s3")]
mod bucket;
mod erase;
mod error;
mod folder;
mod location;
mod member;
mod names;
mod place;
mod recover;
mod scan;
mod segment;
mod store;
mod stored;
mod visit;
mod warc;
mod writer;

pub use erase::Erased;
pub use error::ArchiveError;
pub use folder::{COMMIT_PAGES, COMMIT_WAIT};
pub use location::{Location, LocationError};
pub use names::writer_name;
pub use place::{PlaceError, RecordPlace};
pub use scan::{Filter, Record, Records};
pub use stored::StoredResponse;
pub use visit::{SentRequest, Visit, VisitOutcome};

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::sync::oneshot;

use crate::batch::Sender;
use crate::clock::{Clock, Timestamp};
use crate::owner_only;
use folder::{Folder, FolderLog};
use names::SegmentNames;
use store::{Log, Store};
use visit::Encoded;
use writer::{Keep, Order};

/// A segment that has grown over this many bytes is closed, and the next one begun.
pub const SEGMENT_BYTES: u64 = 1 << 30;

/// A body of so many bytes is packed in less than half a millisecond.
const SMALL: usize = 64 * 1024;

/// A place of pages: what this process keeps, and everything that was kept before.
///
/// Cheap to clone; all clones share their commits. Several processes may use one place, each with segments of its own,
/// and any of them reads what another has kept.
#[derive(Clone, Debug)]
pub struct Archive(Arc<ArchiveParts>);

#[derive(Debug)]
struct ArchiveParts {
    store: Arc<dyn Store>,
    orders: Sender<Order>,
    commits: Arc<AtomicU64>,
}

impl Archive {
    /// Opens the place that `--pages` names: a folder as [`Archive::open`] does, or a bucket, which is asked once
    /// whether it is there and lets us in.
    pub async fn open_at(location: &Location, writer: &str, clock: Clock) -> Result<Self, ArchiveError> {
        let (location, writer) = (location.clone(), writer.to_owned());
        let opened = tokio::task::spawn_blocking(move || match &location {
            Location::Folder(dir) => Self::open(dir, &writer, clock),
            Location::Bucket { .. } => Self::open_bucket(&location, &writer, clock),
        });
        opened.await.map_err(|_| ArchiveError::Closed)?
    }

    /// Opens a folder, making it where it is missing. Cuts the torn tails that killed processes left, and removes their
    /// unfinished copies.
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
        owner_only::make_with_data_folder(dir).map_err(|e| ArchiveError::io("make the folder", dir, e))?;
        recover::torn_tails(dir)?;
        recover::leftovers(dir)?;
        let log = FolderLog::new(dir, SegmentNames::new(writer, clock), segment_bytes);
        Self::start(Arc::new(Folder::new(dir)), Box::new(log))
            .map_err(|e| ArchiveError::io("start the writer of", dir, e))
    }

    #[cfg(feature = "s3")]
    fn open_bucket(location: &Location, writer: &str, clock: Clock) -> Result<Self, ArchiveError> {
        let bucket = Arc::new(bucket::Bucket::open(location)?);
        let log = bucket::BucketLog::new(Arc::clone(&bucket), SegmentNames::new(writer, clock));
        Self::start(bucket, Box::new(log))
            .map_err(|e| ArchiveError::bucket("start the writer of", location, e))
    }

    #[cfg(not(feature = "s3"))]
    fn open_bucket(location: &Location, _writer: &str, _clock: Clock) -> Result<Self, ArchiveError> {
        Err(not_built(location))
    }

    fn start(store: Arc<dyn Store>, log: Box<dyn Log>) -> std::io::Result<Self> {
        let commits = Arc::new(AtomicU64::new(0));
        let orders = writer::start(log, Arc::clone(&commits))?;
        Ok(Self(Arc::new(ArchiveParts { store, orders, commits })))
    }

    /// Keeps a visit and returns, once it is durable, where its body is: the response just kept, or for a 304 the
    /// body it confirms. A failed visit's place is that of the record that tells the error.
    ///
    /// Many callers share one commit. Dropping the future doesn't take the visit back.
    pub async fn keep(&self, visit: Visit) -> Result<RecordPlace, ArchiveError> {
        let encoded = self.encode(visit).await?;
        let (reply, kept) = oneshot::channel();
        self.0
            .orders
            .send(Order::Keep(Keep { encoded, since: Instant::now(), reply }))
            .map_err(|_| ArchiveError::Closed)?;
        kept.await.map_err(|_| ArchiveError::Closed)?
    }

    /// A small page is spelled out here: to hand it to another thread would cost about as much.
    async fn encode(&self, visit: Visit) -> Result<Encoded, ArchiveError> {
        let store = Arc::clone(&self.0.store);
        match &visit.outcome {
            VisitOutcome::Response(page) if page.body.len() <= SMALL => Ok(visit::encode(&visit, &*store)),
            _ => tokio::task::spawn_blocking(move || visit::encode(&visit, &*store))
                .await
                .map_err(|_| ArchiveError::Closed),
        }
    }

    /// Reads a stored answer back, in one read; blocks for that long.
    ///
    /// It works on segments that still grow, of this process or another.
    pub fn read(&self, place: &RecordPlace) -> Result<StoredResponse, ArchiveError> {
        stored::read(&*self.0.store, place)
    }

    /// Whether the bytes of that place are there, without a look into them; no, where that can't be told just now.
    pub async fn has(&self, place: &RecordPlace) -> bool {
        let (store, place) = (Arc::clone(&self.0.store), place.clone());
        tokio::task::spawn_blocking(move || store.has(&place)).await.unwrap_or(false)
    }

    /// Erases requests that are gone, each with its answer and body. Other records stay where they are; segments that are still
    /// written to stay as they are, and what is gone of them is counted.
    pub async fn erase(
        &self,
        is_gone: impl Fn(&Record) -> bool + Send + 'static,
        now: Timestamp,
    ) -> Result<Erased, ArchiveError> {
        let store = Arc::clone(&self.0.store);
        let erased = tokio::task::spawn_blocking(move || erase::erase(&store, &is_gone, now));
        erased.await.map_err(|_| ArchiveError::Closed)?
    }

    /// Finishes what is being kept and closes the segment. Whatever is asked to be kept later is refused.
    pub async fn close(&self) -> Result<(), ArchiveError> {
        let (reply, closed) = oneshot::channel();
        if self.0.orders.send(Order::Close(reply)).is_err() {
            return Ok(());
        }
        closed.await.unwrap_or(Ok(()))
    }

    /// How often visits were made durable so far: the number of `fdatasync` calls that kept pages, or of objects.
    pub fn commits(&self) -> u64 {
        self.0.commits.load(Ordering::Relaxed)
    }
}

/// Every request kept at a place that `filter` takes, segment by segment, each in the order of writing.
///
/// A segment that still grows is read as far as it is whole. A damaged one gives one error, and the walk goes on with
/// the next. A folder that is missing holds nothing. The walk blocks while it reads.
pub fn scan(location: impl Into<Location>, filter: Filter) -> Result<Records, ArchiveError> {
    match location.into() {
        Location::Folder(dir) => scan::records(Arc::new(Folder::new(&dir)), filter),
        #[cfg(feature = "s3")]
        location @ Location::Bucket { .. } => {
            scan::records(Arc::new(bucket::Bucket::open(&location)?), filter)
        }
        #[cfg(not(feature = "s3"))]
        location @ Location::Bucket { .. } => Err(not_built(&location)),
    }
}

/// A location that was spelled out in a program, past what `--pages` takes.
#[cfg(not(feature = "s3"))]
fn not_built(location: &Location) -> ArchiveError {
    ArchiveError::bucket("open", location, LocationError::NotBuilt(location.to_string()))
}
