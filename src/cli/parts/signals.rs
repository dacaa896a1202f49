//! Ctrl-C and SIGTERM: the first asks for a clean end, the second leaves at once. Either way the next run loses nothing.
//! SIGHUP asks a worker to read its site files again.

use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{Exit, Trouble, say};

/// A signal so soon after the first is the same one: a shell sends it to the group, `timeout` to the process as well.
const ECHO: Duration = Duration::from_millis(100);

/// What the first signal asks for.
#[derive(Debug)]
pub(in crate::cli) struct Stop {
    /// Cancelled by it.
    pub token: CancellationToken,
    /// Cancelled by it if it came from a person's terminal, not from a supervisor.
    pub interrupted: CancellationToken,
}

/// What the first signal asks for; the second one ends the process.
pub(in crate::cli) fn await_signals() -> Result<Stop, Trouble> {
    let stop = Stop { token: CancellationToken::new(), interrupted: CancellationToken::new() };
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let (first, interrupted) = (stop.token.clone(), stop.interrupted.clone());
    tokio::spawn(async move {
        let mut stopping: Option<Instant> = None;
        loop {
            let is_interrupt = tokio::select! {
                _ = interrupt.recv() => true,
                _ = terminate.recv() => false,
            };
            if stopping.is_some_and(|since| since.elapsed() < ECHO) {
                continue;
            }
            if stopping.is_some() {
                say("paced: left at once; what was in flight is fetched again at the next start");
                process::exit(Exit::Interrupted as i32);
            }
            stopping = Some(Instant::now());
            if is_interrupt {
                interrupted.cancel();
            }
            warn!("stopping: what runs is finished; once more to leave at once");
            first.cancel();
        }
    });
    Ok(stop)
}

/// Told at each SIGHUP.
pub(in crate::cli) fn reload_on_hangup() -> Result<Arc<Notify>, Trouble> {
    let mut hangup = signal(SignalKind::hangup())?;
    let reload = Arc::new(Notify::new());
    let told = Arc::clone(&reload);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            told.notify_one();
        }
    });
    Ok(reload)
}
