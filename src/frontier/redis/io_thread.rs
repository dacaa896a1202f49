//! Redis I/O has its own thread, so that a busy caller cannot delay it.

use std::future::Future;
use std::sync::OnceLock;
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
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (owner, gone) = oneshot::channel();
    let running = IoRuntime { runtime: runtime.handle().clone(), _owner: owner };
    thread::Builder::new().name("frontier".to_owned()).spawn(move || runtime.block_on(gone))?;
    Ok(running)
}
