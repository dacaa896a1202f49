//! Why a run, or a look at pages, could not begin or ended early.

use std::io;
use std::path::PathBuf;

use crate::budget::Spent;
use crate::fetch::FetcherError;
use crate::work::VisitError;

/// Why a crawl, a worker, a trial or a reparse could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The frontier, the archive or the sink failed, or a parse did. What is left goes on at the next start.
    #[error(transparent)]
    Visit(VisitError),
    /// The page that was looked at costs more than its site's file allows.
    #[error("{0}; mend the rule or raise `parse_budget`")]
    TooDear(#[from] Spent),
    /// The fetcher could not be made.
    #[error(transparent)]
    Fetcher(#[from] FetcherError),
    /// There are no threads to parse pages on.
    #[error("can't start threads that parse pages: {0}; is the limit of processes reached (ulimit -u)?")]
    Threads(#[source] io::Error),
    /// A site could not be registered, or may not be worked on now.
    #[error("{0}")]
    Refused(String),
    /// There is no lane of the name that a worker is to serve.
    #[error("{0}")]
    NoLane(String),
    /// The folder of site files can't be read.
    #[error("--sites {path}: {source}; name a folder of site files", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// What ends a visit ends a run.
impl<E> From<E> for RunError
where
    VisitError: From<E>,
{
    fn from(error: E) -> Self {
        Self::Visit(VisitError::from(error))
    }
}
