//! What can go wrong with a frontier as a whole. What a step refuses is part of its answer, not of this.

use std::fmt;
use std::path::PathBuf;

/// A frontier that could not do a step.
#[derive(Clone, Debug)]
pub struct FrontierError {
    /// What kind of trouble it is.
    pub kind: FrontierErrorKind,
    /// Which frontier.
    pub at: String,
    /// What the store itself said.
    pub cause: Option<String>,
}

/// What kind of trouble it is, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrontierErrorKind {
    /// The URL names no frontier that can be opened.
    #[error("{0}")]
    BadUrl(String),
    /// There is none where one must be.
    #[error("there is no frontier; name another, or begin one with `paced crawl FILE.toml`")]
    Missing,
    /// The folder can't be made or written.
    #[error("{}: the data folder can't be used; choose another with --data, or mend its permissions", .0.display())]
    Folder(PathBuf),
    /// The file belongs to another program.
    #[error("this is not a frontier of paced; name another with --frontier or --data")]
    Foreign,
    /// The file was written by an older version, whose schema this is.
    #[error(
        "written by an older paced (schema {0}), which this one can't go on with; end its crawl with that version, or move the \
             file away and crawl anew (pages and items stay), or choose another data folder"
    )]
    Older(i64),
    /// A process of an older version, whose schema this is, works on the file.
    #[error(
        "a process of an older paced (schema {0}) works on it; end that one first (it goes on where it was with this version), or \
             use that version"
    )]
    OlderInUse(i64),
    /// The file was written by a newer version, whose schema this is.
    #[error("written by a newer paced (schema {0}); use that version, or another data folder")]
    Newer(i64),
    /// Its server can't be reached, or isn't ready.
    #[error("the frontier's server can't be reached; start it, or name another with --frontier")]
    Away,
    /// Its server wants another user or password.
    #[error("the server wants another user or password; write redis://user:password@host:port/db")]
    Password,
    /// Its server would not keep it as it must be kept.
    #[error("this server can't keep a frontier: {0}")]
    Unfit(String),
    /// Its server is a replica: nothing can be written there.
    #[error("this server is a read-only replica; name the one that it copies")]
    ReadOnly,
    /// Its server's memory is full: nothing more is taken in.
    #[error(
        "the server's memory is full, nothing more is taken in; raise maxmemory, or let the queues shrink"
    )]
    MemoryFull,
    /// Other processes held it for too long.
    #[error("other processes keep it locked; try again once they are done")]
    Busy,
    /// There is no space left to write.
    #[error("no space left to write; free some space")]
    Full,
    /// A server keeps it.
    #[error("a server keeps it: back that one up, as docs/operating.md says under \"Back-up and moving\"")]
    OfServer,
    /// A copy would take the place of a file.
    #[error("there is such a file; name another one, or move it away")]
    Exists,
    /// There is no space left for a copy.
    #[error(
        "no space left for the copy, and nothing was kept of it; free some space, or name a file on another disk"
    )]
    NoRoomForCopy,
    /// A copy can't be made there.
    #[error("no copy can be made there; name a file in a folder that you may write into")]
    NoCopy,
    /// Its file is not whole any more.
    #[error("the file is damaged; bring back a copy, or move it away and crawl anew (pages and items stay)")]
    Damaged,
    /// It can't be read or written.
    #[error("it can't be read or written")]
    Broken,
    /// The process's own frontier thread is gone.
    #[error("it was closed")]
    Closed,
    /// There is no such site in it.
    #[error("there is no site `{0}` in it; register it with `paced seed FILE.toml`")]
    NoSite(String),
    /// The rules of this site can't be read: another version of the program registered them.
    #[error("the rules of site `{0}` can't be read; register them anew, or update this program")]
    Rules(String),
}

impl FrontierError {
    pub(crate) fn new(kind: FrontierErrorKind, at: impl Into<String>) -> Self {
        Self { kind, at: at.into(), cause: None }
    }

    /// A process of an older version stands against the upgrade.
    pub(crate) fn older_in_use(schema: i64, at: impl Into<String>, process: &str) -> Self {
        let why = format!("the process {process} works on it");
        Self::new(FrontierErrorKind::OlderInUse(schema), at).because(why)
    }

    pub(crate) fn no_site(site: &str) -> Self {
        Self::new(FrontierErrorKind::NoSite(site.to_owned()), "frontier")
    }

    /// The text registered for a site is none that this program can read.
    pub(crate) fn unreadable_rules(site: &str, why: impl fmt::Display) -> Self {
        Self::new(FrontierErrorKind::Rules(site.to_owned()), "frontier").because(why)
    }

    pub(crate) fn because(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// The site whose rules this program can't read.
    pub(crate) fn unreadable(&self) -> Option<&str> {
        match &self.kind {
            FrontierErrorKind::Rules(site) => Some(site),
            _ => None,
        }
    }

    /// Whether the same step may work a little later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.kind,
            FrontierErrorKind::Busy
                | FrontierErrorKind::Full
                | FrontierErrorKind::MemoryFull
                | FrontierErrorKind::Away
                | FrontierErrorKind::ReadOnly
        )
    }

    /// Whether its server may be back later, and know nothing of the step.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self.kind, FrontierErrorKind::Away | FrontierErrorKind::ReadOnly)
    }
}

impl fmt::Display for FrontierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            folder @ FrontierErrorKind::Folder(_) => write!(f, "{folder}"),
            kind => write!(f, "{}: {kind}", self.at),
        }?;
        match &self.cause {
            Some(cause) => write!(f, " ({cause})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for FrontierError {}
