//! Words to the person on stderr, and how a verb ends: its exit code, and in one line what it could not do.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write};

use crate::frontier::{FrontierError, FrontierErrorKind};
use crate::plain_text::plain;
use crate::run::RunError;
use crate::sink::SinkError;
use crate::work::VisitError;

/// A line for the person at the terminal, which nothing in it steers; lost where stderr is closed.
pub(in crate::cli) fn say(text: impl Display) {
    let _ = writeln!(io::stderr(), "{}", plain(text));
}

/// How a verb ended, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Failed, or nothing could be crawled.
    Failed = 1,
    /// Wrong usage or an invalid file.
    Usage = 2,
    /// Ended early; what is left goes on at the next start.
    Early = 3,
    /// Drained: whoever restarts processes leaves this one alone.
    Drained = 75,
    /// Interrupted.
    Interrupted = 130,
}

/// What a verb could not do, in one line, and its exit code.
#[derive(Debug)]
pub struct Trouble {
    exit: Exit,
    what: String,
}

impl Trouble {
    /// Says it to the person at the terminal.
    pub(in crate::cli) fn tell(self) -> Exit {
        for line in self.what.lines() {
            say(format_args!("paced: {line}"));
        }
        self.exit
    }

    pub(in crate::cli) fn usage(what: impl Display) -> Self {
        Self { exit: Exit::Usage, what: what.to_string() }
    }

    pub(in crate::cli) fn failed(what: impl Display) -> Self {
        Self { exit: Exit::Failed, what: what.to_string() }
    }
}

impl<E: Error + 'static> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self { exit: exit_of(&error), what: error.to_string() }
    }
}

/// A frontier that can't be named so is the caller's mistake; items that nobody reads any more end a crawl early.
fn exit_of(error: &(dyn Error + 'static)) -> Exit {
    let of_run = error.downcast_ref::<RunError>();
    let frontier = match of_run {
        Some(RunError::Visit(VisitError::Sink(SinkError::Hung { .. }))) => return Exit::Early,
        Some(RunError::Folder { .. } | RunError::NoLane(_)) => return Exit::Usage,
        Some(RunError::Visit(VisitError::Frontier(error))) => Some(error),
        _ => error.downcast_ref::<FrontierError>(),
    };
    match frontier.map(|error| &error.kind) {
        Some(FrontierErrorKind::BadUrl(_)) => Exit::Usage,
        _ => Exit::Failed,
    }
}
