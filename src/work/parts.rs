//! What the two lines need, once a process: the frontier, the fetcher, the archive, the sink, and the sites' rules.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::breakers::Breakers;
use super::fresh_pages::FreshPages;
use super::hosts::{Hosts, site_of_text};
use super::outages::Outages;
use super::parse_pool::ParsePool;
use super::refusals::Refusals;
use super::role::Role;
use super::rules::{A_WHILE, SiteRules};
use super::slots::Slots;
use super::under_way::UnderWay;
use crate::archive::Archive;
use crate::canonical_url::CanonicalUrl;
use crate::clock;
use crate::cores::cores;
use crate::fetch::{Ceiling, Fetcher};
use crate::frontier::permit::PermitGround;
use crate::frontier::unit_news::UnitNews;
use crate::frontier::{Frontier, FrontierError, Member};
use crate::monitor::Monitor;
use crate::notify::EventPoster;
use crate::robots::Verdicts;
use crate::sink::ItemSink;
use crate::site::Site;
use crate::task::{Lease, Outcome};

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
    /// How long the first probe of a wall waits.
    pub first_probe: Duration,
    /// Leaves what an operator is to be told.
    pub events: EventPoster,
}

/// What the two lines share. One a process.
#[derive(Debug)]
pub struct VisitParts {
    pub(crate) frontier: Frontier,
    /// This process's place among those that claim. It takes another one if it was declared dead by mistake.
    member: watch::Sender<Arc<Member>>,
    pub(super) fetcher: Fetcher,
    pub(super) ceiling: Ceiling,
    pub(super) archive: Archive,
    pub(super) sink: ItemSink,
    pub(super) role: Role,
    /// The sites that are crawled.
    pub(crate) rules: SiteRules,
    pub(super) hosts: Hosts,
    pub(crate) outages: Arc<Outages>,
    /// Cancelled when nothing more is claimed.
    pub(super) leaving: CancellationToken,
    /// Cancelled once the frontier asks this process to end.
    pub(crate) drained: CancellationToken,
    pub(crate) monitor: Monitor,
    pub(crate) breakers: Arc<Breakers>,
    pub(super) refusals: Refusals,
    /// How long the first probe of a wall waits.
    pub(super) first_probe: Duration,
    pub(crate) events: EventPoster,
    pub(crate) under_way: Arc<UnderWay>,
    /// What was learnt of pace units whose granted starts may not be sent yet.
    pub(crate) news: Arc<UnitNews>,
    pub(super) verdicts: Verdicts,
    pub(super) fresh_pages: FreshPages,
    /// A thread a core, and for one site half of them: with more, a site could hold every core.
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
            refusals: Refusals::default(),
            first_probe: options.first_probe,
            events: options.events,
            news: Arc::clone(options.rules.news()),
            under_way: Arc::new(UnderWay::new(options.most_pages)),
            verdicts: Verdicts::new(Some(&options.frontier)),
            frontier: options.frontier,
            member: watch::Sender::new(Arc::new(options.member)),
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
            parse_pool: ParsePool::new(cores().div_ceil(2))?,
            leaving,
            drained: CancellationToken::new(),
        })
    }

    /// What permits of a site go by.
    pub(super) fn ground_of(&self, site: &Site) -> PermitGround {
        PermitGround {
            frontier: self.frontier.clone(),
            unit: site.unit(),
            news: Arc::clone(&self.news),
            leaving: self.leaving.clone(),
        }
    }

    /// The site of a lease, by the rules in force when it was granted or newer ones.
    pub(super) async fn site(&self, lease: &Lease) -> Result<Arc<Site>, FrontierError> {
        if let Some(site) = self.rules.get(&lease.site, lease.version) {
            return Ok(site);
        }
        let text = self.outages.frontier.in_time(self.frontier.text(&lease.site)).await?;
        let text = text.ok_or_else(|| FrontierError::no_site(&lease.site))?;
        let site = site_of_text(&lease.site, &text)?;
        debug!(site = lease.site, version = lease.version, "the site's rules were read");
        Ok(self.rules.put(site, lease.version))
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
        if self.rules.is_of_all() {
            return self.hosts.owner(&self.frontier, &url.host()).await;
        }
        Ok(self.rules.owner(&url.host()))
    }

    /// How a task ends for now whose link or redirect leads to a site of which this process can't read the rules: others may, or
    /// this one's successor.
    pub(super) fn awaits_rules(&self, lease: &Lease, error: &FrontierError) -> Option<Outcome> {
        let owner = error.unreadable().filter(|owner| *owner != lease.site)?;
        self.rules.lacks(owner);
        if self.refusals.is_said_again(&lease.site, owner) {
            let (site, url) = (&lease.site, lease.url.as_str());
            warn!(site, url, "what leads to `{owner}` waits with its page: {error}");
        }
        Some(Outcome::Postponed { after: A_WHILE })
    }

    /// Learns whose hosts these URLs are on, before they are asked about one by one.
    pub(super) async fn learn_owners(&self, site: &Site, urls: &[url::Url]) -> Result<(), FrontierError> {
        if !self.rules.is_of_all() {
            return Ok(());
        }
        let urls = urls.iter().filter_map(|url| CanonicalUrl::from_url(url.clone()).ok());
        let foreign = urls.filter(|url| !site.scope.owns(url)).map(|url| url.host());
        self.hosts.learn(&self.frontier, foreign).await
    }

    /// This process's place among those that claim.
    pub(super) fn member(&self) -> Arc<Member> {
        Arc::clone(&self.member.borrow())
    }

    /// Finishes what is being kept, and leaves. A frontier that is away finds out by itself.
    pub async fn disband(self) -> Result<(), FrontierError> {
        if let Err(error) = self.archive.close().await {
            warn!(%error, "the archive could not be closed");
        }
        // Who reads a pipe may stand still: it isn't waited for without an end.
        self.leaving.cancel();
        if let Err(error) = self.outages.items.in_time(self.sink.flush()).await {
            warn!(%error, "items could not be flushed");
        }
        let member = self.member();
        drop(self.member);
        let Some(member) = Arc::into_inner(member) else { return Ok(()) };
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
        let scope = self.rules.scope_on(&self.frontier).await?;
        let member = self.frontier.join_anew(&self.member(), scope).await?;
        warn!(
            name = member.name,
            "this process was taken for dead and its leases are lost; it goes on under a new name"
        );
        self.under_way.doubt_all();
        self.member.send_replace(Arc::new(member));
        Ok(())
    }
}
