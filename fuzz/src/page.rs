//! A page as bytes, from its encoding to its item and links. Lines of `content-type:` and `x-robots-tag:` before it are its
//! header fields; what follows them may be a recipe.

use std::collections::HashSet;
use std::sync::LazyLock;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::Timestamp;
use paced::internals::extract::html::charset;
use paced::internals::extract::{Extract, Fetched, MOST_LINKS};
use paced::internals::page::Headers;
use paced::internals::site::{Site, parse};

use super::canonical_url::same_again;
use super::cost::{Linear, extracted};
use super::recipe::grown;

/// A page that grows is cut here. Elements that a site's own selector compares with all before them, as `p ~ span` does, cost
/// the square of their number; the site's `parse_budget` ends that, and up to here it is less than [`STEPS`].
const MOST_BYTES: usize = 256 << 10;
/// The pages of `tests/corpora`, and mutations of them, cost up to 16 steps a byte. A page may cost more where limits of its own
/// bound it: elements are up to 512 deep, and each may be a field or property that has the text of all in it, four steps a node
/// of three bytes; and each address, of eleven bytes with its tag, is read against a base of up to 8 KiB.
const STEPS: Linear = Linear { least: 1_000_000, each: 2_048 };
/// Of links and items, as JSON. The dearest are addresses against a long base.
const GIVEN: Linear = Linear { least: 64 << 10, each: 1_024 };

/// Every kind of field, of a rule that follows everything.
const SITE: &str = r#"
name = "fuzz"
seeds = ["https://shop.example/"]
[[page]]
name = "all"
match = "/**"
follow = "*"
item = true
product = true
  [page.fields]
  title = "h1"
  html = { css = "div", as = "html" }
  count = { css = "td", as = "integer", all = true }
  number = { css = "p", as = "number" }
  cost = { css = "[class]", as = "price", all = true }
  day = { css = "time", as = "date" }
  image = { css = "img", attr = "src", as = "url", all = true }
  there = { css = "p ~ span", as = "bool" }
  picked = { css = "a", regex = '(\w+) (\w+)?' }
"#;

static READ: LazyLock<Site> = LazyLock::new(|| parse(SITE, "fuzz.toml").expect("a site file"));

/// A page is text in an encoding of WHATWG's; its links are absolute and stored under one spelling; its item is JSON that
/// reads back as it was; all this is the same when it is read again; and it costs what its length allows.
pub fn hold(bytes: &[u8]) {
    let (headers, recipe) = split(bytes);
    let body = grown(recipe, MOST_BYTES.max(recipe.len()));
    let site = &*READ;
    let url = CanonicalUrl::parse("https://shop.example/a/b.html?c=d").expect("a URL");
    let (text, encoding) = charset::text(&body, headers.get("content-type"), Some("example"));
    assert!(text.len() <= body.len().saturating_mul(3).max(3), "{} bytes became {}", body.len(), text.len());
    let page = Fetched { url: &url, fetched_at: Timestamp::from_millis(0), headers: &headers, body: &body };
    let read = extracted(&page, site, STEPS);
    assert_eq!(read, extracted(&page, site, STEPS), "read twice, it differs");
    let Some(read) = read else { return };
    assert_eq!(read.encoding, encoding.name());
    links(&read, site);
    let given = read.links.iter().map(|link| link.as_str().len()).sum::<usize>() + item(&read);
    GIVEN.holds(given, body.len(), "bytes given out");
}

fn links(read: &Extract, site: &Site) {
    assert!(read.links.is_empty() || !read.directives.nofollow);
    assert!(read.links.len() <= MOST_LINKS);
    let mut seen = HashSet::new();
    for link in &read.links {
        assert!(link.fragment().is_none() && seen.insert(link), "{link}");
        let stored = site.canonical(link.clone()).expect("a link that is followed can be stored");
        same_again(&stored);
        assert_eq!(site.canonical(stored.url().clone()).as_ref(), Ok(&stored));
    }
}

/// An item is JSON that reads back as it was, in one line, with decimal prices. How many bytes it has.
pub fn item(read: &Extract) -> usize {
    assert!(read.item.is_some(), "nothing is required");
    let Some(item) = &read.item else { return 0 };
    let line = serde_json::to_string(&item.fields).expect("an item is JSON");
    let again: serde_json::Value = serde_json::from_str(&line).expect("JSON reads back");
    assert_eq!(again, serde_json::Value::Object(item.fields.clone()));
    assert!(!line.contains('\n'), "an item is one line");
    for price in [item.fields.get("price"), item.fields.get("cost")].into_iter().flatten() {
        let prices = price.as_array().map_or(std::slice::from_ref(price), Vec::as_slice);
        for price in prices.iter().filter(|price| !price.is_null()) {
            let amount = price["amount"].as_str().expect("an amount is a text");
            let decimal = amount.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
            assert!(decimal && amount.parse::<f64>().is_ok(), "{price}");
        }
    }
    line.len()
}

fn split(mut bytes: &[u8]) -> (Headers, &[u8]) {
    let mut fields = Vec::new();
    while let Some(name) = ["content-type:", "x-robots-tag:"].iter().find(|n| bytes.starts_with(n.as_bytes()))
    {
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        fields.push((name.trim_end_matches(':').to_owned(), bytes[name.len()..end].trim_ascii().to_vec()));
        bytes = &bytes[(end + 1).min(bytes.len())..];
    }
    (Headers(fields), bytes)
}
