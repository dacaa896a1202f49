//! `paced pause`: nothing of a site is asked for until somebody resumes it, or until a time.

use clap::Args;
use serde_json::json;

use crate::cli::parts::act::Why;
use crate::cli::parts::results::Results;
use crate::cli::parts::when::When;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::clock::Timestamp;
use crate::frontier::{Pause, TuneReply, Tuning, View};

/// Options of `paced pause`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced pause books --why 'their mail of this morning'
  paced pause books --until 2h
  paced pause books travel --until 06:00")]
pub(in crate::cli) struct PauseArgs {
    /// Sites: names, or files
    #[arg(required = true, value_name = "SITE")]
    sites: Vec<String>,
    /// When it goes on by itself: a time (2026-11-20T09:00:00Z), the next 14:05 of this machine, or a duration (2h)
    #[arg(long, value_name = "TIME", value_parser = When::read)]
    until: Option<When>,
    #[command(flatten)]
    why: Why,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Pauses each site, until a time by the clock that its starts go by.
pub(super) async fn run(options: PauseArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    let mut views = Vec::new();
    for site in &options.sites {
        let name = sites::known_one(&frontier, site, globals).await?;
        views.push(frontier.view(&name).await?.ok_or_else(|| gone(&name))?);
    }
    let ends = |view: &View| options.until.map(|until| until.at(view.at));
    if let Some(past) = views.iter().find_map(|view| ends(view).filter(|until| *until <= view.at)) {
        return Err(Trouble::usage(format!("{past} is over: nothing was paused")));
    }
    let Some(first) = views.first() else { return Ok(Exit::Done) };
    let told = |until: Option<Timestamp>| until.map(|until| format!(" until {until}")).unwrap_or_default();
    let act = options.why.act(&format!("pause{}", told(ends(first))));
    let mut results = Results::default();
    for view in &views {
        let (name, until) = (&view.site, ends(view));
        let why = format!("by {}: {}", act.who, act.why);
        let pause = Pause { why, until: until.map(Timestamp::as_millis) };
        match frontier.tune_by(act.clone(), name, vec![Tuning::Paused(Some(pause))]).await? {
            TuneReply::Unknown => return Err(gone(name)),
            _ if options.json => results.json(json!({ "site": name, "paused_until": until }))?,
            _ => {
                let told = told(until);
                results.line(format_args!("{name}: paused{told}; `paced resume {name}` goes on with it"))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn gone(name: &str) -> Trouble {
    Trouble::failed(format!("site `{name}` is gone"))
}
