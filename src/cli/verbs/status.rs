//! `paced status`: how sites stand in the frontier, beside a running crawl or after it.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::parts::batches::{BatchWait, batch_name, show_batch};
use crate::cli::parts::events::told_of_events;
use crate::cli::parts::fleet::show_fleet;
use crate::cli::parts::flow::{FlowOfSite, flow_of, told_of_all};
use crate::cli::parts::lanes::by_lane;
use crate::cli::parts::pauses::pauses;
use crate::cli::parts::results::Results;
use crate::cli::parts::sessions::{all_told_held, session_name, show_session};
use crate::cli::parts::signals::await_signals;
use crate::cli::parts::table::{or_dash, table};
use crate::cli::parts::unserved::{Unserved, nobody};
use crate::cli::parts::when::When;
use crate::cli::parts::{Exit, Globals, Trouble, fairness, sites};
use crate::clock;
use crate::forecast::rate_of;
use crate::frontier::state::TunedTenants;
use crate::frontier::{Freshness, Frontier, View};
use crate::quantity::{compact, compact_rate};
use crate::task::HighWater;

/// The time between two looks of `--watch`.
const LOOK: Duration = Duration::from_secs(2);
const HEADS: &str = "site, run, state, waiting, oldest, running, delayed, dead, done, allowed, reached, response, eta, fresh, \
                     oldest page, in, out, full in, p50, p95";
/// The first column that is a number.
const FIRST_NUMBER: usize = 3;

/// Options of `paced status`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced status books --watch
  paced status books --session roll-out
  paced status --batch spring --wait --deadline 6h
  paced status --fleet")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(in crate::cli) struct StatusArgs {
    /// Sites: names or files; all without any
    #[arg(value_name = "SITE")]
    sites: Vec<String>,
    /// Look again every 2 s until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// How this session of the one site that is named stands
    #[arg(long, value_name = "NAME", value_parser = session_name, conflicts_with = "watch")]
    session: Option<String>,
    /// How this batch stands, on whichever sites its pages are
    #[arg(long, value_name = "NAME", value_parser = batch_name, conflicts_with_all = ["sites", "watch", "session"])]
    batch: Option<String>,
    /// Wait until all pages of the batch have ended: exit code 3 if some are dead
    #[arg(long, requires = "batch")]
    wait: bool,
    /// But no longer than until this time, as in `paced put --at`: exit code 3
    #[arg(long, value_name = "TIME", value_parser = When::read, requires = "wait")]
    deadline: Option<When>,
    /// The processes that share the frontier: names, roles, slots, leases, last beat, version
    #[arg(long, conflicts_with_all = ["sites", "watch", "session", "batch"])]
    fleet: bool,
    /// One JSON object a site, or a process
    #[arg(long)]
    json: bool,
}

/// How a site stands.
struct Stand {
    view: View,
    freshness: Freshness,
    flow: FlowOfSite,
    /// Whether a living process claims what can be claimed of it.
    has_workers: bool,
    unserved: Unserved,
    /// The mark that it is at, and what is told of that.
    full: Option<(HighWater, String)>,
}

/// How all of them stand.
struct Stands {
    sites: Vec<Stand>,
    /// The frontier is at its mark.
    full: Option<String>,
    /// Tenants with rules that they were given while sites run.
    tuned: TunedTenants,
}

/// Shows how the sites stand.
pub(super) async fn run(options: StatusArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    if options.fleet {
        return show_fleet(&frontier, options.json).await;
    }
    if let Some(batch) = &options.batch {
        let StatusArgs { wait, deadline, json, .. } = options;
        return show_batch(batch, &BatchWait { waits: wait, deadline, as_json: json }, &frontier).await;
    }
    let names = sites::known(&frontier, &options.sites, globals).await?;
    if let Some(session) = &options.session {
        let ([site], false) = (names.as_slice(), options.sites.is_empty()) else {
            return Err(Trouble::usage(
                "name the one site whose session it is, as in `paced status SITE --session NAME`",
            ));
        };
        return show_session(site, session, options.json, &frontier).await;
    }
    let mut results = Results::default();
    if !options.watch {
        show(&look(&frontier, &names).await?, &options, &mut results)?;
        show_events(&frontier, &options, &mut results).await?;
        return Ok(Exit::Done);
    }
    let stop = await_signals()?.token;
    while !stop.is_cancelled() && !results.is_closed() {
        let look = look(&frontier, &names).await?;
        if !options.json {
            results.clear()?;
        }
        show(&look, &options, &mut results)?;
        show_events(&frontier, &options, &mut results).await?;
        stop.run_until_cancelled(clock::wait(LOOK)).await;
    }
    Ok(Exit::Done)
}

async fn look(frontier: &Frontier, names: &[String]) -> Result<Stands, Trouble> {
    let at_work = frontier.at_work().await?;
    let mut sites = Vec::with_capacity(names.len());
    let fleet = frontier.fleet_rules().await?;
    for view in frontier.views(names).await? {
        let freshness = frontier.freshness(&view.site).await?;
        let Some(flow) = flow_of(frontier, &view, &fleet).await? else { continue };
        let unserved = Unserved::of(&view, &at_work);
        let has_workers = nobody(&view, &at_work, &unserved).is_none();
        let mark = fleet.mark_of_site(view.download.idle(), view.download.bytes);
        let full = mark.map(|mark| (mark, fleet.told_full(&view.site, mark)));
        sites.push(Stand { view, freshness, flow, has_workers, unserved, full });
    }
    let is_full = frontier.idle_in_all().await? >= fleet.most_in_all();
    let tuned = frontier.tuned_tenants().await?;
    Ok(Stands { sites, tuned, full: is_full.then(|| fleet.told_full("", HighWater::Frontier)) })
}

/// Sites that were named are told of in lines of their own.
fn show(look: &Stands, options: &StatusArgs, results: &mut Results) -> Result<(), Trouble> {
    let stands = &look.sites;
    if options.json {
        return stands.iter().try_for_each(|stand| results.json(object(stand)));
    }
    let rows = stands.iter().map(cells).collect();
    results.lines(table(HEADS, rows, FIRST_NUMBER).lines())?;
    results.lines(stands.iter().flat_map(|stand| lanes(&stand.view)))?;
    let unserved = stands.iter().flat_map(|Stand { view, unserved, .. }| {
        unserved.told().into_iter().map(|told| format!("{}: {told}", view.site))
    });
    results.lines(unserved)?;
    results.lines(stands.iter().filter_map(|stand| Some(&stand.full.as_ref()?.1)).chain(&look.full))?;
    let held = stands.iter().flat_map(|Stand { view, .. }| {
        all_told_held(view).into_iter().map(|told| format!("{}: {told}", view.site))
    });
    results.lines(held)?;
    let paused = stands.iter().map(|Stand { view, .. }| (&view.site, view.parse_pause()));
    results.lines(paused.filter_map(|(site, pause)| Some(format!("{site}: {}", pause?))))?;
    if options.sites.is_empty() {
        let tuned = look.tuned.tenants.iter();
        let told = |rules| format!("{}, set while sites run", fairness::told(rules));
        results.lines(tuned.map(|(tenant, rules)| format!("tenant {tenant}: {}", told(rules))))?;
        let flows: Vec<&FlowOfSite> = stands.iter().map(|stand| &stand.flow).collect();
        return results.lines(told_of_all(&flows).into_iter().map(|told| format!("waits {told}")));
    }
    results.lines(stands.iter().flat_map(|Stand { view, flow, .. }| {
        flow.told().into_iter().map(|(what, told)| format!("{}: {what}: {told}", view.site))
    }))
}

/// What operators are to be told: a line where no sites are named.
async fn show_events(
    frontier: &Frontier,
    options: &StatusArgs,
    results: &mut Results,
) -> Result<(), Trouble> {
    if options.json || !options.sites.is_empty() {
        return Ok(());
    }
    results.lines(told_of_events(&frontier.events_status().await?))
}

fn cells(stand: &Stand) -> [String; 20] {
    let Stand { view, freshness, flow, .. } = stand;
    let [enters, leaves, fills, half, most] = flow.cells().map(or_dash);
    let download = &view.download;
    [
        view.site.clone(),
        view.run.to_string(),
        with_seeds(stand),
        download.waiting.to_string(),
        or_dash(view.oldest.map(|put| compact(view.at.since(put)))),
        view.in_flight.to_string(),
        (download.delayed + download.scheduled.saturating_sub(download.behind)).to_string(),
        (download.letters + view.parse.letters).to_string(),
        download.done.to_string(),
        or_dash(view.allowed().map(compact_rate)),
        or_dash(reached(view).map(compact_rate)),
        or_dash(view.response.map(|ms| format!("{ms}ms"))),
        or_dash(view.eta().map(compact)),
        or_dash(freshness.percent().map(|percent| format!("{percent}%"))),
        or_dash(freshness.oldest.map(|fetched| compact(view.at.since(fetched)))),
        enters,
        leaves,
        fills,
        half,
        most,
    ]
}

/// A line for each stage whose tasks stand in several lanes.
fn lanes(view: &View) -> Vec<String> {
    let stages = [("downloads", &view.download), ("parses", &view.parse)].into_iter();
    stages.filter_map(|(what, counts)| Some(format!("{}: {what}: {}", view.site, by_lane(counts)?))).collect()
}

/// The state, and how far its seeds are put, unless all are.
fn with_seeds(stand: &Stand) -> String {
    let seeds = stand.view.seeds.filter(|_| !stand.view.is_given_up);
    seeds.map_or_else(|| state(stand), |(put, of)| format!("{}, {put} of {of} seeds put", state(stand)))
}

fn state(Stand { view, has_workers, .. }: &Stand) -> String {
    match (view.pause(), &view.blocked_until, view.finished, view.run) {
        (Some(pause), ..) => pause,
        _ if view.is_given_up => "being given up".to_owned(),
        (_, Some(until), ..) => {
            format!("blocked until {until}: {}", view.blocked_why.as_deref().unwrap_or("-"))
        }
        _ if view.wall.is_some() => view.left_alone().unwrap_or_default(),
        (_, _, _, 0) => "never run".to_owned(),
        (_, _, true, _) => "finished".to_owned(),
        _ if !has_workers => "stopped".to_owned(),
        _ if view.download.ready() == 0 && view.download.parked > 0 && view.in_flight == 0 => {
            "robots.txt can't be had".to_owned()
        }
        _ => "running".to_owned(),
    }
}

fn object(stand: &Stand) -> Value {
    let Stand { view, freshness, flow, unserved, full, .. } = stand;
    let mut object = json!({
        "full": full.as_ref().map(|(mark, _)| mark),
        "site": view.site, "unit": view.unit, "at": view.at, "order": view.order, "run": view.run, "run_began": (view.run > 0).then_some(view.run_began),
        "state": state(stand), "finished": view.finished, "interval_ms": view.interval, "parallel": view.parallel,
        "waiting": view.download.waiting, "running": view.in_flight, "delayed": view.download.delayed,
        "scheduled": view.download.scheduled.saturating_sub(view.download.behind), "behind": view.download.behind, "dead": view.download.letters + view.parse.letters,
        "done": view.download.done, "oldest_waiting": view.oldest, "response_ms": view.response,
        "allowed_per_s": view.allowed(), "reached_per_s": reached(view),
        "eta_s": view.eta().map(|eta| eta.as_secs()), "last_start": view.last_start, "next_start": view.next_start(),
        "blocked_until": view.blocked_until, "blocked_why": view.blocked_why, "paused": view.paused(), "paused_until": view.paused_until(), "pauses": pauses(view), "wall": wall_object(view),
        "held_in_all": view.held_in_all, "held_sessions": view.held.iter().map(|held| &held.name).collect::<Vec<_>>(),
        "seeds_put": view.seeds.map(|(put, _)| put), "seeds": view.seeds.map(|(_, of)| of),
        "fresh_percent": freshness.percent(), "oldest_page": freshness.oldest, "download": view.download, "parse": view.parse, "flow": flow.object(),
    });
    for (name, unserved) in unserved.object() {
        object[name] = unserved;
    }
    object
}

fn wall_object(view: &View) -> Option<Value> {
    let wall = view.wall.as_ref()?;
    Some(json!({
        "why": wall.why, "since": wall.since, "url": wall.url, "next_probe": wall.probe_at, "probes_refused": wall.refused,
    }))
}

/// Starts a second since the run began, up to its last start.
fn reached(view: &View) -> Option<f64> {
    let span = view.last_start?.since(view.run_began);
    rate_of(view.starts.checked_sub(1)?, span).filter(|rate| *rate > 0.0)
}
