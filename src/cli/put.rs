//! `paced put`: asks for pages, from the command line or from any program's output.

use std::io::{self, BufRead};

use clap::Args;

use super::{Exit, Globals, Trouble, sites};
use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::frontier::Frontier;
use crate::site::{self, Site};
use crate::task::{Priority, Put, PutReply};

/// URLs put in one step.
const PORTION: usize = 500;

/// Options of `paced put`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced put books https://books.toscrape.com/catalogue/page-2.html
  my-feed-reader | paced put books - --priority user")]
pub(super) struct Options {
    /// The site: a name, or its file
    site: String,
    /// Pages of the site; `-` reads them from stdin, one a line
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// operator|user|system[:high|middle|low][±2]
    #[arg(long, default_value = "operator:middle", value_name = "PRIORITY")]
    priority: Priority,
    /// Not before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// Pull pages that wait for their time to now
    #[arg(long, conflicts_with = "at")]
    again: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Puts each page that a rule takes, and says what became of each.
pub(super) async fn run(options: Options, globals: &Globals) -> Result<Exit, Trouble> {
    let frontier = globals.open_existing()?;
    let name = sites::names(std::slice::from_ref(&options.site))?.remove(0);
    let site = registered(&frontier, &name, globals).await?;
    let mut desk = Desk { options: &options, frontier, site, portion: Vec::new(), refused: 0 };
    for url in &options.urls {
        if url == "-" {
            for line in io::stdin().lock().lines() {
                desk.take(&line?).await?;
            }
        } else {
            desk.take(url).await?;
        }
    }
    desk.hand_in().await?;
    Ok(if desk.refused > 0 { Exit::Failed } else { Exit::Done })
}

async fn registered(frontier: &Frontier, name: &str, globals: &Globals) -> Result<Site, Trouble> {
    let name = sites::known(frontier, &[name.to_owned()], globals).await?.remove(0);
    let text = frontier.text(&name).await?.unwrap_or_default();
    site::parse(&text, &format!("{name}.toml")).map_err(Trouble::failed)
}

/// Takes URLs in and hands them in by portions.
struct Desk<'a> {
    options: &'a Options,
    frontier: Frontier,
    site: Site,
    portion: Vec<Put>,
    refused: u64,
}

impl Desk<'_> {
    async fn take(&mut self, text: &str) -> Result<(), Trouble> {
        if text.trim().is_empty() {
            return Ok(());
        }
        match self.as_put(text) {
            Ok(put) => self.portion.push(put),
            Err(why) => {
                eprintln!("paced: {why}");
                self.refused += 1;
            }
        }
        if self.portion.len() >= PORTION { self.hand_in().await } else { Ok(()) }
    }

    fn as_put(&self, text: &str) -> Result<Put, String> {
        let site = &self.site;
        let url = CanonicalUrl::parse(text).map_err(|e| e.to_string())?;
        let url = site.canonical(url.url().clone()).map_err(|e| e.to_string())?;
        if !site.scope.owns(&url) {
            return Err(format!(
                "{url}: {} is no host of site `{}`; add it to scope.hosts",
                url.host(),
                site.name
            ));
        }
        if !site.scope.covers(&url) {
            return Err(format!("{url}: scope.deny of site `{}` forbids it", site.name));
        }
        let Some(rule) = site.rule_for(&url) else {
            return Err(format!("{url}: no page rule of site `{}` takes it; add one to its file", site.name));
        };
        let (at, again) = (self.options.at, self.options.again);
        Ok(Put { at, again, rule: Some(rule.name.clone()), ..Put::request(url, self.options.priority) })
    }

    async fn hand_in(&mut self) -> Result<(), Trouble> {
        let puts = std::mem::take(&mut self.portion);
        if puts.is_empty() {
            return Ok(());
        }
        let urls: Vec<CanonicalUrl> = puts.iter().map(|put| put.url.clone()).collect();
        for (url, reply) in urls.iter().zip(self.frontier.put(&self.site.name, puts).await?) {
            self.tell(url, reply);
        }
        Ok(())
    }

    fn tell(&self, url: &CanonicalUrl, reply: PutReply) {
        if self.options.json {
            println!("{}", serde_json::json!({ "url": url, "reply": reply }));
            return;
        }
        let word = serde_json::to_value(reply).ok();
        println!("{}\t{url}", word.as_ref().and_then(|word| word.as_str()).unwrap_or("put"));
    }
}
