//! The command line: one file a verb, with its options and its `run`. What a verb does is the library's matter.

mod audit;
mod check;
mod completions;
mod crawl;
mod dead;
mod demo;
mod equipment;
mod explain;
mod explain_url;
mod forget;
mod globals;
mod idle;
mod man;
mod plan;
mod put;
mod rename;
mod reparse;
mod results;
mod seed;
mod signals;
mod sites;
mod status;
mod trial_shown;
mod try_out;
mod work;

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use globals::Globals;

use crate::fetch::install_tls;
use crate::frontier::{FrontierError, FrontierErrorKind};
use crate::run::RunError;
use crate::sink::SinkError;
use crate::work::{VisitError, cores};
use results::say;

/// A polite web crawler: request starts on a site keep one steady interval, and nothing is lost.
#[derive(Debug, Parser)]
#[command(name = "paced", version, arg_required_else_help = true, after_help = EXAMPLE)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLE: &str = "Example:
  paced demo                      four shops on this machine, crawled before your eyes
  paced check sites/books.toml    is the site file right?
  paced crawl sites/books.toml    fetch its pages, write its items
  paced status                    how does it stand?
  paced audit books               the proof of pace";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve demo shops on loopback and crawl them: shows the progress, the first items and the proof of pace
    Demo(demo::Options),
    /// Check site files: all errors at once, each with its place and what to do
    Check(check::Options),
    /// Crawl sites until nothing is left; stopped and started again it goes on where it was
    Crawl(crawl::Options),
    /// Register sites and put their seeds into the queues, for workers that share the frontier
    Seed(seed::Options),
    /// Work on all sites of a shared frontier until told to stop; as many processes as you like
    Work(work::Options),
    /// Ask for pages: a feed's or any seed extractor's way in
    Put(put::Options),
    /// Try a site's rules on one page: robots.txt, the rule, each field and where it came from, the links
    Try(try_out::Options),
    /// Parse the stored pages of a site again by today's rules: no request is sent; --diff shows what would change
    Reparse(reparse::Options),
    /// How sites stand: waiting, running, done, pace, response time, ETA
    Status(status::Options),
    /// Why a site isn't moving, and whose each value in force is; or what became of a URL
    Explain(explain::Options),
    /// Dead letters, tasks that failed for good: list or show them with their reason, revive or drop them
    Dead(dead::Options),
    /// Forget a site: its queue, dead letters, what is known of its pages; its pace stays
    Forget(forget::Options),
    /// Workers needed, pages a day, and when it would end: from site files, or from what is measured
    Plan(plan::Options),
    /// The proof of pace: starts, gaps and early ones, as a report for a site's owner
    Audit(audit::Options),
    /// Completions of verbs and options for a shell
    Completions(completions::Options),
    /// The manual: one page with all verbs, or a page for each
    Man(man::Options),
}

/// How a verb ended, as its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Failed, or nothing could be crawled.
    Failed = 1,
    /// Wrong usage or an invalid file.
    Usage = 2,
    /// Ended early; what is left goes on at the next start.
    Early = 3,
    /// Interrupted.
    Interrupted = 130,
}

/// What a verb could not do, in one line, and its exit code.
#[derive(Debug)]
pub struct Trouble {
    exit: Exit,
    what: String,
}

impl Trouble {
    fn usage(what: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, what: what.to_string() }
    }

    fn failed(what: impl fmt::Display) -> Self {
        Self { exit: Exit::Failed, what: what.to_string() }
    }
}

impl<E: Error + 'static> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self { exit: exit_of(&error), what: error.to_string() }
    }
}

/// A frontier that can't be named so is the caller's mistake; items that nobody reads any more end a crawl early.
fn exit_of(error: &(dyn Error + 'static)) -> Exit {
    let of_run = error.downcast_ref::<RunError>();
    let frontier = match of_run {
        Some(RunError::Visit(VisitError::Sink(SinkError::Hung { .. }))) => return Exit::Early,
        Some(RunError::Folder { .. }) => return Exit::Usage,
        Some(RunError::Visit(VisitError::Frontier(error))) => Some(error),
        _ => error.downcast_ref::<FrontierError>(),
    };
    match frontier.map(|error| &error.kind) {
        Some(FrontierErrorKind::BadUrl(_)) => Exit::Usage,
        _ => Exit::Failed,
    }
}

/// Runs the program of this process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    install_tls();
    let exit = run(cli).unwrap_or_else(|trouble| {
        for line in trouble.what.lines() {
            say(format_args!("paced: {line}"));
        }
        trouble.exit
    });
    ExitCode::from(exit as u8)
}

fn run(cli: Cli) -> Result<Exit, Trouble> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads()).enable_all().build()?;
    let globals = cli.globals;
    let exit = runtime.block_on(async move {
        match cli.verb {
            Verb::Demo(options) => demo::run(options, &globals).await,
            Verb::Check(options) => check::run(&options, &globals).await,
            Verb::Crawl(options) => crawl::run(options, &globals).await,
            Verb::Seed(options) => seed::run(&options, &globals).await,
            Verb::Work(options) => work::run(options, &globals).await,
            Verb::Put(options) => put::run(options, &globals).await,
            Verb::Try(options) => try_out::run(options, &globals).await,
            Verb::Reparse(options) => reparse::run(options, &globals).await,
            Verb::Status(options) => status::run(options, &globals).await,
            Verb::Explain(options) => explain::run(options, &globals).await,
            Verb::Dead(options) => dead::run(options, &globals).await,
            Verb::Forget(options) => forget::run(options, &globals).await,
            Verb::Plan(options) => plan::run(options, &globals).await,
            Verb::Audit(options) => audit::run(&options, &globals).await,
            Verb::Completions(options) => completions::run(&options),
            Verb::Man(options) => man::run(&options),
        }
    });
    // A parse that hangs must not keep the process: its lease returns.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    exit
}

/// Threads for requests, answers and the archive: one for two cores, as the parses of those pages take the other one. More would
/// take the work from each other, which costs a twentieth of a crawl's CPU time.
fn threads() -> usize {
    cores().div_ceil(2)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

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
