//! `paced tune`: another pace for a site that is being crawled, within what its file allows.

use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;

use crate::cli::parts::act::Why;
use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::clock::millis;
use crate::frontier::{Frontier, TuneReply, Tuning, View};
use crate::quantity::{read_duration, spoken};
use crate::task::NOW;

/// What can be set.
const KEYS: [&str; 4] = ["interval", "parallel", "max_pages", "lane"];

/// Options of `paced tune`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced tune books interval=5s --why 'their sale begins'
  paced tune books parallel=2 interval=1s
  paced tune books max_pages=50000 lane=slow
  paced tune books --reset interval        # back to the file's")]
pub(in crate::cli) struct TuneArgs {
    /// The site: a name, or its file
    site: String,
    /// `interval=DURATION`, from `min_interval` of the file to 24h; `parallel=NUMBER`, from 1 to its `max_parallel`;
    /// `max_pages=NUMBER`, up only; `lane=NAME`, for tasks that are made from now on
    #[arg(value_name = "KEY=VALUE", value_parser = setting, required_unless_present = "reset")]
    values: Vec<Setting>,
    /// Give a key back to the site's file
    #[arg(long, value_name = "KEY", value_parser = PossibleValuesParser::new(KEYS).map(|key| reset(&key)))]
    reset: Vec<Setting>,
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
    let TuneArgs { site, values, reset, why, json } = options;
    let settings: Vec<Setting> = values.into_iter().chain(reset).collect();
    if let Some(twice) = KEYS.iter().find(|key| settings.iter().filter(|one| one.key == **key).count() > 1) {
        return Err(Trouble::usage(format!("`{twice}` is set twice")));
    }
    let frontier = globals.open_existing()?;
    let name = sites::known_one(&frontier, &site, globals).await?;
    for setting in &settings {
        if let Tuning::Lane(Some(lane)) = &setting.tuning {
            must_be_a_site_s(lane, &frontier).await?;
        }
    }
    let written: Vec<&str> = settings.iter().map(|one| one.written.as_str()).collect();
    let act = why.act(&format!("tune {}", written.join(" ")));
    let tunings = settings.iter().map(|one| one.tuning.clone()).collect();
    if let Some(trouble) = refusal(&name, frontier.tune_by(act, &name, tunings).await?) {
        return Err(trouble);
    }
    let view = frontier.view(&name).await?;
    let Some(view) = view else { return Err(gone(&name)) };
    let mut results = Results::default();
    if json {
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
