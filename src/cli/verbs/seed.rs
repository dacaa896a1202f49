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
    let settings = globals.settings()?;
    let sites = sites::load_all(&options.sites, &settings)?;
    globals.start_log(false);
    let frontier = Frontier::open(&globals.frontier_url()?)?;
    let mut results = Results::default();
    let seeded = seed(&frontier, &settings, &sites, options.fresh).await?;
    for seeded in &seeded {
        if options.json { results.json(object(seeded))? } else { results.line(text(seeded))? }
    }
    Ok(exit(&seeded))
}

/// Seeds of which another list took the place were not put.
fn exit(seeded: &[Seeded]) -> Exit {
    if seeded.iter().any(|seeded| seeded.run.is_replaced) { Exit::Failed } else { Exit::Done }
}

fn text(seeded: &Seeded) -> String {
    let Seeded { site, run, seeds, waiting } = seeded;
    let number = run.number;
    if run.is_replaced {
        return format!(
            "{site}: not all of its seeds are put: another list took their place, or its run was given up"
        );
    }
    match (run.begun, seeds) {
        (true, 1) => format!("{site}: run {number} begun, 1 seed put"),
        (true, _) => format!("{site}: run {number} begun, {seeds} seeds put"),
        (false, _) => format!("{site}: run {number} goes on where it was, {waiting} waiting"),
    }
}

fn object(seeded: &Seeded) -> serde_json::Value {
    let Seeded { site, run, seeds, waiting } = seeded;
    json!({ "site": site, "run": run.number, "begun": run.begun, "replaced": run.is_replaced, "seeds": seeds, "waiting": waiting })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::Run;

    #[test]
    fn seeds_that_another_list_took_the_place_of_are_a_failure() {
        let seeded = |is_replaced| {
            let run = Run { is_replaced, ..Run::of(2, true) };
            Seeded { site: "shop".to_owned(), run, seeds: 3, waiting: 0 }
        };
        assert_eq!(exit(&[seeded(false)]), Exit::Done);
        assert_eq!(exit(&[seeded(false), seeded(true)]), Exit::Failed);
        assert_eq!(text(&seeded(false)), "shop: run 2 begun, 3 seeds put");
        let told =
            "shop: not all of its seeds are put: another list took their place, or its run was given up";
        assert_eq!(text(&seeded(true)), told);
    }
}
