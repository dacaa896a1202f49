//! `paced plan`: how many workers sites need, what a day brings, and when it would end.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::parts::account::counted;
use crate::cli::parts::equipment::duration_option;
use crate::cli::parts::results::Results;
use crate::cli::parts::table::{or_dash, table};
use crate::cli::parts::{Exit, Globals, Trouble, say, sites};
use crate::clock::{Clock, Timestamp, millis};
use crate::forecast::{Demand, workers};
use crate::frontier::View;
use crate::quantity::{spoken, spoken_count, spoken_rate};
use crate::settings::Settings;
use crate::site::{self, Site};
use crate::work::MOST_WORKERS;

/// Options of `paced plan`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  paced plan sites/*.toml --count 20000 --response 1.5s")]
pub(in crate::cli) struct PlanArgs {
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
pub(super) async fn run(options: PlanArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let paces = together(paces(&options, globals).await?);
    let all = PlanTotal::of(&paces);
    let mut results = Results::default();
    if options.json {
        paces.iter().try_for_each(|pace| results.json(pace.object()))?;
        results.json(all.object())?;
        return Ok(Exit::Done);
    }
    let rows = paces.iter().map(PlannedPace::cells).chain([all.cells()]).collect();
    results.lines(table("site, interval, response, in flight, a day, pages, takes", rows, 1).lines())?;
    for PlannedPace { name, demand, .. } in &paces {
        if let Some(enough) = demand.parallel_short_of() {
            let parallel = demand.parallel;
            say(format_args!(
                "{name}: parallel = {parallel} keeps it below its pace; {enough} would use every start"
            ));
        }
    }
    if all.a_day.is_some_and(|a_day| a_day > 0.0) {
        let room = match all.processes() {
            1 => "1 process has room".to_owned(),
            processes => format!("{processes} processes have room"),
        };
        let most = spoken_count(u64::from(MOST_WORKERS));
        say(format_args!(
            "{room} for so many workers, up to {most} each; more workers make nothing faster, as the pace sets the time"
        ));
    }
    Ok(Exit::Done)
}

/// What a site needs, or all sites of one pace together.
struct PlannedPace {
    name: String,
    sites: Vec<String>,
    demand: Demand,
    is_measured: bool,
    pages: Option<u64>,
}

/// What all paces need together.
struct PlanTotal {
    slots: f64,
    workers: u32,
    a_day: Option<f64>,
    pages: u64,
    time: Option<Duration>,
}

/// The sites that are named, or all that the frontier knows. What it knows of a site wins over its file.
async fn paces(options: &PlanArgs, globals: &Globals) -> Result<Vec<PlannedPace>, Trouble> {
    let views = match globals.open_existing() {
        Ok(frontier) => frontier.views(&frontier.sites().await?).await?,
        Err(trouble) if options.sites.is_empty() => return Err(trouble),
        Err(_) => Vec::new(),
    };
    if options.sites.is_empty() {
        return Ok(views.iter().map(|view| of_view(view, None, options)).collect());
    }
    let settings = globals.settings()?;
    let known = |name: &str| views.iter().find(|view| view.site == name);
    let pace = |given: &String| {
        if let Some(view) = known(given) {
            return Ok(of_view(view, None, options));
        }
        let site = sites::load_one(given)?;
        let of_file = || of_file(&site, &settings, options);
        Ok(known(&site.name).map_or_else(of_file, |view| of_view(view, Some(&site), options)))
    };
    let mut paces = options.sites.iter().map(pace).collect::<Result<Vec<_>, Trouble>>()?;
    // A site that is named twice has its starts once.
    let mut seen = HashSet::new();
    paces.retain(|pace| seen.insert(pace.sites.clone()));
    Ok(paces)
}

fn of_view(view: &View, file: Option<&Site>, options: &PlanArgs) -> PlannedPace {
    let measured = view.response.map(|ms| Duration::from_millis(ms.unsigned_abs()));
    let counts = &view.download;
    let left = counts.waiting + counts.delayed + counts.scheduled + counts.leased;
    // Of a run that has not begun, the file alone may tell.
    let of_run = if view.finished || view.run == 0 { file.and_then(site::most_pages) } else { Some(left) };
    PlannedPace {
        name: view.unit.clone(),
        sites: vec![view.site.clone()],
        demand: Demand {
            interval: Duration::from_millis(view.interval.unsigned_abs()),
            parallel: view.parallel,
            response: measured.or(options.response).unwrap_or(Demand::ASSUMED),
        },
        is_measured: measured.is_some(),
        pages: options.count.or(of_run),
    }
}

fn of_file(site: &Site, settings: &Settings, options: &PlanArgs) -> PlannedPace {
    let of_group = site.group.as_ref().and_then(|group| settings.groups.get(group).copied());
    PlannedPace {
        name: site.unit(),
        sites: vec![site.name.clone()],
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
fn together(paces: Vec<PlannedPace>) -> Vec<PlannedPace> {
    let mut units: BTreeMap<String, PlannedPace> = BTreeMap::new();
    for pace in paces {
        match units.entry(pace.name.clone()) {
            Entry::Vacant(unit) => drop(unit.insert(pace)),
            Entry::Occupied(mut unit) => unit.get_mut().add(pace),
        }
    }
    units.into_values().collect()
}

impl PlannedPace {
    fn add(&mut self, other: Self) {
        self.sites.extend(other.sites);
        self.demand.interval = self.demand.interval.max(other.demand.interval);
        self.demand.response = self.demand.response.max(other.demand.response);
        self.demand.parallel = self.demand.parallel.saturating_add(other.demand.parallel);
        self.is_measured |= other.is_measured;
        self.pages = self.pages.into_iter().chain(other.pages).reduce(|pages, more| pages + more);
    }

    fn time(&self) -> Option<Duration> {
        self.demand.time_for(self.pages?)
    }

    fn cells(&self) -> [String; 7] {
        let name = match &self.sites[..] {
            [site] => site.clone(),
            sites => format!("{} ({})", self.name, sites.join(", ")),
        };
        let unmeasured = if self.is_measured { "" } else { "?" };
        [
            name,
            spoken(self.demand.interval),
            spoken(self.demand.response) + unmeasured,
            format!("{:.1}", self.demand.slots()),
            or_dash(self.demand.pages_a_day().map(count)),
            or_dash(self.pages.map(spoken_count)),
            or_dash(self.time().map(spoken)),
        ]
    }

    fn object(&self) -> Value {
        let demand = &self.demand;
        json!({
            "unit": self.name, "sites": self.sites, "interval_ms": millis(demand.interval), "parallel": demand.parallel,
            "response_ms": millis(demand.response), "measured": self.is_measured, "in_flight": demand.slots(),
            "rate": demand.rate().map(spoken_rate), "pages_a_day": demand.pages_a_day(), "pages": self.pages,
            "takes_s": self.time().map(|time| time.as_secs()), "ends": self.time().and_then(end),
            "parallel_enough": demand.parallel_short_of(),
        })
    }
}

impl PlanTotal {
    fn of(paces: &[PlannedPace]) -> Self {
        let slots = paces.iter().fold(0.0, |slots, pace| slots + pace.demand.slots());
        Self {
            slots,
            workers: if paces.is_empty() { 0 } else { workers(slots) },
            a_day: paces.iter().try_fold(0.0, |a_day, pace| Some(a_day + pace.demand.pages_a_day()?)),
            pages: paces.iter().filter_map(|pace| pace.pages).sum(),
            time: paces.iter().filter_map(PlannedPace::time).max(),
        }
    }

    /// The processes that have so many workers between them.
    fn processes(&self) -> u32 {
        self.workers.div_ceil(MOST_WORKERS)
    }

    fn cells(&self) -> [String; 7] {
        [
            format!("all: {}", counted(self.workers, "worker")),
            String::new(),
            String::new(),
            format!("{:.1}", self.slots),
            or_dash(self.a_day.map(count)),
            spoken_count(self.pages),
            or_dash(self.time.map(spoken)),
        ]
    }

    fn object(&self) -> Value {
        json!({
            "all": true, "workers": self.workers, "processes": self.processes(), "in_flight": self.slots, "pages_a_day": self.a_day,
            "pages": self.pages, "takes_s": self.time.map(|time| time.as_secs()), "ends": self.time.and_then(end),
        })
    }
}

fn end(time: Duration) -> Option<Timestamp> {
    let now = Clock::wall().now().as_millis();
    Some(Timestamp::from_millis(now.checked_add(time.as_millis().try_into().ok()?)?))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pages, for people")]
fn count(pages: f64) -> String {
    spoken_count(pages as u64)
}
