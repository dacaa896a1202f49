//! A crawl: builds the parts from settings and sites, works until nothing is left or it is told to stop.

mod watch;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::archive::{Archive, ArchiveError, Location, writer_name};
use crate::clock::millis;
use crate::fetch::{Ceiling, ConnectTo, Fetcher, FetcherError, FetcherOptions};
use crate::frontier::{Frontier, FrontierError, Registered, Registration, SiteSettings, View};
use crate::monitor::{Monitor, Progress, Tally};
use crate::settings::Settings;
use crate::sink::{ItemSink, SinkError};
use crate::site::{RobotsPolicy, Site};
use crate::task::Put;
use crate::work::{Crew, CrewOptions, Left, Pool, Roster, Workers};
use watch::Watch;

/// Where a crawl keeps what it has.
#[derive(Clone, Debug)]
pub struct Places {
    /// The frontier's URL.
    pub frontier: String,
    /// Where pages are kept.
    pub pages: Location,
    /// Where items go.
    pub items: ItemsTo,
}

/// Where items go.
#[derive(Clone, Debug)]
pub enum ItemsTo {
    /// A file a site in this folder.
    Folder(PathBuf),
    /// One file.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// How a crawl is run.
#[derive(Clone, Debug)]
pub struct CrawlOptions {
    /// Where it keeps what it has.
    pub places: Places,
    /// What holds for all sites.
    pub settings: Settings,
    /// How many downloads at once.
    pub workers: Workers,
    /// Give up an unfinished run first.
    pub fresh: bool,
    /// End after so many pages.
    pub max_pages: Option<u64>,
    /// The most starts a second of this process.
    pub max_rate: Option<NonZeroU32>,
    /// End after so long.
    pub deadline: Option<Duration>,
    /// Leave a site that could make no start for so long.
    pub give_up: Duration,
    /// Where requests go instead.
    pub connect_to: Vec<ConnectTo>,
    /// Certificates in PEM to trust besides the system's.
    pub cacert: Option<Vec<u8>>,
}

impl Places {
    /// Everything below one folder.
    pub fn below(data: &Path) -> Self {
        Self {
            frontier: format!("sqlite:{}", data.join("frontier.db").display()),
            pages: Location::Folder(data.join("pages")),
            items: ItemsTo::Folder(data.join("items")),
        }
    }
}

impl CrawlOptions {
    /// `--give-up` where it isn't named.
    pub const GIVE_UP: Duration = Duration::from_mins(10);

    /// A crawl with nothing out of the ordinary.
    pub fn new(places: Places) -> Self {
        Self {
            places,
            settings: Settings::default(),
            workers: Workers::default(),
            fresh: false,
            max_pages: None,
            max_rate: None,
            deadline: None,
            give_up: Self::GIVE_UP,
            connect_to: Vec::new(),
            cacert: None,
        }
    }
}

/// Why a crawl could not run.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// The frontier could not do its part.
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    /// The archive could not be opened.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The items' place could not be opened.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The fetcher could not be made.
    #[error(transparent)]
    Fetcher(#[from] FetcherError),
    /// Tasks could not be brought to their end; what is left goes on at the next start.
    #[error(transparent)]
    Work(#[from] Left),
    /// A site could not be registered.
    #[error("{0}")]
    Refused(String),
}

/// Why a crawl ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing is left.
    Finished,
    /// Nothing is left but sites that were given up.
    GivenUp,
    /// Its time was over.
    Deadline,
    /// It has the most pages it may have.
    MaxPages,
    /// It was told to stop.
    Stopped,
}

/// How a crawl went.
#[derive(Clone, Debug)]
pub struct CrawlReport {
    /// Why it ended.
    pub ending: Ending,
    /// How each site stands, and what this process did for it.
    pub sites: Vec<(View, Tally)>,
    /// Sites given up, and why each made no start.
    pub given_up: Vec<(String, String)>,
}

impl CrawlReport {
    /// Dead letters of all sites.
    pub fn dead(&self) -> u64 {
        self.sites.iter().map(|(view, _)| view.download.letters + view.parse.letters).sum()
    }

    /// Whether no page at all came of it, though some were asked for.
    pub fn is_fruitless(&self) -> bool {
        let pages: u64 = self.sites.iter().map(|(view, _)| view.parse.created + view.parse.coalesced).sum();
        pages == 0
    }
}

/// Crawls the sites until nothing is left, or until `stop` is cancelled and what runs is done.
///
/// `watched` counts what happens, and `progress` draws it.
pub async fn crawl(
    options: CrawlOptions,
    sites: Vec<Site>,
    watched: Monitor,
    progress: Option<Progress>,
    stop: CancellationToken,
) -> Result<CrawlReport, CrawlError> {
    let frontier = Frontier::open(&options.places.frontier)?;
    let roster = register(&frontier, &options.settings, &sites).await?;
    if options.fresh {
        refuse_while_crawled(&frontier, &roster.names()).await?;
    }
    let crew = Arc::new(crew(&options, &frontier, &roster, &watched).await?);
    begin(&frontier, &sites, options.fresh).await?;
    let drain = stop.child_token();
    let pool = Pool::new(Arc::clone(&crew), options.workers, drain.clone());
    let mut watch = Watch::new(&options, &frontier, &roster, &watched, progress);
    watch.look().await?;
    let working = tokio::spawn(pool.work());
    let ending = watch.until_the_end(&stop, || working.is_finished()).await;
    drain.cancel();
    let worked = working.await.unwrap_or_else(|panic| {
        warn!(%panic, "the pool broke; its leases return");
        Ok(())
    });
    let report = watch.report(ending?).await?;
    if let Some(crew) = Arc::into_inner(crew) {
        crew.disband().await?;
    }
    worked?;
    Ok(report)
}

/// Puts the sites' rules in force.
pub async fn register(
    frontier: &Frontier,
    settings: &Settings,
    sites: &[Site],
) -> Result<Roster, CrawlError> {
    let roster = Roster::default();
    for site in sites {
        match frontier.register(registration(site, settings)).await? {
            Registered::Version(version) => roster.put(site.clone(), version),
            Registered::Refused(why) => return Err(CrawlError::Refused(why)),
        };
        if site.pace.robots == RobotsPolicy::Ignore {
            warn!(site = site.name, "robots.txt is ignored, as the site's file says");
        }
        if site.pace.contact.is_none() {
            warn!(site = site.name, "no contact: name one in [pace], so that the site's owner can reach you");
        }
    }
    Ok(roster)
}

fn registration(site: &Site, settings: &Settings) -> Registration {
    let group = site.group.as_ref().map(|group| {
        let interval = settings.groups.get(group).copied().unwrap_or(Duration::ZERO);
        (site.unit(), millis(interval))
    });
    let rules = site.pages.iter().filter_map(|rule| Some((rule.name.clone(), rule.max_pages?)));
    let whole = site.scope.max_pages.map(|most| (String::new(), most));
    Registration {
        name: site.name.clone(),
        text: site.text.clone(),
        group,
        hosts: site.scope.hosts.iter().map(ToString::to_string).collect(),
        settings: SiteSettings {
            interval: millis(site.pace.interval),
            parallel: site.pace.parallel,
            attempts: site.fetch.attempts,
            robots: site.pace.robots == RobotsPolicy::Obey,
            budgets: rules.chain(whole).collect(),
        },
    }
}

/// A fresh run while another process crawls the site would drop what that one works on.
async fn refuse_while_crawled(frontier: &Frontier, names: &[String]) -> Result<(), CrawlError> {
    // Joining once buries processes that are gone, so that only living ones stand in the way.
    let looker = frontier.join(Vec::new()).await?;
    let owners = frontier.owners().await?;
    frontier.leave(looker).await?;
    let living = owners.iter().filter(|owner| !owner.dead);
    let crawling = living.filter(|owner| owner.crawls.iter().any(|site| names.contains(site)));
    match crawling.min_by_key(|owner| owner.pid) {
        None => Ok(()),
        Some(owner) => Err(CrawlError::Refused(format!(
            "process {} crawls {} right now: stop it before you begin --fresh",
            owner.pid,
            owner.crawls.join(", ")
        ))),
    }
}

async fn crew(
    options: &CrawlOptions,
    frontier: &Frontier,
    roster: &Roster,
    monitor: &Monitor,
) -> Result<Crew, CrawlError> {
    let fetcher = Fetcher::new(FetcherOptions {
        connect_to: options.connect_to.clone(),
        cacert: options.cacert.clone(),
    })?;
    let archive = Archive::open_at(&options.places.pages, &writer_name(), frontier.clock()).await?;
    let sink = match &options.places.items {
        ItemsTo::Folder(folder) => ItemSink::folder(folder)?,
        ItemsTo::File(file) => ItemSink::file(file)?,
        ItemsTo::Stdout => ItemSink::stdout(),
    };
    let set = options.settings.max_rate.and_then(NonZeroU32::new);
    Ok(Crew::new(CrewOptions {
        frontier: frontier.clone(),
        member: frontier.join(roster.names()).await?,
        fetcher,
        ceiling: Ceiling::per_second(options.max_rate.or(set)),
        archive,
        sink,
        roster: roster.clone(),
        monitor: monitor.clone(),
    }))
}

/// Begins each site's run, or goes on with it.
async fn begin(frontier: &Frontier, sites: &[Site], fresh: bool) -> Result<(), FrontierError> {
    for site in sites {
        let seeds = seeds(site);
        let run = if fresh {
            frontier.begin_fresh_run(&site.name, seeds).await?
        } else {
            frontier.begin_run(&site.name, seeds).await?
        };
        let how = if run.begun { "run begun" } else { "run goes on where it was" };
        info!(site = site.name, run = run.number, "{how}");
    }
    Ok(())
}

fn seeds(site: &Site) -> Vec<Put> {
    let rule = |url| site.rule_for(url).map(|rule| rule.name.clone());
    site.seeds.iter().map(|seed| Put { rule: rule(seed), ..Put::seed(seed.clone()) }).collect()
}
