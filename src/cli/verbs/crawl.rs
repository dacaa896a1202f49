//! `paced crawl`: a run of the named sites and no others, until nothing is left.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::parts::equipment::{EquipmentOptions, duration_option};
use crate::cli::parts::print_crawl::{tell, warn_of_no_items};
use crate::cli::parts::signals::await_signals;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::run::{CrawlOptions, CrawlReport, Ending, ItemsTo, crawl};

/// Options of `paced crawl`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced crawl sites/books.toml
  paced crawl books quotes --workers 20 --deadline 10m
  paced crawl books --items - | jq .fields.title")]
pub(in crate::cli) struct CrawlArgs {
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
    #[arg(long, value_name = "TIME", value_parser = duration_option)]
    deadline: Option<Duration>,
    /// Leave a site that could make no start for so long
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration_option)]
    give_up: Duration,
    /// Exit with 3 if there are dead letters
    #[arg(long)]
    fail_on_dead: bool,
    #[command(flatten)]
    equipment: EquipmentOptions,
}

/// Crawls until nothing is left or a signal asks to stop.
pub(super) async fn run(options: CrawlArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let sites = sites::load_all(&options.sites, &globals.settings()?)?;
    let to_stdout = options.items.as_ref().is_some_and(|file| file.as_os_str() == "-");
    // Items on the terminal would run into the bars.
    let shown = globals.start_log(!to_stdout || !std::io::stdout().is_terminal());
    let fail_on_dead = options.fail_on_dead;
    let with_items = sites.iter().filter(|site| site.pages.iter().any(|rule| rule.item));
    let with_items: BTreeSet<String> = with_items.map(|site| site.name.clone()).collect();
    let stop = await_signals()?.token;
    let report = crawl(crawl_options(options, globals)?, sites, shown, stop).await?;
    warn_of_no_items(&report, &with_items);
    tell(&report);
    Ok(exit(&report, fail_on_dead))
}

fn crawl_options(options: CrawlArgs, globals: &Globals) -> Result<CrawlOptions, Trouble> {
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

fn exit(report: &CrawlReport, fail_on_dead: bool) -> Exit {
    match report.ending {
        Ending::Stopped | Ending::Lacking => Exit::Interrupted,
        Ending::Drained => Exit::Drained,
        Ending::GivenUp | Ending::Deadline | Ending::MaxPages => Exit::Early,
        Ending::Finished if report.is_fruitless() => Exit::Failed,
        Ending::Finished if report.has_held() => Exit::Early,
        Ending::Finished if fail_on_dead && report.dead() > 0 => Exit::Early,
        Ending::Finished if report.mostly_dead().is_some() => Exit::Early,
        Ending::Finished => Exit::Done,
    }
}
