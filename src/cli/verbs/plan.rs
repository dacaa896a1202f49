//! `paced plan`: how many workers sites need, what a day brings, and when it would end.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::{Value, json};

use crate::cli::parts::results::{Results, say};
use crate::cli::parts::{Exit, Globals, Trouble, duration_option, sites};
use crate::clock::{Clock, Timestamp};
use crate::forecast::{Demand, workers};
use crate::frontier::{Frontier, View};
use crate::quantity::{spoken, spoken_count, spoken_rate};
use crate::settings::Settings;
use crate::site::{self, Site};

/// Options of `paced plan`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  paced plan sites/*.toml --count 20000 --response 1.5s")]
pub(in crate::cli) struct Options {
    /// Sites: files, or names of sites that the frontier knows; all that it knows without any
    #[arg(value_name = "SITE")]
    sites: Vec<String>,
    /// So many pages a site, instead of those that wait or that its file allows
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Answers take so long, where none was measured [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration_option)]
    response: Option<Duration>,
    /// One JSON object a pace, and one for all
    #[arg(long)]
    json: bool,
}

/// Shows what the sites need.
pub(super) async fn run(options: Options, globals: &Globals) -> Result<Exit, Trouble> {
    let settings = globals.settings()?;
    let plans = if options.sites.is_empty() {
        of_frontier(&options, globals).await?
    } else {
        of_sites(&options, &settings, globals).await?
    };
    let units = together(plans);
    let mut results = Results::default();
    if options.json {
        return as_json(&units, &mut results).map(|()| Exit::Done);
    }
    results.line(table(&units).trim_fmt())?;
    for unit in &units {
        if let Some(enough) = unit.demand.parallel_short_of() {
            let (name, parallel) = (&unit.name, unit.demand.parallel);
            say(format_args!(
                "{name}: parallel = {parallel} keeps it below its pace; {enough} would use every start"
            ));
        }
    }
    Ok(Exit::Done)
}

/// What one site needs.
struct Plan {
    unit: String,
    site: String,
    demand: Demand,
    is_measured: bool,
    pages: Option<u64>,
}

/// What the sites of one pace need together.
struct Unit {
    name: String,
    sites: Vec<String>,
    demand: Demand,
    is_measured: bool,
    pages: Option<u64>,
}

impl Unit {
    fn time(&self) -> Option<Duration> {
        self.demand.time_for(self.pages?)
    }
}

async fn of_frontier(options: &Options, globals: &Globals) -> Result<Vec<Plan>, Trouble> {
    let frontier = globals.open_existing()?;
    let views = frontier.views(&frontier.sites().await?).await?;
    Ok(views.iter().map(|view| of_view(view, None, options)).collect())
}

async fn of_sites(options: &Options, settings: &Settings, globals: &Globals) -> Result<Vec<Plan>, Trouble> {
    let frontier = globals.open_existing().ok();
    let mut plans = Vec::with_capacity(options.sites.len());
    for given in &options.sites {
        plans.push(of_site(given, frontier.as_ref(), settings, options).await?);
    }
    Ok(plans)
}

/// What the frontier knows of a site wins over its file.
async fn of_site(
    given: &str,
    frontier: Option<&Frontier>,
    settings: &Settings,
    options: &Options,
) -> Result<Plan, Trouble> {
    if let Some(view) = view_of(frontier, given).await? {
        return Ok(of_view(&view, None, options));
    }
    let site = sites::load_all(&[given.to_owned()])?.remove(0);
    Ok(match view_of(frontier, &site.name).await? {
        Some(view) => of_view(&view, Some(&site), options),
        None => of_file(&site, settings, options),
    })
}

async fn view_of(frontier: Option<&Frontier>, name: &str) -> Result<Option<View>, Trouble> {
    match frontier {
        Some(frontier) => Ok(frontier.view(name).await?),
        None => Ok(None),
    }
}

fn of_view(view: &View, file: Option<&Site>, options: &Options) -> Plan {
    let measured = view.response.map(|ms| Duration::from_millis(ms.unsigned_abs()));
    let counts = &view.download;
    let left = counts.waiting + counts.delayed + counts.scheduled + counts.leased;
    // Of a run that has not begun, the file alone may tell.
    let of_run = if view.finished || view.run == 0 { file.and_then(site::most_pages) } else { Some(left) };
    Plan {
        unit: view.unit.clone(),
        site: view.site.clone(),
        demand: Demand {
            interval: Duration::from_millis(view.interval.unsigned_abs()),
            parallel: view.parallel,
            response: measured.or(options.response).unwrap_or(Demand::ASSUMED),
        },
        is_measured: measured.is_some(),
        pages: options.count.or(of_run),
    }
}

fn of_file(site: &Site, settings: &Settings, options: &Options) -> Plan {
    let of_group = site.group.as_ref().and_then(|group| settings.groups.get(group).copied());
    Plan {
        unit: site.unit(),
        site: site.name.clone(),
        demand: Demand {
            interval: site.pace.interval.max(of_group.unwrap_or_default()),
            parallel: site.pace.parallel,
            response: options.response.unwrap_or(Demand::ASSUMED),
        },
        is_measured: false,
        pages: options.count.or_else(|| site::most_pages(site)),
    }
}

/// Sites of one pace share its starts.
fn together(plans: Vec<Plan>) -> Vec<Unit> {
    let mut units: BTreeMap<String, Unit> = BTreeMap::new();
    for plan in plans {
        let Some(unit) = units.get_mut(&plan.unit) else {
            let Plan { unit: name, site, demand, is_measured, pages } = plan;
            units.insert(name.clone(), Unit { name, sites: vec![site], demand, is_measured, pages });
            continue;
        };
        unit.sites.push(plan.site);
        unit.demand.interval = unit.demand.interval.max(plan.demand.interval);
        unit.demand.response = unit.demand.response.max(plan.demand.response);
        unit.demand.parallel = unit.demand.parallel.saturating_add(plan.demand.parallel);
        unit.is_measured |= plan.is_measured;
        unit.pages = match (unit.pages, plan.pages) {
            (Some(pages), Some(more)) => Some(pages + more),
            (one, other) => one.or(other),
        };
    }
    units.into_values().collect()
}

fn table(units: &[Unit]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["site", "interval", "response", "in flight", "a day", "pages", "takes"]);
    for unit in units {
        table.add_row(cells(unit));
    }
    table.add_row(total(units));
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn cells(unit: &Unit) -> Vec<String> {
    let name = if unit.sites.len() > 1 {
        format!("{} ({})", unit.name, unit.sites.join(", "))
    } else {
        unit.sites[0].clone()
    };
    let response = spoken(unit.demand.response);
    vec![
        name,
        spoken(unit.demand.interval),
        if unit.is_measured { response } else { format!("{response}?") },
        format!("{:.1}", unit.demand.slots()),
        or_dash(unit.demand.pages_a_day().map(count)),
        or_dash(unit.pages.map(spoken_count)),
        or_dash(unit.time().map(spoken)),
    ]
}

fn total(units: &[Unit]) -> Vec<String> {
    let slots: f64 = units.iter().map(|unit| unit.demand.slots()).sum();
    let a_day: Option<f64> = units.iter().map(|unit| unit.demand.pages_a_day()).sum();
    let pages: u64 = units.iter().filter_map(|unit| unit.pages).sum();
    vec![
        format!("all: {} workers", workers(slots)),
        String::new(),
        String::new(),
        format!("{slots:.1}"),
        or_dash(a_day.map(count)),
        spoken_count(pages),
        or_dash(units.iter().filter_map(Unit::time).max().map(spoken)),
    ]
}

fn as_json(units: &[Unit], results: &mut Results) -> Result<(), Trouble> {
    for unit in units {
        results.line(object(unit))?;
    }
    let slots: f64 = units.iter().map(|unit| unit.demand.slots()).sum();
    let a_day: Option<f64> = units.iter().map(|unit| unit.demand.pages_a_day()).sum();
    let takes = units.iter().filter_map(Unit::time).max();
    results.line(json!({
        "all": true, "workers": workers(slots), "in_flight": slots, "pages_a_day": a_day,
        "pages": units.iter().filter_map(|unit| unit.pages).sum::<u64>(),
        "takes_s": takes.map(|time| time.as_secs()), "ends": takes.and_then(end),
    }))
}

fn object(unit: &Unit) -> Value {
    let demand = &unit.demand;
    json!({
        "unit": unit.name, "sites": unit.sites, "interval_ms": millis(demand.interval), "parallel": demand.parallel,
        "response_ms": millis(demand.response), "measured": unit.is_measured, "in_flight": demand.slots(),
        "rate": demand.rate().map(spoken_rate), "pages_a_day": demand.pages_a_day(), "pages": unit.pages,
        "takes_s": unit.time().map(|time| time.as_secs()), "ends": unit.time().and_then(end),
        "parallel_enough": demand.parallel_short_of(),
    })
}

fn end(time: Duration) -> Option<Timestamp> {
    let millis = i64::try_from(time.as_millis()).ok()?;
    let now = Clock::wall().now().as_millis();
    Some(Timestamp::from_millis(now.checked_add(millis)?))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pages, for people")]
fn count(pages: f64) -> String {
    spoken_count(pages as u64)
}
