//! The feeder: asks for pages again whose `recrawl` is over (V13). What is due, and how much a queue takes, the frontier knows.

use std::time::Duration;

use tracing::{debug, warn};

use crate::frontier::Frontier;

/// Pages asked for in one step: few, as a start that comes up meanwhile waits for the step.
const PORTION: u32 = 100;
/// The shortest and the longest time between two looks.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// Feeds until it is dropped. Any number of processes may: a page that one has put, the others find put.
pub(super) async fn feed(frontier: Frontier) {
    loop {
        let next_in = match frontier.feed(PORTION).await {
            Ok(fed) => {
                if fed.put > 0 {
                    debug!(pages = fed.put, "asked for again");
                }
                fed.next_in
            }
            Err(error) if error.is_transient() => None,
            Err(error) => {
                warn!(%error, "pages can't be asked for again; this process tries no more");
                return;
            }
        };
        let wait = next_in.map_or(LONGEST, |ms| Duration::from_millis(ms.unsigned_abs()));
        tokio::time::sleep(wait.clamp(SHORTEST, LONGEST)).await;
    }
}
