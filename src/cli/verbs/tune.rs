//! `paced tune`: another pace for a site that is being crawled, within what its file allows.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use crate::cli::parts::act::Why;
use crate::cli::parts::fairness;
use crate::cli::parts::lanes::tenant;
use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::clock::millis;
use crate::frontier::state::MOST_TUNED;
use crate::frontier::{Frontier, TuneReply, Tuning, View};
use crate::quantity::{read_duration, spoken};
use crate::site::unit_of_group;
use crate::task::NOW;

/// What can be set.
const KEYS: [&str; 4] = ["interval", "parallel", "max_pages", "lane"];
/// What a tenant has.
const FAIRNESS: &str = "fairness";

/// Options of `paced tune`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced tune books interval=5s --why 'their sale begins'
  paced tune books parallel=2 interval=1s
  paced tune books max_pages=50000 lane=slow
  paced tune books --reset interval        # back to the file's
  paced tune --group shops interval=10s
  paced tune --tenant acme lane=slow threshold=100 per=1h
  paced tune --tenant acme --reset fairness")]
pub(in crate::cli) struct TuneArgs {
    /// The site: a name, or its file
    #[arg(value_name = "SITE")]
    site: Option<String>,
    /// `interval=DURATION`, from `min_interval` of the file to 24h; `parallel=NUMBER`, from 1 to its `max_parallel`;
    /// `max_pages=NUMBER`, up only; `lane=NAME`, for tasks that are made from now on
    #[arg(value_name = "KEY=VALUE")]
    values: Vec<String>,
    /// A group in place of a site: `interval=DURATION`, from what its files and robots.txt ask for to 24h
    #[arg(long, value_name = "NAME", conflicts_with = "tenant")]
    group: Option<String>,
    /// A tenant in place of a site: `lane=NAME threshold=NUMBER per=DURATION stage=STAGE`, a `lane` first for each rule of its
    /// fairness; or `fairness=none`
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    tenant: Option<String>,
    /// Give a key back to the file
    #[arg(long, value_name = "KEY", value_parser = PossibleValuesParser::new([KEYS[0], KEYS[1], KEYS[2], KEYS[3], FAIRNESS]))]
    reset: Vec<String>,
    #[command(flatten)]
    why: Why,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// A key and its new value, as it was written.
#[derive(Clone, Debug)]
struct Setting {
    key: &'static str,
    written: String,
    tuning: Tuning,
}

fn setting(text: &str) -> Result<Setting, String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("write it as {}=2s", KEYS[0]))?;
    let (key, tuning) = match key.trim() {
        "interval" => (KEYS[0], Tuning::Interval(Some(interval(value)?))),
        "parallel" => (KEYS[1], Tuning::Parallel(Some(number(value, u32::MAX)?))),
        "max_pages" => (KEYS[2], Tuning::MaxPages(Some(number(value, u64::MAX)?))),
        "lane" => (KEYS[3], Tuning::Lane(Some(value.trim().to_owned()))),
        other => return Err(format!("`{other}` can't be set while it runs; {} can", KEYS.join(", "))),
    };
    Ok(Setting { key, written: format!("{key}={}", value.trim()), tuning })
}

fn interval(value: &str) -> Result<i64, String> {
    let read = read_duration(value).ok_or_else(|| format!("`{value}` is no duration; write it as 2s"))?;
    Ok(millis(read))
}

/// A whole number. One that can't be it becomes the nearest that can: the frontier then tells what its bounds are.
fn number<T: TryFrom<i64>>(value: &str, most: T) -> Result<T, String> {
    let whole: i128 = value.trim().parse().map_err(|_| format!("`{value}` is no whole number"))?;
    let whole = i64::try_from(whole.max(0)).unwrap_or(i64::MAX);
    Ok(T::try_from(whole).unwrap_or(most))
}

fn reset(key: &str) -> Setting {
    let (key, tuning) = match key {
        "interval" => (KEYS[0], Tuning::Interval(None)),
        "parallel" => (KEYS[1], Tuning::Parallel(None)),
        "max_pages" => (KEYS[2], Tuning::MaxPages(None)),
        _ => (KEYS[3], Tuning::Lane(None)),
    };
    Setting { key, written: format!("--reset {key}"), tuning }
}

/// Sets the values, all or none, in force for the very next start in every process.
pub(super) async fn run(options: TuneArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let is_shared = options.group.is_some() || options.tenant.is_some();
    let first = options.site.iter().filter(|_| is_shared);
    let words: Vec<String> = first.chain(&options.values).cloned().collect();
    if words.is_empty() && options.reset.is_empty() {
        return Err(Trouble::usage("say what to set, as in `paced tune SITE interval=2s`; or --reset a key"));
    }
    match (&options.group, &options.tenant, &options.site) {
        (Some(group), ..) => tune_group(group, &words, &options, globals).await,
        (_, Some(tenant), _) => tune_tenant(tenant, &words, &options, globals).await,
        (.., Some(site)) => tune_site(site, &words, &options, globals).await,
        _ => Err(Trouble::usage("name a site, or --group or --tenant")),
    }
}

/// What is set, and given back.
fn settings(words: &[String], reset: &[String]) -> Result<Vec<Setting>, Trouble> {
    let set =
        words.iter().map(|word| setting(word).map_err(Trouble::usage)).collect::<Result<Vec<_>, _>>()?;
    if reset.iter().any(|key| key == FAIRNESS) {
        return Err(Trouble::usage(format!("`{FAIRNESS}` is a tenant's: name it by --tenant")));
    }
    let settings: Vec<Setting> = set.into_iter().chain(reset.iter().map(|key| self::reset(key))).collect();
    match KEYS.iter().find(|key| settings.iter().filter(|one| one.key == **key).count() > 1) {
        Some(twice) => Err(Trouble::usage(format!("`{twice}` is set twice"))),
        None => Ok(settings),
    }
}

fn written(settings: &[Setting]) -> String {
    settings.iter().map(|one| one.written.as_str()).collect::<Vec<_>>().join(" ")
}

/// A group has an interval alone: requests in flight are each site's.
async fn tune_group(
    group: &str,
    words: &[String],
    options: &TuneArgs,
    globals: &Globals,
) -> Result<Exit, Trouble> {
    let settings = settings(words, &options.reset)?;
    let [Setting { tuning: Tuning::Interval(interval), .. }] = settings.as_slice() else {
        return Err(Trouble::usage("a group has an interval alone: set the rest for each of its sites"));
    };
    let frontier = globals.open_existing()?;
    let act = options.why.act(&format!("tune --group {group} {}", written(&settings)));
    match frontier.tune_group(&unit_of_group(group), *interval).await? {
        TuneReply::Done => {}
        TuneReply::Interval(least, most) => {
            let (least, most) = (spoken_ms(least), spoken_ms(most));
            return Err(Trouble::usage(format!(
                "the group {group}: interval can be {least} to {most}; the least is that of its files or of a robots.txt"
            )));
        }
        _ => {
            return Err(Trouble::usage(format!(
                "there is no group `{group}`: name one that `group` has in a site's file"
            )));
        }
    }
    frontier.note("", act).await?;
    let mut results = Results::default();
    if options.json {
        results.json(json!({ "group": group, "tuned_interval_ms": interval }))?;
    } else {
        let interval = interval.map_or_else(|| "that of its files".to_owned(), spoken_ms);
        results.line(format!("the group {group}: interval {interval}, from its next start on"))?;
    }
    Ok(Exit::Done)
}

/// A tenant's fairness takes the place of that of `paced.toml`.
async fn tune_tenant(
    tenant: &str,
    words: &[String],
    options: &TuneArgs,
    globals: &Globals,
) -> Result<Exit, Trouble> {
    let is_reset = options.reset.iter().any(|key| key == FAIRNESS);
    if options.reset.iter().any(|key| key != FAIRNESS) || is_reset && !words.is_empty() {
        return Err(Trouble::usage(format!(
            "of a tenant `{FAIRNESS}` alone can be reset, and nothing set with it"
        )));
    }
    let frontier = globals.open_existing()?;
    let rules = if is_reset { None } else { Some(fairness::read(words, &frontier.fleet_rules().await?)?) };
    let did = if is_reset { format!("--reset {FAIRNESS}") } else { words.join(" ") };
    let act = options.why.act(&format!("tune --tenant {tenant} {did}"));
    if !frontier.tune_tenant(tenant, rules.clone()).await? {
        return Err(Trouble::usage(format!(
            "{MOST_TUNED} tenants have rules that were set while sites run: write this one's into paced.toml"
        )));
    }
    frontier.note("", act).await?;
    let mut results = Results::default();
    if options.json {
        results.json(json!({ "tenant": tenant, "fairness": rules }))?;
    } else {
        let rules = rules.map_or_else(|| "that of paced.toml".to_owned(), |rules| fairness::told(&rules));
        results.line(format!("the tenant {tenant}: fairness {rules}, from its next task on"))?;
    }
    Ok(Exit::Done)
}

async fn tune_site(
    site: &str,
    words: &[String],
    options: &TuneArgs,
    globals: &Globals,
) -> Result<Exit, Trouble> {
    let settings = settings(words, &options.reset)?;
    let frontier = globals.open_existing()?;
    let name = sites::known_one(&frontier, site, globals).await?;
    for setting in &settings {
        if let Tuning::Lane(Some(lane)) = &setting.tuning {
            must_be_a_site_s(lane, &frontier).await?;
        }
    }
    let act = options.why.act(&format!("tune {}", written(&settings)));
    let tunings = settings.iter().map(|one| one.tuning.clone()).collect();
    if let Some(trouble) = refusal(&name, frontier.tune_by(act, &name, tunings).await?) {
        return Err(trouble);
    }
    let view = frontier.view(&name).await?;
    let Some(view) = view else { return Err(gone(&name)) };
    let mut results = Results::default();
    if options.json {
        let View { interval, parallel, .. } = view;
        let (max_pages, lane) = (view.says.most_pages(), view.says.tuned_lane);
        results.json(json!({
            "site": name, "interval_ms": interval, "parallel": parallel, "max_pages": max_pages, "tuned_lane": lane,
        }))?;
    } else {
        results.line(in_force(&view))?;
    }
    Ok(Exit::Done)
}

/// What is in force now.
fn in_force(view: &View) -> String {
    let View { site, interval, parallel, says, .. } = view;
    let slow = if view.slow_starts > 0 { ", in a slow start" } else { "" };
    let pages = says.tuned_max_pages.and(says.most_pages());
    let pages = pages.map(|most| format!(", max_pages {most}")).unwrap_or_default();
    let lane = says.tuned_lane.as_ref().map(|lane| format!(", lane {lane}")).unwrap_or_default();
    let interval = spoken_ms(*interval);
    format!("{site}: interval {interval}{slow}, parallel {parallel}{pages}{lane}, from its next start on")
}

/// Why a value isn't in force, and what could be.
fn refusal(name: &str, answer: TuneReply) -> Option<Trouble> {
    let why = match answer {
        TuneReply::Done => return None,
        TuneReply::Unknown => return Some(gone(name)),
        TuneReply::Interval(least, most) => {
            let (least, most) = (spoken_ms(least), spoken_ms(most));
            format!(
                "interval can be {least} to {most}; the least is that of its file, its group or its robots.txt"
            )
        }
        TuneReply::Parallel(least, most) => {
            format!("parallel can be {least} to {most}; `max_parallel` in the site's file is the most")
        }
        TuneReply::MaxPages(least, most) => {
            format!(
                "max_pages can be {least} to {most}: it is raised alone, and `--reset max_pages` gives it back to the file"
            )
        }
        TuneReply::Unbounded => "the site's file has no max_pages, so nothing bounds its pages".to_owned(),
    };
    Some(Trouble::usage(format!("{name}: {why}")))
}

/// Refuses a lane that the fleet doesn't have, or that is no site's.
async fn must_be_a_site_s(lane: &str, frontier: &Frontier) -> Result<(), Trouble> {
    let fleet = frontier.fleet_rules().await?;
    if lane != NOW && fleet.has_lane(lane) {
        return Ok(());
    }
    let known = fleet.known_lanes();
    Err(Trouble::usage(format!(
        "lane can be {known}, not `{lane}` (lanes of paced.toml hold from the next crawl, seed or work on)"
    )))
}

fn gone(name: &str) -> Trouble {
    Trouble::failed(format!("site `{name}` is gone"))
}

fn spoken_ms(ms: i64) -> String {
    spoken(Duration::from_millis(ms.unsigned_abs()))
}
