//! `paced dead`: tasks that failed for good, with their reason; brought back, or put away.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tracing::info;

use crate::canonical_url::CanonicalUrl;
use crate::cli::parts::account::{Account, attempts};
use crate::cli::parts::results::{Results, say};
use crate::cli::parts::{Exit, Globals, Trouble, explain_url, sites};
use crate::frontier::{Frontier, LetterPlace};
use crate::site::{Site, UrlPattern};
use crate::task::{DeadLetter, Priority, Put, PutReply, Stage};

/// Letters looked at, and moved, in one step.
const PORTION: usize = 100;

/// Options of `paced dead`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced dead list books --status 404
  paced dead show https://books.toscrape.com/catalogue/page-7.html
  paced dead revive books --stage parse        # after its rule was mended
  paced dead drop books --url '/old/**'")]
pub(in crate::cli) struct Options {
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
        filter: Filter,
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
    Revive {
        #[command(flatten)]
        filter: Filter,
        /// All letters of all sites
        #[arg(long)]
        all: bool,
    },
    /// Remove them for good; no link brings their pages back in this run
    #[command(after_help = "Examples:
  paced dead drop books --url '/old/**'
  paced dead drop books quotes --status 404")]
    Drop {
        #[command(flatten)]
        filter: Filter,
        /// All letters of all sites
        #[arg(long)]
        all: bool,
    },
}

/// Which letters are meant.
#[derive(Clone, Debug, Args)]
struct Filter {
    /// Sites: names or files; all without any
    #[arg(value_name = "SITE")]
    sites: Vec<String>,
    /// Those of this stage
    #[arg(long, value_enum)]
    stage: Option<DeadStage>,
    /// Those whose last answer had this HTTP status
    #[arg(long, value_name = "N")]
    status: Option<u16>,
    /// Those whose path and query fit this pattern, as in a site file: `*` stops at / and ?, `**` doesn't, `re:` before a
    /// regular expression
    #[arg(long, value_name = "GLOB", value_parser = |text: &str| UrlPattern::whole(text))]
    url: Option<UrlPattern>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DeadStage {
    Download,
    Parse,
}

impl Filter {
    fn fits(&self, letter: &DeadLetter) -> bool {
        let stage = self.stage.is_none_or(|stage| {
            letter.stage == if matches!(stage, DeadStage::Parse) { Stage::Parse } else { Stage::Download }
        });
        let status = self.status.is_none_or(|status| letter.why.status == Some(status));
        stage && status && self.url.as_ref().is_none_or(|pattern| pattern.matches(&letter.url))
    }

    fn names_some(&self) -> bool {
        !self.sites.is_empty() || self.stage.is_some() || self.status.is_some() || self.url.is_some()
    }
}

/// Lists, shows, revives or drops.
pub(super) async fn run(options: Options, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    match options.what {
        What::List { filter, json } => list(&filter, json, &frontier, globals).await,
        What::Show { url, site, json } => show(&url, site.as_deref(), json, &frontier, globals).await,
        What::Revive { filter, all } => {
            asked_for(&filter, all, "revive")?;
            revive(&filter, &frontier, globals).await
        }
        What::Drop { filter, all } => {
            asked_for(&filter, all, "drop")?;
            drop_all(&filter, &frontier, globals).await
        }
    }
}

/// What changes letters is told which.
fn asked_for(filter: &Filter, all: bool, verb: &str) -> Result<(), Trouble> {
    if all || filter.names_some() {
        return Ok(());
    }
    Err(Trouble::usage(format!(
        "dead {verb}: name sites, or --stage, --status or --url; --all for every letter of every site"
    )))
}

/// A site's letters, a portion at a time.
struct Walk<'a> {
    frontier: &'a Frontier,
    site: String,
    after: Option<LetterPlace>,
}

impl<'a> Walk<'a> {
    fn over(frontier: &'a Frontier, site: &str) -> Self {
        Self { frontier, site: site.to_owned(), after: None }
    }

    async fn next(&mut self) -> Result<Option<Vec<DeadLetter>>, Trouble> {
        let letters = self.frontier.dead_letters_after(&self.site, self.after.take(), PORTION as u64).await?;
        self.after = letters.last().map(LetterPlace::of);
        Ok((!letters.is_empty()).then_some(letters))
    }
}

async fn list(
    filter: &Filter,
    as_json: bool,
    frontier: &Frontier,
    globals: &Globals,
) -> Result<Exit, Trouble> {
    let (mut results, mut count) = (Results::default(), 0_u64);
    for site in sites::known(frontier, &filter.sites, globals).await? {
        let mut walk = Walk::over(frontier, &site);
        while let Some(letters) = walk.next().await? {
            for letter in letters.iter().filter(|letter| filter.fits(letter)) {
                count += 1;
                if as_json {
                    results.line(object(letter))?;
                } else {
                    results.line(line(letter))?;
                }
            }
            if results.is_closed() {
                return Ok(Exit::Done);
            }
        }
    }
    if !as_json && count == 0 {
        say("no dead letters");
    }
    Ok(Exit::Done)
}

fn line(letter: &DeadLetter) -> String {
    let status = letter.why.status.map_or("-".to_owned(), |status| status.to_string());
    format!(
        "{}  {}  {status}  {}  {}  {}  {}",
        letter.site,
        letter.stage,
        attempts(letter.attempts),
        letter.died_at,
        letter.url,
        letter.why.reason
    )
}

fn object(letter: &DeadLetter) -> Value {
    json!({
        "site": letter.site, "stage": letter.stage.to_string(), "url": letter.url.as_str(), "status": letter.why.status,
        "reason": letter.why.reason, "attempts": letter.attempts, "died_at": letter.died_at, "depth": letter.depth,
        "history": letter.history,
    })
}

async fn show(
    url: &str,
    site: Option<&str>,
    as_json: bool,
    frontier: &Frontier,
    globals: &Globals,
) -> Result<Exit, Trouble> {
    let mut account = explain_url::account(url, site, frontier, globals).await?;
    let canonical = CanonicalUrl::parse(url).map_err(Trouble::usage)?;
    let name = account.object.get("site").and_then(Value::as_str).unwrap_or_default().to_owned();
    let letters = frontier.whereabouts(&name, &canonical).await?.letters;
    if letters.is_empty() {
        return Err(Trouble::failed(format!(
            "{canonical} is no dead letter of site `{name}`; `paced explain` tells more"
        )));
    }
    tell_history(&mut account, &letters);
    account.print(as_json)
}

fn tell_history(account: &mut Account, letters: &[DeadLetter]) {
    for letter in letters {
        for (number, failure) in letter.history.iter().enumerate() {
            account.tell(
                "failure",
                format!("{}. in the {} stage: {}", number + 1, letter.stage, failure.reason),
            );
        }
    }
    let letters: Vec<Value> = letters.iter().map(object).collect();
    account.keep("dead_letters", letters);
}

async fn revive(filter: &Filter, frontier: &Frontier, globals: &Globals) -> Result<Exit, Trouble> {
    let mut results = Results::default();
    for name in sites::known(frontier, &filter.sites, globals).await? {
        let Some(site) = sites::registered(&name, frontier).await? else { continue };
        let (mut revived, mut left) = (0, 0);
        let mut walk = Walk::over(frontier, &name);
        while let Some(letters) = walk.next().await? {
            let (fit, _): (Vec<_>, Vec<_>) = letters.into_iter().partition(|letter| filter.fits(letter));
            let back = revive_portion(&site, &fit, frontier).await?;
            revived += back;
            left += fit.len() - back;
        }
        info!(site = name, revived, left, "dead letters revived by an operator");
        if revived + left > 0 {
            results.line(format_args!("{name}: {revived} revived{}", left_over(left)))?;
        }
    }
    Ok(Exit::Done)
}

fn left_over(left: usize) -> String {
    match left {
        0 => String::new(),
        left => format!(", {left} left: no rule takes them any more, or their page is not stored"),
    }
}

/// Downloads are asked for again; pages whose parse died are parsed again from where they are stored. How many came back.
async fn revive_portion(site: &Site, letters: &[DeadLetter], frontier: &Frontier) -> Result<usize, Trouble> {
    let (parses, downloads): (Vec<_>, Vec<_>) =
        letters.iter().partition(|letter| letter.stage == Stage::Parse);
    let puts: Vec<Put> = downloads.iter().filter_map(|letter| again(site, letter)).collect();
    let mut revived = 0;
    if !puts.is_empty() {
        let replies = frontier.put(&site.name, puts).await?;
        revived += replies.iter().filter(|reply| **reply == PutReply::Revived).count();
    }
    let mut parsing = JoinSet::new();
    for letter in parses {
        let (frontier, name, url) = (frontier.clone(), site.name.clone(), letter.url.clone());
        parsing.spawn(async move { frontier.parse_again(&name, &url).await });
    }
    while let Some(parsed) = parsing.join_next().await {
        revived += usize::from(parsed.map_err(Trouble::failed)??);
    }
    Ok(revived)
}

/// As deep as it was: what `max_depth` holds off its links stays off.
fn again(site: &Site, letter: &DeadLetter) -> Option<Put> {
    let (url, depth) = (&letter.url, letter.depth);
    let rule = Some(site.takes(url, depth).ok()?.name.clone());
    Some(Put { depth, rule, ..Put::request(url.clone(), Priority::OPERATOR) })
}

async fn drop_all(filter: &Filter, frontier: &Frontier, globals: &Globals) -> Result<Exit, Trouble> {
    let mut results = Results::default();
    for name in sites::known(frontier, &filter.sites, globals).await? {
        let mut dropped = 0;
        let mut walk = Walk::over(frontier, &name);
        while let Some(letters) = walk.next().await? {
            let fit = letters.iter().filter(|letter| filter.fits(letter));
            let fit: Vec<_> = fit.map(|letter| (letter.stage, letter.url.clone())).collect();
            if !fit.is_empty() {
                dropped +=
                    frontier.drop_letters(&name, fit).await?.into_iter().filter(|there| *there).count();
            }
        }
        info!(site = name, dropped, "dead letters dropped by an operator");
        if dropped > 0 {
            results.line(format_args!("{name}: {dropped} dropped"))?;
        }
    }
    Ok(Exit::Done)
}
