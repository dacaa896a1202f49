//! `paced crawl`: a run of the named sites and no others, until nothing is left.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tracing::{error, info, warn};

use super::equipment::EquipmentOptions;
use super::signals::stop_on_signals;
use super::{Exit, Globals, Trouble, sites};
use crate::frontier::View;
use crate::monitor::{Tally, duration};
use crate::run::{CrawlOptions, CrawlReport, Ending, ItemsTo, SiteReport, crawl};
use crate::task::Exclusion;

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
    /// Write items to one file instead of a file a site; `-` is stdout
    #[arg(long, value_name = "FILE")]
    items: Option<PathBuf>,
    /// End after so many pages
    #[arg(long, value_name = "N")]
    max_pages: Option<u64>,
    /// End after so long, such as 10m
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    deadline: Option<Duration>,
    /// Leave a site that could make no start for so long
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    give_up: Duration,
    /// Exit with 3 if there are dead letters
    #[arg(long)]
    fail_on_dead: bool,
    #[command(flatten)]
    equipment: EquipmentOptions,
}

impl Options {
    /// Items on the terminal would run into the bars.
    fn prints_items_to_a_terminal(&self) -> bool {
        self.items.as_ref().is_some_and(|file| file.as_os_str() == "-") && std::io::stdout().is_terminal()
    }
}

/// Crawls until nothing is left or a signal asks to stop.
pub(super) async fn run(options: Options, globals: &Globals) -> Result<Exit, Trouble> {
    let sites = sites::load_all(&options.sites)?;
    let shown = globals.start_log(!options.prints_items_to_a_terminal());
    let fail_on_dead = options.fail_on_dead;
    let stop = stop_on_signals()?;
    let report = crawl(crawl_options(options, globals)?, sites, shown, stop).await?;
    tell(&report);
    Ok(exit(&report, fail_on_dead))
}

fn crawl_options(options: Options, globals: &Globals) -> Result<CrawlOptions, Trouble> {
    let mut equipment = options.equipment.equipment(globals)?;
    match options.items {
        Some(file) if file.as_os_str() == "-" => equipment.places.items = ItemsTo::Stdout,
        Some(file) => equipment.places.items = ItemsTo::File(file),
        None => {}
    }
    Ok(CrawlOptions {
        equipment,
        fresh: options.fresh,
        max_pages: options.max_pages,
        deadline: options.deadline,
        give_up: options.give_up,
    })
}

/// The last log lines: what came of it, site by site, and how it ended.
pub(super) fn tell(report: &CrawlReport) {
    report.sites.iter().for_each(|site| tell_site(&site.view, site.done(), site.tally));
    for (site, why) in &report.given_up {
        warn!(site, "given up: {why}; it goes on at the next start");
    }
    if report.ending == Ending::Finished && report.is_fruitless() {
        report.sites.iter().for_each(tell_why_nothing);
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

/// Why not one page of a site was kept, and what to do.
fn tell_why_nothing(report: &SiteReport) {
    let (forbidden, odd) = (report.excluded(Exclusion::Robots), report.excluded(Exclusion::Type));
    let (site, letters) = (&report.view.site, report.view.download.letters);
    match () {
        () if forbidden > 0 => error!(
            site,
            "nothing could be crawled: robots.txt forbids what was asked for ({forbidden}); ask the site's owner for leave, \
             or begin with seeds that it allows"
        ),
        () if odd > 0 => error!(
            site,
            "nothing could be crawled: no answer is of a type that is accepted ({odd} others); mend accept_types in [fetch], \
             or the seeds"
        ),
        () => error!(
            site,
            "nothing could be crawled: {letters} dead letters, and no page; mend what they tell, or the seeds, and start again"
        ),
    }
}

/// What came of one site; `done` counts its downloads that came to an end.
pub(super) fn tell_site(view: &View, done: u64, tally: Tally) {
    info!(
        site = view.site,
        done,
        waiting = view.download.waiting + view.download.delayed,
        dead = view.download.letters + view.parse.letters,
        items = tally.items,
        early = tally.early,
        took = %duration(view.at.since(view.run_began)),
        "crawled"
    );
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
