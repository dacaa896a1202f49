//! `paced pause`: nothing of a site, of a group or of all sites is asked for until somebody resumes it, or until a time.

use clap::Args;
use serde_json::json;

use crate::cli::parts::act::Why;
use crate::cli::parts::pauses::{OfWhom, SharedBy, now_of};
use crate::cli::parts::results::Results;
use crate::cli::parts::when::When;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::clock::Timestamp;
use crate::frontier::state::{DroppedOf, FOR_GOOD};
use crate::frontier::{Act, Frontier, Pause, TuneReply, Tuning, View};
use crate::task::Stage;

/// Options of `paced pause`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced pause books --why 'their mail of this morning'
  paced pause books travel --until 06:00
  paced pause books --now
  paced pause --group shops --until 2h
  paced pause --all --parse --why 'a new rule comes'")]
pub(in crate::cli) struct PauseArgs {
    #[command(flatten)]
    of_whom: OfWhom,
    /// Pause the parsing of stored pages instead of downloads
    #[arg(long)]
    parse: bool,
    /// Drop requests in flight as well, in every process within 3 s: their pages go back, and no attempt is counted
    #[arg(long, conflicts_with = "parse")]
    now: bool,
    /// When it goes on by itself: a time (2026-11-20T09:00:00Z), the next 14:05 of this machine, or a duration (2h)
    #[arg(long, value_name = "TIME", value_parser = When::read)]
    until: Option<When>,
    #[command(flatten)]
    why: Why,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

impl PauseArgs {
    /// When it ends, by the clock that starts go by.
    fn end(&self, now: Timestamp) -> Result<Option<Timestamp>, Trouble> {
        let until = self.until.map(|until| until.at(now));
        match until.filter(|until| *until <= now) {
            Some(past) => Err(Trouble::usage(format!("{past} is over: nothing was paused"))),
            None if until.is_some_and(|until| until.as_millis() >= FOR_GOOD) => {
                let last = Timestamp::from_millis(FOR_GOOD);
                Err(Trouble::usage(format!("a pause ends before {last}, or has no end: leave --until out")))
            }
            None => Ok(until),
        }
    }

    fn stage(&self) -> Stage {
        if self.parse { Stage::Parse } else { Stage::Download }
    }

    /// What is done, for the log, and why.
    fn act(&self, whose: Option<&SharedBy>, until: Option<Timestamp>) -> Act {
        let whose = whose.map(|shared| format!(" {}", shared.option())).unwrap_or_default();
        let parse = if self.parse { " --parse" } else { "" };
        let now = if self.now { " --now" } else { "" };
        self.why.act(&format!("pause{whose}{parse}{now}{}", told(until)))
    }

    fn line(&self, whose: &str, until: Option<Timestamp>, option: &str) -> String {
        let paused = if self.parse { "parses are paused" } else { "paused" };
        let now = if self.now { ", requests in flight are dropped within 3 s" } else { "" };
        format!("{whose}: {paused}{}{now}; `paced resume {option}` goes on with it", told(until))
    }
}

/// Pauses each site, until a time by the clock that its starts go by; or what a group's sites share, or all.
pub(super) async fn run(options: PauseArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    match options.of_whom.shared() {
        Some(shared) => pause_shared(&options, &shared, &frontier).await,
        None => pause_sites(&options, &frontier, globals).await,
    }
}

async fn pause_shared(options: &PauseArgs, shared: &SharedBy, frontier: &Frontier) -> Result<Exit, Trouble> {
    let until = options.end(now_of(frontier).await?)?;
    let act = options.act(Some(shared), until);
    let paused = Some(pause(&act, until));
    shared.noted(frontier, act, async || shared.pause(frontier, options.stage(), paused).await).await?;
    if options.now {
        frontier.drop_requests(shared.requests()).await?;
    }
    let mut results = Results::default();
    if options.json {
        let mut object = shared.object();
        (object["stage"], object["paused_until"]) = (json!(options.stage()), json!(until));
        results.json(object)?;
    } else {
        results.line(options.line(&shared.told(), until, &shared.option()))?;
    }
    Ok(Exit::Done)
}

async fn pause_sites(options: &PauseArgs, frontier: &Frontier, globals: &Globals) -> Result<Exit, Trouble> {
    let mut views = Vec::new();
    for site in &options.of_whom.sites {
        let name = sites::known_one(frontier, site, globals).await?;
        let view: View = frontier.view(&name).await?.ok_or_else(|| gone(&name))?;
        views.push((options.end(view.at)?, view));
    }
    let Some((first, _)) = views.first() else { return Ok(Exit::Done) };
    let act = options.act(None, *first);
    let mut results = Results::default();
    for (until, view) in &views {
        let (name, until) = (&view.site, *until);
        let pause = Some(pause(&act, until));
        let tuning = if options.parse { Tuning::ParsePaused(pause) } else { Tuning::Paused(pause) };
        let paused = frontier.tune_by(act.clone(), name, vec![tuning]).await?;
        if options.now && paused != TuneReply::Unknown {
            frontier.drop_requests(DroppedOf::Site(name.clone())).await?;
        }
        match paused {
            TuneReply::Unknown => return Err(gone(name)),
            _ if options.json => {
                let stage = options.stage();
                results.json(json!({ "site": name, "stage": stage, "paused_until": until }))?;
            }
            _ => results.line(options.line(name, until, name))?,
        }
    }
    Ok(Exit::Done)
}

/// Who paused it and why is told wherever the pause is.
fn pause(act: &Act, until: Option<Timestamp>) -> Pause {
    Pause { why: format!("by {}: {}", act.who, act.why), until: until.map(Timestamp::as_millis) }
}

fn told(until: Option<Timestamp>) -> String {
    until.map(|until| format!(" until {until}")).unwrap_or_default()
}

fn gone(name: &str) -> Trouble {
    Trouble::failed(format!("site `{name}` is gone"))
}
