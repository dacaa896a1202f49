//! `paced backup`: a copy of the embedded frontier, beside a crawl.

use std::path::PathBuf;

use clap::Args;

use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble};

/// Options of `paced backup`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  paced backup /backup/frontier-monday.db    # then copy the folders pages and items")]
pub(in crate::cli) struct BackupArgs {
    /// The file that the copy becomes; none may have that name
    file: PathBuf,
}

/// Copies the frontier.
pub(super) async fn run(options: BackupArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    frontier.back_up(&options.file).await?;
    Results::default().line(format_args!(
        "{}: a copy of {}; leave it unopened until it is to take that one's place",
        options.file.display(),
        globals.shown_frontier()?
    ))?;
    Ok(Exit::Done)
}
