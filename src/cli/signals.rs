//! Ctrl-C and SIGTERM: the first asks for a clean end, the second leaves at once. Either way the next run loses nothing.

use std::process;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::results::say;
use super::{Exit, Trouble};

/// A token that the first signal cancels; the second one ends the process.
pub(super) fn stop_on_signals() -> Result<CancellationToken, Trouble> {
    let stop = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let first = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if first.is_cancelled() {
                say("paced: left at once; what was in flight is fetched again at the next start");
                process::exit(Exit::Interrupted as i32);
            }
            warn!("stopping: what runs is finished; once more to leave at once");
            first.cancel();
        }
    });
    Ok(stop)
}
