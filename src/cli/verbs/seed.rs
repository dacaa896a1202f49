//! `paced seed`: sites are registered, their runs begun and their seeds put, for workers that share the frontier.

use clap::Args;
use serde_json::json;

use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::frontier::Frontier;
use crate::run::{Seeded, seed};

/// Options of `paced seed`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced seed sites/*.toml                   # and then, as often as you like: paced work
  paced seed books --frontier redis://redis.internal/0")]
pub(in crate::cli) struct SeedArgs {
    /// Site files, or names of files in sites/
    #[arg(required = true, value_name = "SITE")]
    sites: Vec<String>,
    /// Give up an unfinished run first, and begin a new one
    #[arg(long)]
    fresh: bool,
    /// One JSON object a site
    #[arg(long)]
    json: bool,
}

/// Seeds the frontier and says what became of each site.
pub(super) async fn run(options: SeedArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let sites = sites::load_all(&options.sites)?;
    let settings = globals.settings()?;
    globals.start_log(false);
    let frontier = Frontier::open(&globals.frontier_url())?;
    let mut results = Results::default();
    for seeded in seed(&frontier, &settings, &sites, options.fresh).await? {
        if options.json { results.line(object(&seeded))? } else { results.line(text(&seeded))? }
    }
    Ok(Exit::Done)
}

fn text(seeded: &Seeded) -> String {
    let Seeded { site, run, seeds, waiting } = seeded;
    let number = run.number;
    match (run.begun, seeds) {
        (true, 1) => format!("{site}: run {number} begun, 1 seed put"),
        (true, _) => format!("{site}: run {number} begun, {seeds} seeds put"),
        (false, _) => format!("{site}: run {number} goes on where it was, {waiting} waiting"),
    }
}

fn object(seeded: &Seeded) -> serde_json::Value {
    let Seeded { site, run, seeds, waiting } = seeded;
    json!({ "site": site, "run": run.number, "begun": run.begun, "seeds": seeds, "waiting": waiting })
}
