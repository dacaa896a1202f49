//! Whole shops with known truth: every product's values by the fields of a site file.

use std::collections::{HashMap, HashSet};
use std::fs;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::extract::extract;
use paced::internals::page::Headers;
use paced::internals::site::{Css, FieldKind, Follow};
use serde_json::{Value, json};

use super::rules::{fetched, field, item_rule, site};
use super::table::{Share, corpus, rows, unpacked};

#[test]
fn every_product_of_zyte_ecommerce_is_read_exactly() {
    let Some(shop) = corpus("shops/zyte-ecommerce") else { return };
    let folder = unpacked(&shop);
    let manifest = rows(&shop.join("manifest.jsonl"));
    let files: HashMap<&str, &str> =
        manifest.iter().filter_map(|row| Some((row["url"].as_str()?, row["file"].as_str()?))).collect();
    let rule = item_rule(
        vec![
            field("name", "h1", None, FieldKind::Text),
            field("price", "h1 ~ p", Some("^Price: (.+)"), FieldKind::Price),
            field("in_stock", "h1 ~ p", Some("^In stock$"), FieldKind::Bool),
            field("upc", "dl > dt:first-child + dd", None, FieldKind::Text),
        ],
        Follow::Nothing,
    );
    let mut share = Share::of("products of zyte-ecommerce");
    for truth in rows(&shop.join("truth.jsonl")) {
        let path = truth["url_path"].as_str().expect("a path");
        let body = fs::read(folder.path().join(files[path])).expect("a page");
        let url = CanonicalUrl::parse(&format!("https://shop.example{path}")).expect("a URL");
        let read = extract(&fetched(&url, &Headers::default(), &body), &rule, &site(&url))
            .expect("within its budget");
        let fields = read.item.map(|item| Value::Object(item.fields)).unwrap_or_default();
        let expected = json!({
            "name": truth["h1_normalised"],
            "price": {"amount": truth["price"], "currency": truth["currency"]},
            "in_stock": truth["in_stock"],
            "upc": truth["upc"],
        });
        share.count(fields == expected, format!("{path}: {fields}, not {expected}"));
    }
    share.reaches(1000, 1000);
}

#[test]
fn every_product_of_books_toscrape_is_read_exactly() {
    let Some(shop) = corpus("shops/books-toscrape") else { return };
    let folder = unpacked(&shop);
    let rule = item_rule(
        vec![
            field("title", "h1", None, FieldKind::Text),
            field("price", ".product_main .price_color", None, FieldKind::Price),
            field("stock", ".product_main .availability", Some(r"(\d+) available"), FieldKind::Integer),
            field("upc", "table tr:nth-child(1) td", None, FieldKind::Text),
        ],
        Follow::Nothing,
    );
    let mut share = Share::of("products of books-toscrape");
    for truth in rows(&shop.join("truth.jsonl")) {
        let path = truth["url_path"].as_str().expect("a path");
        let body = fs::read(folder.path().join(path.trim_start_matches('/'))).expect("a page");
        let url = CanonicalUrl::parse(&format!("https://books.example{path}")).expect("a URL");
        let read = extract(&fetched(&url, &Headers::default(), &body), &rule, &site(&url))
            .expect("within its budget");
        let fields = read.item.map(|item| Value::Object(item.fields)).unwrap_or_default();
        let expected = json!({
            "title": folded(&truth["title"]),
            "price": {"amount": truth["price"], "currency": truth["currency"]},
            "stock": truth["stock_count"],
            "upc": truth["upc"],
        });
        share.count(fields == expected, format!("{path}: {fields}, not {expected}"));
    }
    share.reaches(1000, 1000);
}

fn folded(text: &Value) -> String {
    text.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn following_two_selectors_reaches_every_page_of_books_toscrape() {
    let Some(shop) = corpus("shops/books-toscrape") else { return };
    let folder = unpacked(&shop);
    let selectors = ["li.next a", "article.product_pod h3 a"];
    let follow = Follow::Selected(selectors.map(|css| Css::parse(css).expect("a selector")).to_vec());
    let rule = item_rule(Vec::new(), follow);
    let seed = CanonicalUrl::parse("https://books.example/").expect("a URL");
    let site = site(&seed);
    let (mut seen, mut open) = (HashSet::from([seed.clone()]), vec![seed]);
    while let Some(url) = open.pop() {
        let path = url.url().path().trim_start_matches('/');
        let file = folder.path().join(if path.is_empty() { "index.html" } else { path });
        let body = fs::read(file).expect("links lead to pages");
        for link in extract(&fetched(&url, &Headers::default(), &body), &rule, &site)
            .expect("within its budget")
            .links
        {
            let link = site.canonical(link).expect("links are http URLs");
            if seen.insert(link.clone()) {
                open.push(link);
            }
        }
    }
    let reached: HashSet<&str> = seen.iter().map(|url| url.url().path()).collect();
    let mut share = Share::of("products of books-toscrape reached by links");
    for truth in rows(&shop.join("truth.jsonl")) {
        let path = truth["url_path"].as_str().expect("a path");
        let expected = truth["reachable_by_links"] == Value::Bool(true);
        share.count(reached.contains(path) == expected, path);
    }
    share.reaches(1000, 1000);
}
