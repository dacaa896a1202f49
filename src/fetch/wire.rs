//! From permit to wire: a request leaves only while its permit holds, on a connection that is up before its time comes.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request;

use super::connection::{HttpAnswer, Unanswered};
use super::dial::BoxError;
use super::http2::Listening;
use super::pool::{ConnectionPool, Need};
use crate::clock::{self, Timestamp};
use crate::frontier::permit::NotNow;

/// A request that was sent, and what became of it until the answer's head.
#[derive(Debug)]
pub struct Started {
    /// The stamp of its permit.
    pub sent_at: Timestamp,
    /// The same moment on the clock that time-outs are counted by.
    pub sent: Instant,
    /// The answer; none where it didn't come within the time.
    pub answer: Option<Result<HttpAnswer, BoxError>>,
}

/// Why a request was not sent.
#[derive(Debug)]
pub enum Unstarted {
    /// The permit holds no longer.
    NotNow(NotNow),
    /// No connection came about.
    Connect(BoxError),
}

/// Sends a request when `start`, its permit, lets it go, and waits up to `patience`, counted from the send, for the answer's head.
///
/// The permit is asked when the connection is up, and nothing is waited for between its leave and the send. A connection that
/// ends meanwhile is replaced, and the permit asked again. Once `leaves` ends, no connection is waited for.
pub async fn send<S: Future<Output = Result<Timestamp, NotNow>>>(
    pool: &Arc<ConnectionPool>,
    need: Need<'_>,
    request: &Request<()>,
    start: impl Fn() -> S,
    leaves: impl Future<Output = ()>,
    patience: Duration,
) -> Result<Started, Unstarted> {
    let mut leaves = pin!(leaves);
    loop {
        let connection = tokio::select! {
            biased;
            () = &mut leaves => return Err(Unstarted::NotNow(NotNow::Leaving)),
            taken = pool.take(need) => taken.map_err(Unstarted::Connect)?,
        };
        let sent_at = tokio::select! {
            biased;
            left = start() => left.map_err(Unstarted::NotNow)?,
            () = connection.lost() => continue,
        };
        let is_new = connection.is_new();
        if !is_new && !connection.is_ready() {
            continue;
        }
        let (sent, listening) = (Instant::now(), connection.listen());
        let answer = match clock::within(patience, connection.send(request.clone())).await {
            Some(Err(Unanswered::Unsent(_))) if !is_new => continue,
            Some(Err(Unanswered::Unsent(error) | Unanswered::Sent(error))) => Some(Err(error)),
            Some(Ok(answer)) => Some(Ok(answer)),
            None => {
                listening.into_iter().for_each(Listening::in_vain);
                None
            }
        };
        return Ok(Started { sent_at, sent, answer });
    }
}

#[cfg(test)]
mod tests;
