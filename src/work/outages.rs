//! What this process may have to wait for, through no fault of any site: its frontier, the place for pages, the one for items.

use std::error::Error;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::archive::ArchiveError;
use crate::frontier::{FrontierError, FrontierErrorKind};
use crate::patience::{Notice, Outage, Patience, Terms};
use crate::quantity::spoken;
use crate::sink::SinkError;

/// The pauses between two tries: the shortest of them costs a visit no more than a site's answer does.
const PATIENCE: Patience = Patience::new(Duration::from_millis(50), Duration::from_secs(5));
/// How long what can't be ended is tried again once this process is to leave.
const LAST_TRIES: Duration = Duration::from_secs(10);

/// How it goes with each.
#[derive(Debug)]
pub(crate) struct Outages {
    pub(super) frontier: Outage<FrontierError>,
    /// Whether the frontier's server has no memory for what pages bring. Nobody waits: a parse whose links are refused goes
    /// back, and no page is asked for until links are taken in again.
    pub(super) memory: Notice<FrontierError>,
    pub(super) pages: Outage<ArchiveError>,
    pub(super) items: Outage<SinkError>,
}

impl Outages {
    /// Nothing is away yet. Once `leaving`, nobody waits for long.
    pub(super) fn new(leaving: &CancellationToken) -> Self {
        Self {
            frontier: outage(frontier_away(), FrontierError::is_transient, leaving, Some(no_answer)),
            memory: memory_full(),
            pages: outage(not_kept("pages"), ArchiveError::is_of_the_store, leaving, None),
            items: outage(
                not_kept("items"),
                SinkError::is_transient,
                leaving,
                Some(|| SinkError::Unanswered),
            ),
        }
    }

    /// Whether what is brought can't be kept for now: nothing more is to be claimed.
    pub(super) fn is_keeping_held_up(&self) -> bool {
        self.pages.is_waited_for() || self.items.is_waited_for()
    }

    /// Whether this process can't go on for now.
    pub(crate) fn is_any_on(&self) -> bool {
        self.frontier.is_on() || self.memory.is_on() || self.is_keeping_held_up()
    }
}

fn outage<E>(
    notice: Notice<E>,
    passes: fn(&E) -> bool,
    leaving: &CancellationToken,
    unanswered: Option<fn() -> E>,
) -> Outage<E> {
    let terms = Terms { passes, unanswered, patience: PATIENCE, last_tries: LAST_TRIES };
    Outage::new(notice, terms, leaving.clone())
}

/// A frontier on a server that is away may leave a step without any answer.
fn no_answer() -> FrontierError {
    FrontierError::new(FrontierErrorKind::Away, "frontier")
        .because("no answer before this process had to end")
}

fn frontier_away() -> Notice<FrontierError> {
    let begins = |error: &FrontierError| {
        if error.kind == FrontierErrorKind::Full {
            warn!("nothing more can be asked for, as the frontier can't take it in: {error}");
        } else {
            warn!(%error, "the frontier does not answer; what runs goes on, and it is tried again");
        }
    };
    Notice::new(begins, |_| info!("the frontier answers again"))
}

fn memory_full() -> Notice<FrontierError> {
    Notice::new(
        |error| warn!("no pages are asked for until their links are taken in: {error}"),
        |after| info!("links are taken in again, after {}; it goes on", spoken(after)),
    )
}

fn not_kept<E: Error>(what: &'static str) -> Notice<E> {
    Notice::new(
        move |error| warn!("{what} can't be kept, and nothing more is asked for until they can: {error}"),
        move |after| info!("{what} can be kept again, after {}; it goes on", spoken(after)),
    )
}
