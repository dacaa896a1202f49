//! Staying alive in the frontier's eyes: the beat of this process, and the renewal of leases that are half over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::crew::Crew;
use crate::frontier::state::LEASE_MS;

/// The time between two beats.
const BEAT: Duration = Duration::from_secs(3);

/// The leases in this process's hands, and when each is to be renewed.
#[derive(Debug, Default)]
pub(super) struct Leases(Mutex<HashMap<u64, Instant>>);

impl Leases {
    pub(super) fn add(&self, token: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(token, Instant::now() + half());
    }

    pub(super) fn remove(&self, token: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&token);
    }

    /// Leases that are half over, booked as renewed.
    fn half_over(&self) -> Vec<u64> {
        let now = Instant::now();
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = leases.iter_mut().filter(|(_, renew_at)| **renew_at <= now + BEAT);
        due.map(|(token, renew_at)| {
            *renew_at = now + half();
            *token
        })
        .collect()
    }
}

fn half() -> Duration {
    Duration::from_millis(LEASE_MS.unsigned_abs() / 2)
}

/// Beats until it is stopped.
pub(super) async fn beat(crew: Arc<Crew>, leases: Arc<Leases>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(BEAT)).await.is_some() {
        match crew.frontier.beat(&crew.member.current()).await {
            Err(error) if error.is_transient() => crew.reach.lost(&error),
            Err(error) => warn!(%error, "this process could not tell the frontier that it is alive"),
            Ok(()) => {}
        }
        let half_over = leases.half_over();
        if half_over.is_empty() {
            continue;
        }
        match crew.frontier.extend(half_over.clone()).await {
            Ok(alive) => {
                for token in
                    half_over.iter().zip(&alive).filter_map(|(token, alive)| (!alive).then_some(*token))
                {
                    leases.remove(token);
                }
            }
            Err(error) if error.is_transient() => crew.reach.lost(&error),
            Err(error) => warn!(%error, "leases could not be renewed"),
        }
    }
}
