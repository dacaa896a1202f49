//! Redis I/O has its own thread, so that a busy caller cannot delay it.

use std::future::Future;
use std::sync::{OnceLock, mpsc};
use std::{io, thread};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread that starts with its first work, and ends when its owner is gone.
#[derive(Debug, Default)]
pub(super) struct IoThread(OnceLock<Option<IoRuntime>>);

#[derive(Debug)]
struct IoRuntime {
    runtime: Handle,
    /// The thread ends when this is dropped.
    _owner: oneshot::Sender<()>,
}

impl IoThread {
    /// Runs work there. Without a thread the work is dropped, and whoever waits for it is told that the frontier is closed.
    pub(super) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let started =
            || start().inspect_err(|error| tracing::error!(%error, "the frontier's thread can't run"));
        if let Some(running) = self.0.get_or_init(|| started().ok()) {
            running.runtime.spawn(work);
        }
    }
}

fn start() -> io::Result<IoRuntime> {
    let (owner, gone) = oneshot::channel();
    let (made, handle) = mpsc::channel();
    // The runtime is made and dropped in its thread: another runtime, from which it is asked for, bears no drop of one.
    thread::Builder::new().name("frontier".to_owned()).spawn(move || {
        // Whoever asked for it waits for what is sent.
        match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                let _ = made.send(Ok(runtime.handle().clone()));
                let _ = runtime.block_on(gone);
            }
            Err(error) => drop(made.send(Err(error))),
        }
    })?;
    Ok(IoRuntime { runtime: handle.recv().map_err(io::Error::other)??, _owner: owner })
}
