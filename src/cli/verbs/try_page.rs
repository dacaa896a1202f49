//! `paced try`: a site's rules on one page, fetched, stored before, or from a file.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use crate::archive::{Archive, writer_name};
use crate::canonical_url::CanonicalUrl;
use crate::cli::parts::equipment::StorageOptions;
use crate::cli::parts::print_trial::{PrintedTrial, Source};
use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, sites};
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
pub(in crate::cli) struct Options {
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
pub(super) async fn run(options: Options, globals: &Globals) -> Result<Exit, Trouble> {
    globals.start_log(false);
    let url = CanonicalUrl::parse(&options.url).map_err(Trouble::usage)?;
    let frontier = frontier(&options, globals)?;
    let (site, rules) = site_of(&options, &url, frontier.as_ref()).await?;
    let url = site.canonical(url.url().clone())?;
    let verdicts = Verdicts::new(frontier.as_ref());
    let (source, walk) = match (&options.from, frontier) {
        (Some(file), _) => (Source::File, given(&site, url, &options, file, &verdicts).await?),
        (None, Some(frontier)) if options.stored => {
            (Source::Stored, stored(&site, url, &options, &frontier, globals, &verdicts).await?)
        }
        (None, Some(frontier)) => {
            (Source::Fetched, fetched(&site, url, &options, &frontier, globals, &verdicts).await?)
        }
        (None, None) => return Err(Trouble::failed("there is no frontier")),
    };
    let site = Arc::new(site);
    let rule =
        walk.content.as_ref().and_then(|content| site.pages.iter().position(|rule| rule.takes(&content.url)));
    let looked = match (&walk.content, rule) {
        (Some(content), Some(rule)) => {
            Some(look(&site, rule, content.clone(), options.depth, &verdicts).await?)
        }
        _ => None,
    };
    let shown = PrintedTrial { site: &site, rules: &rules, source, walk: &walk, rule, look: looked.as_ref() };
    let mut results = Results::default();
    if options.json {
        results.line(shown.object())?;
    } else {
        results.write(&shown.text())?;
    }
    Ok(if shown.is_taken() { Exit::Done } else { Exit::Failed })
}

/// The frontier: one must be there for a stored page, one is made for a request to be paid, none is needed for a file.
fn frontier(options: &Options, globals: &Globals) -> Result<Option<Frontier>, Trouble> {
    if options.stored {
        return globals.open_existing().map(Some);
    }
    let url = globals.frontier_url();
    if options.from.is_none() {
        return Ok(Some(Frontier::open(&url)?));
    }
    let is_missing = url.strip_prefix("sqlite:").is_some_and(|path| !PathBuf::from(path).exists());
    Ok(if is_missing { None } else { Some(Frontier::open_existing(&url)?) })
}

async fn site_of(
    options: &Options,
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

async fn fetched(
    site: &Site,
    url: CanonicalUrl,
    options: &Options,
    frontier: &Frontier,
    globals: &Globals,
    verdicts: &Verdicts,
) -> Result<Walk, Trouble> {
    let fetcher = Fetcher::new(FetcherOptions {
        connect_to: options.elsewhere.connect_to.clone(),
        cacert: options.elsewhere.certificates()?,
    })?;
    let settings = globals.settings()?;
    let archive = Archive::open_at(&globals.pages()?, &writer_name(), frontier.clock()).await?;
    let mut asker = Asker::new(site, frontier, &archive, &fetcher, &settings);
    let walked = walk(&mut asker, verdicts, url, options.depth).await;
    archive.close().await?;
    Ok(walked?)
}

async fn stored(
    site: &Site,
    url: CanonicalUrl,
    options: &Options,
    frontier: &Frontier,
    globals: &Globals,
    verdicts: &Verdicts,
) -> Result<Walk, Trouble> {
    let Some(page) = frontier.stored(&site.name, &url).await? else {
        return Err(Trouble::failed(format!(
            "{url}: no page of it is stored for site `{}`; fetch it: leave --stored out, or crawl the site",
            site.name
        )));
    };
    let archive = globals.stored_pages(frontier.clock()).await?;
    let place = page.place.parse()?;
    let read = tokio::task::spawn_blocking(move || archive.read(&place)).await??;
    let body = content_coding::decode(&read.headers, &read.body, site.fetch.max_body)?;
    let (status, fetched_at) = (Some(read.status), page.fetched_at);
    let content = Content { url: url.clone(), fetched_at, status, headers: read.headers, body };
    unasked(site, url, options.depth, content, verdicts).await
}

async fn given(
    site: &Site,
    url: CanonicalUrl,
    options: &Options,
    file: &PathBuf,
    verdicts: &Verdicts,
) -> Result<Walk, Trouble> {
    let mut body = Vec::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut body)
    } else {
        std::fs::File::open(file).and_then(|mut file| file.read_to_end(&mut body))
    };
    read.map_err(|e| Trouble::usage(format!("--from {}: {e}", file.display())))?;
    let fetched_at = crate::clock::Clock::wall().now();
    let headers = Headers::default();
    let content = Content { url: url.clone(), fetched_at, status: None, headers, body: body.into() };
    unasked(site, url, options.depth, content, verdicts).await
}

/// A page for which nothing was asked.
async fn unasked(
    site: &Site,
    url: CanonicalUrl,
    depth: u32,
    content: Content,
    verdicts: &Verdicts,
) -> Result<Walk, Trouble> {
    let mut hop = judge(site, url, depth);
    hop.robots = Some(verdicts.explain(site, &hop.url).await?);
    Ok(Walk { hops: vec![hop], sent: Vec::new(), content: Some(content) })
}
