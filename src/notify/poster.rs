//! Leaves events in the frontier. Nobody waits for it, and it keeps few.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tracing::debug;

use crate::clock;
use crate::frontier::Frontier;
use crate::patience::Patience;
use crate::task::Event;

/// Events of a process that may be on their way at once. One more is left out.
const ROOM: u32 = 100;
/// How long a frontier that is away is tried.
const PATIENCE: Patience =
    Patience::new(Duration::from_millis(100), Duration::from_secs(5)).at_most(Duration::from_mins(10));

/// Leaves events in a frontier. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EventPoster {
    frontier: Frontier,
    room: Arc<Semaphore>,
}

impl EventPoster {
    /// One of a process.
    pub fn new(frontier: &Frontier) -> Self {
        Self { frontier: frontier.clone(), room: Arc::new(Semaphore::new(ROOM as usize)) }
    }

    /// Leaves an event, beside whatever its caller does.
    pub(crate) fn post(&self, event: Event) {
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
            debug!(site = event.site, "an event is left out, as too many are on their way: {}", event.text);
            return;
        };
        let frontier = self.frontier.clone();
        tokio::spawn(async move {
            let _place = place;
            let mut tries = PATIENCE.begin();
            while let Err(error) = frontier.post_event(event.clone()).await {
                if !error.is_transient() || !tries.again().await {
                    debug!(site = event.site, %error, "an event could not be left in the frontier: {}", event.text);
                    return;
                }
            }
        });
    }

    /// Waits until all are there, for so long at the most.
    pub(crate) async fn until_posted(&self, within: Duration) {
        let _ = clock::within(within, self.room.acquire_many(ROOM)).await;
    }
}
