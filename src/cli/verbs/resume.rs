//! `paced resume`: a paused site goes on; of a walled one that isn't paused the next probe is due at once.

use clap::Args;
use serde_json::json;

use crate::cli::parts::act::Why;
use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::frontier::Tuning;

/// Options of `paced resume`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced resume books                                     # a pause is over
  paced resume books --why 'its owner has let us in'     # a wall is probed")]
pub(in crate::cli) struct ResumeArgs {
    /// Paused or walled sites: names, or files
    #[arg(required = true, value_name = "SITE")]
    sites: Vec<String>,
    #[command(flatten)]
    why: Why,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Ends pauses and makes probes due; whoever works on the sites sends them.
pub(super) async fn run(options: ResumeArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    let mut views = Vec::new();
    for name in sites::names(&options.sites)? {
        let known = frontier.view(&name).await?;
        views.push(known.ok_or_else(|| {
            Trouble::usage(format!("there is no site `{name}`: `paced status` lists them"))
        })?);
    }
    let act = options.why.act("resume");
    let mut results = Results::default();
    for view in views {
        let name = &view.site;
        let was_paused = view.paused.is_some();
        frontier.tune_by(act.clone(), name, vec![Tuning::Paused(None)]).await?;
        // Whoever ends a pause asks for no probe, which may be one of a whole group.
        let is_walled = !was_paused && frontier.resume(name).await?;
        if options.json {
            results.json(json!({ "site": name, "walled": is_walled, "paused": was_paused }))?;
        } else if is_walled {
            results.line(format_args!("{name}: a probe is due now"))?;
        } else if was_paused {
            let walled =
                if view.wall.is_some() { "; it is walled: run this again to probe it now" } else { "" };
            results.line(format_args!("{name}: goes on{walled}"))?;
        } else {
            let why = view.left_alone().unwrap_or_else(|| "nothing holds it back but its pace".to_owned());
            results.line(format_args!("{name}: it is neither paused nor walled; {why}"))?;
        }
    }
    Ok(Exit::Done)
}
