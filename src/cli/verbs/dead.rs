//! `paced dead`: tasks that failed for good, with their reason; brought back, or put away.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use futures_util::future::join_all;
use tracing::info;

use crate::cli::parts::account::counted;
use crate::cli::parts::act::act_of;
use crate::cli::parts::explain_url::{ExplainedUrl, explain, letter_object};
use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, say, sites};
use crate::frontier::{Frontier, LetterPlace};
use crate::site::{Site, UrlPattern};
use crate::task::{DeadLetter, LaneWish, Priority, Put, PutReply, Stage};

/// Letters looked at, and moved, in one step.
const PORTION: usize = 100;

/// Options of `paced dead`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced dead list books --status 404
  paced dead show https://books.toscrape.com/catalogue/page-7.html
  paced dead revive books --stage parse        # after its rule was mended
  paced dead drop books --url '/old/**'")]
pub(in crate::cli) struct DeadArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// List dead letters, oldest first: site, stage, status, attempts, when, URL, reason
    #[command(after_help = "Examples:
  paced dead list books --status 404
  paced dead list --stage parse --json | jq -r .reason | sort | uniq -c")]
    List {
        #[command(flatten)]
        filter: LetterFilter,
        /// One JSON object a letter
        #[arg(long)]
        json: bool,
    },
    /// All that is known of one page: its letters, where it is stored, what robots.txt says
    #[command(after_help = "Example:\n  paced dead show https://books.toscrape.com/catalogue/page-7.html")]
    Show {
        /// The page
        url: String,
        /// The site of the URL, where it isn't the one that has its host
        #[arg(long, value_name = "SITE")]
        site: Option<String>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Put them back into their queues: attempts begin anew
    #[command(after_help = "Examples:
  paced dead revive books --stage parse        # after its rule was mended
  paced dead revive --status 503               # of all sites")]
    Revive(Meant),
    /// Remove them for good; no link brings their pages back in this run
    #[command(after_help = "Examples:
  paced dead drop books --url '/old/**'
  paced dead drop books quotes --status 404")]
    Drop(Meant),
}

/// The letters that a change is meant for: it is told which.
#[derive(Clone, Debug, Args)]
struct Meant {
    #[command(flatten)]
    filter: LetterFilter,
    /// All letters of all sites
    #[arg(long)]
    all: bool,
}

/// Which letters are meant.
#[derive(Clone, Debug, Args)]
struct LetterFilter {
    /// Sites: names or files; all without any
    #[arg(value_name = "SITE")]
    sites: Vec<String>,
    /// Those of this stage
    #[arg(long, value_parser = stage())]
    stage: Option<Stage>,
    /// Those whose last answer had this HTTP status
    #[arg(long, value_name = "N")]
    status: Option<u16>,
    /// Those whose path and query fit this pattern, as in a site file: `*` stops at / and ?, `**` doesn't, `re:` before a
    /// regular expression
    #[arg(long, value_name = "GLOB", value_parser = |text: &str| UrlPattern::whole(text))]
    url: Option<UrlPattern>,
}

fn stage() -> impl TypedValueParser<Value = Stage> {
    let parse = |text: String| if text == "parse" { Stage::Parse } else { Stage::Download };
    PossibleValuesParser::new(["download", "parse"]).map(parse)
}

impl LetterFilter {
    fn fits(&self, letter: &DeadLetter) -> bool {
        self.stage.is_none_or(|stage| letter.stage == stage)
            && self.status.is_none_or(|status| letter.why.status == Some(status))
            && self.url.as_ref().is_none_or(|pattern| pattern.matches(&letter.url))
    }
}

impl Meant {
    fn checked(self, verb: &str) -> Result<LetterFilter, Trouble> {
        let LetterFilter { sites, stage, status, url } = &self.filter;
        if self.all || !sites.is_empty() || stage.is_some() || status.is_some() || url.is_some() {
            return Ok(self.filter);
        }
        Err(Trouble::usage(format!(
            "dead {verb}: name sites, or --stage, --status or --url; --all for every letter of every site"
        )))
    }
}

/// Lists, shows, revives or drops.
pub(super) async fn run(options: DeadArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    match options.what {
        What::List { filter, json } => list(&filter, json, &frontier, globals).await,
        What::Show { url, site, json } => {
            show(explain(&url, site.as_deref(), &frontier, globals).await?, json)
        }
        What::Revive(meant) => {
            let revive = async |site: &str, letters| revive(site, letters, &frontier).await;
            let log =
                |site: &str, revived, left| info!(site, revived, left, "dead letters revived by an operator");
            change(&meant.checked("revive")?, ("revived", log), revive, &frontier, globals).await
        }
        What::Drop(meant) => {
            let drop = async |site: &str, letters| drop_for_good(site, letters, &frontier).await;
            let log = |site: &str, dropped, _| info!(site, dropped, "dead letters dropped by an operator");
            change(&meant.checked("drop")?, ("dropped", log), drop, &frontier, globals).await
        }
    }
}

/// A site's letters that fit, a portion at a time.
struct LetterPortions<'a> {
    filter: &'a LetterFilter,
    frontier: &'a Frontier,
    site: &'a str,
    after: Option<LetterPlace>,
}

impl LetterPortions<'_> {
    async fn next(&mut self) -> Result<Option<Vec<DeadLetter>>, Trouble> {
        let mut letters =
            self.frontier.dead_letters_after(self.site, self.after.take(), PORTION as u64).await?;
        self.after = letters.last().map(LetterPlace::of);
        letters.retain(|letter| self.filter.fits(letter));
        Ok((self.after.is_some()).then_some(letters))
    }
}

async fn list(
    filter: &LetterFilter,
    as_json: bool,
    frontier: &Frontier,
    globals: &Globals,
) -> Result<Exit, Trouble> {
    let (mut results, mut count) = (Results::default(), 0);
    for site in sites::known(frontier, &filter.sites, globals).await? {
        let mut portions = LetterPortions { filter, frontier, site: &site, after: None };
        while let Some(letters) = portions.next().await?.filter(|_| !results.is_closed()) {
            count += letters.len();
            for letter in &letters {
                if as_json { results.json(letter_object(letter))? } else { results.line(line(letter))? }
            }
        }
    }
    if !as_json && count == 0 {
        say("no dead letters");
    }
    Ok(Exit::Done)
}

fn line(letter: &DeadLetter) -> String {
    let DeadLetter { site, stage, url, why, died_at, .. } = letter;
    let status = why.status.map_or("-".to_owned(), |status| status.to_string());
    let attempts = counted(letter.attempts, "attempt");
    format!("{site}  {stage}  {status}  {attempts}  {died_at}  {url}  {}", why.reason)
}

fn show(explained: ExplainedUrl, as_json: bool) -> Result<Exit, Trouble> {
    let ExplainedUrl { url, site, status, mut account } = explained;
    if status.letters.is_empty() {
        let name = site.name;
        return Err(Trouble::failed(format!(
            "{url} is no dead letter of site `{name}`; `paced explain` tells more"
        )));
    }
    for letter in &status.letters {
        for (number, failure) in letter.history.iter().enumerate() {
            let (number, reason) = (number + 1, &failure.reason);
            account.tell("failure", format!("{number}. in the {} stage: {reason}", letter.stage));
        }
    }
    account.print(as_json)
}

/// Changes the letters that fit, and tells of each site how many were and how many could not be.
async fn change(
    filter: &LetterFilter,
    (changed, log): (&str, fn(&str, usize, usize)),
    change: impl AsyncFn(&str, Vec<DeadLetter>) -> Result<(usize, usize), Trouble>,
    frontier: &Frontier,
    globals: &Globals,
) -> Result<Exit, Trouble> {
    let mut results = Results::default();
    for site in sites::known(frontier, &filter.sites, globals).await? {
        let (mut count, mut left) = (0, 0);
        let mut portions = LetterPortions { filter, frontier, site: &site, after: None };
        while let Some(letters) = portions.next().await? {
            let portion = change(&site, letters).await?;
            (count, left) = (count + portion.0, left + portion.1);
        }
        log(&site, count, left);
        if count > 0 {
            frontier.note(&site, act_of(&format!("dead letters: {count} {changed}"))).await?;
        }
        match (count, left) {
            (0, 0) => {}
            (_, 0) => results.line(format_args!("{site}: {count} {changed}"))?,
            _ => results.line(format_args!(
                "{site}: {count} {changed}, {left} left: no rule takes them any more, or their page is not stored"
            ))?,
        }
    }
    Ok(Exit::Done)
}

/// Downloads are asked for again; pages whose parse died are parsed again from where they are stored. How many came back, and
/// how many didn't.
async fn revive(
    name: &str,
    letters: Vec<DeadLetter>,
    frontier: &Frontier,
) -> Result<(usize, usize), Trouble> {
    let Some(site) = sites::registered(name, frontier).await? else { return Ok((0, 0)) };
    let all = letters.len();
    let (parses, downloads): (Vec<_>, Vec<_>) =
        letters.into_iter().partition(|letter| letter.stage == Stage::Parse);
    let puts: Vec<Put> = downloads.iter().filter_map(|letter| again(&site, letter)).collect();
    let mut revived = 0;
    if !puts.is_empty() {
        let replies = frontier.put(name, puts).await?;
        revived += replies.iter().filter(|reply| **reply == PutReply::Revived).count();
    }
    let parsing = parses.iter().map(|letter| frontier.parse_again(name, &letter.url));
    for parsed in join_all(parsing).await {
        revived += usize::from(parsed?);
    }
    Ok((revived, all - revived))
}

/// Before all others, while there is room; as deep as it was: what `max_depth` holds off its links stays off.
fn again(site: &Site, letter: &DeadLetter) -> Option<Put> {
    let (url, depth) = (&letter.url, letter.depth);
    let rule = Some(site.takes(url, depth).ok()?.name.clone());
    let wish = LaneWish { urgent: true, ..LaneWish::default() };
    Some(Put { depth, rule, wish, ..Put::request(url.clone(), Priority::OPERATOR) })
}

async fn drop_for_good(
    site: &str,
    letters: Vec<DeadLetter>,
    frontier: &Frontier,
) -> Result<(usize, usize), Trouble> {
    let letters: Vec<_> = letters.into_iter().map(|letter| (letter.stage, letter.url)).collect();
    if letters.is_empty() {
        return Ok((0, 0));
    }
    Ok((frontier.drop_letters(site, letters).await?.into_iter().filter(|there| *there).count(), 0))
}
