//! Group commit: one thread takes what many callers keep and makes it durable together. What is written was spelled out
//! before it comes here.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Instant;

use tokio::sync::oneshot;

use super::store::{Gathered, Log};
use super::visit::Encoded;
use super::{ArchiveError, Place};

/// What the writer is asked to do.
pub(super) enum Order {
    /// Keep a visit.
    Keep(Keep),
    /// Finish, and say how it went.
    Close(oneshot::Sender<Result<(), ArchiveError>>),
}

/// A visit that waits to be durable.
pub(super) struct Keep {
    pub(super) encoded: Encoded,
    /// Since when it waits.
    pub(super) since: Instant,
    pub(super) reply: oneshot::Sender<Result<Place, ArchiveError>>,
}

/// Starts the writer; it ends when it is told to, or when nobody can ask it any more.
pub(super) fn start(log: Box<dyn Log>, commits: Arc<AtomicU64>) -> io::Result<Sender<Order>> {
    let (orders, inbox) = mpsc::channel();
    let writer = Writer { inbox, log, commits };
    thread::Builder::new().name("archive".to_owned()).spawn(move || writer.run())?;
    Ok(orders)
}

struct Writer {
    inbox: Receiver<Order>,
    log: Box<dyn Log>,
    commits: Arc<AtomicU64>,
}

impl Writer {
    fn run(mut self) {
        let asked = loop {
            match self.inbox.recv() {
                Ok(Order::Keep(first)) => {
                    let (batch, close) = self.gather(first);
                    self.commit(batch);
                    if close.is_some() {
                        break close;
                    }
                }
                Ok(Order::Close(reply)) => break Some(reply),
                Err(_) => break None,
            }
        };
        let closed = self.log.close();
        if let Some(reply) = asked {
            let _ = reply.send(closed);
        }
    }

    /// Waits for company until the next commit is due.
    fn gather(&self, first: Keep) -> (Vec<Keep>, Option<oneshot::Sender<Result<(), ArchiveError>>>) {
        let (bytes, since) = (first.encoded.bytes.len(), first.since);
        let mut gathered = Gathered { pages: 1, bytes, first: since, last: since };
        let mut batch = vec![first];
        while let Some(due) = self.log.due(&gathered) {
            match self.inbox.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Order::Keep(keep)) => {
                    gathered.pages += 1;
                    gathered.bytes += keep.encoded.bytes.len();
                    gathered.last = keep.since;
                    batch.push(keep);
                }
                Ok(Order::Close(reply)) => return (batch, Some(reply)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        (batch, None)
    }

    fn commit(&mut self, batch: Vec<Keep>) {
        let parts: Vec<&[u8]> = batch.iter().map(|keep| keep.encoded.bytes.as_slice()).collect();
        match self.log.append(&parts) {
            Ok((segment, start)) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
                answer(batch, &segment, start);
            }
            Err(error) => batch.into_iter().for_each(|keep| {
                let _ = keep.reply.send(Err(error.clone()));
            }),
        }
    }
}

/// Tells every caller where its visit is. One that no longer listens has lost nothing.
fn answer(batch: Vec<Keep>, segment: &str, start: u64) {
    let mut at = start;
    for Keep { encoded, reply, .. } in batch {
        let named = Place::new(segment, at + encoded.named.start as u64, encoded.named.len() as u64);
        at += encoded.bytes.len() as u64;
        let _ = reply.send(Ok(encoded.stored.unwrap_or(named)));
    }
}
