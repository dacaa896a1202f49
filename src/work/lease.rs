//! Staying alive in the frontier's eyes: the beat of this process, and the renewal of leases that are half over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::parts::VisitParts;
use crate::canonical_url::CanonicalUrl;
use crate::clock;
use crate::frontier::state::LEASE_MS;
use crate::task::{Lease, LeaseKey};

/// The time between two beats.
const BEAT: Duration = Duration::from_secs(3);

/// The leases in this process's hands.
#[derive(Debug, Default)]
pub(super) struct Leases(Mutex<HashMap<u64, Held>>);

#[derive(Debug)]
struct Held {
    lease: LeaseKey,
    since: Instant,
    /// None once it was lost.
    renew_at: Option<Instant>,
}

/// A lease that is renewed until this is dropped, however its task ends.
#[derive(Debug)]
pub(super) struct Renewed {
    leases: Arc<Leases>,
    token: u64,
}

impl Leases {
    pub(super) fn renew(self: &Arc<Self>, lease: &Lease) -> Renewed {
        let now = Instant::now();
        let held = Held { lease: lease.key(), since: now, renew_at: Some(now + half()) };
        self.lock().insert(lease.token, held);
        Renewed { leases: Arc::clone(self), token: lease.token }
    }

    /// The one that is held the longest: for how long, and its URL.
    pub(super) fn oldest(&self) -> Option<(Duration, CanonicalUrl)> {
        self.lock()
            .values()
            .min_by_key(|held| held.since)
            .map(|held| (held.since.elapsed(), held.lease.url.clone()))
    }

    fn lost(&self, token: u64) {
        if let Some(held) = self.lock().get_mut(&token) {
            held.renew_at = None;
        }
    }

    /// It was renewed, at the latest then.
    fn renewed(&self, token: u64, at: Instant) {
        if let Some(held) = self.lock().get_mut(&token) {
            held.renew_at = Some(at + half());
        }
    }

    /// Leases that are half over at the next beat.
    fn half_over(&self) -> Vec<LeaseKey> {
        let soon = Instant::now() + BEAT;
        let leases = self.lock();
        let due = leases.values().filter(|held| held.renew_at.is_some_and(|at| at <= soon));
        due.map(|held| held.lease.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Renewed {
    fn drop(&mut self) {
        self.leases.lock().remove(&self.token);
    }
}

fn half() -> Duration {
    Duration::from_millis(LEASE_MS.unsigned_abs() / 2)
}

/// Beats until it is stopped, also while it waits for an answer.
pub(super) async fn beat(parts: Arc<VisitParts>, leases: Arc<Leases>, stop: CancellationToken) {
    let beats = async {
        loop {
            clock::wait(BEAT).await;
            tell_alive(&parts).await;
            renew(&parts, &leases).await;
        }
    };
    stop.run_until_cancelled(beats).await;
}

async fn tell_alive(parts: &VisitParts) {
    match parts.frontier.beat(&parts.member.current()).await {
        Err(error) if error.is_transient() => parts.outages.frontier.lost(&error),
        Err(error) => warn!(%error, "this process could not tell the frontier that it is alive"),
        Ok(()) => {}
    }
}

/// Renews what is half over; what could not be is tried again at the next beat.
async fn renew(parts: &VisitParts, leases: &Leases) {
    let half_over = leases.half_over();
    if half_over.is_empty() {
        return;
    }
    let asked = Instant::now();
    match parts.frontier.extend(half_over.clone()).await {
        Ok(alive) => {
            for (lease, alive) in half_over.iter().zip(alive) {
                if alive {
                    leases.renewed(lease.token, asked);
                } else {
                    leases.lost(lease.token);
                }
            }
        }
        Err(error) if error.is_transient() => parts.outages.frontier.lost(&error),
        Err(error) => warn!(%error, "leases could not be renewed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(token: u64) -> Lease {
        let text = format!(
            r#"{{"token":{token},"site":"shop","stage":"download","url":"http://127.0.0.1/{token}","fence":1,"granted_at":"2026-11-20T09:00:00Z",
            "ends_at":"2026-11-20T09:00:30Z","attempts":0,"origin":"link","priority":240,"depth":0,"hops":0,"interval":{{"secs":0,"nanos":0}},
            "robots":null,"robots_until":null,"stored":null,"version":1}}"#
        );
        serde_json::from_str(&text).expect("a lease")
    }

    #[test]
    fn a_lease_is_renewed_until_its_task_ends_however_or_it_is_lost() {
        let leases = Arc::new(Leases::default());
        let half_over = |leases: &Leases| {
            leases
                .lock()
                .values_mut()
                .for_each(|held| held.renew_at = held.renew_at.and_then(|at| at.checked_sub(half())));
            leases.half_over().iter().map(|lease| lease.token).collect::<Vec<_>>()
        };
        let first = leases.renew(&lease(1));
        let second = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _second = leases.renew(&lease(2));
            panic!("a task that broke");
        }));
        assert!(second.is_err());
        assert_eq!(half_over(&leases), [1]);
        assert_eq!(half_over(&leases), [1], "it is due until it was renewed");
        leases.renewed(1, Instant::now());
        assert!(leases.half_over().is_empty());
        assert_eq!(half_over(&leases), [1]);
        leases.lost(1);
        assert_eq!(half_over(&leases), [0; 0]);
        assert_eq!(leases.oldest().expect("it still runs").1.as_str(), "http://127.0.0.1/1");
        drop(first);
        assert!(leases.oldest().is_none());
    }
}
