//! `paced tune`: another pace for a site that is being crawled, within what its file allows.

use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;

use crate::cli::parts::act::Why;
use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::clock::millis;
use crate::frontier::{TuneReply, Tuning, View};
use crate::quantity::{read_duration, spoken};

/// What can be set.
const KEYS: [&str; 2] = ["interval", "parallel"];

/// Options of `paced tune`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced tune books interval=5s --why 'their sale begins'
  paced tune books parallel=2 interval=1s
  paced tune books --reset interval        # back to the file's")]
pub(in crate::cli) struct TuneArgs {
    /// The site: a name, or its file
    site: String,
    /// `interval=DURATION`, from `min_interval` of the file to 24h; `parallel=NUMBER`, from 1 to its `max_parallel`
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
        "parallel" => (KEYS[1], Tuning::Parallel(Some(parallel(value)?))),
        other => return Err(format!("`{other}` can't be set while it runs; {} can", KEYS.join(" and "))),
    };
    Ok(Setting { key, written: format!("{key}={}", value.trim()), tuning })
}

fn interval(value: &str) -> Result<i64, String> {
    let read = read_duration(value).ok_or_else(|| format!("`{value}` is no duration; write it as 2s"))?;
    Ok(millis(read))
}

fn parallel(value: &str) -> Result<u32, String> {
    value.trim().parse().map_err(|_| format!("`{value}` is no whole number"))
}

fn reset(key: &str) -> Setting {
    let (key, tuning) =
        if key == KEYS[0] { (KEYS[0], Tuning::Interval(None)) } else { (KEYS[1], Tuning::Parallel(None)) };
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
    let written: Vec<&str> = settings.iter().map(|one| one.written.as_str()).collect();
    let act = why.act(&format!("tune {}", written.join(" ")));
    let tunings = settings.iter().map(|one| one.tuning.clone()).collect();
    match frontier.tune_by(act, &name, tunings).await? {
        TuneReply::Done => {}
        TuneReply::Unknown => return Err(Trouble::failed(format!("site `{name}` is gone"))),
        TuneReply::Interval(least, most) => {
            let (least, most) = (spoken_ms(least), spoken_ms(most));
            return Err(Trouble::usage(format!(
                "{name}: interval can be {least} to {most}; the least is that of its file, its group or its robots.txt"
            )));
        }
        TuneReply::Parallel(least, most) => {
            return Err(Trouble::usage(format!(
                "{name}: parallel can be {least} to {most}; `max_parallel` in the site's file is the most"
            )));
        }
    }
    let view = frontier.view(&name).await?;
    let Some(View { interval, parallel, slow_starts, .. }) = view else {
        return Err(Trouble::failed(format!("site `{name}` is gone")));
    };
    let mut results = Results::default();
    if json {
        results.json(json!({ "site": name, "interval_ms": interval, "parallel": parallel }))?;
    } else {
        let interval = spoken_ms(interval);
        let slow = if slow_starts > 0 { ", in a slow start" } else { "" };
        results.line(format_args!(
            "{name}: interval {interval}{slow}, parallel {parallel}, from its next start on"
        ))?;
    }
    Ok(Exit::Done)
}

fn spoken_ms(ms: i64) -> String {
    spoken(Duration::from_millis(ms.unsigned_abs()))
}
