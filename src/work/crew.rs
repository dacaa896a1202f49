//! What the two lines need, once a process: the frontier, the fetcher, the archive, the sink, and the sites' rules.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tracing::{info, warn};

use super::handover::Handover;
use super::membership::Membership;
use super::verdicts::Verdicts;
use crate::archive::Archive;
use crate::canonical_url::{CanonicalUrl, Host};
use crate::fetch::{Ceiling, Fetcher};
use crate::frontier::{Frontier, FrontierError, FrontierErrorKind, Member};
use crate::monitor::Monitor;
use crate::sink::ItemSink;
use crate::site::{self, Site};
use crate::task::{Lease, Outcome, Settled, Settlement};

/// The longest pause between two tries to reach the frontier.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

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
    pub(super) roster: Roster,
    pub(super) monitor: Monitor,
    pub(super) verdicts: Verdicts,
    pub(super) handover: Handover,
}

impl Crew {
    /// A crew ready to work.
    pub fn new(options: CrewOptions) -> Self {
        Self {
            verdicts: Verdicts::new(options.frontier.clone()),
            frontier: options.frontier,
            member: Membership::new(options.member),
            fetcher: options.fetcher,
            ceiling: options.ceiling,
            archive: options.archive,
            sink: options.sink,
            roster: options.roster,
            monitor: options.monitor,
            handover: Handover::default(),
        }
    }

    /// The frontier.
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// The counters.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// Finishes what is being kept, and leaves.
    pub async fn disband(self) -> Result<(), FrontierError> {
        if let Err(error) = self.archive.close().await {
            warn!(%error, "the archive could not be closed");
        }
        if let Err(error) = self.sink.flush().await {
            warn!(%error, "items could not be flushed");
        }
        match self.member.into_member() {
            Some(member) => self.frontier.leave(member).await,
            None => Ok(()),
        }
    }

    /// This process was declared dead, its leases are lost: it goes on under another name.
    pub(super) async fn join_anew(&self) -> Result<(), FrontierError> {
        let member = self.frontier.join_anew(&self.member.current()).await?;
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
        let text = self.frontier.text(&lease.site).await?.ok_or_else(no_site)?;
        let site = site::parse(&text, &format!("{}.toml", lease.site)).map_err(|errors| {
            FrontierError::new(FrontierErrorKind::Broken, lease.site.clone()).because(errors)
        })?;
        info!(site = lease.site, version = lease.version, "the site's rules changed");
        Ok(self.roster.put(site, lease.version))
    }

    /// The site of this process whose host a URL is on; the asking site's own hosts come first.
    pub(super) fn owner_of(&self, site: &Arc<Site>, url: &url::Url) -> Option<Arc<Site>> {
        let url = CanonicalUrl::from_url(url.clone()).ok()?;
        if site.scope.owns(&url) { Some(Arc::clone(site)) } else { self.roster.owner(&url.host()) }
    }

    /// Settles a task and keeps at it while the frontier can't be reached. A lost lease is said once and changes nothing.
    pub(super) async fn settle(&self, lease: Lease, outcome: Outcome) -> Result<(), FrontierError> {
        self.settle_with(lease, outcome, None, None).await
    }

    pub(super) async fn settle_with(
        &self,
        lease: Lease,
        outcome: Outcome,
        block: Option<(Duration, String)>,
        response: Option<Duration>,
    ) -> Result<(), FrontierError> {
        let (site, url, stage) = (lease.site.clone(), lease.url.clone(), lease.stage);
        let token = fastrand::u64(..);
        let said = outcome.clone();
        if let Some((wait, why)) = &block {
            warn!(site, wait_s = wait.as_secs(), "the site is left alone: {why}");
        }
        let settlement = Settlement { lease, outcome, block, response };
        let settled = self.settle_patiently(token, settlement).await?;
        self.monitor.settled(&site, stage, &said, &settled);
        match (&settled, &said) {
            (Settled::Stale, _) => {
                warn!(site, url = url.as_str(), stage = %stage, "its lease was lost; somebody else does it again");
            }
            (Settled::Died, Outcome::Retry { why, .. } | Outcome::Dead { why }) => {
                warn!(site, url = url.as_str(), stage = %stage, "dead letter: {}", why.reason);
            }
            _ => {}
        }
        Ok(())
    }

    async fn settle_patiently(&self, token: u64, settlement: Settlement) -> Result<Settled, FrontierError> {
        let mut pause = Duration::from_millis(50);
        let member = self.member.current();
        loop {
            let asked = self.frontier.settle(&member.name, token, vec![settlement.clone()]).await;
            match asked {
                Ok(settled) => return Ok(settled.into_iter().next().unwrap_or(Settled::Stale)),
                Err(error) if error.is_transient() => {
                    warn!(%error, "what was done can't be settled yet");
                    tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64())).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// The sites of a process, and which of them owns a host. Shared; newer rules replace older ones.
#[derive(Clone, Debug, Default)]
pub struct Roster(Arc<RwLock<Sites>>);

#[derive(Debug, Default)]
struct Sites {
    by_name: HashMap<String, (i64, Arc<Site>)>,
    by_host: HashMap<Host, String>,
    left: HashSet<String>,
}

impl Roster {
    /// Takes a site in, by the version under which it is registered.
    pub fn put(&self, site: Site, version: i64) -> Arc<Site> {
        let mut sites = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for host in &site.scope.hosts {
            sites.by_host.entry(host.clone()).or_insert_with(|| site.name.clone());
        }
        let site = Arc::new(site);
        sites.by_name.insert(site.name.clone(), (version, Arc::clone(&site)));
        site
    }

    /// The names of the sites that are worked on, in order.
    pub fn names(&self) -> Vec<String> {
        let sites = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> =
            sites.by_name.keys().filter(|name| !sites.left.contains(*name)).cloned().collect();
        names.sort();
        names
    }

    /// Leaves a site to others.
    pub fn remove(&self, name: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).left.insert(name.to_owned());
    }

    /// A site by its rules of that version or newer.
    pub(super) fn get(&self, name: &str, version: i64) -> Option<Arc<Site>> {
        let sites = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sites.by_name.get(name).filter(|(known, _)| *known >= version).map(|(_, site)| Arc::clone(site))
    }

    /// The site that owns a host, among those of this process.
    pub(super) fn owner(&self, host: &Host) -> Option<Arc<Site>> {
        let sites = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let name = sites.by_host.get(host)?;
        sites.by_name.get(name).map(|(_, site)| Arc::clone(site))
    }
}
