//! `paced drain`: processes claim nothing more, finish what runs, and end.

use clap::Args;
use serde_json::json;

use crate::cli::parts::act::Why;
use crate::cli::parts::fleet::{is_called, short_name};
use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, say};
use crate::frontier::Owner;

/// Options of `paced drain`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced drain dl-1 --why 'that machine gets a new disk'
  paced drain --all --why 'a new version comes'")]
pub(in crate::cli) struct DrainArgs {
    /// Processes, by the names that `paced status --fleet` shows
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    names: Vec<String>,
    /// All processes that live
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    why: Why,
    /// One JSON object a process
    #[arg(long)]
    json: bool,
}

/// Drains them; each hears of it with its next beat.
pub(super) async fn run(options: DrainArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    // One that is silent for a while may come back: right after an outage of the server all of them are.
    let alive = frontier.not_dead().await?;
    let chosen = chosen(&options, &alive)?;
    if chosen.is_empty() {
        say("no process works on this frontier");
        return Ok(Exit::Done);
    }
    let whom = if options.all { "--all".to_owned() } else { options.names.join(" ") };
    let act = options.why.act(&format!("drain {whom}"));
    let mut results = Results::default();
    for owner in chosen {
        let is_drained = frontier.drain(&owner.name).await?;
        if options.json {
            results.json(
                json!({ "name": short_name(&owner.name), "member": owner.name, "drained": is_drained }),
            )?;
        } else {
            results.line(told(owner, is_drained))?;
        }
    }
    frontier.note("", act).await?;
    Ok(Exit::Done)
}

/// All that live, or those of these names.
fn chosen<'a>(options: &DrainArgs, alive: &'a [Owner]) -> Result<Vec<&'a Owner>, Trouble> {
    if options.all {
        return Ok(alive.iter().collect());
    }
    let is_one = |name: &String| alive.iter().any(|owner| is_called(&owner.name, name));
    if let Some(unknown) = options.names.iter().find(|name| !is_one(name)) {
        let names: Vec<&str> = alive.iter().map(|owner| short_name(&owner.name)).collect();
        let others =
            if names.is_empty() { "none does".to_owned() } else { format!("these do: {}", names.join(", ")) };
        return Err(Trouble::usage(format!("no process `{unknown}` lives on this frontier; {others}")));
    }
    let is_chosen = |owner: &&Owner| options.names.iter().any(|name| is_called(&owner.name, name));
    Ok(alive.iter().filter(is_chosen).collect())
}

fn told(owner: &Owner, is_drained: bool) -> String {
    let (name, pid) = (short_name(&owner.name), owner.pid);
    if is_drained {
        format!(
            "{name} (process {pid}): drained; within seconds it claims nothing more, and it ends once what runs is finished"
        )
    } else {
        format!("{name} (process {pid}): gone meanwhile")
    }
}
