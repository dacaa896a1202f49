//! Staying alive in the frontier's eyes: the beat of this process, what it works on, the renewal of leases that are half over, and
//! whether one still holds.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::parts::VisitParts;
use crate::clock::{self, since_boot};
use crate::frontier::{FrontierError, FrontierErrorKind, SignOfLife};
use crate::task::{Lease, LeaseKey, Stage};

/// The time between two beats.
const BEAT: Duration = Duration::from_secs(3);

/// Leases renewed in one step: a start that comes up meanwhile waits for the step.
const RENEWED: usize = 250;

/// Beats until it is stopped, also while it waits for an answer.
pub(super) async fn beat(parts: Arc<VisitParts>, stop: CancellationToken) {
    stop.run_until_cancelled(beats(&parts)).await;
}

async fn beats(parts: &VisitParts) -> Infallible {
    let mut told = 0;
    loop {
        clock::wait(BEAT).await;
        // A part of the frontier that is silent holds up neither the next beat nor the leases of the others.
        let beat = async {
            let scope = tell_scope(parts, &mut told);
            tokio::join!(tell_alive(parts), renew(parts), look_for_room(parts), drop_requests(parts), scope)
        };
        clock::within(BEAT, beat).await;
    }
}

async fn tell_alive(parts: &VisitParts) {
    let (member, downloads) = (parts.member(), parts.role.walks(Stage::Download));
    let beaten = parts.frontier.beat_telling(&member, downloads, sign_of_life(parts)).await;
    let Some(beaten) = heard(parts, beaten, "this process could not tell the frontier that it is alive")
    else {
        return;
    };
    parts.slots.shared_by(beaten.sharers as usize);
    if beaten.drained && !parts.drained.is_cancelled() {
        warn!(name = member.name, "drained: what runs is finished, then this process ends");
        parts.drained.cancel();
    }
}

fn sign_of_life(parts: &VisitParts) -> SignOfLife {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let slots = |stage, count| parts.role.walks(stage).then(|| number(count));
    SignOfLife {
        downloads: slots(Stage::Download, parts.slots.downloads()),
        parses: slots(Stage::Parse, parts.slots.parses()),
        leases: number(parts.under_way.leases()),
        ..SignOfLife::of_this_process()
    }
}

/// Tells what is worked on where that changed; again at the next beat where not all have heard it.
async fn tell_scope(parts: &VisitParts, told: &mut usize) {
    let changes = parts.rules.changes(Instant::now());
    if *told == changes {
        return;
    }
    let tell = async {
        let scope = parts.rules.scope_on(&parts.frontier).await?;
        parts.frontier.work_on(&parts.member().name, scope).await
    };
    if heard(parts, tell.await, "the frontier could not be told which sites are left to others").is_some() {
        *told = changes;
    }
}

/// A process that only downloads puts nothing that a full memory would refuse, while each of its pages takes memory: it asks whether
/// there is room for what others find on them.
async fn look_for_room(parts: &VisitParts) {
    if parts.role.walks(Stage::Parse) || !parts.frontier.has_wake_ups() {
        return;
    }
    match parts.frontier.has_room().await {
        Err(error) if error.kind == FrontierErrorKind::MemoryFull => {
            parts.outages.memory.begin(&error);
        }
        Ok(()) => parts.outages.memory.end(),
        // The beat tells of it.
        Err(_) => {}
    }
}

/// Drops requests of what somebody paused at once; their tasks go back.
async fn drop_requests(parts: &VisitParts) {
    if !parts.under_way.has_requests() {
        return;
    }
    let marks = parts.frontier.drops().await;
    let marks = heard(parts, marks, "it could not be asked which requests are to be dropped");
    for (site, requests) in parts.under_way.drop_requests(&marks.unwrap_or_default()) {
        info!(site, requests, "dropped, as they were paused with --now; their pages go back");
    }
}

/// Renews what is half over at the next beat, each site's leases by themselves; what could not be is tried again then.
async fn renew(parts: &VisitParts) {
    let asked = since_boot();
    let mut sites: BTreeMap<String, Vec<LeaseKey>> = BTreeMap::new();
    let half_over = parts.under_way.half_over(asked + BEAT).into_iter();
    for lease in half_over.filter(|lease| !parts.frontier.is_away_for(&lease.site)) {
        sites.entry(lease.site.clone()).or_default().push(lease);
    }
    let portions =
        sites.into_values().flat_map(|leases| leases.chunks(RENEWED).map(<[_]>::to_vec).collect::<Vec<_>>());
    let renewals = portions.map(async |leases| {
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
        let lives_until = self.frontier.surely_lives_until(&self.member());
        let known = self.under_way.ends(lease.token).map(|end| end.min(lives_until));
        if let Some(until) = known.filter(|until| since_boot() + A_MOMENT < *until) {
            return Ok(Some(until));
        }
        let ask = || async {
            let asked = since_boot();
            Ok(self.frontier.hold_lease(&self.member(), lease.key()).await?.map(|until| (asked, until)))
        };
        let renewed = self.outages.frontier.patiently(ask).await?;
        self.under_way.renewed(lease.token, renewed.map(|(asked, _)| asked));
        Ok(renewed.map(|(_, until)| until))
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
