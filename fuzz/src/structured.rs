//! JSON-LD, microdata and `OpenGraph` of any size: bytes are the recipe of a page.

use std::sync::LazyLock;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::Timestamp;
use paced::internals::extract::Fetched;
use paced::internals::page::Headers;
use paced::internals::site::{Site, parse};

use super::cost::{Linear, extracted};
use super::page::item;
use super::recipe::grown;

const SITE: &str = r#"
name = "fuzz"
seeds = ["https://shop.example/"]
[[page]]
name = "product"
match = "/**"
item = true
product = true
"#;

/// Past the limit of JSON-LD, which is 4 MiB; and room for as much as microdata needs to pass its own, as it is given out
/// more than once.
const MOST_BYTES: usize = 5 << 20;
/// Real pages, and mutations of the seeds, cost up to 7 steps a byte. A property may hold others, up to 512 deep, and each of
/// them has the text of all in it: four steps a node of three bytes.
const STEPS: Linear = Linear { least: 4_000_000, each: 1_024 };
/// A value may be that of several fields, and a byte of it be written as six.
const GIVEN: Linear = Linear { least: 1_024, each: 64 };

static READ: LazyLock<Site> = LazyLock::new(|| parse(SITE, "fuzz.toml").expect("a site file"));

/// Whatever a page says of its product, and however often, its item is sound and costs what the page's length allows.
pub fn hold(bytes: &[u8]) {
    let body = grown(bytes, MOST_BYTES);
    let url = CanonicalUrl::parse("https://shop.example/p/1?size=2").expect("a URL");
    let headers = Headers(vec![("content-type".to_owned(), b"text/html; charset=utf-8".to_vec())]);
    let page = Fetched { url: &url, fetched_at: Timestamp::from_millis(0), headers: &headers, body: &body };
    if let Some(read) = extracted(&page, &READ, STEPS) {
        GIVEN.holds(item(&read), body.len(), "bytes given out");
    }
}
