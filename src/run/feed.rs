//! Re-crawls: pages whose `recrawl` is over are put into their sites' queues. Each process that downloads feeds; what one has
//! put, the others find done.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::clock;
use crate::frontier::{Frontier, FrontierError};

/// Pages put in one step: few, as a start that comes up meanwhile waits for it.
const PORTION: u32 = 100;
/// The shortest and the longest time between two steps: a page may get a shorter `recrawl`, or a site room, at any time.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3);

/// Feeds until it is stopped.
pub(super) async fn feed(frontier: Frontier, stop: CancellationToken) {
    let mut warned = false;
    while !stop.is_cancelled() {
        let pause = match put_due(&frontier).await {
            Ok(pause) => pause,
            // The pool says so, once.
            Err(error) if error.is_transient() => LONGEST,
            Err(error) => {
                if !std::mem::replace(&mut warned, true) {
                    warn!(%error, "pages can't be put for their next crawl");
                }
                LONGEST
            }
        };
        stop.run_until_cancelled(clock::wait(pause)).await;
    }
}

/// Puts a portion of what is due; when to look again.
async fn put_due(frontier: &Frontier) -> Result<Duration, FrontierError> {
    let feeding = frontier.feed(PORTION).await?;
    if feeding.put > 0 {
        debug!(pages = feeding.put, "put for their next crawl");
    }
    let next = feeding.next_in.map_or(LONGEST, |ms| Duration::from_millis(ms.unsigned_abs()));
    Ok(next.clamp(SHORTEST, LONGEST))
}
