//! Group commit: one thread takes what many callers keep and makes it durable together. What is written was spelled out
//! before it comes here.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::segment::{Segment, Series};
use super::visit::Encoded;
use super::{ArchiveError, Place};

/// Two commits are so far apart at least, unless [`COMMIT_PAGES`] are waiting: the first page after a pause is durable
/// at once, and in a stream no page waits longer than this.
pub const COMMIT_WAIT: Duration = Duration::from_millis(50);
/// One commit keeps so many visits at most.
pub const COMMIT_PAGES: usize = 64;

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
    pub(super) reply: oneshot::Sender<Result<Place, ArchiveError>>,
}

/// Starts the writer of a folder; it ends when it is told to, or when nobody can ask it any more.
pub(super) fn start(
    series: Series,
    segment_bytes: u64,
    commits: Arc<AtomicU64>,
) -> io::Result<Sender<Order>> {
    let (orders, inbox) = mpsc::channel();
    let writer = Writer { inbox, series, segment: None, segment_bytes, commits, committed_at: None };
    thread::Builder::new().name("archive".to_owned()).spawn(move || writer.run())?;
    Ok(orders)
}

struct Writer {
    inbox: Receiver<Order>,
    series: Series,
    segment: Option<Segment>,
    segment_bytes: u64,
    commits: Arc<AtomicU64>,
    committed_at: Option<Instant>,
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
        let closed = self.close_segment();
        if let Some(reply) = asked {
            let _ = reply.send(closed);
        }
    }

    /// Waits for company until the next commit is due.
    fn gather(&self, first: Keep) -> (Vec<Keep>, Option<oneshot::Sender<Result<(), ArchiveError>>>) {
        let mut batch = vec![first];
        let due = self.committed_at.map(|at| at + COMMIT_WAIT);
        while batch.len() < COMMIT_PAGES {
            let wait = due.map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now()));
            match self.inbox.recv_timeout(wait) {
                Ok(Order::Keep(keep)) => batch.push(keep),
                Ok(Order::Close(reply)) => return (batch, Some(reply)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        (batch, None)
    }

    fn commit(&mut self, batch: Vec<Keep>) {
        let written = self.write(&batch);
        self.committed_at = Some(Instant::now());
        match written {
            Ok((segment, start)) => answer(batch, &segment, start),
            Err(error) => batch.into_iter().for_each(|keep| {
                let _ = keep.reply.send(Err(error.clone()));
            }),
        }
    }

    /// Writes a batch into the growing segment: its name, and where in it the batch begins.
    fn write(&mut self, batch: &[Keep]) -> Result<(String, u64), ArchiveError> {
        let parts: Vec<&[u8]> = batch.iter().map(|keep| keep.encoded.bytes.as_slice()).collect();
        let mut segment = self.growing_segment()?;
        let written = segment.append(&parts).map_err(|e| ArchiveError::io("write to", segment.path(), e));
        let name = segment.name().to_owned();
        // An unsound one is let go with its marker, so that its end is checked at the next start.
        if segment.is_sound() {
            self.segment = Some(segment);
        }
        let start = written?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok((name, start))
    }

    fn growing_segment(&mut self) -> Result<Segment, ArchiveError> {
        match self.segment.take() {
            Some(segment) if segment.durable() < self.segment_bytes => return Ok(segment),
            full => self.segment = full,
        }
        if let Err(error) = self.close_segment() {
            tracing::warn!("{error}");
        }
        self.series.next()
    }

    fn close_segment(&mut self) -> Result<(), ArchiveError> {
        let Some(segment) = self.segment.take() else { return Ok(()) };
        segment.close().map_err(|e| ArchiveError::io("close a segment in", self.series.dir(), e))
    }
}

/// Tells every caller where its visit is. One that no longer listens has lost nothing.
fn answer(batch: Vec<Keep>, segment: &str, start: u64) {
    let mut at = start;
    for Keep { encoded, reply } in batch {
        let named = Place::new(segment, at + encoded.named.start as u64, encoded.named.len() as u64);
        at += encoded.bytes.len() as u64;
        let _ = reply.send(Ok(encoded.stored.unwrap_or(named)));
    }
}
