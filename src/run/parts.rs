//! What a process that works is made of, whoever tells it when to end: places, settings, and the parts built from them.

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::error::RunError;
use crate::archive::{Archive, Location, writer_name};
use crate::fetch::{Ceiling, ConnectTo, Fetcher, FetcherOptions};
use crate::frontier::{Frontier, FrontierError, Member, without_password};
use crate::manners::wall::FIRST_PROBE;
use crate::notify::EventPoster;
use crate::settings::Settings;
use crate::signature::KeyFolder;
use crate::sink::{ItemSink, SinkError};
use crate::work::{PartsOptions, Pool, Role, SiteRules, VisitParts, Workers};

/// Where a process keeps what it has.
#[derive(Clone)]
pub struct Outputs {
    /// The frontier's URL.
    pub frontier: String,
    /// Where pages are kept.
    pub pages: Location,
    /// Where items go.
    pub items: ItemsTo,
    /// The folder of keys to sign requests with.
    pub keys: PathBuf,
}

/// Where items go.
#[derive(Clone, Debug)]
pub enum ItemsTo {
    /// A file a site in this folder.
    Folder(PathBuf),
    /// A file a site and writer in this folder: one process of several, by its name.
    FolderOf(PathBuf, String),
    /// One file.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// What a process that works is equipped with.
#[derive(Clone, Debug)]
pub struct RunParts {
    /// Where it keeps what it has.
    pub places: Outputs,
    /// What holds for all sites.
    pub settings: Settings,
    /// How many downloads at once.
    pub workers: Workers,
    /// The most starts a second of this process.
    pub max_rate: Option<NonZeroU32>,
    /// Where requests go instead.
    pub connect_to: Vec<ConnectTo>,
    /// Certificates in PEM to trust besides the system's.
    pub cacert: Option<Vec<u8>>,
    /// How long the first probe of a wall waits.
    pub first_probe: Duration,
}

impl ItemsTo {
    fn open(&self) -> Result<ItemSink, SinkError> {
        match self {
            Self::Folder(folder) => ItemSink::folder(folder),
            Self::FolderOf(folder, writer) => ItemSink::folder_of(folder, writer),
            Self::File(file) => ItemSink::file(file),
            Self::Stdout => Ok(ItemSink::stdout()),
        }
    }
}

/// Without the password of the frontier's URL.
impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Outputs");
        shown.field("frontier", &without_password(&self.frontier));
        shown.field("pages", &self.pages).field("items", &self.items).field("keys", &self.keys).finish()
    }
}

impl Outputs {
    /// Everything below one folder.
    pub fn below(data: &Path) -> Self {
        Self {
            frontier: format!("sqlite:{}", data.join("frontier.db").display()),
            pages: Location::Folder(data.join("pages")),
            items: ItemsTo::Folder(data.join("items")),
            keys: data.join("keys"),
        }
    }
}

impl RunParts {
    /// A wall is probed for the first time after so long.
    pub const FIRST_PROBE: Duration = Duration::from_millis(FIRST_PROBE.unsigned_abs());

    /// Nothing out of the ordinary.
    pub fn new(places: Outputs) -> Self {
        Self {
            places,
            settings: Settings::default(),
            workers: Workers::default(),
            max_rate: None,
            connect_to: Vec::new(),
            cacert: None,
            first_probe: Self::FIRST_PROBE,
        }
    }

    /// Parts that work on the sites of the rules; this process joins the frontier last, once everything else is there. None where it
    /// was told to stop before it had joined.
    pub(crate) async fn parts(
        &self,
        frontier: &Frontier,
        rules: &SiteRules,
        role: Role,
        most_pages: Option<u64>,
        events: &EventPoster,
        join: impl AsyncFnOnce(&Frontier) -> Option<Result<Member, FrontierError>>,
    ) -> Result<Option<VisitParts>, RunError> {
        let fetcher = Fetcher::new(FetcherOptions {
            connect_to: self.connect_to.clone(),
            cacert: self.cacert.clone(),
            keys: KeyFolder::new(&self.places.keys),
        })?;
        let ceiling = self.max_rate.or(self.settings.max_rate.and_then(NonZeroU32::new));
        let archive = Archive::open_at(&self.places.pages, &writer_name(), frontier.clock()).await?;
        let sink = self.places.items.open()?;
        let Some(member) = join(frontier).await.transpose()? else { return Ok(None) };
        let parts = VisitParts::new(PartsOptions {
            fetcher,
            ceiling: Ceiling::per_second(ceiling),
            archive,
            sink,
            role,
            rules: rules.clone(),
            most_pages,
            first_probe: self.first_probe,
            member,
            frontier: frontier.clone(),
            events: events.clone(),
        });
        parts.map(Some).map_err(RunError::Threads)
    }
}

/// Works until `watch` says that it is over, finishes what runs, and leaves. What `watch` is given is cancelled when it is told
/// to stop, and when the pool has ended by itself, as one does that can't bring tasks to their end.
pub(crate) async fn work_until<T>(
    parts: VisitParts,
    workers: Workers,
    stop: &CancellationToken,
    watch: impl AsyncFnOnce(&CancellationToken) -> Result<T, FrontierError>,
) -> Result<T, RunError> {
    let parts = Arc::new(parts);
    let over = stop.child_token();
    let (pool, ended) = (Pool::new(Arc::clone(&parts), workers, over.clone()), over.clone().drop_guard());
    let working = tokio::spawn(async move {
        let _ended = ended;
        pool.work().await
    });
    let ending = watch(&over).await;
    over.cancel();
    let worked = working.await.unwrap_or_else(|panic| {
        warn!(%panic, "the pool broke; its leases return");
        Ok(())
    });
    if let Some(parts) = Arc::into_inner(parts) {
        parts.disband().await?;
    }
    worked?;
    Ok(ending?)
}
