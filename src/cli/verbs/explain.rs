//! `paced explain`: why a site isn't moving, and what became of a URL. It only looks.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::cli::parts::account::Account;
use crate::cli::parts::explain_lanes::{set_by, set_for, tell_fairness, tell_lane, tell_marks, tell_order};
use crate::cli::parts::flow::flow_of;
use crate::cli::parts::lanes::by_lane;
use crate::cli::parts::pauses::pauses;
use crate::cli::parts::sessions::all_told_held;
use crate::cli::parts::unserved::{Unserved, nobody};
use crate::cli::parts::{Exit, Globals, Trouble, campaigns, explain_url, sites};
use crate::clock::{Clock, Timestamp};
use crate::fetch;
use crate::frontier::state::StageCounts;
use crate::frontier::{DatedAct, Frontier, Says, View};
use crate::monitor::why;
use crate::quantity::spoken;
use crate::signature;
use crate::site::{SignatureRule, Site, group_of_unit};
use crate::task::RobotsAccess;

/// Options of `paced explain`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced explain books                                       why isn't it moving, and whose is each value in force
  paced explain https://books.toscrape.com/index.html       what became of this page")]
pub(in crate::cli) struct ExplainArgs {
    /// A site, by name or file, or a URL
    #[arg(value_name = "SITE|URL")]
    what: String,
    /// The site of the URL, where it isn't the one that has its host
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Explains a site or a URL.
pub(super) async fn run(options: ExplainArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    let account = if options.what.contains("://") {
        explain_url::explain(&options.what, options.site.as_deref(), &frontier, globals).await?.account
    } else {
        of_site(&sites::known_one(&frontier, &options.what, globals).await?, &frontier).await?
    };
    account.print(options.json)
}

async fn of_site(name: &str, frontier: &Frontier) -> Result<Account, Trouble> {
    let view = frontier.view(name).await?.ok_or_else(|| Trouble::failed(format!("site `{name}` is gone")))?;
    let at_work = frontier.at_work().await?;
    let site = sites::registered(name, frontier).await?;
    let robots = match &site {
        Some(site) => robots_of(site, frontier, view.at).await?,
        None => Vec::new(),
    };
    let unreachable =
        robots.iter().find(|(_, is_unreachable)| *is_unreachable).map(|(said, _)| said.as_str());
    let unserved = Unserved::of(&view, &at_work);
    let headline = why(&view, nobody(&view, &at_work, &unserved).as_deref(), unreachable);
    let mut account = Account::new(format!("{name}: {headline}"));
    account.keep(json!({ "site": name, "why": headline }));
    tell_books(&mut account, &view);
    for told in unserved.told() {
        account.tell("unserved", told);
    }
    for (name, unserved) in unserved.object() {
        account.keep(json!({ name: unserved }));
    }
    let fleet = frontier.fleet_rules().await?;
    tell_marks(&mut account, &view, &fleet, frontier.idle_in_all().await?);
    tell_order(&mut account, &view, &fleet);
    if let Some(flow) = flow_of(frontier, &view, &fleet).await? {
        flow.told().into_iter().for_each(|(what, told)| account.tell(what, told));
        account.keep(json!({ "flow": flow.object() }));
    }
    tell_campaigns(&mut account, name, frontier).await?;
    let acts = frontier.acts(name).await?;
    let of_all = frontier.acts("").await?;
    tell_pace(&mut account, &view, (&acts, &of_all));
    tell_max_pages(&mut account, &view.says, &acts);
    let said: Vec<String> = robots.into_iter().map(|(said, _)| said).collect();
    for said in &said {
        account.tell("robots.txt", said);
    }
    account.keep(json!({ "robots": said }));
    if let Some(site) = &site {
        account.tell("rules", format!("version {}, {} page rules", view.version, site.pages.len()));
        tell_lane(&mut account, site, &view.says, &acts);
        if let Some(tenant) = &site.tenant {
            tell_fairness(&mut account, tenant, &fleet, &frontier.tuned_tenants().await?, &of_all);
        }
        tell_signature(&mut account, site);
    }
    Ok(account)
}

/// Campaigns of the site that are under way.
async fn tell_campaigns(account: &mut Account, site: &str, frontier: &Frontier) -> Result<(), Trouble> {
    let all = frontier.campaigns().await?.into_iter();
    let own: Vec<_> = all.filter(|(name, status)| name.site == site && status.is_under_way()).collect();
    for (name, status) in &own {
        account.tell("campaign", campaigns::told(&name.name, status));
    }
    let objects: Vec<_> = own.iter().map(|(name, status)| campaigns::object(name, status)).collect();
    account.keep(json!({ "campaigns": objects }));
    Ok(())
}

/// How many pages a run may have, where somebody raised that.
fn tell_max_pages(account: &mut Account, says: &Says, acts: &[DatedAct]) {
    if let (Some(of_file), Some(tuned)) = (says.max_pages, says.tuned_max_pages) {
        let by = set_by("max_pages", acts);
        let told = if tuned > of_file {
            format!("{tuned}: set while it runs{by}, over the site's file ({of_file})")
        } else {
            format!("{of_file}: the site's file, over {tuned}, set while it runs{by}")
        };
        account.tell("max pages", told);
    }
    account.keep(json!({ "max_pages": says.most_pages() }));
}

/// With which key requests are signed; until when, where the site's owner made the signature and this process has it.
fn tell_signature(account: &mut Account, site: &Site) {
    let ends = fetch::signature_end(site);
    let told = match &site.fetch.signature {
        None => return,
        Some(SignatureRule::Key { name, agent }) => format!("with the key {name}, published by {agent}"),
        Some(SignatureRule::Made(variable)) => match ends {
            Some(ends) => signature::soon(ends, Clock::wall().now()).map_or_else(
                || format!("in {}, until {ends}", variable.as_str()),
                |soon| format!("{soon}; {}", signature::ASK),
            ),
            None => format!("in {}: its end isn't known here", variable.as_str()),
        },
    };
    account.tell("signature", told);
    account.keep(json!({ "signature_ends": ends }));
}

fn tell_books(account: &mut Account, view: &View) {
    let (download, parse) = (&view.download, &view.parse);
    let StageCounts { waiting, parked, leased, delayed, scheduled, behind, letters, done, .. } = download;
    let parked =
        if *parked > 0 { format!(" ({parked} of them for their host's robots.txt)") } else { String::new() };
    let later = scheduled.saturating_sub(*behind);
    let behind =
        if *behind > 0 { format!("{behind} behind others of their session, ") } else { String::new() };
    account.tell(
        "downloads",
        format!(
            "{waiting} waiting{parked}, {leased} running, {delayed} delayed, {later} for later, {behind}{letters} dead, \
             {done} done"
        ),
    );
    for held in all_told_held(view) {
        account.tell("held", held);
    }
    let StageCounts { waiting, leased, letters, done, .. } = parse;
    account.tell("parses", format!("{waiting} waiting, {leased} running, {letters} dead, {done} done"));
    for (what, counts) in [("downloads", download), ("parses", parse)] {
        if let Some(lanes) = by_lane(counts) {
            account.tell("by lane", format!("{what}: {lanes}"));
        }
    }
    let StageCounts { dropped_links, left_out, too_dear, .. } = parse;
    let too_much = [
        (dropped_links, "links dropped"),
        (left_out, "pages with structured data or values left out"),
        (too_dear, "parses too dear"),
    ];
    let too_much =
        too_much.iter().filter(|(count, _)| **count > 0).map(|(count, what)| format!("{count} {what}"));
    let too_much: Vec<String> = too_much.collect();
    if !too_much.is_empty() {
        account.tell("too much", too_much.join(", "));
    }
    for (stage, counts) in [("download", download), ("parse", parse)] {
        for (reason, count) in &counts.excluded {
            account.tell("left out", format!("{count} in the {stage} stage: {reason}"));
        }
    }
    account.keep(json!({ "run": view.run, "download": download, "parse": parse }));
}

fn tell_pace(account: &mut Account, view: &View, acts: (&[DatedAct], &[DatedAct])) {
    let interval = spoken_ms(view.interval);
    let (interval_of, parallel_of) = (whose_interval(view, acts), whose_parallel(&view.says, acts.0));
    account.tell("interval", format!("{interval}: {interval_of}"));
    account.tell("parallel", format!("{}: {parallel_of}", view.parallel));
    account.tell("in flight", view.in_flight.to_string());
    if let Some(response) = view.response {
        account.tell("response", format!("{}: measured", spoken_ms(response)));
    }
    if let Some(last) = view.last_start.filter(|last| *last <= view.at) {
        account.tell("last start", format!("{last}, {} ago", spoken(view.at.since(last))));
    }
    account.tell("next start", next_start(view));
    if let Some(wall) = &view.wall {
        account.tell("wall", format!("{}; first refused: {}", wall.told(view.at), wall.url));
        account.tell("what helps", WALL_HELP);
    }
    if view.slow_starts > 0 {
        account
            .tell("slow start", format!("{} more starts, as it was left alone for long", view.slow_starts));
    }
    account.tell("pace unit", view.unit.clone());
    account.keep(json!({
        "interval_ms": view.interval, "interval_of": interval_of, "parallel": view.parallel,
        "parallel_of": parallel_of, "paused": view.paused(), "paused_until": view.paused_until(), "pauses": pauses(view), "in_flight": view.in_flight, "response_ms": view.response,
        "last_start": view.last_start, "next_start": view.next_start(), "blocked_until": view.blocked_until, "unit": view.unit,
        "wall": view.wall.as_ref().map(|wall| json!({
            "why": wall.why, "since": wall.since, "url": wall.url, "next_probe": wall.probe_at,
            "probes_refused": wall.refused,
        })),
        "slow_starts": view.slow_starts,
    }));
}

/// Nothing is ever solved or disguised.
const WALL_HELP: &str = "a slower interval, a signature that the owner lets in, or a mail to the owner with `paced audit`; \
                         `paced resume SITE` asks at once";

/// When the next request starts, and why then.
fn next_start(view: &View) -> String {
    let Some(next) = view.next_start() else {
        let why = if view.is_paused() { "it is paused" } else { "nothing waits" };
        return format!("none: {why}");
    };
    match next.since(view.at) {
        Duration::ZERO => "now".to_owned(),
        left if view.blocked_until == Some(next) => format!("{next}, in {}, as it is blocked", spoken(left)),
        left => format!("{next}, in {}", spoken(left)),
    }
}

/// Whose the interval in force is, and what the others would be that it overrules.
fn whose_interval(view: &View, (acts, of_all): (&[DatedAct], &[DatedAct])) -> String {
    let says = &view.says;
    let file = format!("the site's file ({})", spoken_ms(says.interval));
    let by = set_by("interval", acts);
    let tuned = says.tuned_interval.map(|tuned| format!("set while it runs{by} ({})", spoken_ms(tuned)));
    let robots = says.robots.as_ref().map(|(floor, origin)| (*floor, format!("robots.txt of {origin}")));
    let group = says.group.map(|floor| match says.tuned_group.filter(|tuned| *tuned > floor) {
        None => (floor, format!("the group {}", view.unit)),
        Some(tuned) => {
            let by = set_for(&format!("--group {} ", group_of_unit(&view.unit)), "interval", of_all);
            (
                tuned,
                format!(
                    "the group {}, set while it runs{by}, over its own ({})",
                    view.unit,
                    spoken_ms(floor)
                ),
            )
        }
    });
    let wanted = says.tuned_interval.map_or(says.interval, |tuned| tuned.max(says.least_interval));
    let own = tuned.unwrap_or_else(|| file.clone());
    let floor = robots.into_iter().chain(group).filter(|(floor, _)| *floor > wanted).max();
    match floor {
        Some((_, whose)) => format!("{whose}, over {own}"),
        None if says.tuned_interval.is_some_and(|tuned| tuned < says.least_interval) => {
            format!("the least that the site's file allows, over {own}")
        }
        None if says.tuned_interval.is_some() => format!("{own}, over {file}"),
        None => "the site's file".to_owned(),
    }
}

fn whose_parallel(says: &Says, acts: &[DatedAct]) -> String {
    match says.tuned_parallel {
        Some(tuned) if tuned > says.most_parallel => {
            let by = set_by("parallel", acts);
            format!("the most that the site's file allows, over {tuned}, set while it runs{by}")
        }
        Some(_) => {
            let by = set_by("parallel", acts);
            format!("set while it runs{by}, over the site's file ({})", says.parallel)
        }
        None => "the site's file".to_owned(),
    }
}

/// What is known of the `robots.txt` of each host, and whether that counts as unreachable now.
async fn robots_of(site: &Site, frontier: &Frontier, now: Timestamp) -> Result<Vec<(String, bool)>, Trouble> {
    let mut found = Vec::new();
    for host in &site.scope.hosts {
        for scheme in ["https", "http"] {
            let origin = format!("{scheme}://{host}");
            let Some(known) = frontier.robots(&origin).await? else { continue };
            let until = known.until;
            let (said, is_unreachable) = match &known.record.access {
                RobotsAccess::Rules(text) => {
                    (format!("{} lines, holds until {until}", text.lines().count()), false)
                }
                RobotsAccess::Absent => (format!("there is none, holds until {until}"), false),
                RobotsAccess::Unreachable(why) => (format!("{why}; asked again after {until}"), until > now),
            };
            found.push((format!("{origin}: {said}"), is_unreachable));
        }
    }
    Ok(found)
}

fn spoken_ms(ms: i64) -> String {
    spoken(std::time::Duration::from_millis(ms.unsigned_abs()))
}
