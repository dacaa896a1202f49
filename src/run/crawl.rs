//! A crawl: a run of the named sites and no others, until nothing is left or it is told to stop.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::error::RunError;
use super::parts::{Outputs, RunParts, work_until};
use super::register::{begin, refuse_while_crawled, register};
use super::report::{CrawlReport, Ending, SiteReport};
use super::telling::{Telling, failure};
use super::watch::{Goal, Watch};
use crate::clock;
use crate::fetch::lacking;
use crate::frontier::{Frontier, FrontierError, FrontierErrorKind, Run, View, without_password};
use crate::monitor::Shown;
use crate::signature::KeyFolder;
use crate::site::Site;
use crate::task::Event;
use crate::work::{Role, SiteRules};

/// How long the last look may take: a frontier on a server that is away may not answer at all.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// How a crawl is run.
#[derive(Clone, Debug)]
pub struct CrawlOptions {
    /// What it works with.
    pub equipment: RunParts,
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
    pub fn new(places: Outputs) -> Self {
        Self {
            equipment: RunParts::new(places),
            fresh: false,
            max_pages: None,
            deadline: None,
            give_up: Self::GIVE_UP,
        }
    }
}

/// Crawls the sites until nothing is left, or until `stop` is cancelled and what runs is done.
///
/// How it goes is told meanwhile, as `shown` says.
pub async fn crawl(
    options: CrawlOptions,
    sites: Vec<Site>,
    shown: Shown,
    stop: CancellationToken,
) -> Result<CrawlReport, RunError> {
    let keys = KeyFolder::new(&options.equipment.places.keys);
    if let Some(what) = sites.iter().find_map(|site| lacking(site, &keys)) {
        return Err(RunError::Refused(what));
    }
    let equipment = &options.equipment;
    let frontier = Frontier::open(&equipment.places.frontier)?;
    let rules = register(&frontier, &equipment.settings, &sites).await?;
    let names = rules.names();
    if options.fresh {
        refuse_while_crawled(&frontier, &names).await?;
    }
    let telling = Telling::begin(&frontier, equipment)?;
    let report = run_to_its_end(&options, (&frontier, &rules), &sites, shown, (&stop, &telling)).await;
    let is_drained = report.as_ref().is_ok_and(|report| report.ending == Ending::Drained);
    let asked = stop.is_cancelled() || is_drained;
    telling.end(failures(&report, &names, asked), asked, &stop).await;
    report
}

/// Why a crawl failed that was not told to end.
fn failures(report: &Result<CrawlReport, RunError>, names: &[String], asked: bool) -> Vec<Event> {
    match report {
        Err(error) => {
            vec![failure(
                names,
                format!("the crawl can't go on: {error}; start it again once that is mended"),
            )]
        }
        Ok(report) if report.ending == Ending::Finished && report.is_fruitless() => {
            let of = |site: &SiteReport| {
                let site = &site.view.site;
                let why = format!("the run ended without a page: `paced explain {site}` tells why");
                failure(std::slice::from_ref(site), why)
            };
            report.sites.iter().map(of).collect()
        }
        Ok(report) if report.ending == Ending::Stopped && !asked => {
            vec![failure(names, "the crawl can't bring its pages to their end; its log tells why")]
        }
        Ok(_) => Vec::new(),
    }
}

async fn run_to_its_end(
    options: &CrawlOptions,
    (frontier, rules): (&Frontier, &SiteRules),
    sites: &[Site],
    shown: Shown,
    (stop, telling): (&CancellationToken, &Telling),
) -> Result<CrawlReport, RunError> {
    let equipment = &options.equipment;
    let join = async |frontier: &Frontier| stop.run_until_cancelled(frontier.join(rules.scope())).await;
    let parts = equipment.parts(frontier, rules, Role::Both, options.max_pages, &telling.events, join);
    let Some(parts) = parts.await? else {
        return Ok(CrawlReport { ending: Ending::Stopped, sites: Vec::new(), given_up: Vec::new() });
    };
    let mut found = BTreeMap::new();
    let deadline = options.deadline.and_then(|deadline| Instant::now().checked_add(deadline));
    let beginning = Box::pin(parts.alive_during(begin_all(frontier, sites, options.fresh, &mut found)));
    let cut_short = tokio::select! {
        begun = beginning => begun.map(|()| None)?,
        () = stop.cancelled() => Some(Ending::Stopped),
        () = parts.drained.cancelled() => Some(Ending::Drained),
        () = clock::wait(options.deadline.unwrap_or(Duration::MAX)) => Some(Ending::Deadline),
    };
    let goal = Goal::Named { names: rules.names(), give_up: options.give_up, deadline };
    let monitor = parts.monitor.clone();
    let mut watch = Watch::new(goal, &parts, shown, telling.dead_share);
    let ending = if let Some(ending) = cut_short {
        parts.disband().await?;
        ending
    } else {
        watch.is_finished().await?;
        let watching = async |over: &CancellationToken| watch.until_the_end(over).await;
        work_until(parts, equipment.workers, stop, watching).await?
    };
    let looked = clock::within(LAST_LOOK, watch.is_finished()).await;
    let (views, given_up) = watch.end();
    let no_answer =
        || FrontierError::new(FrontierErrorKind::Away, without_password(&equipment.places.frontier));
    let finished = looked.unwrap_or_else(|| Err(no_answer().because("how the sites stand can't be told")))?;
    let site = |view: &View| {
        let (found, run) = found.get(&view.site)?.clone();
        let tally = monitor.tally(&view.site);
        Some(SiteReport { found: found.unwrap_or_else(|| view.clone()), run, view: view.clone(), tally })
    };
    let sites = views.iter().filter_map(site).collect();
    let is_whole = cut_short.is_none() && given_up.is_empty();
    let ending = if finished && is_whole { Ending::Finished } else { ending };
    Ok(CrawlReport { ending, sites, given_up })
}

/// Begins the runs of the sites, one after the other. It may be left at any moment: the next start puts the seeds that are left.
async fn begin_all(
    frontier: &Frontier,
    sites: &[Site],
    fresh: bool,
    found: &mut BTreeMap<String, (Option<View>, Run)>,
) -> Result<(), FrontierError> {
    for site in sites {
        let view = frontier.view(&site.name).await?;
        found.insert(site.name.clone(), (view, begin(frontier, site, fresh).await?));
    }
    Ok(())
}
