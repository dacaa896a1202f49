//! A worker: one process of several that share a frontier. It works on whatever the frontier holds until it is told to stop.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::campaigns::CampaignFeeder;
use super::error::RunError;
use super::feed::Recrawls;
use super::parts::{ItemsTo, RunParts, work_until};
use super::register::agree;
use super::report::Ending;
use super::site_folder::{SiteFolder, read_again_when_told};
use super::telling::{Telling, failure};
use super::turn::InTurn;
use super::watch::{AllResults, Goal, Watch};
use super::worker_name::WorkerName;
use crate::frontier::{Frontier, View, without_password};
use crate::monitor::{Shown, Tally};
use crate::task::Stage;
use crate::work::{Role, SiteRules};

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkOptions {
    /// What it works with. Its items go to files of its own.
    pub equipment: RunParts,
    /// Its name among all that share the frontier.
    pub name: WorkerName,
    /// Which of the two lines it walks.
    pub role: Role,
    /// The sites on which it works; none: all of the frontier (N7).
    pub only_sites: Option<Vec<String>>,
    /// The lanes that it serves; none: all of them (N7).
    pub lanes: Option<Vec<String>>,
    /// A folder of site files to register at the start, and again when told to.
    pub sites: Option<PathBuf>,
    /// End once nothing is left.
    pub until_empty: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct WorkReport {
    /// Why it ended.
    pub ending: Ending,
    /// What it did in all.
    pub total: Tally,
    /// Where nothing is left: how the sites stand on which it worked, and what it did for each.
    pub sites: Vec<(View, Tally)>,
    /// Where nothing is left: dead letters of all sites on which it may work.
    pub dead: Option<u64>,
    /// Where nothing is left: those of these sites that have sessions which a dead step holds.
    pub held: Vec<View>,
}

impl WorkOptions {
    /// A worker that does everything until it is told to stop. Where items would go to a folder, each site's go to a file
    /// of this worker there.
    pub fn new(mut equipment: RunParts, name: WorkerName) -> Self {
        if let ItemsTo::Folder(folder) = equipment.places.items {
            equipment.places.items = ItemsTo::FolderOf(folder, name.to_string());
        }
        Self {
            equipment,
            name,
            role: Role::default(),
            only_sites: None,
            lanes: None,
            sites: None,
            until_empty: false,
        }
    }
}

impl WorkReport {
    fn of(ending: Ending, total: Tally) -> Self {
        Self { ending, total, sites: Vec::new(), dead: None, held: Vec::new() }
    }
}

/// Works on all sites of the frontier, whoever registers them and whenever, until `stop` is cancelled and what runs is
/// done. Each `reload` reads the site files again.
pub async fn work(
    options: WorkOptions,
    shown: Shown,
    stop: CancellationToken,
    reload: Arc<Notify>,
) -> Result<WorkReport, RunError> {
    let WorkOptions { equipment, name, role, only_sites, lanes, sites, until_empty } = options;
    let rules = match (&only_sites, &lanes) {
        (Some(only), _) => SiteRules::of_only(only),
        (None, Some(lanes)) => SiteRules::of_lanes(lanes),
        (None, None) => SiteRules::of_all(),
    };
    let mut folder = sites.map(|sites| SiteFolder::open(&sites, &equipment.settings, &rules)).transpose()?;
    let frontier = Frontier::open(&equipment.places.frontier)?;
    agree(&frontier, &equipment.settings).await?;
    must_be_lanes(lanes.as_deref().unwrap_or_default(), &frontier).await?;
    if let Some(folder) = &mut folder {
        folder.read(&frontier, None).await?;
    }
    if let Some(only) = &only_sites {
        look_for(only, until_empty, &frontier).await?;
    }
    let telling = Telling::begin(&frontier, &equipment)?;
    let join = async |frontier: &Frontier| {
        stop.run_until_cancelled(frontier.join_as(name.as_str(), rules.scope())).await
    };
    let sites_told = only_sites.unwrap_or_default();
    let parts = match equipment.parts(&frontier, &rules, role, None, &telling.events, join).await {
        Ok(Some(parts)) => parts,
        Ok(None) => return Ok(WorkReport::of(Ending::Stopped, Tally::default())),
        Err(error) => {
            let why = format!("a worker can't start: {error}; it is started again once that is mended");
            telling.end(vec![failure(&sites_told, why)], stop.is_cancelled(), &stop).await;
            return Err(error);
        }
    };
    let serves = lanes.map(|lanes| format!(", in {}", lanes.join(", "))).unwrap_or_default();
    info!(%name, %role, "at work on {}{serves}", without_password(&equipment.places.frontier));
    let monitor = parts.monitor.clone();
    let mut watch = Watch::new(Goal::All { until_empty }, &parts, shown, telling.dead_share);
    let watching = async |over: &CancellationToken| {
        tokio::select! {
            ending = watch.until_the_end(over) => ending,
            never = read_again_when_told(folder, &frontier, &reload) => match never {},
        }
    };
    // Who ends once nothing is left must not bring in what is due later.
    let feeds = role.walks(Stage::Download) && !until_empty;
    let feeding = || tokio::spawn(InTurn::new(&frontier, Recrawls(frontier.clone())).work(stop.clone()));
    let feeding = feeds.then(|| AbortOnDropHandle::new(feeding()));
    let campaigns =
        || tokio::spawn(InTurn::new(&frontier, CampaignFeeder::new(frontier.clone())).work(stop.clone()));
    let campaigns = role.walks(Stage::Download).then(|| AbortOnDropHandle::new(campaigns()));
    let ended = work_until(parts, equipment.workers, &stop, watching).await;
    drop((feeding, campaigns));
    let asked = stop.is_cancelled() || matches!(ended, Ok(Ending::Drained));
    let failures = why_failed(&ended, asked).map(|why| failure(&sites_told, why)).into_iter().collect();
    telling.end(failures, asked, &stop).await;
    let ending = ended?;
    let mut report = WorkReport::of(ending, monitor.total());
    if ending == Ending::Finished {
        match stop.run_until_cancelled(watch.results()).await.transpose()? {
            Some(AllResults { sites, dead, held }) => {
                (report.sites, report.dead, report.held) = (sites, Some(dead), held);
            }
            None => report.ending = Ending::Stopped,
        }
    }
    Ok(report)
}

/// Why a worker ended that was not told to.
fn why_failed(ended: &Result<Ending, RunError>, asked: bool) -> Option<String> {
    match ended {
        Err(error) => Some(format!("a worker can't go on: {error}; start it again once that is mended")),
        Ok(Ending::Lacking) => Some("the password of a site is missing on a worker's machine".to_owned()),
        Ok(Ending::Stopped) if !asked => {
            Some("a worker can't bring its pages to their end; its log tells why".to_owned())
        }
        Ok(_) => None,
    }
}

/// Nobody would ever put anything into a lane that is misspelt.
async fn must_be_lanes(lanes: &[String], frontier: &Frontier) -> Result<(), RunError> {
    let fleet = frontier.fleet_rules().await?;
    match lanes.iter().find_map(|lane| fleet.no_such_lane(lane)) {
        None => Ok(()),
        Some(refusal) => Err(RunError::NoLane(refusal)),
    }
}

/// A name that is misspelt would be waited for in silence, or nothing would be left of it.
async fn look_for(names: &[String], until_empty: bool, frontier: &Frontier) -> Result<(), RunError> {
    let known: BTreeSet<String> = frontier.views(names).await?.into_iter().map(|view| view.site).collect();
    for site in names.iter().filter(|name| !known.contains(*name)) {
        if until_empty {
            return Err(RunError::Refused(format!("there is no site `{site}`: `paced seed` its file first")));
        }
        warn!(site, "there is no such site yet: it is worked on once somebody registers it");
    }
    Ok(())
}
