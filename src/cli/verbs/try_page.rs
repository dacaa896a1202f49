//! `paced try`: a site's rules on one page, fetched, stored before, or from a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use crate::archive::{Archive, writer_name};
use crate::canonical_url::CanonicalUrl;
use crate::cli::parts::equipment::StorageOptions;
use crate::cli::parts::print_trial::{PageSource, PrintedTrial};
use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
use crate::clock::Clock;
use crate::content_coding;
use crate::fetch::{Fetcher, FetcherOptions};
use crate::frontier::Frontier;
use crate::look::{Asker, Content, Walk, judge, look, walk};
use crate::page::Headers;
use crate::robots::Verdicts;
use crate::site::Site;

/// Options of `paced try`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced try https://books.toscrape.com/ --site sites/books.toml
  paced try https://books.toscrape.com/ --site books --stored      # as it was crawled: no request
  curl -s https://a.example/p/1 | paced try https://a.example/p/1 --site a.toml --from -

Exit codes: 0 where a crawl would take the page and nothing required is missing, else 1.")]
pub(in crate::cli) struct TryArgs {
    /// The page
    url: String,
    /// The site: its file, or a name; without it the site of the frontier that has the host
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    /// Read the page from this file instead of fetching it; `-` is stdin
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Read the page as it was stored by the last crawl instead of fetching it
    #[arg(long, conflicts_with = "from")]
    stored: bool,
    /// How many links away from a seed the page is taken to be
    #[arg(long, value_name = "N", default_value_t = 0)]
    depth: u32,
    /// One JSON object, with every link
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    elsewhere: StorageOptions,
}

/// Shows what a crawl would make of the page.
pub(super) async fn run(options: TryArgs, globals: &Globals) -> Result<Exit, Trouble> {
    globals.start_log(false);
    let url = CanonicalUrl::parse(&options.url).map_err(Trouble::usage)?;
    let frontier = frontier(&options, globals)?;
    let (site, rules) = site_of(&options, &url, frontier.as_ref()).await?;
    let url = site.canonical(url.url().clone())?;
    let verdicts = Verdicts::new(frontier.as_ref());
    let trial = Trial { site: &site, url, options: &options, verdicts: &verdicts };
    let (source, walk) = match (&options.from, &frontier) {
        (Some(file), _) => (PageSource::File, trial.given(file).await?),
        (None, Some(frontier)) if options.stored => {
            (PageSource::Stored, trial.stored(frontier, globals).await?)
        }
        (None, Some(frontier)) => (PageSource::Fetched, trial.fetched(frontier, globals).await?),
        (None, None) => return Err(Trouble::failed("there is no frontier")),
    };
    let site = Arc::new(site);
    let content = walk.content.as_ref();
    let rule = content.and_then(|content| site.pages.iter().position(|rule| rule.takes(&content.url)));
    let look = match (content, rule) {
        (Some(content), Some(rule)) => {
            Some(look(&site, rule, content.clone(), options.depth, &verdicts).await?)
        }
        _ => None,
    };
    let shown = PrintedTrial { site: &site, rules: &rules, source, walk: &walk, rule, look: look.as_ref() };
    let mut results = Results::default();
    if options.json {
        results.json(shown.object())?;
    } else {
        results.lines(shown.lines())?;
    }
    Ok(if shown.is_taken() { Exit::Done } else { Exit::Failed })
}

/// The frontier: one must be there for a stored page, one is made for a request to be paid, none is needed for a file.
fn frontier(options: &TryArgs, globals: &Globals) -> Result<Option<Frontier>, Trouble> {
    if options.stored {
        return globals.open_existing().map(Some);
    }
    let url = globals.frontier_url()?;
    if options.from.is_none() {
        return Ok(Some(Frontier::open(&url)?));
    }
    let is_missing = url.strip_prefix("sqlite:").is_some_and(|path| !PathBuf::from(path).exists());
    Ok(if is_missing { None } else { Some(Frontier::open_existing(&url)?) })
}

async fn site_of(
    options: &TryArgs,
    url: &CanonicalUrl,
    frontier: Option<&Frontier>,
) -> Result<(Site, String), Trouble> {
    if let Some(given) = &options.site {
        return sites::rules(given, frontier).await;
    }
    let host = url.host();
    let owner = match frontier {
        Some(frontier) => frontier.site_of(&host).await?,
        None => None,
    };
    let Some(owner) = owner else {
        return Err(Trouble::usage(format!(
            "no site of the frontier has the host {host}; name its file, as in --site sites/shop.toml"
        )));
    };
    sites::rules(&owner, frontier).await
}

/// The page that is tried, and by which rules.
struct Trial<'a> {
    site: &'a Site,
    url: CanonicalUrl,
    options: &'a TryArgs,
    verdicts: &'a Verdicts,
}

impl Trial<'_> {
    async fn fetched(self, frontier: &Frontier, globals: &Globals) -> Result<Walk, Trouble> {
        let StorageOptions { connect_to, .. } = &self.options.elsewhere;
        let cacert = self.options.elsewhere.certificates()?;
        let fetcher =
            Fetcher::new(FetcherOptions { connect_to: connect_to.clone(), cacert, keys: globals.keys() })?;
        let settings = globals.settings()?;
        let archive = Archive::open_at(&globals.pages()?, &writer_name(), frontier.clock()).await?;
        let mut asker = Asker::new(self.site, frontier, &archive, &fetcher, &settings);
        let walked = walk(&mut asker, self.verdicts, self.url, self.options.depth).await;
        archive.close().await?;
        Ok(walked?)
    }

    async fn stored(self, frontier: &Frontier, globals: &Globals) -> Result<Walk, Trouble> {
        let (url, name) = (&self.url, &self.site.name);
        let Some(page) = frontier.stored(name, url).await? else {
            return Err(Trouble::failed(format!(
                "{url}: no page of it is stored for site `{name}`; fetch it: leave --stored out, or crawl the site"
            )));
        };
        let archive = globals.stored_pages(frontier.clock()).await?;
        let place = page.place.parse()?;
        let read = tokio::task::spawn_blocking(move || archive.read(&place)).await??;
        let body = content_coding::decode(&read.headers, &read.body, self.site.fetch.max_body)?;
        let (status, fetched_at) = (Some(read.status), page.fetched_at);
        let content = Content { url: url.clone(), fetched_at, status, headers: read.headers, body };
        self.unasked(content).await
    }

    async fn given(self, file: &Path) -> Result<Walk, Trouble> {
        let mut body = Vec::new();
        let read = if file.as_os_str() == "-" {
            io::stdin().lock().read_to_end(&mut body)
        } else {
            File::open(file).and_then(|mut file| file.read_to_end(&mut body))
        };
        read.map_err(|e| Trouble::usage(format!("--from {}: {e}", file.display())))?;
        let (url, fetched_at) = (self.url.clone(), Clock::wall().now());
        let headers = Headers::default();
        self.unasked(Content { url, fetched_at, status: None, headers, body: body.into() }).await
    }

    /// A page for which nothing was asked.
    async fn unasked(self, content: Content) -> Result<Walk, Trouble> {
        let mut hop = judge(self.site, self.url, self.options.depth);
        hop.robots = Some(self.verdicts.explain(self.site, &hop.url).await?);
        Ok(Walk { hops: vec![hop], sent: Vec::new(), content: Some(content) })
    }
}
