//! `paced reparse`: today's rules over the stored pages of a site, no request sent.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::canonical_url::CanonicalUrl;
use crate::cli::parts::account::counted;
use crate::cli::parts::results::Results;
use crate::cli::parts::signals::await_signals;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::frontier::Frontier;
use crate::look::{Change, Finding, Portion, Reparse, ReparseParts};
use crate::run::register;
use crate::sink::{ItemSink, LastLines};
use crate::site::Site;

/// The time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);

/// Options of `paced reparse`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced reparse sites/books.toml --diff      # what the mended file would change
  paced reparse sites/books.toml             # puts it in force and writes the items that are new or changed")]
pub(in crate::cli) struct ReparseArgs {
    /// The site: its file, or a name
    site: String,
    /// Write nothing and put nothing: show each item's old and new values
    #[arg(long)]
    diff: bool,
    /// The file that items are in, where the crawl wrote them into one
    #[arg(long, value_name = "FILE")]
    items: Option<PathBuf>,
    /// JSON: with --diff an object an item, and last one with the counts
    #[arg(long)]
    json: bool,
}

/// Parses every stored page of the site again.
pub(super) async fn run(options: ReparseArgs, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    let (site, rules) = rules(&options, &frontier, globals).await?;
    globals.start_log(false);
    let stop = await_signals()?.token;
    let archive = globals.stored_pages(frontier.clock()).await?;
    info!(site = site.name, "stored pages are parsed by the rules of today: {rules}");
    if !options.diff {
        register(&frontier, &globals.settings()?, std::slice::from_ref(&site)).await?;
    }
    let site = Arc::new(site);
    let reparse = Reparse::begin(ReparseParts {
        location: globals.pages()?,
        archive,
        items: old_items(&options, &site, globals).await?,
        sink: match &options.items {
            _ if options.diff => None,
            Some(file) => Some(ItemSink::file(file)?),
            None => Some(ItemSink::folder(&globals.data.join("items"))?),
        },
        site: Arc::clone(&site),
        frontier,
    });
    let (results, told, counts) = (Results::default(), Instant::now(), BTreeMap::new());
    let mut findings = Findings { options, site, results, told, counts };
    let finished = stop.run_until_cancelled(findings.walk(reparse)).await;
    let is_finished = finished.transpose()?.is_some();
    findings.tell()?;
    findings.exit(is_finished, globals)
}

/// Today's rules of a site that the frontier knows.
async fn rules(
    options: &ReparseArgs,
    frontier: &Frontier,
    globals: &Globals,
) -> Result<(Site, String), Trouble> {
    let (site, rules) = match sites::rules(&options.site, Some(frontier)).await {
        Ok(found) => found,
        // A name that neither a file nor the frontier has: the frontier's names help more.
        Err(trouble) => {
            sites::known_one(frontier, &options.site, globals).await?;
            return Err(trouble);
        }
    };
    sites::known_one(frontier, &site.name, globals).await?;
    Ok((site, rules))
}

async fn old_items(options: &ReparseArgs, site: &Site, globals: &Globals) -> Result<LastLines, Trouble> {
    let (file, folder, name) = (options.items.clone(), globals.data.join("items"), site.name.clone());
    let reading = tokio::task::spawn_blocking(move || match file {
        Some(file) => LastLines::of_files(vec![file], &name),
        None => LastLines::of_site(&folder, &name),
    });
    Ok(reading.await??)
}

/// Shows what is found, and counts it.
struct Findings {
    options: ReparseArgs,
    site: Arc<Site>,
    results: Results,
    told: Instant,
    counts: BTreeMap<&'static str, u64>,
}

impl Findings {
    async fn walk(&mut self, mut reparse: Reparse) -> Result<(), Trouble> {
        while let Some(portion) = reparse.next().await? {
            self.take(&portion)?;
            if self.told.elapsed() > PROGRESS {
                self.told = Instant::now();
                let [pages, changed] = ["pages", "changed"].map(|name| self.count(name));
                info!(site = self.site.name, pages, changed, "reparse goes on");
            }
        }
        Ok(())
    }

    fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    fn add(&mut self, name: &'static str, more: u64) {
        *self.counts.entry(name).or_default() += more;
    }

    fn take(&mut self, portion: &Portion) -> Result<(), Trouble> {
        self.add("pages", portion.findings.len() as u64);
        self.add("links", portion.links);
        self.add("revived", portion.revived);
        self.add("damaged_segments", portion.damaged.len() as u64);
        for why in &portion.damaged {
            warn!(site = self.site.name, "{why}");
        }
        for (url, finding) in &portion.findings {
            self.add(finding.name(), 1);
            match finding {
                Finding::Failed(why) => warn!(site = self.site.name, url = url.as_str(), "{why}"),
                Finding::Same | Finding::NoItem => {}
                _ if !self.options.diff => {}
                _ if self.options.json => self.results.json(object(url, finding))?,
                _ => self.results.lines(lines(url, finding))?,
            }
        }
        Ok(())
    }

    /// The counts.
    fn tell(&mut self) -> Result<(), Trouble> {
        let counts: Vec<(String, u64)> =
            Finding::NAMES.iter().map(|name| (name.replace('-', "_"), self.count(name))).collect();
        let [pages, links, revived] = ["pages", "links", "revived"].map(|name| self.count(name));
        if self.options.json {
            let mut summary = json!({
                "site": self.site.name, "pages": pages, "links": links, "revived": revived,
                "damaged_segments": self.count("damaged_segments"),
            });
            for (name, count) in counts {
                summary[name] = json!(count);
            }
            return self.results.json(summary);
        }
        let counts =
            counts.iter().filter(|(name, count)| *count > 0 || ["same", "changed", "new"].contains(&&**name));
        let counts: Vec<String> =
            counts.map(|(name, count)| format!("{count} {}", name.replace('_', " "))).collect();
        let mut line = format!("{}: {pages} pages: {}", self.site.name, counts.join(", "));
        if links > 0 {
            let _ = write!(line, "; {} put", counted(links, "new link"));
        }
        if revived > 0 {
            let wait = if revived == 1 { "waits" } else { "wait" };
            let _ = write!(line, "; {} {wait} for a worker again", counted(revived, "dead letter"));
        }
        self.results.line(line)
    }

    fn exit(&self, finished: bool, globals: &Globals) -> Result<Exit, Trouble> {
        if !finished {
            warn!("stopped; start it again: what was done is found to be the same then");
            return Ok(Exit::Interrupted);
        }
        if self.count("pages") == 0 {
            let (name, pages) = (&self.site.name, globals.pages()?);
            return Err(Trouble::failed(format!(
                "no stored page of site `{name}` is in {pages}; crawl it, or name the pages with --pages"
            )));
        }
        let is_whole = self.count("failed") + self.count("damaged_segments") == 0;
        Ok(if is_whole { Exit::Done } else { Exit::Failed })
    }
}

fn lines(url: &CanonicalUrl, finding: &Finding) -> Vec<String> {
    let mut lines = vec![format!("{:<9} {url}", finding.name())];
    match finding {
        Finding::Changed(item, changes) if changes.is_empty() => {
            lines.push(format!(
                "  the values are the same; where they come from is not: {}",
                sources(&item.from)
            ));
        }
        Finding::Changed(_, changes) => lines.extend(changes.iter().map(change)),
        Finding::New(item) => {
            lines.extend(item.fields.iter().map(|(name, value)| format!("  {name}: {value}")));
        }
        Finding::Gone(why) => lines.push(format!("  {why}; the line that was written stays")),
        Finding::Dead(missing) => lines.push(format!("  required field not found: {}", missing.join(", "))),
        Finding::Overtaken => lines.push("  the page, or another of its key, was fetched later".to_owned()),
        Finding::Failed(why) => lines.push(format!("  {why}")),
        Finding::Same | Finding::NoItem => {}
    }
    lines
}

fn change(change: &Change) -> String {
    let shown = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
    let (old, new) = (shown(&change.old), shown(&change.new));
    format!("  {}: {old} -> {new}", change.field)
}

fn sources(from: &BTreeMap<String, String>) -> String {
    let sources: Vec<String> = from.iter().map(|(field, source)| format!("{field} from {source}")).collect();
    sources.join(", ")
}

fn object(url: &CanonicalUrl, finding: &Finding) -> Value {
    let mut object = json!({ "finding": finding.name(), "url": url });
    match finding {
        Finding::Changed(item, changes) => {
            let changes = changes
                .iter()
                .map(|change| json!({ "field": change.field, "old": change.old, "new": change.new }));
            object["changes"] = changes.collect();
            object["item"] = json!(item);
        }
        Finding::New(item) => object["item"] = json!(item),
        Finding::Gone(why) | Finding::Failed(why) => object["why"] = json!(why),
        Finding::Dead(missing) => object["missing"] = json!(missing),
        Finding::Same | Finding::NoItem | Finding::Overtaken => {}
    }
    object
}
