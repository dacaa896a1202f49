//! A page as bytes, from its encoding to its item and links. Lines of `content-type:` and `x-robots-tag:` before it are its
//! header fields.

use std::sync::LazyLock;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::Timestamp;
use paced::internals::extract::html::charset;
use paced::internals::extract::{Extract, Fetched, extract};
use paced::internals::page::Headers;
use paced::internals::site::{Site, parse};

use super::canonical_url::same_again;

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
/// reads back as it was; and all this is the same when it is read again.
pub fn hold(bytes: &[u8]) {
    let (headers, body) = split(bytes);
    let site = &*READ;
    let url = CanonicalUrl::parse("https://shop.example/a/b.html?c=d").expect("a URL");
    let (text, encoding) = charset::text(body, headers.get("content-type"), Some("example"));
    assert!(text.len() <= body.len().saturating_mul(3).max(3), "{} bytes became {}", body.len(), text.len());
    let page = Fetched { url: &url, fetched_at: Timestamp::from_millis(0), headers: &headers, body };
    let read = extract(&page, &site.pages[0], site);
    assert_eq!(read.encoding, encoding.name());
    assert_eq!(read, extract(&page, &site.pages[0], site), "read twice, it differs");
    links(&read, site);
    item(&read);
}

fn links(read: &Extract, site: &Site) {
    assert!(read.links.is_empty() || !read.directives.nofollow);
    for (at, link) in read.links.iter().enumerate() {
        assert!(link.fragment().is_none() && !read.links[..at].contains(link), "{link}");
        let stored = site.canonical(link.clone()).expect("a link that is followed can be stored");
        same_again(&stored);
        assert_eq!(site.canonical(stored.url().clone()).as_ref(), Ok(&stored));
    }
}

fn item(read: &Extract) {
    assert!(read.item.is_some(), "nothing is required");
    let Some(item) = &read.item else { return };
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
