//! The end of a visit: its settlement, or its lease returned unused; and what is logged of either.

use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use super::error::VisitError;
use super::parts::{LEAVING, VisitParts};
use super::slots::SlottedLease;
use super::walls::log_probe;
use crate::clock::{self, since_boot};
use crate::frontier::{FrontierError, TOKENS};
use crate::robots::change;
use crate::task::{
    Lease, LeaseKey, Outcome, RobotsAccess, RobotsRecord, Settled, Settlement, Stage, TooMuch,
};

/// What a request told of the pace, each as for how long from now on, and why.
#[derive(Debug, Default)]
pub(super) struct Holds {
    /// The site asks to be left alone, with its group.
    pub(super) block: Option<(Duration, String)>,
    /// Nobody there answers: it alone is left alone.
    pub(super) away: Option<(Duration, String)>,
}

impl VisitParts {
    /// Settles a task.
    pub(super) async fn settle(&self, lease: Lease, outcome: Outcome) -> Result<(), FrontierError> {
        self.settle_parse(lease, outcome, TooMuch::default()).await
    }

    /// Settles a parse, with what of its page was too much.
    pub(super) async fn settle_parse(
        &self,
        lease: Lease,
        outcome: Outcome,
        too_much: TooMuch,
    ) -> Result<(), FrontierError> {
        let settlement = Settlement { too_much, ..Settlement::of(lease, outcome) };
        self.settle_as(settlement, false).await.map(drop)
    }

    /// Settles a download, and takes the parse of the page of so many bytes that it brings along where a slot is free for it.
    /// `frees_place` where nobody was told yet that its body has ended.
    pub(super) async fn settle_download(
        &self,
        lease: Lease,
        outcome: Outcome,
        Holds { block, away }: Holds,
        response: Option<Duration>,
        bytes: usize,
        frees_place: bool,
    ) -> Result<Option<SlottedLease>, FrontierError> {
        let brings = matches!(outcome, Outcome::Done { stored: Some(_), .. });
        let takes = brings && !self.leaving.is_cancelled() && !self.outages.is_any_on();
        let slot = if takes { self.slots.take_along(bytes) } else { None };
        let parse = slot.as_ref().map(|_| fastrand::u64(1..TOKENS));
        let noted = since_boot();
        let settled = self
            .settle_as(
                Settlement { block, away, response, parse, ..Settlement::of(lease, outcome) },
                frees_place,
            )
            .await?;
        let Settled::Leased(lease) = settled else { return Ok(None) };
        Ok(slot.map(|slot| SlottedLease { lease: *lease, slot, noted }))
    }

    /// Keeps at it while the frontier can't be reached. A lost lease is said once and changes nothing.
    async fn settle_as(&self, settlement: Settlement, frees_place: bool) -> Result<Settled, FrontierError> {
        let (lease, said) = (&settlement.lease, &settlement.outcome);
        let (site, url, stage) = (&lease.site, &lease.url, lease.stage);
        for (wait, why) in [&settlement.block, &settlement.away].into_iter().flatten() {
            warn!(site, wait_s = wait.as_secs(), "the site is left alone: {why}");
        }
        let robots_before = self.robots_before(&settlement).await?;
        let (token, member) = (fastrand::u64(..), self.member());
        let may_wait = self.may_wait(&settlement, frees_place);
        if matches!(said, Outcome::Excluded { .. }) {
            self.under_way.is_in_doubt(site);
        }
        let step = || self.frontier.settle_waiting(&member.name, token, vec![settlement.clone()], may_wait);
        let settled =
            self.outages.frontier.patiently(step).await?.into_iter().next().unwrap_or(Settled::Stale);
        // A block, or what a robots.txt asks for, is in force now: starts that were granted before may be void.
        let holds = settlement.block.is_some() || settlement.away.is_some();
        if (holds || matches!(said, Outcome::Robots(_)))
            && let Some(rules) = self.rules.get(site, lease.version)
        {
            self.news.doubt(&rules.unit());
        }
        let is_kept = matches!(settled, Settled::Kept | Settled::Leased(_));
        if is_kept {
            log_probe(lease, said);
        }
        let brings = is_kept && stage == Stage::Download && matches!(said, Outcome::Done { .. });
        if brings {
            self.under_way.page_kept();
        }
        self.monitor.settled(site, brings, settled == Settled::Died);
        match (&settled, said) {
            (Settled::Stale, _) => {
                warn!(site, url = url.as_str(), stage = %stage, "its lease was lost; somebody else does it again");
            }
            (Settled::Died, Outcome::Retry { why, .. } | Outcome::Dead { why }) => {
                let session = lease.session.as_deref();
                warn!(site, url = url.as_str(), stage = %stage, session, "dead letter: {}", why.reason);
            }
            (Settled::Kept, Outcome::Robots(now)) => {
                self.monitor.robots(site, &url.origin(), &now.access);
                log_robots_change(lease, robots_before.as_ref(), now);
            }
            _ => {}
        }
        Ok(settled)
    }

    /// Whether no start waits for a settlement: it blocks nothing, gives no start back, frees no site that waited for its
    /// `robots.txt`, keeps no parse slot that a claim needs, and more waits in its site, which has
    /// places in flight left where the settlement gives one back.
    fn may_wait(&self, settlement: &Settlement, frees_place: bool) -> bool {
        use Outcome::{Dead, Done, Redirected, Retry};
        let is_usual =
            matches!(settlement.outcome, Done { .. } | Dead { .. } | Redirected { .. } | Retry { .. });
        is_usual
            && settlement.block.is_none()
            && settlement.away.is_none()
            && !settlement.lease.is_probe()
            && (settlement.parse.is_none() || self.slots.has_parses_to_spare())
            && (!frees_place || self.under_way.has_places(&settlement.lease.site, since_boot()))
            && self.under_way.is_supplied(&settlement.lease.site, since_boot())
    }

    /// The record whose place a settlement's is to take; none where it brings no rules to compare, or it can't be read.
    async fn robots_before(&self, settlement: &Settlement) -> Result<Option<RobotsRecord>, FrontierError> {
        let Outcome::Robots(now) = &settlement.outcome else { return Ok(None) };
        if matches!(now.access, RobotsAccess::Unreachable(_)) {
            return Ok(None);
        }
        let origin = settlement.lease.url.origin();
        match self.outages.frontier.patiently(|| self.frontier.robots(&origin)).await {
            Err(error) if error.is_transient() => Err(error),
            answer => Ok(answer.ok().flatten().map(|known| known.record)),
        }
    }

    /// If only this process is at fault (disk full, missing client), returns the lease unused. Otherwise lets it expire.
    pub(super) async fn return_unused(&self, lease: LeaseKey, left: &VisitError) {
        let (site, url) = (&lease.site, lease.url.as_str());
        if !left.is_our_own() {
            warn!(site, url, "{left}; its lease returns");
            return;
        }
        match left {
            left if let Some(why) = left.lacks_for(site)
                && self.rules.leave_for_a_while(site, &why, Instant::now()) =>
            {
                warn!(site, "its pages go back to the others: {why}");
            }
            left => debug!(site, url, "{left}; it goes back"),
        }
        let _ = clock::within(LEAVING, self.frontier.hand_back(lease)).await;
    }
}

/// Says what a record that was kept means for the site, where it is news.
fn log_robots_change(lease: &Lease, before: Option<&RobotsRecord>, now: &RobotsRecord) {
    let site = &lease.site;
    if let Some(what) = change(before, now, lease.departure.wait()) {
        info!(site, "robots.txt of {} {what}", lease.url.origin());
    }
    if let Some(why) = &now.refuses {
        warn!(site, wait_s = now.holds_for.as_secs(), "the site is left alone: {why}");
    }
}
