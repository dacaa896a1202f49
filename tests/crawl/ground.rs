//! What end-to-end tests stand on: a site's file, spelled out by what differs from the default, and one crawl's data.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use paced::internals::frontier::{Frontier, View};
use paced::internals::task::DeadLetter;
use serde_json::Value;

use crate::support::*;

/// One rule for all pages: every link is followed, every page is an item with its heading.
pub const EVERY_PAGE: &str = r#"
[[page]]
name = "page"
match = "/**"
follow = "*"
item = true
key = "url"
[page.fields]
title = "h1"
"#;

pub const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A page with a heading and links.
pub fn page<L: Display>(title: impl Display, links: impl IntoIterator<Item = L>) -> String {
    let mut html = format!("<!DOCTYPE html><title>{title}</title><h1>{title}</h1>\n");
    for link in links {
        let _ = writeln!(html, "<a href=\"{link}\">{link}</a>");
    }
    html
}

/// Paths `/p/1` to `/p/count`.
pub fn paths(count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(|number| format!("/p/{number}"))
}

/// A site with a front page that links to `count` pages.
pub fn star(count: usize) -> TestSiteBuilder {
    let site = TestSite::builder().page("/", page("front", paths(count)));
    paths(count).fold(site, |site, path| site.page(&path, page(&path, [""; 0])))
}

/// A site file that grows line by line.
#[derive(Clone, Debug)]
#[must_use]
pub struct SiteFile {
    name: String,
    seeds: Vec<String>,
    top: String,
    pace: String,
    scope: String,
    fetch: String,
    pages: String,
    interval: Duration,
}

impl SiteFile {
    /// A site that begins at this URL, without a pace, and takes every page.
    pub fn new(name: &str, seed: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            seeds: vec![seed.into()],
            top: String::new(),
            pace: String::new(),
            scope: String::new(),
            fetch: String::new(),
            pages: EVERY_PAGE.to_owned(),
            interval: Duration::ZERO,
        }
    }

    /// Begins at the front page of a served site.
    pub fn of(name: &str, site: &TestSite) -> Self {
        Self::new(name, site.url("/"))
    }

    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    pub fn seed(mut self, url: impl Into<String>) -> Self {
        self.seeds.push(url.into());
        self
    }

    pub fn top(mut self, line: &str) -> Self {
        self.top.extend([line, "\n"]);
        self
    }

    pub fn pace(mut self, line: &str) -> Self {
        self.pace.extend([line, "\n"]);
        self
    }

    pub fn scope(mut self, line: &str) -> Self {
        self.scope.extend([line, "\n"]);
        self
    }

    pub fn fetch(mut self, line: &str) -> Self {
        self.fetch.extend([line, "\n"]);
        self
    }

    /// These rules instead of the one for all pages.
    pub fn pages(mut self, rules: &str) -> Self {
        rules.clone_into(&mut self.pages);
        self
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let Self { name, seeds, top, pace, scope, fetch, pages, interval } = self;
        format!(
            "name = \"{name}\"\nseeds = {seeds:?}\n{top}\n\
             [pace]\ninterval = \"{interval}ms\"\ncontact = \"test@example.com\"\n{pace}\n\
             [scope]\n{scope}\n[fetch]\nallow_private = true\n{fetch}\n{pages}",
            interval = interval.as_millis(),
        )
    }
}

/// Where a frontier is: in the data folder, or on a Redis.
#[derive(Clone, Default)]
pub struct Shared(Option<Arc<(RedisServer, Frontier)>>);

impl Shared {
    /// A Redis of one's own; none, said loudly, where it isn't installed.
    pub fn redis() -> Option<Self> {
        let server = redis_or_skip()?;
        let frontier = Frontier::open(&server.url(0)).expect("a frontier on Redis");
        Some(Self(Some(Arc::new((server, frontier)))))
    }

    /// Whether it is on a Redis.
    pub fn is_redis(&self) -> bool {
        self.0.is_some()
    }

    /// Its server.
    pub fn server(&self) -> &RedisServer {
        &self.0.as_ref().expect("it is on Redis").0
    }
}

/// A test on each kind of frontier.
pub fn on_each_frontier(test: impl Fn(&Shared)) {
    test(&Shared(None));
    if let Some(shared) = Shared::redis() {
        eprintln!("on Redis:");
        test(&shared);
    }
}

/// A data folder and the files of the sites that are crawled into it.
pub struct Ground {
    pub data: TempData,
    files: Vec<PathBuf>,
    shared: Shared,
}

impl Ground {
    pub fn new(sites: impl IntoIterator<Item = SiteFile>) -> Self {
        Self::of_texts(sites.into_iter().map(|site| (site.name.clone(), site.text())))
    }

    /// Where the frontier is as the test says.
    pub fn on(shared: &Shared, sites: impl IntoIterator<Item = SiteFile>) -> Self {
        Self { shared: shared.clone(), ..Self::new(sites) }
    }

    /// Site files by name and text, where the frontier is as the test says.
    pub fn of_texts_on(shared: &Shared, sites: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { shared: shared.clone(), ..Self::of_texts(sites) }
    }

    /// Site files by name and text.
    pub fn of_texts(sites: impl IntoIterator<Item = (String, String)>) -> Self {
        let data = TempData::new();
        let files = sites.into_iter().map(|(name, text)| data.write(&format!("sites/{name}.toml"), &text));
        Self { files: files.collect(), data, shared: Shared::default() }
    }

    /// Rewrites one site's file.
    pub fn rewrite(&self, site: &SiteFile) {
        self.data.write(&format!("sites/{}.toml", site.name), &site.text());
    }

    /// `paced crawl` of all the sites.
    pub fn crawl(&self) -> Paced {
        self.verb_on_all("crawl")
    }

    /// A verb on all the site files.
    pub fn verb_on_all(&self, verb: &str) -> Paced {
        self.files.iter().fold(self.verb(verb), Paced::arg)
    }

    /// The file of one site.
    pub fn file(&self, site: &str) -> PathBuf {
        self.data.file(&format!("sites/{site}.toml"))
    }

    /// Crawls to a good end.
    #[track_caller]
    pub fn crawled(&self) -> Run {
        self.crawl().run().expect_code(0)
    }

    /// Any verb on this data.
    pub fn verb(&self, verb: &str) -> Paced {
        let paced = Paced::new([verb]).data_at(&self.data.file("data"));
        match &self.shared.0 {
            None => paced,
            Some(redis) => paced.env("PACED_FRONTIER", redis.0.url(0)),
        }
    }

    /// Where pages are kept.
    pub fn pages(&self) -> PathBuf {
        self.data.file("data/pages")
    }

    /// The items of a site, last line of a URL first come.
    pub fn items(&self, site: &str) -> Vec<Value> {
        let file = self.data.file(&format!("data/items/{site}.jsonl"));
        if file.exists() { json_lines(&file) } else { Vec::new() }
    }

    /// The paths of a site's items, in order, each as often as it was written.
    pub fn item_paths(&self, site: &str) -> Vec<String> {
        let mut paths: Vec<String> =
            self.items(site).iter().map(|item| path_of(&text(&item["url"]))).collect();
        paths.sort();
        paths
    }

    /// `paced status --json`, by site.
    pub fn status(&self) -> BTreeMap<String, Value> {
        let run = self.verb("status").arg("--json").run().expect_code(0);
        by_key(&run.stdout, "site")
    }

    /// Whether any request to a site is kept.
    pub fn audit_has(&self, site: &str) -> bool {
        self.verb("audit").arg(site).run().code == Some(0)
    }

    /// `paced audit --json`, by pace unit.
    pub fn audit(&self) -> BTreeMap<String, Value> {
        let run = self.verb("audit").arg("--json").run().expect_code(0);
        by_key(&run.stdout, "unit")
    }

    /// Fails unless a site of its own pace was asked at its interval: by the audit, which counts each request that arrived,
    /// and at the server.
    #[track_caller]
    pub fn assert_paced(&self, name: &str, site: &TestSite, interval: Duration) {
        assert_audited(&self.audit()[name], site.arrivals().len());
        assert_gaps_paced(&site.gaps(interval));
    }

    /// As `assert_paced`, where processes were killed that may have sent so many requests without a record of them.
    #[track_caller]
    pub fn assert_paced_but(&self, unrecorded: usize, name: &str, site: &TestSite, interval: Duration) {
        let (arrived, unit) = (site.arrivals().len(), &self.audit()[name]);
        let starts = unit["starts"].as_u64().and_then(|starts| usize::try_from(starts).ok()).expect("starts");
        assert!(
            starts > 0 && starts <= arrived && arrived <= starts + unrecorded,
            "{arrived} arrived: {unit}"
        );
        assert_eq!(unit["early"], 0, "{unit}");
        assert_gaps_paced(&site.gaps(interval));
    }

    /// The dead letters of a site: path and reason.
    pub fn dead(&self, site: &str) -> BTreeMap<String, String> {
        let letters = self.letters(site).into_iter();
        letters.map(|letter| (path_of(letter.url.as_str()), letter.why.reason)).collect()
    }

    /// The dead letters of a site.
    pub fn letters(&self, site: &str) -> Vec<DeadLetter> {
        wait(self.frontier().dead_letters(site, 1_000)).expect("dead letters")
    }

    /// How a site stands.
    pub fn view(&self, site: &str) -> View {
        wait(self.frontier().view(site)).expect("an answer").expect("a site of this crawl")
    }

    /// The frontier of what was crawled.
    pub fn frontier(&self) -> Frontier {
        if let Some(redis) = &self.shared.0 {
            return redis.1.clone();
        }
        Frontier::open(&self.frontier_url()).expect("the frontier of a crawl")
    }

    /// What names the frontier.
    pub fn frontier_url(&self) -> String {
        let file = || format!("sqlite:{}", self.data.file("data/frontier.db").display());
        self.shared.0.as_ref().map_or_else(file, |redis| redis.0.url(0))
    }
}

/// Waits for an answer.
pub fn wait<T>(answer: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(answer)
}

fn by_key(lines: &str, key: &str) -> BTreeMap<String, Value> {
    let objects = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    objects.map(|object| (text(&object[key]), object)).collect()
}

/// A JSON value that is text.
#[track_caller]
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// Path and query of a URL.
pub fn path_of(url: &str) -> String {
    let url = url::Url::parse(url).expect("a URL");
    url[url::Position::BeforePath..url::Position::AfterQuery].to_owned()
}

/// The paths a site was asked for, in the order of arrival.
pub fn asked(site: &TestSite) -> Vec<String> {
    site.requests().into_iter().map(|request| request.path).collect()
}

/// Fails unless the audit counts so many starts of a pace unit, and none of them early (L7).
#[track_caller]
pub fn assert_audited(unit: &Value, starts: usize) {
    assert!(starts > 0, "nobody was asked");
    assert_eq!((&unit["starts"], &unit["early"]), (&starts.into(), &0.into()), "{unit}");
    assert_ne!(unit["mean_ms"]["kept"], false, "{unit}");
}

/// Fails unless the arrivals keep the interval at the server (L7). One gap may be early: tests run side by side here, and a
/// request may wait between its stamp and the wire. What the senders stamped is never forgiven: `assert_audited`.
#[track_caller]
pub fn assert_gaps_paced(gaps: &GapReport) {
    if !gaps.set_aside.is_empty() || !gaps.early.is_empty() {
        eprintln!("{gaps}");
    }
    assert!(gaps.count > 0, "no two starts were measured");
    assert!(gaps.early.len() <= 1, "{gaps}");
}
