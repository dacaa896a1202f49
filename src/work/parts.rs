//! What the two lines need, once a process: the frontier, the fetcher, the archive, the sink, and the sites' rules.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::breakers::Breakers;
use super::granted_along::FreshPages;
use super::hosts::Hosts;
use super::outages::Outages;
use super::parse_pool::ParsePool;
use super::role::Role;
use super::rules::SiteRules;
use super::slots::{Slots, cores};
use super::under_way::UnderWay;
use crate::archive::Archive;
use crate::clock;
use crate::fetch::{Ceiling, Fetcher};
use crate::frontier::{Frontier, FrontierError, Member};
use crate::monitor::Monitor;
use crate::robots::Verdicts;
use crate::sink::ItemSink;

/// How long the frontier may take to hear that this process leaves.
pub(super) const LEAVING: Duration = Duration::from_secs(5);

/// Everything a `VisitParts` is made of.
#[derive(Debug)]
pub struct PartsOptions {
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
    pub rules: SiteRules,
    /// Nothing more is claimed once so many pages are kept.
    pub most_pages: Option<u64>,
}

/// What the two lines share. One a process.
#[derive(Debug)]
pub struct VisitParts {
    pub(super) frontier: Frontier,
    pub(super) member: OwnerToken,
    pub(super) fetcher: Fetcher,
    pub(super) ceiling: Ceiling,
    pub(super) archive: Archive,
    pub(super) sink: ItemSink,
    pub(super) role: Role,
    pub(super) rules: SiteRules,
    pub(super) hosts: Hosts,
    pub(super) outages: Arc<Outages>,
    /// Cancelled when nothing more is claimed.
    pub(super) leaving: CancellationToken,
    pub(super) monitor: Monitor,
    pub(super) breakers: Arc<Breakers>,
    pub(super) under_way: Arc<UnderWay>,
    pub(super) verdicts: Verdicts,
    pub(super) fresh_pages: FreshPages,
    /// One a core.
    pub(super) parse_pool: ParsePool,
    /// How many tasks may run, and how many do.
    pub(super) slots: Arc<Slots>,
}

impl VisitParts {
    /// Parts ready to work, with threads of their own for parses.
    pub fn new(options: PartsOptions) -> io::Result<Self> {
        let leaving = CancellationToken::new();
        Ok(Self {
            outages: Arc::new(Outages::new(&leaving)),
            breakers: Arc::default(),
            under_way: Arc::new(UnderWay::new(options.most_pages)),
            verdicts: Verdicts::new(Some(&options.frontier)),
            frontier: options.frontier,
            member: OwnerToken::new(options.member),
            fetcher: options.fetcher,
            ceiling: options.ceiling,
            archive: options.archive,
            sink: options.sink,
            slots: Slots::new(options.role),
            role: options.role,
            rules: options.rules,
            hosts: Hosts::default(),
            monitor: Monitor::default(),
            fresh_pages: FreshPages::default(),
            parse_pool: ParsePool::new(cores())?,
            leaving,
        })
    }

    /// The frontier.
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The sites' rules.
    pub fn rules(&self) -> &SiteRules {
        &self.rules
    }

    /// What this process may have to wait for.
    pub(crate) fn outages(&self) -> Arc<Outages> {
        Arc::clone(&self.outages)
    }

    /// What this process has in hand.
    pub(crate) fn under_way(&self) -> Arc<UnderWay> {
        Arc::clone(&self.under_way)
    }

    /// Which pace units are away.
    pub(crate) fn breakers(&self) -> Arc<Breakers> {
        Arc::clone(&self.breakers)
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

    /// This process was declared dead, its leases are lost: it goes on under another name.
    pub(super) async fn join_anew(&self) -> Result<(), FrontierError> {
        let member = self.frontier.join_anew(&self.member.current(), self.rules.scope()).await?;
        warn!(
            name = member.name,
            "this process was taken for dead and its leases are lost; it goes on under a new name"
        );
        self.member.replace(member);
        Ok(())
    }
}

/// This process's place among those that claim. It takes another one if it was declared dead by mistake.
#[derive(Debug)]
pub(super) struct OwnerToken(Mutex<Arc<Member>>);

impl OwnerToken {
    pub(super) fn new(member: Member) -> Self {
        Self(Mutex::new(Arc::new(member)))
    }

    pub(super) fn current(&self) -> Arc<Member> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn replace(&self, member: Member) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(member);
    }

    /// The place, when nobody uses it any more.
    pub(super) fn into_member(self) -> Option<Member> {
        Arc::into_inner(self.0.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
