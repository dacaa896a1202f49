//! `paced log`: what people did to sites, when, who, and why.

use clap::Args;
use serde_json::json;

use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, say, sites};
use crate::frontier::{DatedAct, Frontier};

/// Options of `paced log`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced log books
  paced log --json | jq -r .who | sort | uniq -c")]
pub(in crate::cli) struct LogArgs {
    /// The site, by name or file; all of them without one, and what was done to those that are gone
    site: Option<String>,
    /// One JSON object an act
    #[arg(long)]
    json: bool,
}

/// Lists what was done, the oldest first.
pub(super) async fn run(options: LogArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    let acts = match &options.site {
        Some(site) => of_sites(&frontier, vec![sites::known_one(&frontier, site, globals).await?]).await?,
        None => {
            of_sites(&frontier, [String::new()].into_iter().chain(frontier.sites().await?).collect()).await?
        }
    };
    if acts.is_empty() {
        say("nobody did anything yet");
    }
    let mut results = Results::default();
    for (site, DatedAct { at, act }) in &acts {
        if options.json {
            results
                .json(json!({ "at": at, "site": site, "who": act.who, "did": act.did, "why": act.why }))?;
        } else {
            let site = if site.is_empty() { "-" } else { site };
            results.line(format_args!("{at}  {site}  {}: {} ({})", act.who, act.did, act.why))?;
        }
    }
    Ok(Exit::Done)
}

async fn of_sites(frontier: &Frontier, names: Vec<String>) -> Result<Vec<(String, DatedAct)>, Trouble> {
    let mut all = Vec::new();
    for name in names {
        let acts = frontier.acts(&name).await?;
        all.extend(acts.into_iter().rev().map(|act| (name.clone(), act)));
    }
    all.sort_by_key(|(_, act)| act.at);
    Ok(all)
}
