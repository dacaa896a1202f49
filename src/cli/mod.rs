//! The command line: `verbs`, and the `parts` that they share. What a verb does is the library's matter.

mod parts;
mod verbs;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::cores::cores;
use crate::fetch::install_tls;
use parts::{Exit, Globals, Trouble, say};
use verbs::Verb;

/// A polite web crawler: request starts on a site keep one steady interval, and nothing is lost.
#[derive(Parser)]
#[command(name = "paced", version, arg_required_else_help = true, after_help = EXAMPLE)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLE: &str = "Example:
  paced demo                      five shops on this machine, crawled before your eyes
  paced check sites/books.toml    is the site file right?
  paced crawl sites/books.toml    fetch its pages, write its items
  paced status                    how does it stand?
  paced audit books               the proof of pace";

/// Runs the program of this process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    install_tls();
    let exit = run(cli).unwrap_or_else(Trouble::tell);
    ExitCode::from(exit as u8)
}

/// Help is printed in its colours; what is wrong may quote what was pasted from a site, and goes where all words do.
fn refuse(error: &clap::Error) -> ! {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if let DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion = error.kind() {
        error.exit()
    }
    error.to_string().lines().for_each(say);
    std::process::exit(error.exit_code())
}

fn run(cli: Cli) -> Result<Exit, Trouble> {
    // Requests, answers and the archive have one thread for two cores, as the parses of those pages take the other one.
    // More would take the work from each other, which costs a twentieth of a crawl's CPU time.
    let threads = cores().div_ceil(2);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let globals = cli.globals;
    let exit = runtime.block_on(cli.verb.run(&globals, Cli::command()));
    // A parse that hangs must not keep the process: its lease returns.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_all_verbs_fit_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_down_to_the_last_has_an_example_in_its_help() {
        fail_without_example(&Cli::command());
    }

    fn fail_without_example(command: &clap::Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Example") && help.contains("\n  paced "), "{}: {help}", command.get_name());
        command.get_subcommands().for_each(fail_without_example);
    }
}
