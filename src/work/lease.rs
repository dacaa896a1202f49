//! Staying alive in the frontier's eyes: the beat of this process, the renewal of leases that are half over, and whether one
//! still holds.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::parts::VisitParts;
use super::under_way::LEASE;
use crate::clock::{self, since_boot};
use crate::frontier::FrontierError;
use crate::task::{Lease, LeaseKey};

/// The time between two beats.
const BEAT: Duration = Duration::from_secs(3);

/// Beats until it is stopped, also while it waits for an answer.
pub(super) async fn beat(parts: Arc<VisitParts>, stop: CancellationToken) {
    stop.run_until_cancelled(beats(&parts)).await;
}

async fn beats(parts: &VisitParts) -> Infallible {
    loop {
        clock::wait(BEAT).await;
        // A part of the frontier that is silent holds up neither the next beat nor the leases of the others.
        clock::within(BEAT, async { tokio::join!(tell_alive(parts), renew(parts)) }).await;
    }
}

async fn tell_alive(parts: &VisitParts) {
    let beaten = parts.frontier.beat(&parts.member()).await;
    heard(parts, beaten, "this process could not tell the frontier that it is alive");
}

/// Renews what is half over at the next beat, each site's leases by themselves; what could not be is tried again then.
async fn renew(parts: &VisitParts) {
    let asked = since_boot();
    let mut sites: BTreeMap<String, Vec<LeaseKey>> = BTreeMap::new();
    let half_over = parts.under_way.half_over(asked + BEAT).into_iter();
    for lease in half_over.filter(|lease| !parts.frontier.is_away_for(&lease.site)) {
        sites.entry(lease.site.clone()).or_default().push(lease);
    }
    let renewals = sites.into_values().map(async |leases| {
        let alive = parts.frontier.extend(leases.clone()).await;
        let alive = heard(parts, alive, "leases could not be renewed");
        for (lease, alive) in leases.iter().zip(alive.into_iter().flatten()) {
            parts.under_way.renewed(lease.token, alive.then_some(asked));
        }
    });
    join_all(renewals).await;
}

/// How long what a lease allows may take: an item's way to the disk.
const A_MOMENT: Duration = Duration::from_secs(1);

impl VisitParts {
    /// Beats while that is under way, however long it takes: the pool beats only once it works.
    pub(crate) async fn alive_during<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            never = beats(self) => match never {},
        }
    }

    /// Until when, by the time since boot, a lease surely is this process's; none if it is lost. The frontier is asked only where
    /// the lease may be over by the time since it was asked for, or where this process may have been taken for dead: its thread,
    /// or the machine, may have stood still.
    pub(super) async fn holds_until(&self, lease: &Lease) -> Result<Option<Duration>, FrontierError> {
        let lives_until = || self.frontier.surely_lives_until(&self.member());
        let known = self.under_way.ends(lease.token).map(|end| end.min(lives_until()));
        if let Some(until) = known.filter(|until| since_boot() + A_MOMENT < *until) {
            return Ok(Some(until));
        }
        let ask = || async {
            let asked = since_boot();
            let holds = self.frontier.extend(vec![lease.key()]).await? == [true];
            Ok(holds.then_some(asked))
        };
        let renewed = self.outages.frontier.patiently(ask).await?;
        self.under_way.renewed(lease.token, renewed);
        let until = |asked: Duration| (asked + LEASE).min(lives_until()).max(asked + A_MOMENT);
        Ok(renewed.map(until))
    }
}

fn heard<T>(parts: &VisitParts, answer: Result<T, FrontierError>, failed: &str) -> Option<T> {
    match &answer {
        Err(error) if error.is_transient() => parts.outages.frontier.lost(error),
        Err(error) => warn!(%error, "{failed}"),
        Ok(_) => {}
    }
    answer.ok()
}
