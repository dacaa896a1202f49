//! Redis I/O has its own thread, so that a busy caller cannot delay it.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::thread;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A thread that starts with its first work, and ends when its owner is gone and its work is done.
#[derive(Debug, Default)]
pub(super) struct IoThread(OnceLock<UnboundedSender<Work>>);

impl IoThread {
    /// Runs work there.
    pub(super) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let sender = self.0.get_or_init(|| {
            let (sender, inbox) = unbounded_channel();
            let started = thread::Builder::new().name("frontier".to_owned()).spawn(move || drive(inbox));
            if let Err(error) = started {
                tracing::error!(%error, "no thread can be started for the frontier");
            }
            sender
        });
        // Without a thread the work is dropped, and whoever waits for it is told that the frontier is closed.
        let _ = sender.send(Box::pin(work));
    }
}

fn drive(mut inbox: UnboundedReceiver<Work>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the frontier's thread can't run");
            return;
        }
    };
    runtime.block_on(async move {
        let mut working = JoinSet::new();
        while let Some(work) = inbox.recv().await {
            working.spawn(work);
        }
        // Senders hold their owner: none is left.
        working.abort_all();
    });
}
