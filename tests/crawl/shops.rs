//! Whole saved shops, crawled with the site files that this project ships: every value as it truly is, every page fetched
//! once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::ground::*;
use crate::support::*;

/// A shipped site file, led to the loopback copy of its site and to a quick pace; its rules stay as they are.
fn shipped(name: &str, host: &str, copy: &TestSite, interval: Duration) -> (String, String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("sites/{name}.toml"));
    let text = fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    let seed = format!("https://{host}/");
    assert!(text.contains(&seed) && text.contains("interval = \"1s\""), "{text}");
    let interval = format!("interval = \"{}ms\"", interval.as_millis());
    let text = text.replace(&seed, &copy.url("/")).replace("interval = \"1s\"", &interval);
    (name.to_owned(), text.replacen("[[page]]", "[fetch]\nallow_private = true\n\n[[page]]", 1))
}

/// The items of a site by their path, each written once.
fn by_path(ground: &Ground, site: &str) -> BTreeMap<String, Value> {
    let items = ground.items(site);
    let by_path: BTreeMap<String, Value> =
        items.iter().map(|item| (path_of(&text(&item["url"])), item["fields"].clone())).collect();
    assert_eq!(by_path.len(), items.len(), "an item was written twice");
    by_path
}

/// Every path that was asked for was asked for once, `robots.txt` too.
fn assert_each_once(site: &TestSite) {
    let counts = site.counts();
    let often: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
    assert!(often.is_empty(), "asked for more than once: {often:?}");
    assert_eq!(counts.get("/robots.txt"), Some(&1));
}

fn set(list: &Value) -> BTreeSet<String> {
    list.as_array().expect("a list").iter().map(text).collect()
}

#[test]
fn v13_a_thousand_books_are_as_they_truly_are_and_each_page_is_fetched_once() {
    let Some(corpus) = Corpus::books() else { return };
    let interval = ms(15);
    let site = corpus.serve();
    let ground = Ground::of_texts([shipped("books", "books.toscrape.com", &site, interval)]);
    ground.crawled();
    assert_each_once(&site);
    let items = by_path(&ground, "books");
    let truth = corpus.truth();
    assert_eq!((items.len(), truth.len()), (1_000, 1_000));
    for row in &truth {
        let item = &items[&text(&row["url_path"])];
        let price = json!({ "amount": row["price"], "currency": row["currency"] });
        for (field, value) in [
            ("title", &row["title"]),
            ("price", &price),
            ("stock", &row["stock_count"]),
            ("upc", &row["upc"]),
        ] {
            assert_eq!(&item[field], value, "{field} of {}", row["url_path"]);
        }
    }
    // Listings and books and robots.txt, each at its time: only the mean rate is promised at so short an interval.
    let arrivals = site.arrivals();
    let starts = u32::try_from(arrivals.len()).expect("few");
    assert_eq!(starts, 1 + 50 + 1_000);
    assert!(arrivals[arrivals.len() - 1].at - arrivals[0].at >= interval * (starts - 1) * 95 / 100);
}

#[test]
fn v13_a_shop_of_paged_categories_gives_each_product_price_and_stock() {
    let Some(corpus) = Corpus::manifest("zyte-ecommerce") else { return };
    let site = corpus.serve();
    let rules = r#"
[[page]]
name = "listing"
match = ["/", "/?page=*", "/category/*", "/category/*?page=*"]
follow = "*"

[[page]]
name = "product"
match = "/product/*"
item = true
key = "url"
follow = "*"
[page.fields]
name = { css = "h1", required = true }
price = { css = "h1 ~ p", regex = '^Price: (.+)', as = "price", required = true }
in_stock = { css = "h1 ~ p", regex = '^In stock$', as = "bool" }
"#;
    let ground = Ground::new([SiteFile::of("zyte", &site).pages(&rules)]);
    ground.crawled();
    assert_each_once(&site);
    let reached: BTreeSet<String> = site.counts().into_keys().filter(|path| path != "/robots.txt").collect();
    assert_eq!(reached, set(&corpus.crawl_truth()["reachable"]));
    let items = by_path(&ground, "zyte");
    assert_eq!(items.len(), 1_000);
    for row in corpus.truth() {
        let item = &items[&text(&row["url_path"])];
        let price = json!({ "amount": row["price"], "currency": row["currency"] });
        assert_eq!(item["price"], price, "{}", row["url_path"]);
        assert_eq!(item["in_stock"], row["in_stock"], "{}", row["url_path"]);
        assert_eq!(item["name"], row["h1_normalised"], "{}", row["url_path"]);
    }
}

#[test]
fn v13_fifty_authors_are_found_behind_their_redirects() {
    let Some(corpus) = Corpus::manifest("quotes-toscrape") else { return };
    let interval = ms(20);
    let site = corpus.serve();
    let ground = Ground::of_texts([shipped("quotes", "quotes.toscrape.com", &site, interval)]);
    ground.crawled();
    assert_each_once(&site);
    let items = by_path(&ground, "quotes");
    let authors: Vec<Value> = corpus.truth().into_iter().filter(|row| row["kind"] == "author").collect();
    assert_eq!((items.len(), authors.len()), (50, 50));
    for row in authors {
        let item = &items[&text(&row["url_path"])];
        assert_eq!(item["name"], row["name"], "{row}");
        assert_eq!(item["born_at"], row["born_at"], "{row}");
    }
    let status = &ground.status()["quotes"];
    assert_eq!(status["download"]["redirected"], 50, "{status}");
}
