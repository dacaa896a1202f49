//! What an operator is told of a crawl or a worker: beside it while it goes on, and as it ends.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::error::RunError;
use super::parts::RunParts;
use crate::clock;
use crate::frontier::Frontier;
use crate::notify::{EventPoster, Notifier, tell_all};
use crate::settings::DEAD_SHARE;
use crate::task::{Event, EventKind};

/// How long a frontier that is away is waited for at the end.
const POSTED_WITHIN: Duration = Duration::from_secs(3);
/// How long the last events are told at the end: a program that hangs is waited for; and where somebody asked to stop.
const TOLD_WITHIN: Duration = Duration::from_secs(40);
const TOLD_SOON: Duration = Duration::from_secs(5);

/// The telling of a process.
pub(super) struct Telling {
    /// Leaves events for whoever tells them.
    pub(super) events: EventPoster,
    /// How many of a run's ended pages may be dead, of [`SHARE_PARTS`](crate::settings::SHARE_PARTS).
    pub(super) dead_share: u64,
    /// Tells them, where this machine has a `[notify]`, and is told that the end is near.
    teller: Option<(AbortOnDropHandle<()>, CancellationToken)>,
}

impl Telling {
    /// Begins to tell.
    pub(super) fn begin(frontier: &Frontier, equipment: &RunParts) -> Result<Self, RunError> {
        let (events, notify) = (EventPoster::new(frontier), equipment.settings.notify.as_ref());
        let dead_share = notify.map_or(DEAD_SHARE, |notify| notify.dead_share);
        let Some(notify) = notify else { return Ok(Self { events, dead_share, teller: None }) };
        let notifier = Notifier::new(notify.to.clone(), equipment.cacert.as_deref())?;
        let closing = CancellationToken::new();
        let telling = tell_all(frontier.clone(), notifier, notify.on.clone(), closing.clone());
        let teller = Some((AbortOnDropHandle::new(tokio::spawn(telling)), closing));
        Ok(Self { events, dead_share, teller })
    }

    /// Tells what came of it and what else is due. Where somebody `asked` to stop, what can't be told soon is left to others; who
    /// asks for it meanwhile ends the telling, and with it a program that hangs.
    pub(super) async fn end(self, failures: Vec<Event>, asked: bool, stop: &CancellationToken) {
        for event in failures {
            self.events.post(event);
        }
        self.events.until_posted(POSTED_WITHIN).await;
        if let Some((teller, closing)) = self.teller {
            closing.cancel();
            if asked {
                clock::within(TOLD_SOON, teller).await;
            } else {
                stop.run_until_cancelled(clock::within(TOLD_WITHIN, teller)).await;
            }
        }
    }
}

/// A run that can't go on; it is that of the one site, or of several.
pub(super) fn failure(sites: &[String], why: impl Into<String>) -> Event {
    let site = if let [site] = sites { site.as_str() } else { "" };
    Event::new(EventKind::RunFailed, site, why)
}
