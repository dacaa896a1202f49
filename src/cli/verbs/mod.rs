//! One file a verb: its options and its `run`.

mod audit;
mod backup;
mod campaign;
mod check;
mod completions;
mod crawl;
mod dead;
mod demo;
mod drain;
mod explain;
mod forget;
mod key;
mod log;
mod man;
mod notify;
mod pause;
mod plan;
mod put;
mod queue;
mod reparse;
mod resume;
mod seed;
mod status;
mod try_page;
mod tune;
mod work;

use clap::{Command, Subcommand};

use crate::cli::parts::{Exit, Globals, Trouble};

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Serve demo shops on loopback and crawl them: shows the progress, the first items and the proof of pace
    Demo(demo::DemoArgs),
    /// Check site files: all errors at once, each with its place and what to do
    Check(check::CheckArgs),
    /// Crawl sites until nothing is left; stopped and started again it goes on where it was
    Crawl(crawl::CrawlArgs),
    /// Register sites and put their seeds into the queues, for workers that share the frontier
    Seed(seed::SeedArgs),
    /// Work on all sites of a shared frontier until told to stop; as many processes as you like
    Work(work::WorkArgs),
    /// Ask for pages: a feed's or any seed extractor's way in
    Put(put::PutArgs),
    /// Try a site's rules on one page: robots.txt, the rule, each field and where it came from, the links
    Try(try_page::TryArgs),
    /// Parse the stored pages of a site again by today's rules: no request is sent; --diff shows what would change
    Reparse(reparse::ReparseArgs),
    /// How sites stand: waiting, running, done, pace, response time, ETA
    Status(status::StatusArgs),
    /// Why a site isn't moving, and whose each value in force is; or what became of a URL
    Explain(explain::ExplainArgs),
    /// Dead letters, tasks that failed for good: list or show them with their reason, revive or drop them
    Dead(dead::DeadArgs),
    /// Another pace for a site while it runs, within what its file allows; in force from its next start on
    Tune(tune::TuneArgs),
    /// Ask nothing of sites, of a group or of all until they are resumed, or until a time
    Pause(pause::PauseArgs),
    /// Go on with what was paused; of a walled site, the page that it refused first is asked for again when its pace allows it
    Resume(resume::ResumeArgs),
    /// Let processes finish what runs, claim nothing more, and end
    Drain(drain::DrainArgs),
    /// Pages that wait: list them, drop them, raise or lower their priority, move them to another lane
    Queue(queue::QueueArgs),
    /// Long lists of URLs, put into a site's queue portion by portion: start, list, tune, pause, resume, stop them
    Campaign(campaign::CampaignArgs),
    /// What people did to sites: when, who, why
    Log(log::LogArgs),
    /// Try how this machine tells of what fails or ends, by the [notify] of paced.toml
    Notify(notify::NotifyArgs),
    /// Forget a site: its queue, dead letters, what is known of its pages; its pace stays
    Forget(forget::ForgetArgs),
    /// Keys to sign requests with, so that a site knows its crawler: make one, and show what to publish of it
    Key(key::KeyArgs),
    /// Workers needed, pages a day, and when it would end: from site files, or from what is measured
    Plan(plan::PlanArgs),
    /// The proof of pace: starts, gaps and early ones, as a report for a site's owner
    Audit(audit::AuditArgs),
    /// Copy the embedded frontier, beside whatever works on it
    Backup(backup::BackupArgs),
    /// Completions of verbs and options for a shell
    Completions(completions::CompletionsArgs),
    /// The manual: one page with all verbs, or a page for each
    Man(man::ManArgs),
}

impl Verb {
    /// Does it. `program` is what the shell's completions and the manual are made of.
    pub(super) async fn run(self, globals: &Globals, program: Command) -> Result<Exit, Trouble> {
        match self {
            Self::Demo(options) => demo::run(options, globals).await,
            Self::Check(options) => check::run(options, globals).await,
            Self::Crawl(options) => crawl::run(options, globals).await,
            Self::Seed(options) => seed::run(options, globals).await,
            Self::Work(options) => work::run(options, globals).await,
            Self::Put(options) => put::run(options, globals).await,
            Self::Try(options) => try_page::run(options, globals).await,
            Self::Reparse(options) => reparse::run(options, globals).await,
            Self::Status(options) => status::run(options, globals).await,
            Self::Explain(options) => explain::run(options, globals).await,
            Self::Dead(options) => dead::run(options, globals).await,
            Self::Tune(options) => tune::run(options, globals).await,
            Self::Pause(options) => pause::run(options, globals).await,
            Self::Drain(options) => drain::run(options, globals).await,
            Self::Queue(options) => queue::run(options, globals).await,
            Self::Campaign(options) => campaign::run(options, globals).await,
            Self::Log(options) => log::run(options, globals).await,
            Self::Resume(options) => resume::run(options, globals).await,
            Self::Notify(options) => notify::run(options, globals).await,
            Self::Forget(options) => forget::run(options, globals).await,
            Self::Key(options) => key::run(options, globals),
            Self::Plan(options) => plan::run(options, globals).await,
            Self::Audit(options) => audit::run(options, globals).await,
            Self::Backup(options) => backup::run(options, globals).await,
            Self::Completions(options) => completions::run(options, program),
            Self::Man(options) => man::run(options, program),
        }
    }
}
