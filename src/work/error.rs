//! Why a visit ends without a settlement.

use crate::archive::ArchiveError;
use crate::fetch::FetchError;
use crate::frontier::{FrontierError, FrontierErrorKind};
use crate::sink::SinkError;

/// Why a visit was left: its lease returns by itself, nothing is lost.
#[derive(Debug, thiserror::Error)]
pub enum VisitError {
    /// The frontier could not be asked.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    /// The page could not be kept or read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Items could not be read or written.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// This process lacks what the site's file asks for.
    #[error("{0}")]
    Lacking(FetchError),
    /// This process ends before it begins with this.
    #[error("this process ends")]
    Leaving,
    /// The parse of a page panicked.
    #[error("the parse of a page broke: {0}")]
    Parse(String),
}

impl VisitError {
    /// Whether only this process can't bring the task to its end, whatever the task.
    pub(super) fn is_our_own(&self) -> bool {
        match self {
            Self::Frontier(error) => error.is_transient() || error.unreadable().is_some(),
            Self::Archive(error) => error.is_of_the_store() || self.is_final(),
            Self::Sink(error) => error.is_transient() || self.is_final(),
            Self::Lacking(_) | Self::Leaving => true,
            Self::Parse(_) => false,
        }
    }

    /// What this process lacks to work on the site of the task.
    pub(super) fn lacks_for(&self, site: &str) -> Option<String> {
        match self {
            Self::Lacking(error) => Some(error.reason()),
            Self::Frontier(error) if error.unreadable() == Some(site) => Some(error.to_string()),
            _ => None,
        }
    }

    /// Whether the frontier has no memory for what the task brings: it is tried again.
    pub(super) fn is_for_memory(&self) -> bool {
        matches!(self, Self::Frontier(error) if error.kind == FrontierErrorKind::MemoryFull)
    }

    /// Whether no further task can be brought to its end: there is no place for items or pages any more.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Sink(SinkError::Hung { .. } | SinkError::Broken) | Self::Archive(ArchiveError::Closed)
        )
    }
}
