//! Ctrl-C and SIGTERM: the first asks for a clean end, the second leaves at once. Either way the next run loses nothing.

use std::process;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::results::say;
use super::{Exit, Trouble};

/// A signal so soon after the first is the same one: a shell sends it to the group, `timeout` to the process as well.
const ECHO: Duration = Duration::from_millis(100);

/// A token that the first signal cancels; the second one ends the process.
pub(super) fn stop_on_signals() -> Result<CancellationToken, Trouble> {
    let stop = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let first = stop.clone();
    tokio::spawn(async move {
        let mut stopping: Option<Instant> = None;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if stopping.is_some_and(|since| since.elapsed() < ECHO) {
                continue;
            }
            if stopping.is_some() {
                say("paced: left at once; what was in flight is fetched again at the next start");
                process::exit(Exit::Interrupted as i32);
            }
            stopping = Some(Instant::now());
            warn!("stopping: what runs is finished; once more to leave at once");
            first.cancel();
        }
    });
    Ok(stop)
}
