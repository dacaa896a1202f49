//! What reading a page costs: text, tree, fields and links, beside scraper alone with four selectors.
//!
//! `cargo bench --bench extract`, with `PAGES` (2000) and `BYTES` (30000, a page) in the environment.

mod measure;
#[path = "crawl/site_file.rs"]
mod site_file;

use std::time::Duration;

use bytes::Bytes;
use measure::{Shop, a_thousand, cpu, micros, must_be, number, share, since, table};
use paced::internals::budget::Budget;
use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::Timestamp;
use paced::internals::extract::html::{Tree, charset};
use paced::internals::extract::{Fetched, extract};
use paced::internals::page::Headers;
use paced::internals::site::parse;
use scraper::{Html, Selector};

fn main() {
    let pages = number("PAGES", 2_000);
    let bytes = usize::try_from(number("BYTES", 30_000)).expect("a page");
    let shop = Shop { name: "shop".to_owned(), products: 500, bytes };
    let bodies: Vec<(u32, Bytes)> =
        (1..=500).map(|n| (n, shop.page(&format!("/product/{n}")).expect("a product").into())).collect();
    let site = parse(&site_file::site_toml("shop", "127.0.0.1:1", 0), "shop.toml").expect("a good site file");
    let headers = Headers(vec![("content-type".to_owned(), b"text/html; charset=utf-8".to_vec())]);
    let rule = &site.pages[1];
    let turns = || bodies.iter().cycle().take(usize::try_from(pages).expect("not that many"));

    let fields = ["h1", ".price", ".stock", ".brand"].map(|css| Selector::parse(css).expect("a selector"));
    let bare = time(|| {
        for (n, body) in turns() {
            let html = Html::parse_document(&String::from_utf8_lossy(body));
            let found = fields
                .each_ref()
                .map(|field| html.select(field).next().map(|element| element.text().collect::<String>()));
            must_be("a title", &found[0].as_ref(), &Some(&shop.truth(*n)[0]));
        }
    });
    let text = time(|| {
        for (_, body) in turns() {
            must_be(
                "the charset",
                &charset::text(body, Some("text/html; charset=utf-8"), None).1.name(),
                &"UTF-8",
            );
        }
    });
    let tree = time(|| {
        for (_, body) in turns() {
            let text = charset::text(body, Some("text/html; charset=utf-8"), None).0;
            must_be("cut", &Tree::parse(&text, &Budget::without_end()).cut, &false);
        }
    });
    let whole = time(|| {
        for (n, body) in turns() {
            let url = CanonicalUrl::parse(&format!("http://127.0.0.1:1/product/{n}")).expect("a URL");
            let page = Fetched { url: &url, fetched_at: Timestamp::from_millis(0), headers: &headers, body };
            let found = extract(&page, rule, &site).expect("within its budget").item.expect("an item");
            must_be("a title", &found.fields["title"].as_str(), &Some(shop.truth(*n)[0].as_str()));
        }
    });
    let row = |name: &str, time: Duration| {
        vec![
            name.to_owned(),
            format!("{:.0}", share(pages * 1_000_000, micros(time))),
            format!("{:.3}", a_thousand(time, pages)),
            format!("{:.2}", time.as_secs_f64() / bare.as_secs_f64()),
        ]
    };
    println!("{pages} product pages of {bytes} bytes");
    table(
        &["", "pages/CPU-s", "CPU s/1000 pages", "× scraper"],
        [
            row("scraper, 4 selectors", bare),
            row("charset", text),
            row("charset and tree", tree),
            row("all: fields, links, directives", whole),
        ],
    );
}

fn time(work: impl FnOnce()) -> Duration {
    let began = cpu();
    work();
    since(began)
}
