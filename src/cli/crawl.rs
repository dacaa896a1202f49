//! `paced crawl`: a run of the named sites and no others, until nothing is left.

use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tracing::{info, warn};

use super::signals::stop_on_signals;
use super::{Exit, Globals, Trouble, sites};
use crate::crawl::{CrawlOptions, CrawlReport, Ending, ItemsTo, crawl};
use crate::fetch::ConnectTo;
use crate::monitor::{Monitor, Progress, duration};
use crate::settings::parse_rate;
use crate::work::Workers;

/// Options of `paced crawl`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced crawl sites/books.toml
  paced crawl books quotes --workers 20 --deadline 10m
  paced crawl books --items - | jq .fields.title")]
pub(super) struct Options {
    /// Site files, or names of files in sites/
    #[arg(required = true, value_name = "SITE")]
    sites: Vec<String>,
    /// Give up an unfinished run first, and begin a new one
    #[arg(long)]
    fresh: bool,
    /// Downloads at once: auto, N, or MIN..MAX
    #[arg(long, default_value = "auto", value_name = "N")]
    workers: Workers,
    /// Write items to one file instead of a file a site; `-` is stdout
    #[arg(long, value_name = "FILE")]
    items: Option<PathBuf>,
    /// End after so many pages
    #[arg(long, value_name = "N")]
    max_pages: Option<u64>,
    /// The most request starts a second of this process, such as 50/s
    #[arg(long, value_name = "RATE", value_parser = max_rate)]
    max_rate: Option<NonZeroU32>,
    /// End after so long, such as 10m
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    deadline: Option<Duration>,
    /// Leave a site that could make no start for so long
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    give_up: Duration,
    /// Exit with 3 if there are dead letters
    #[arg(long)]
    fail_on_dead: bool,
    /// Lead requests elsewhere: HOST:PORT:ADDR:PORT, as curl does; that address may be private
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT")]
    connect_to: Vec<ConnectTo>,
    /// Trust the certificates of this PEM file besides the system's
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

impl Options {
    /// Items on the terminal would run into the bars.
    fn prints_items_to_a_terminal(&self) -> bool {
        self.items.as_ref().is_some_and(|file| file.as_os_str() == "-") && std::io::stdout().is_terminal()
    }
}

fn max_rate(text: &str) -> Result<NonZeroU32, String> {
    let rate = parse_rate(text).or_else(|| parse_rate(&format!("{text}/s")));
    rate.and_then(NonZeroU32::new).ok_or_else(|| format!("`{text}` is no rate; write it as 50/s"))
}

/// Crawls until nothing is left or a signal asks to stop.
pub(super) async fn run(options: Options, globals: &Globals) -> Result<Exit, Trouble> {
    let sites = sites::load_all(&options.sites)?;
    let draws = globals.draws() && !options.prints_items_to_a_terminal();
    let bars = globals.start_log(draws);
    let fail_on_dead = options.fail_on_dead;
    let stop = stop_on_signals()?;
    let monitor = Monitor::limited(options.max_pages);
    let progress = draws.then(|| Progress::new(monitor.clone(), bars));
    let report = crawl(crawl_options(options, globals)?, sites, monitor, progress, stop).await?;
    tell(&report);
    Ok(exit(&report, fail_on_dead))
}

fn crawl_options(options: Options, globals: &Globals) -> Result<CrawlOptions, Trouble> {
    let mut places = globals.places()?;
    match options.items {
        Some(file) if file.as_os_str() == "-" => places.items = ItemsTo::Stdout,
        Some(file) => places.items = ItemsTo::File(file),
        None => {}
    }
    let cacert = options.cacert.map(|file| {
        std::fs::read(&file).map_err(|e| Trouble::usage(format!("--cacert {}: {e}", file.display())))
    });
    Ok(CrawlOptions {
        places,
        settings: globals.settings()?,
        workers: options.workers,
        fresh: options.fresh,
        max_pages: options.max_pages,
        max_rate: options.max_rate,
        deadline: options.deadline,
        give_up: options.give_up,
        connect_to: options.connect_to,
        cacert: cacert.transpose()?,
    })
}

/// The last log lines: what came of it, site by site, and how it ended.
pub(super) fn tell(report: &CrawlReport) {
    for (view, tally) in &report.sites {
        info!(
            site = view.site,
            done = view.download.done,
            waiting = view.download.waiting + view.download.delayed,
            dead = view.download.letters + view.parse.letters,
            items = tally.items,
            early = tally.early,
            took = %duration(view.at.since(view.run_began)),
            "crawled"
        );
    }
    for (site, why) in &report.given_up {
        warn!(site, "given up: {why}; it goes on at the next start");
    }
    let dead = report.dead();
    match report.ending {
        Ending::Finished => info!(dead, "done"),
        Ending::GivenUp => warn!(dead, "ended early: sites were given up"),
        Ending::Deadline => warn!(dead, "ended early: the deadline is over; the next start goes on here"),
        Ending::MaxPages => warn!(dead, "ended early: --max-pages is reached; the next start goes on here"),
        Ending::Stopped => warn!(dead, "stopped; the next start goes on here"),
    }
}

fn exit(report: &CrawlReport, fail_on_dead: bool) -> Exit {
    match report.ending {
        Ending::Stopped => Exit::Interrupted,
        Ending::GivenUp | Ending::Deadline | Ending::MaxPages => Exit::Early,
        Ending::Finished if report.is_fruitless() => Exit::Failed,
        Ending::Finished if fail_on_dead && report.dead() > 0 => Exit::Early,
        Ending::Finished => Exit::Done,
    }
}
