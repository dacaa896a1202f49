//! A crawl: a run of the named sites and no others, until nothing is left or it is told to stop.

mod parts;
mod report;
mod sites;
mod standstill;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub(crate) use parts::work_until;
pub use parts::{Equipment, ItemsTo, Places};
pub use report::{CrawlReport, Ending, SiteReport};
pub use sites::register;
pub(crate) use sites::{begin, refuse_while_crawled, register_one, warn_without_contact};
pub(crate) use watch::entered;

use crate::archive::ArchiveError;
use crate::fetch::{FetcherError, lacking};
use crate::frontier::{Frontier, FrontierError};
use crate::monitor::{Monitor, Progress};
use crate::sink::SinkError;
use crate::site::Site;
use crate::work::{Left, Role};
use watch::Watch;

/// How a crawl is run.
#[derive(Clone, Debug)]
pub struct CrawlOptions {
    /// What it works with.
    pub equipment: Equipment,
    /// Give up an unfinished run first.
    pub fresh: bool,
    /// End after so many pages.
    pub max_pages: Option<u64>,
    /// End after so long.
    pub deadline: Option<Duration>,
    /// Leave a site that could make no start for so long.
    pub give_up: Duration,
}

impl CrawlOptions {
    /// `--give-up` where it isn't named.
    pub const GIVE_UP: Duration = Duration::from_mins(10);

    /// A crawl with nothing out of the ordinary.
    pub fn new(places: Places) -> Self {
        Self {
            equipment: Equipment::new(places),
            fresh: false,
            max_pages: None,
            deadline: None,
            give_up: Self::GIVE_UP,
        }
    }
}

/// Why a crawl, or a worker, could not run.
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
    /// There are no threads to parse pages on.
    #[error("can't start threads that parse pages: {0}; is the limit of processes reached (ulimit -u)?")]
    Threads(#[source] std::io::Error),
    /// A site could not be registered.
    #[error("{0}")]
    Refused(String),
    /// The folder of site files can't be read.
    #[error("--sites {path}: {source}; name a folder of site files", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
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
    if let Some(what) = sites.iter().find_map(lacking) {
        return Err(CrawlError::Refused(what));
    }
    let equipment = &options.equipment;
    let frontier = Frontier::open(&equipment.places.frontier)?;
    let roster = register(&frontier, &equipment.settings, &sites).await?;
    let names = roster.names();
    if options.fresh {
        refuse_while_crawled(&frontier, &names).await?;
    }
    let join = async |frontier: &Frontier| frontier.join(names).await;
    let crew = equipment.crew(&frontier, &roster, Role::Both, &watched, join).await?;
    let mut found = BTreeMap::new();
    for site in &sites {
        let view = frontier.view(&site.name).await?;
        found.insert(site.name.clone(), (view, begin(&frontier, site, options.fresh).await?));
    }
    let mut watch = Watch::new(&options, &frontier, &roster, &watched, progress);
    watch.look().await?;
    let watching = async |pool_ended: &dyn Fn() -> bool| watch.until_the_end(&stop, pool_ended).await;
    let ending = work_until(crew, equipment.workers, &stop, watching).await?;
    Ok(watch.report(ending, found).await?)
}
