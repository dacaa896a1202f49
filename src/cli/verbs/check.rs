//! `paced check`: site files, validated before anything is asked of anybody.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, say, sites};
use crate::clock::{self, Clock};
use crate::fetch;
use crate::frontier::View;
use crate::quantity::spoken;
use crate::settings::Settings;
use crate::signature;
use crate::site::read::said_of;
use crate::site::{self, Site, SiteError};

/// How long a frontier may take to tell response times.
const PATIENCE: Duration = Duration::from_secs(2);

/// Options of `paced check`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced check sites/*.toml
  paced check --schema > site.schema.json     # for an editor that completes TOML")]
pub(in crate::cli) struct CheckArgs {
    /// Site files, or names of files in sites/
    #[arg(required_unless_present = "schema", value_name = "SITE")]
    sites: Vec<String>,
    /// Print the JSON Schema (2020-12) of a site file instead
    #[arg(long, conflicts_with_all = ["sites", "json"])]
    schema: bool,
    /// One JSON object a file, or an error, instead of text
    #[arg(long)]
    json: bool,
}

/// Says of each file that it is right, or everything that is wrong with it.
pub(super) async fn run(options: CheckArgs, globals: &Globals) -> Result<Exit, Trouble> {
    if options.schema {
        Results::default().ours(&format!("{:#}\n", site::schema()))?;
        return Ok(Exit::Done);
    }
    let settings = globals.settings()?;
    let (mut loaded, wrong) = sites::load(&options.sites, settings.fleet.as_ref());
    let mut results = Results::default();
    for error in &wrong {
        if options.json {
            results.json(json!(error))?;
        } else {
            results.line(error)?;
        }
    }
    loaded.retain(|(file, _)| !wrong.iter().any(|error| error.file == *file));
    let outlook = site::outlook(&loaded, &settings.groups, &measured(&loaded, globals).await);
    for (file, site) in &loaded {
        let mut warnings = site::warnings(site, file);
        let ends = fetch::signature_end(site).and_then(|ends| signature::soon(ends, Clock::wall().now()));
        let keys = ["fetch", "signature"];
        warnings.extend(ends.map(|soon| said_of((file, &site.text), &keys, soon, signature::ASK)));
        warn(&warnings);
        if options.json {
            warnings.extend(outlook.iter().filter(|warning| warning.file == *file).cloned());
            results.json(json!({ "file": file, "site": site.name, "ok": true, "warnings": warnings }))?;
        } else {
            results.line(format_args!("{file}: ok: {}", summary(site, &pace(site, &loaded, &settings))))?;
        }
    }
    warn(&outlook);
    Ok(if wrong.is_empty() { Exit::Done } else { Exit::Usage })
}

fn warn(warnings: &[SiteError]) {
    for warning in warnings {
        say(format_args!("warning: {warning}"));
    }
}

/// Response times that a crawl measured, where there is a frontier that answers and knows the sites.
async fn measured(sites: &[(String, Site)], globals: &Globals) -> BTreeMap<String, Duration> {
    let Ok(frontier) = globals.open_existing() else { return BTreeMap::new() };
    let names: Vec<String> = sites.iter().map(|(_, site)| site.name.clone()).collect();
    // A frontier that is away is no reason to say less of the files.
    let views =
        clock::within(PATIENCE, frontier.views(&names)).await.and_then(Result::ok).unwrap_or_default();
    let response = |view: View| Some((view.site, Duration::from_millis(view.response?.unsigned_abs())));
    views.into_iter().filter_map(response).collect()
}

/// Its own pace, and that of its group where this is the slower one or, as by default, the longest of its sites'.
fn pace(site: &Site, all: &[(String, Site)], settings: &Settings) -> String {
    let told = |interval: Duration| match interval {
        interval if interval.is_zero() => "no pace".to_owned(),
        interval => format!("one start per {}", spoken(interval)),
    };
    let own = site.pace.interval;
    let Some(group) = &site.group else { return told(own) };
    let of_group = settings.groups.get(group).copied().filter(|wait| !wait.is_zero());
    let others = all.iter().map(|(_, site)| site).filter(|other| other.group == site.group);
    let shared = of_group.or_else(|| others.map(|other| other.pace.interval).max()).unwrap_or(own);
    let own = if own > shared { format!("{}, and ", told(own)) } else { String::new() };
    format!("{own}{}, shared by group {group}", told(shared))
}

fn summary(site: &Site, pace: &str) -> String {
    let hosts: Vec<String> = site.scope.hosts.iter().map(ToString::to_string).collect();
    format!("site {}, {pace}, {} page rules, hosts {}", site.name, site.pages.len(), hosts.join(", "))
}
