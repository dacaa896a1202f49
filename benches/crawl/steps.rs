//! What each step of a page costs by itself: the library's own parts on the same pages, one after the other.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use paced::internals::budget::Budget;
use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::Timestamp;
use paced::internals::extract::html::{Tree, charset};
use paced::internals::extract::{Fetched, extract};
use paced::internals::frontier::Frontier;
use paced::internals::item::Item;
use paced::internals::page::Headers;
use paced::internals::sink::ItemSink;
use paced::internals::site::parse;
use paced::internals::task::{Put, Stage};

use super::measure::{Yard, a_thousand, cpu, keep, name, pairs_of, register, since, table, url};
use super::site_file::site_toml;

/// Pages on which each step is measured.
const PAGES: u32 = 2_000;
/// Items that a crawl at its limits flushes together, those of all sites among them.
const TOGETHER: u32 = 40;
const TYPE: &str = "text/html; charset=utf-8";

/// Prints a table of the steps' shares in `whole`, which like `fetch` is of all pages of the yard.
pub fn tell(yard: &Yard, fetch: Duration, whole: Duration) {
    let (fetch, whole) = (a_thousand(fetch, yard.plan.pages()), a_thousand(whole, yard.plan.pages()));
    let mut steps = vec![("fetch, by reqwest alone", fetch)];
    steps.extend(reading(yard));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    steps.extend(runtime.expect("a runtime").block_on(keeping(yard)));
    let known: f64 = steps.iter().map(|(_, cost)| cost).sum();
    steps.push(("the rest: threads, timers, permits, books, log", whole - known));
    let row = |(name, cost): (&str, f64)| {
        vec![name.to_owned(), format!("{cost:.3}"), format!("{:.0} %", 100.0 * cost / whole)]
    };
    table(&["each step by itself", "CPU s/1000 pages", "share"], steps.into_iter().map(row));
}

fn bodies(yard: &Yard) -> Vec<Bytes> {
    let shop = &yard.plan.shops()[0];
    (1..=shop.products).map(|n| shop.page(&format!("/product/{n}")).expect("a product").into()).collect()
}

/// Text, tree, and what is found on it.
fn reading(yard: &Yard) -> Vec<(&'static str, f64)> {
    let bodies = bodies(yard);
    let pages = || bodies.iter().cycle().take(PAGES as usize);
    let text = time(|| pages().for_each(|body| drop(charset::text(body, Some(TYPE), None))));
    let tree = time(|| {
        pages().for_each(|body| {
            drop(Tree::parse(&charset::text(body, Some(TYPE), None).0, &Budget::without_end()));
        });
    });
    let whole = time(|| pages().for_each(|body| drop(item(body))));
    vec![("charset", text), ("tree", tree - text), ("fields, links, directives", whole - tree)]
}

fn item(body: &Bytes) -> Item {
    thread_local! {
        static SITE: paced::internals::site::Site = parse(&site_toml("site000000", "127.0.0.1:1", 0), "a.toml").expect("a site file");
    }
    let url = CanonicalUrl::parse("http://127.0.0.1:1/product/1").expect("a URL");
    let headers = Headers(vec![("content-type".to_owned(), TYPE.as_bytes().to_vec())]);
    let page = Fetched { url: &url, fetched_at: Timestamp::from_millis(0), headers: &headers, body };
    SITE.with(|site| extract(&page, &site.pages[1], site).expect("within its budget").item.expect("an item"))
}

/// Archive, items and frontier, all durable.
async fn keeping(yard: &Yard) -> Vec<(&'static str, f64)> {
    let bodies = Arc::new(bodies(yard));
    let (kept, ..) = keep(&bodies, PAGES.into(), 64).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sink = ItemSink::folder(folder.path()).expect("a folder");
    let one = item(&bodies[0]);
    let together: Vec<Item> =
        (0..TOGETHER).map(|n| Item { site: name((n % yard.plan.shops).into()), ..one.clone() }).collect();
    let began = cpu();
    for _ in 0..PAGES / TOGETHER {
        for item in &together {
            sink.write(std::slice::from_ref(item)).await.expect("taken");
        }
        sink.flush().await.expect("durable");
    }
    let items = since(began);
    let frontier = Frontier::sqlite(&folder.path().join("frontier.db"), None).expect("a new file");
    let sites = yard.plan.shops;
    register(&frontier, sites.into()).await;
    let began = cpu();
    for n in 0..PAGES {
        let (site, page) = (u64::from(n % sites), u64::from(n / sites));
        frontier.put(&name(site), vec![Put::link(url(site, page), 1)]).await.expect("put");
    }
    pairs_of(&frontier, PAGES.into(), Stage::Download).await;
    pairs_of(&frontier, PAGES.into(), Stage::Parse).await;
    let queue = since(began);
    let thousand = |time| a_thousand(time, PAGES.into());
    vec![
        ("archive: packed, hashed, written, durable", thousand(kept)),
        ("items: written, durable", thousand(items)),
        ("frontier: put, claimed and settled twice", thousand(queue)),
    ]
}

fn time(work: impl FnOnce()) -> f64 {
    let began = cpu();
    work();
    a_thousand(since(began), PAGES.into())
}
