//! Why items could not be written or read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What went wrong with a place for items. Cloned for all who waited for the same flush.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SinkError {
    /// The disk, the quota or the allowed size of a file is used up; the file is as it was before.
    #[error("no space left for items in {path}: {source}; free some space, what waits is tried again", path = path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: Arc<io::Error>,
    },
    /// The reader of a pipe is gone.
    #[error("nobody reads {path} any more; the items were not written", path = path.display())]
    Hung {
        /// The pipe.
        path: PathBuf,
    },
    /// Nobody took the items in by the time that this process had to end.
    #[error("the items were not taken in before this process had to end; look after who reads them")]
    Unanswered,
    /// The system refused something else.
    #[error("could not {doing} {path}: {source}; check that it is there and may be written", path = path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: Arc<io::Error>,
    },
    /// A line isn't an item.
    #[error("{path}:{line}: not an item ({why}); mend or remove that line", path = path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, counted from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// An item that can't be spelled as JSON.
    #[error("the item of {url} can't be written as JSON: {why}")]
    Item {
        /// The item's page.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A site's name that can't name a file.
    #[error("`{0}` can't name a file of items; give the site another name")]
    Name(String),
    /// A writer's name that another process has.
    #[error(
        "a worker named `{writer}` writes items into {folder} already; choose another --name",
        folder = folder.display()
    )]
    Taken {
        /// The name.
        writer: String,
        /// The folder.
        folder: PathBuf,
    },
    /// An earlier flush failed, or the program is ending.
    #[error("it isn't known which items are on the disk; look after the disk, then start again")]
    Broken,
}

impl SinkError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::Io { .. } | Self::Unanswered)
    }

    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, FileTooLarge, QuotaExceeded, StorageFull};
        let (path, kind, source) = (path.to_owned(), source.kind(), Arc::new(source));
        match kind {
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full { path, source },
            BrokenPipe => Self::Hung { path },
            _ => Self::Io { doing, path, source },
        }
    }
}
