//! `paced work`: a worker of a shared frontier, for as long as nobody tells it to stop.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tracing::{error, info};

use crate::cli::parts::equipment::EquipmentOptions;
use crate::cli::parts::print_crawl::{tell_site, warn_of_held};
use crate::cli::parts::signals::{Stop, await_signals, reload_on_hangup};
use crate::cli::parts::{Exit, Globals, Trouble};
use crate::run::{Ending, WorkOptions, WorkReport, WorkerName, work};
use crate::work::Role;

/// Options of `paced work`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced work --sites sites/                 # reads them again on SIGHUP, drains on SIGTERM
  paced work --role download --name dl-1    # and, elsewhere: paced work --role parse
  paced work --lanes now                    # and, elsewhere, others for what isn't as urgent
  paced seed books && paced work --until-empty")]
pub(in crate::cli) struct WorkArgs {
    /// Ask sites for pages, parse those that others keep, or both
    #[arg(long, value_name = "ROLE", default_value = "both", value_parser = role())]
    role: Role,
    /// Register every *.toml of this folder, now and again on SIGHUP
    #[arg(long, value_name = "DIR")]
    sites: Option<PathBuf>,
    /// Work on these sites alone, as in books,music [default: all of the frontier]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = site_name)]
    only_sites: Option<Vec<String>>,
    /// Work on what waits in these lanes alone, as in now,general [default: all lanes]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = lane_name)]
    #[arg(conflicts_with_all = ["only_sites", "until_empty"])]
    lanes: Option<Vec<String>>,
    /// End once nothing is left in the frontier, or of --only-sites
    #[arg(long)]
    until_empty: bool,
    /// With --until-empty, exit with 3 if there are dead letters
    #[arg(long, requires = "until_empty")]
    fail_on_dead: bool,
    /// This worker's name: started again under it, it gets back what it had [default: host and process id]
    #[arg(long)]
    name: Option<WorkerName>,
    /// The exit code of a drained worker: 0 where what restarts workers can't leave 75 alone
    #[arg(long, value_name = "CODE", env = "PACED_DRAINED_EXIT", default_value = "75", value_parser = ["75", "0"])]
    drained_exit: String,
    #[command(flatten)]
    equipment: EquipmentOptions,
}

fn site_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("write names of sites, with commas between them".to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn lane_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("write names of lanes, with commas between them".to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(["download", "parse", "both"]).try_map(|text| text.parse::<Role>())
}

/// Works until a signal asks to stop, or nothing is left.
pub(super) async fn run(options: WorkArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let (fail_on_dead, drained_ends_well) = (options.fail_on_dead, options.drained_exit == "0");
    let shown = globals.start_log(true);
    let stop = await_signals()?;
    let reload = reload_on_hangup()?;
    let report = work(work_options(options, globals)?, shown, stop.token.clone(), reload).await?;
    tell(&report);
    Ok(exit(&report, &stop, fail_on_dead, drained_ends_well))
}

fn work_options(options: WorkArgs, globals: &Globals) -> Result<WorkOptions, Trouble> {
    let name = options.name.unwrap_or_else(WorkerName::of_this_process);
    let equipment = options.equipment.equipment(globals)?;
    let WorkArgs { role, only_sites, lanes, sites, until_empty, .. } = options;
    let named = |names: Vec<String>| names.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let (only_sites, lanes) = (only_sites.map(named), lanes.map(named));
    Ok(WorkOptions { role, only_sites, lanes, sites, until_empty, ..WorkOptions::new(equipment, name) })
}

/// The last log lines: what this process did, and where nothing is left, how the sites stand.
fn tell(report: &WorkReport) {
    report.sites.iter().for_each(|(view, tally)| tell_site(view, view.download.done, *tally));
    report.held.iter().for_each(warn_of_held);
    let did = report.total;
    info!(
        starts = did.starts,
        pages = did.pages,
        items = did.items,
        dead = did.dead,
        early = did.early,
        "this worker did"
    );
    match report.ending {
        Ending::Finished => info!(dead = report.dead.unwrap_or(0), "done"),
        Ending::Stopped | Ending::GivenUp | Ending::Deadline | Ending::MaxPages => {
            info!("stopped; others, or the next start, go on here");
        }
        Ending::Drained => info!("drained; others go on here"),
        Ending::Lacking => {
            error!("ended early: the password of a site is missing here; others, or the next start, go on");
        }
    }
}

fn exit(report: &WorkReport, stop: &Stop, fail_on_dead: bool, drained_ends_well: bool) -> Exit {
    match report.ending {
        Ending::Stopped if stop.interrupted.is_cancelled() => Exit::Interrupted,
        Ending::Drained if drained_ends_well => Exit::Done,
        Ending::Drained => Exit::Drained,
        Ending::Lacking => Exit::Failed,
        Ending::Stopped if !stop.token.is_cancelled() => Exit::Failed,
        Ending::Finished if !report.held.is_empty() => Exit::Early,
        Ending::Finished if fail_on_dead && report.dead.is_some_and(|dead| dead > 0) => Exit::Early,
        _ => Exit::Done,
    }
}
