//! What the two lines need, once a process: the frontier, the fetcher, the archive, the sink, and the sites' rules.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::breakers::Breakers;
use super::desks::Desks;
use super::error::VisitError;
use super::handover::Handover;
use super::hosts::{Hosts, site_of_text};
use super::membership::Membership;
use super::outages::Outages;
use super::robots_told::tell_of_robots;
use super::role::Role;
use super::roster::Roster;
use super::slots::{Granted, Slot, Slots, cores};
use crate::archive::Archive;
use crate::canonical_url::CanonicalUrl;
use crate::clock;
use crate::fetch::{Ceiling, Fetcher};
use crate::frontier::{Frontier, FrontierError, Member, TOKENS};
use crate::monitor::Monitor;
use crate::robots::Verdicts;
use crate::sink::ItemSink;
use crate::site::Site;
use crate::task::{Lease, LeaseKey, Outcome, Settled, Settlement};

/// How long the frontier may take to hear that this process leaves.
const LEAVING: Duration = Duration::from_secs(5);

/// Everything a `Crew` is made of.
#[derive(Debug)]
pub struct CrewOptions {
    /// What is known, what is next, and when.
    pub frontier: Frontier,
    /// This process's place among those that claim.
    pub member: Member,
    /// Asks sites.
    pub fetcher: Fetcher,
    /// The most starts a second of this process.
    pub ceiling: Ceiling,
    /// Keeps pages.
    pub archive: Archive,
    /// Takes items.
    pub sink: ItemSink,
    /// Which of the two lines it walks.
    pub role: Role,
    /// The sites that are crawled.
    pub roster: Roster,
    /// Counts.
    pub monitor: Monitor,
}

/// What the two lines share. One a process.
#[derive(Debug)]
pub struct Crew {
    pub(super) frontier: Frontier,
    pub(super) member: Membership,
    pub(super) fetcher: Fetcher,
    pub(super) ceiling: Ceiling,
    pub(super) archive: Archive,
    pub(super) sink: ItemSink,
    pub(super) role: Role,
    pub(super) roster: Roster,
    pub(super) hosts: Hosts,
    pub(super) outages: Arc<Outages>,
    /// Cancelled when nothing more is claimed.
    pub(super) leaving: CancellationToken,
    pub(super) monitor: Monitor,
    pub(super) breakers: Breakers,
    pub(super) verdicts: Verdicts,
    pub(super) handover: Handover,
    /// One a core.
    pub(super) desks: Desks,
    /// How many tasks may run, and how many do.
    pub(super) slots: Arc<Slots>,
}

impl Crew {
    /// A crew ready to work, with threads of its own for parses.
    pub fn new(options: CrewOptions) -> io::Result<Self> {
        let leaving = CancellationToken::new();
        Ok(Self {
            outages: Arc::new(Outages::new(&leaving)),
            breakers: Breakers::new(options.monitor.clone()),
            verdicts: Verdicts::new(Some(&options.frontier)),
            frontier: options.frontier,
            member: Membership::new(options.member),
            fetcher: options.fetcher,
            ceiling: options.ceiling,
            archive: options.archive,
            sink: options.sink,
            slots: Slots::new(options.role),
            role: options.role,
            roster: options.roster,
            hosts: Hosts::default(),
            monitor: options.monitor,
            handover: Handover::default(),
            desks: Desks::new(cores())?,
            leaving,
        })
    }

    /// The frontier.
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// What this process may have to wait for.
    pub(crate) fn outages(&self) -> Arc<Outages> {
        Arc::clone(&self.outages)
    }

    /// The counters.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// Finishes what is being kept, and leaves. A frontier that is away finds out by itself.
    pub async fn disband(self) -> Result<(), FrontierError> {
        if let Err(error) = self.archive.close().await {
            warn!(%error, "the archive could not be closed");
        }
        if let Err(error) = self.sink.flush().await {
            warn!(%error, "items could not be flushed");
        }
        let Some(member) = self.member.into_member() else { return Ok(()) };
        let leaving = self.frontier.leave(member);
        match clock::within(LEAVING, leaving).await {
            Some(Err(error)) if error.is_transient() => {
                warn!(%error, "the frontier did not hear that this process leaves; the next one finds out");
                Ok(())
            }
            left => left.unwrap_or(Ok(())),
        }
    }

    /// Leaves a task. What only this process can't bring to its end is given back, and counts neither as an attempt nor as
    /// a loss; else, or where the frontier doesn't hear it, the lease returns by itself.
    pub(super) async fn leave(&self, lease: LeaseKey, left: &VisitError) {
        let (site, url) = (&lease.site, lease.url.as_str());
        if !left.is_our_own() {
            warn!(site, url, "{left}; its lease returns");
            return;
        }
        match left {
            VisitError::Lacking(error) if self.roster.is_news_that_it_lacks(site) => {
                warn!(site, "its pages go back to the others: {}", error.reason());
            }
            left => debug!(site, url, "{left}; it goes back"),
        }
        let _ = clock::within(LEAVING, self.frontier.hand_back(lease)).await;
    }

    /// This process was declared dead, its leases are lost: it goes on under another name.
    pub(super) async fn join_anew(&self) -> Result<(), FrontierError> {
        let member = self.frontier.join_anew(&self.member.current(), self.roster.scope()).await?;
        warn!(
            name = member.name,
            "this process was taken for dead and its leases are lost; it goes on under a new name"
        );
        self.member.replace(member);
        Ok(())
    }

    /// The site of a lease, by the rules in force when it was granted or newer ones.
    pub(super) async fn site(&self, lease: &Lease) -> Result<Arc<Site>, FrontierError> {
        if let Some(site) = self.roster.get(&lease.site, lease.version) {
            return Ok(site);
        }
        let no_site = || FrontierError::no_site(&lease.site);
        let text =
            self.outages.frontier.in_time(self.frontier.text(&lease.site)).await?.ok_or_else(no_site)?;
        let site = site_of_text(&lease.site, &text)?;
        debug!(site = lease.site, version = lease.version, "the site's rules were read");
        Ok(self.roster.put(site, lease.version))
    }

    /// The site whose host a URL is on, among those that are worked on; the asking site's own hosts come first.
    pub(super) async fn owner_of(
        &self,
        site: &Arc<Site>,
        url: &url::Url,
    ) -> Result<Option<Arc<Site>>, FrontierError> {
        let Ok(url) = CanonicalUrl::from_url(url.clone()) else { return Ok(None) };
        if site.scope.owns(&url) {
            return Ok(Some(Arc::clone(site)));
        }
        if self.roster.is_of_all() {
            return self.hosts.owner(&self.frontier, &url.host()).await;
        }
        Ok(self.roster.owner(&url.host()))
    }

    /// Settles a task and keeps at it while the frontier can't be reached. A lost lease is said once and changes nothing.
    pub(super) async fn settle(&self, lease: Lease, outcome: Outcome) -> Result<Settled, FrontierError> {
        self.settle_as(Settlement { lease, outcome, block: None, response: None, parse: None }).await
    }

    /// Settles a download, and takes the parse of the page that it brings along where a slot is free for it.
    pub(super) async fn settle_download(
        &self,
        lease: Lease,
        outcome: Outcome,
        block: Option<(Duration, String)>,
        response: Option<Duration>,
    ) -> Result<Option<Granted>, FrontierError> {
        let slot = self.slot_for(&outcome);
        let parse = slot.as_ref().map(|_| fastrand::u64(1..TOKENS));
        match (self.settle_as(Settlement { lease, outcome, block, response, parse }).await?, slot) {
            (Settled::Leased(lease), Some(slot)) => Ok(Some(Granted { lease: *lease, slot })),
            _ => Ok(None),
        }
    }

    /// A slot for the parse of the page that this brings, unless nothing more is to be claimed.
    fn slot_for(&self, outcome: &Outcome) -> Option<Slot> {
        let brings = matches!(outcome, Outcome::Done { stored: Some(_), .. });
        let takes = brings && !self.leaving.is_cancelled() && !self.outages.is_keeping_held_up();
        if takes { self.slots.take_free_parse() } else { None }
    }

    async fn settle_as(&self, settlement: Settlement) -> Result<Settled, FrontierError> {
        let (lease, said) = (&settlement.lease, &settlement.outcome);
        let (site, url, stage) = (&lease.site, &lease.url, lease.stage);
        if let Some((wait, why)) = &settlement.block {
            warn!(site, wait_s = wait.as_secs(), "the site is left alone: {why}");
        }
        let robots_before = self.robots_before(&settlement).await?;
        let (token, member) = (fastrand::u64(..), self.member.current());
        let step = || self.frontier.settle(&member.name, token, vec![settlement.clone()]);
        let settled =
            self.outages.frontier.patiently(step).await?.into_iter().next().unwrap_or(Settled::Stale);
        self.monitor.settled(site, stage, said, &settled);
        match (&settled, said) {
            (Settled::Stale, _) => {
                warn!(site, url = url.as_str(), stage = %stage, "its lease was lost; somebody else does it again");
            }
            (Settled::Died, Outcome::Retry { why, .. } | Outcome::Dead { why }) => {
                warn!(site, url = url.as_str(), stage = %stage, "dead letter: {}", why.reason);
            }
            (Settled::Kept, Outcome::Robots(now)) => {
                self.monitor.robots(site, &url.origin(), &now.access);
                tell_of_robots(lease, robots_before.as_ref(), now);
            }
            _ => {}
        }
        Ok(settled)
    }
}
