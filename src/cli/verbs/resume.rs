//! `paced resume`: what was paused goes on; of a walled site that isn't paused the next probe is due at once.

use clap::Args;
use serde_json::json;

use crate::cli::parts::act::Why;
use crate::cli::parts::pauses::{OfWhom, SharedBy};
use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::frontier::{Frontier, Tuning, View, Whose};
use crate::site::group_of_unit;
use crate::task::Stage;

/// Options of `paced resume`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced resume books                                     # its own pause is over
  paced resume --group shops                             # that of its group is
  paced resume books --why 'its owner has let us in'     # a wall is probed")]
pub(in crate::cli) struct ResumeArgs {
    #[command(flatten)]
    of_whom: OfWhom,
    #[command(flatten)]
    why: Why,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Ends pauses and makes probes due; whoever works on the sites sends them.
pub(super) async fn run(options: ResumeArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    match options.of_whom.shared() {
        Some(shared) => resume_shared(&options, &shared, &frontier).await,
        None => resume_sites(&options, &frontier).await,
    }
}

/// Each mark is lifted by itself: a site that was paused as well stays so.
async fn resume_shared(
    options: &ResumeArgs,
    shared: &SharedBy,
    frontier: &Frontier,
) -> Result<Exit, Trouble> {
    let act = options.why.act(&format!("resume {}", shared.option()));
    let resumed = async || {
        let mut was_paused = false;
        for stage in Stage::ALL {
            was_paused |= shared.pause(frontier, stage, None).await?;
        }
        Ok(was_paused)
    };
    let was_paused = shared.noted(frontier, act, resumed).await?;
    let mut results = Results::default();
    let told = shared.told();
    if options.json {
        let mut object = shared.object();
        object["paused"] = json!(was_paused);
        results.json(object)?;
    } else if was_paused {
        results.line(format_args!("{told}: the pause is over; other pauses, as of a site itself, hold"))?;
    } else {
        results.line(format_args!("{told}: no such pause was known; a site that still had it goes on"))?;
    }
    Ok(Exit::Done)
}

async fn resume_sites(options: &ResumeArgs, frontier: &Frontier) -> Result<Exit, Trouble> {
    let mut views = Vec::new();
    for name in sites::names(&options.of_whom.sites)? {
        let known = frontier.view(&name).await?;
        views.push(known.ok_or_else(|| {
            Trouble::usage(format!("there is no site `{name}`: `paced status` lists them"))
        })?);
    }
    let act = options.why.act("resume");
    let mut results = Results::default();
    for view in views {
        let name = &view.site;
        let was_paused = view.pauses.iter().any(|pause| pause.whose == Whose::Site);
        let both = vec![Tuning::Paused(None), Tuning::ParsePaused(None)];
        frontier.tune_by(act.clone(), name, both).await?;
        let others = others(&view);
        // Whoever ends a pause asks for no probe, which may be one of a whole group.
        let is_paused = view.pauses.iter().any(|pause| pause.stage == Stage::Download);
        let is_walled = !is_paused && frontier.resume(name).await?;
        if options.json {
            results.json(json!({ "site": name, "walled": is_walled, "paused": was_paused }))?;
        } else {
            results.line(format_args!("{name}: {}", line(&view, was_paused, is_walled, others)))?;
        }
    }
    Ok(Exit::Done)
}

fn line(view: &View, was_paused: bool, is_walled: bool, others: Option<String>) -> String {
    match others {
        Some(others) if was_paused => format!("its own pause is over; {others}"),
        Some(others) => others,
        None if is_walled => "a probe is due now".to_owned(),
        None if was_paused && view.wall.is_some() => {
            "goes on; it is walled: run this again to probe it now".to_owned()
        }
        None if was_paused => "goes on".to_owned(),
        None => {
            let why = view.left_alone().unwrap_or_else(|| "nothing holds it back but its pace".to_owned());
            format!("it is neither paused nor walled; {why}")
        }
    }
}

/// What still holds a site back that is not its own pause, and what ends that.
fn others(view: &View) -> Option<String> {
    let shared =
        [(Whose::Group, SharedBy::Group(group_of_unit(&view.unit).to_owned())), (Whose::All, SharedBy::All)];
    let told = shared.iter().filter(|(whose, _)| view.pauses.iter().any(|pause| pause.whose == *whose));
    let told: Vec<String> = told
        .map(|(_, shared)| {
            format!("a pause of {} holds: `paced resume {}` ends it", shared.told(), shared.option())
        })
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}
