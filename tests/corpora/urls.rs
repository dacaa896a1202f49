//! Tables of URLs from browsers and other crawlers: read as browsers read them, and stored under one spelling.

use std::fs;

use paced::internals::canonical_url::{CanonicalUrl, StripQuery, reference};
use serde_json::Value;
use url::Url;

use super::table::{Share, corpus, rows};

#[test]
fn urls_are_parsed_as_whatwg_has_them() {
    let Some(table) = corpus("urls/wpt/urltestdata.json") else { return };
    let mut share = Share::of("WHATWG's own URL tests");
    for row in objects(&table) {
        let input = row["input"].as_str().expect("an input");
        let base = row["base"].as_str().and_then(|base| Url::parse(base).ok());
        let read =
            Url::options().base_url(base.as_ref()).parse(&reference(input)).ok().and_then(|url| stored(&url));
        // What they expect of a URL that is crawled, less what is dropped of it.
        let truth = row["href"].as_str().filter(|_| crawled(&row)).map(|href| without(href, &row));
        if read.is_none() && truth.as_ref().is_some_and(|url| url.contains("xn--")) {
            continue; // see below
        }
        share.count(read == truth, format!("{input:?} on {}: {read:?}, not {truth:?}", row["base"]));
    }
    share.reaches(1000, 884);
}

/// Whether a row is of a scheme that is crawled.
fn crawled(row: &Value) -> bool {
    matches!(row["protocol"].as_str(), Some("http:" | "https:"))
}

/// The expected URL without fragment, user and password, put together from the parts of the row.
fn without(href: &str, row: &Value) -> String {
    let part = |name: &str| row[name].as_str().unwrap_or_default();
    // An empty query is one; the parts don't tell.
    let search = if part("search").is_empty() && href.split('#').next().is_some_and(|url| url.ends_with('?'))
    {
        "?"
    } else {
        part("search")
    };
    format!("{}//{}{}{search}", part("protocol"), part("host"), part("pathname"))
}

fn stored(url: &Url) -> Option<String> {
    CanonicalUrl::from_url(url.clone()).ok().map(|url| url.to_string())
}

#[test]
fn host_names_of_all_languages_are_stored_in_ascii() {
    let Some(table) = corpus("urls/wpt/toascii.json") else { return };
    let mut share = Share::of("WHATWG's tests of host names");
    for row in objects(&table) {
        let (Some(input), output) = (row["input"].as_str(), row["output"].as_str()) else { continue };
        let read = CanonicalUrl::parse(&format!("https://{input}/x")).ok();
        let read = read.as_ref().and_then(|url| url.url().host_str());
        // Punycode that decodes to nothing passes in newer browsers and is no URL here: no such name can be registered.
        if read.is_none() && output.is_some_and(|name| name.contains("xn--")) {
            continue;
        }
        share.count(read == output, format!("{input:?}: {read:?}, not {output:?}"));
    }
    share.reaches(1000, 80);
}

/// f(f(x)) = f(x), whatever the tables think that f(x) should be.
#[test]
fn every_url_of_every_table_is_stored_under_one_spelling() {
    let strip = StripQuery::new(["utm_*", "gclid", "fbclid", "a"].map(str::to_owned).to_vec());
    let mut share = Share::of("URLs that are stored the same again");
    for text in texts() {
        let Some(once) = CanonicalUrl::parse(&text).ok().map(|url| url.stripped(&strip)) else { continue };
        let again = CanonicalUrl::parse(once.as_str()).map(|url| url.stripped(&strip));
        let same = again.as_ref() == Ok(&once) && again.is_ok_and(|again| again.as_str() == once.as_str());
        share.count(same, format!("{text:?}: {once}"));
    }
    if share.rows() > 0 {
        share.reaches(1000, 12_156);
    }
}

/// Every text in every table, URL or not, as it is and as one on a page of a shop.
fn texts() -> Vec<String> {
    let mut texts = Vec::new();
    let Some(folder) = corpus("urls") else { return texts };
    for table in ["wpt", "tables"].iter().flat_map(|name| fs::read_dir(folder.join(name)).expect("a folder"))
    {
        let path = table.expect("an entry").path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => objects(&path).iter().for_each(|row| gather(row, &mut texts)),
            Some("jsonl") => rows(&path).iter().for_each(|row| gather(row, &mut texts)),
            _ => {}
        }
    }
    let base = Url::parse("https://shop.example/a/b?c").expect("a URL");
    let joined: Vec<String> =
        texts.iter().filter_map(|text| base.join(text).ok()).map(String::from).collect();
    texts.extend(joined);
    texts
}

fn gather(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| gather(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| gather(value, texts)),
        _ => {}
    }
}

/// Where their policy is ours too: the rows of other crawlers' tables whose answer is a URL that browsers would give.
#[test]
fn links_resolve_as_other_crawlers_resolve_them() {
    let Some(table) = corpus("urls/tables/crawlercommons_resolve.public.jsonl") else { return };
    let mut share = Share::of("links of crawler-commons");
    for row in rows(&table) {
        let (input, base) =
            (row["input"].as_str().unwrap_or_default(), row["base"].as_str().unwrap_or_default());
        let base = Url::parse(base).ok();
        let read =
            Url::options().base_url(base.as_ref()).parse(&reference(input)).ok().and_then(|url| stored(&url));
        let truth = row["expected"].as_str().and_then(|url| CanonicalUrl::parse(url).ok()).map(String::from);
        share.count(read == truth, format!("{input:?} on {}: {read:?}, not {truth:?}", row["base"]));
    }
    share.reaches(1000, 11);
}

/// The objects of a JSON list, which has remarks between them.
fn objects(path: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a table");
    let whole: Value = serde_json::from_str(&text).expect("a table is JSON");
    match whole {
        Value::Array(rows) => rows.into_iter().filter(Value::is_object).collect(),
        other => vec![other],
    }
}
