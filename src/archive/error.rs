//! Why a page could not be kept or read.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Location, RecordPlace};

/// What went wrong in the page store. Cloned for every page of a commit that failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The disk, the quota or the allowed size of a file is used up. Nothing of the commit was kept; the next one is
    /// tried again.
    #[error("no space left to keep pages in {path}: {source}; free some space, what waits is tried again", path = path.display())]
    Full {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: Arc<io::Error>,
    },
    /// The system refused something else.
    #[error("could not {doing} {path}: {source}; check that the folder is there and may be written", path = path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: Arc<io::Error>,
    },
    /// A bucket could not do its part; passing trouble was waited out for a while.
    #[error("could not {doing} {location}: {why}")]
    Bucket {
        /// What was tried.
        doing: &'static str,
        /// The bucket.
        location: String,
        /// The reason, and what to do.
        why: String,
        /// Whether it may pass.
        passing: bool,
    },
    /// There is nothing at that place any more.
    #[error(
        "no page is kept at {place}: it was erased, or its segment was removed or cut; fetch the page again"
    )]
    Missing {
        /// The place.
        place: RecordPlace,
    },
    /// There is something at that place, but no whole answer of a site.
    #[error("what is kept in {segment} at {offset} is not a whole answer ({why}); fetch the page again")]
    Damaged {
        /// The segment's file name.
        segment: String,
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The store was closed before.
    #[error("the page store is closed; the page was not kept")]
    Closed,
}

impl ArchiveError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Io { .. } | Self::Bucket { passing: true, .. })
    }

    /// Whether the store is in trouble, and no page can be kept or read for now, as opposed to one page.
    pub fn is_of_the_store(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Io { .. } | Self::Bucket { .. })
    }

    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let (path, full) = (path.to_owned(), is_full(&source));
        let source = Arc::new(source);
        if full { Self::Full { path, source } } else { Self::Io { doing, path, source } }
    }

    pub(super) fn bucket(doing: &'static str, location: &Location, why: impl Display) -> Self {
        let (location, why) = (location.to_string(), why.to_string());
        Self::Bucket { doing, location, why, passing: false }
    }

    pub(super) fn damaged(segment: &str, offset: u64, why: impl Into<String>) -> Self {
        Self::Damaged { segment: segment.to_owned(), offset, why: why.into() }
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
