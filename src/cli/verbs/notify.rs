//! `paced notify`: is this machine's own way to tell of events right?

use std::path::PathBuf;

use clap::Args;

use crate::cli::parts::equipment::certificates;
use crate::cli::parts::results::Results;
use crate::cli::parts::signals::await_signals;
use crate::cli::parts::{Exit, Globals, Trouble};
use crate::notify::Notifier;

const NONE: &str = "this machine has no [notify]; write it into paced.toml, and below it \
                    command = [\"/usr/local/bin/tell\"] or url = \"https://hooks.example/paced\"";

/// Options of `paced notify`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  paced notify --test                         # exit 0 if it was told, 1 with the reason if not")]
pub(in crate::cli) struct NotifyArgs {
    /// Send a test event, once, by the [notify] of paced.toml
    #[arg(long, required = true)]
    test: bool,
    /// Trust the certificates of this PEM file besides the system's
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

/// Sends a test event and says what came of it.
pub(super) async fn run(options: NotifyArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let notify = globals.settings()?.notify.ok_or_else(|| Trouble::usage(NONE))?;
    let cacert = certificates(options.cacert.as_deref())?;
    let notifier = Notifier::new(notify.to, cacert.as_deref())?;
    let stop = await_signals()?.token;
    let Some(told) = stop.run_until_cancelled(Box::pin(notifier.tell_test())).await else {
        return Ok(Exit::Interrupted);
    };
    match told {
        Ok(()) => {
            Results::default().line(format_args!("{notifier}: the test event was told"))?;
            Ok(Exit::Done)
        }
        Err(why) => Err(Trouble::failed(format!("{notifier} can't be told: {why}"))),
    }
}
