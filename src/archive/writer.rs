//! Group commit: one thread takes what many callers keep and makes it durable together. What is written was spelled out
//! before it comes here.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use tokio::sync::oneshot;

use super::store::{CommitRule, Log};
use super::visit::Encoded;
use super::{ArchiveError, RecordPlace};
use crate::batch::{Batches, Sender, batches};

/// What the writer is asked to do.
#[derive(Debug)]
pub(super) enum Order {
    /// Keep a visit.
    Keep(Keep),
    /// Finish, and say how it went.
    Close(oneshot::Sender<Result<(), ArchiveError>>),
}

impl Order {
    fn bytes(&self) -> usize {
        match self {
            Self::Keep(keep) => keep.encoded.bytes.len(),
            Self::Close(_) => 0,
        }
    }
}

/// A visit that waits to be durable.
#[derive(Debug)]
pub(super) struct Keep {
    pub(super) encoded: Encoded,
    /// Since when it waits.
    pub(super) since: Instant,
    pub(super) reply: oneshot::Sender<Result<RecordPlace, ArchiveError>>,
}

/// Starts the writer; it ends when it is told to, or when nobody can ask it any more.
pub(super) fn start(log: Box<dyn Log>, commits: Arc<AtomicU64>) -> io::Result<Sender<Order>> {
    let (sender, orders) = batches();
    let writer = CommitThread { orders, log, commits };
    thread::Builder::new().name("archive".to_owned()).spawn(move || writer.run())?;
    Ok(sender)
}

struct CommitThread {
    orders: Batches<Order>,
    log: Box<dyn Log>,
    commits: Arc<AtomicU64>,
}

/// What the writer does next.
enum Next {
    Commit(Vec<Keep>),
    End(Option<oneshot::Sender<Result<(), ArchiveError>>>),
}

impl CommitThread {
    fn run(mut self) {
        let asked = loop {
            match self.next() {
                Next::Commit(batch) => self.commit(batch),
                Next::End(asked) => break asked,
            }
        };
        let closed = self.log.close();
        if let Some(reply) = asked {
            let _ = reply.send(closed);
        }
    }

    /// Waits until a commit is due.
    fn next(&mut self) -> Next {
        let due = self.log.due();
        self.orders.next(company(due), |waiting| next(waiting, due)).unwrap_or(Next::End(None))
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

/// Until when a visit waits for others. It is asked again as orders are added, and looks at the new ones only.
fn company(due: CommitRule) -> impl FnMut(&VecDeque<Order>) -> Option<Instant> + Send {
    let (mut seen, mut bytes, mut closes) = (0, 0, false);
    move |waiting| {
        for order in waiting.iter().skip(seen) {
            bytes += order.bytes();
            closes |= matches!(order, Order::Close(_));
        }
        seen = waiting.len();
        let (Order::Keep(first), Order::Keep(last)) = (waiting.front()?, waiting.back()?) else {
            return None;
        };
        let is_enough = seen >= due.pages || bytes >= due.bytes || closes;
        (!is_enough).then(|| due.at(first.since, last.since))
    }
}

/// The visits of one commit in the order in which they came, or the end where none comes before it.
fn next(waiting: &mut VecDeque<Order>, most: CommitRule) -> Next {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while batch.len() < most.pages && bytes < most.bytes {
        match waiting.pop_front() {
            Some(Order::Keep(keep)) => {
                bytes += keep.encoded.bytes.len();
                batch.push(keep);
            }
            Some(Order::Close(reply)) if batch.is_empty() => return Next::End(Some(reply)),
            None if batch.is_empty() => return Next::End(None),
            None => break,
            Some(close) => {
                waiting.push_front(close);
                break;
            }
        }
    }
    Next::Commit(batch)
}

/// Tells every caller where its visit is. One that no longer listens has lost nothing.
fn answer(batch: Vec<Keep>, segment: &str, start: u64) {
    let mut at = start;
    for Keep { encoded, reply, .. } in batch {
        let named = RecordPlace::new(segment, at + encoded.named.start as u64, encoded.named.len() as u64);
        at += encoded.bytes.len() as u64;
        let _ = reply.send(Ok(encoded.stored.unwrap_or(named)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn orders(sizes: &[usize]) -> VecDeque<Order> {
        let order = |bytes: &usize| match bytes {
            0 => Order::Close(oneshot::channel().0),
            bytes => {
                let encoded = Encoded { bytes: vec![0; *bytes], named: 0..*bytes, stored: None };
                Order::Keep(Keep { encoded, since: Instant::now(), reply: oneshot::channel().0 })
            }
        };
        sizes.iter().map(order).collect()
    }

    const MOST: CommitRule =
        CommitRule { pages: 3, bytes: 100, not_before: None, longest: MINUTE, quiet: MINUTE };
    const MINUTE: Duration = Duration::from_mins(1);

    /// 0 is an order to close.
    #[test]
    fn a_commit_ends_with_the_visit_that_fills_it_or_before_the_end() {
        let mut waiting = orders(&[1, 2, 3, 4, 150, 5, 99, 1, 6, 0, 7]);
        for commit in [&[1, 2, 3][..], &[4, 150], &[5, 99], &[1, 6]] {
            let Next::Commit(batch) = next(&mut waiting, MOST) else { panic!("{commit:?} waits") };
            assert_eq!(batch.iter().map(|keep| keep.encoded.bytes.len()).collect::<Vec<_>>(), commit);
        }
        assert!(matches!(next(&mut waiting, MOST), Next::End(Some(_))));
        assert!(matches!(next(&mut VecDeque::new(), MOST), Next::End(None)));
    }

    #[test]
    fn a_full_commit_and_an_end_wait_for_no_company() {
        for (sizes, expected) in [
            (&[1, 1][..], false),
            (&[1, 1, 1], true),
            (&[99, 1], true),
            (&[100], true),
            (&[99], false),
            (&[1, 0], true),
            (&[1, 0, 1], true),
        ] {
            let (mut at_once, mut by_and_by) = (company(MOST), company(MOST));
            let steps = (1..=sizes.len()).map(|n| by_and_by(&orders(&sizes[..n])).is_none()).last();
            assert_eq!((at_once(&orders(sizes)).is_none(), steps), (expected, Some(expected)), "{sizes:?}");
        }
    }
}
