//! What is looked at before, between and after crashes: the frontier's books, what shops were asked for, items and pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use paced::internals::archive::{Filter, scan};
use paced::internals::manners::grace;
use paced::internals::sink::latest;
use serde_json::Value;

use crate::support::*;

/// Says a measured value past the test runner's capture.
pub fn tell(what: &str) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// A crawl of a site file.
pub fn crawl(data: &TempData, site: &Path) -> Paced {
    Paced::new(["crawl"]).arg(site).data(data)
}

/// The answer of `paced status --json` for the only site; its books balance (I14).
#[track_caller]
pub fn status(data: &TempData) -> Value {
    let run = Paced::new(["status", "--json"]).data(data).run().expect_code(0);
    let sites = json_lines_of(&run.stdout);
    assert_eq!(sites.len(), 1, "{}", run.stdout);
    assert_books(&sites[0]);
    sites[0].clone()
}

/// Every line as JSON.
#[track_caller]
pub fn json_lines_of(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect()
}

/// What came into a stage is somewhere (I14).
#[track_caller]
pub fn assert_books(site: &Value) {
    for stage in ["download", "parse"] {
        let count = |name: &str| site[stage][name].as_u64().unwrap_or_else(|| panic!("{name} in {site}"));
        let sum = |names: &[&str]| names.iter().map(|name| count(name)).sum::<u64>();
        let entered = sum(&["created", "revived", "reruns"]);
        let elsewhere = sum(&["done", "dead", "dropped", "waiting", "delayed", "scheduled", "leased"]);
        assert_eq!(entered, elsewhere, "{stage}: {site}");
    }
}

/// How often each path was answered for good: not by a failure that asks for another attempt.
pub fn answered(arrivals: &[Arrival]) -> BTreeMap<String, usize> {
    let mut answered = BTreeMap::new();
    for arrival in arrivals.iter().filter(|arrival| matches!(arrival.status, 200 | 301 | 404)) {
        *answered.entry(arrival.path.clone()).or_default() += 1;
    }
    answered
}

/// How many answers were asked for again though they had been given.
pub fn repeats(arrivals: &[Arrival]) -> usize {
    answered(arrivals).values().map(|times| times - 1).sum()
}

/// The items of a shop by key, without what differs between two crawls of it: port and time.
pub fn items(data: &TempData, shop: &Shop) -> BTreeMap<String, Value> {
    let file = data.file("items").join(format!("{}.jsonl", shop.plan.name));
    let plain = |text: &str| text.replace(&shop.addr().to_string(), "shop");
    let items = latest(&file).unwrap_or_else(|why| panic!("{why}"));
    let items = items.into_iter().map(|(key, item)| {
        let mut value = serde_json::to_value(item).expect("an item is JSON");
        value.as_object_mut().expect("an object").remove("fetched_at");
        (plain(&key), serde_json::from_str(&plain(&value.to_string())).expect("JSON"))
    });
    items.collect()
}

/// Every product is an item, with its true title and price.
#[track_caller]
pub fn assert_all_items(data: &TempData, shop: &Shop) {
    let items = items(data, shop);
    assert_eq!(items.len(), shop.plan.products as usize, "items of {}", shop.plan.name);
    let found: BTreeSet<(String, String)> = items
        .values()
        .map(|item| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&item["fields"]["title"]), text(&item["fields"]["price"]["amount"]))
        })
        .collect();
    for number in 1..=shop.plan.products {
        let truth = shop.plan.truth(number);
        assert!(found.contains(&(truth.title.clone(), truth.amount.clone())), "{truth:?}");
    }
}

/// Every segment is whole gzip to its end, every record can be read, and no segment was left open. How many records.
#[track_caller]
pub fn assert_pages_readable(data: &TempData) -> usize {
    let folder = data.file("pages");
    for entry in fs::read_dir(&folder).expect("the folder of pages") {
        let path = entry.expect("an entry").path();
        assert!(path.to_string_lossy().ends_with(".warc.gz"), "left behind: {}", path.display());
        let mut text = Vec::new();
        let mut segment = MultiGzDecoder::new(File::open(&path).expect("a segment"));
        segment.read_to_end(&mut text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        assert!(text.starts_with(b"WARC/1.1\r\n"), "{}", path.display());
    }
    let records = scan(&folder, Filter::default()).expect("the folder of pages");
    let records: Vec<_> = records.map(|record| record.unwrap_or_else(|why| panic!("{why}"))).collect();
    records.len()
}

/// No start came early, whoever made it (I1, L7): by the stamps of those who sent, each one; at the server, where a busy
/// machine adds its own, nearly each one, and in all no more than the pace allows.
#[track_caller]
pub fn assert_pace(data: &TempData, shop: &Shop, interval: Duration) {
    let audit = audit(data, shop);
    assert_eq!(audit["early"], 0, "{}: {audit}", shop.plan.name);
    // Whoever was killed left requests without a record.
    let starts = audit["starts"].as_u64().and_then(|starts| usize::try_from(starts).ok()).expect("a number");
    assert!((1..=shop.arrivals().len()).contains(&starts), "{}: {audit}", shop.plan.name);
    assert_pace_at_the_server(shop, interval, 0);
}

/// Starts that came early by the stamps of those who sent.
pub fn early_by_stamps(data: &TempData, shop: &Shop) -> u64 {
    audit(data, shop)["early"].as_u64().expect("a number")
}

fn audit(data: &TempData, shop: &Shop) -> Value {
    let audit = Paced::new(["audit", &shop.plan.name, "--json"]).data(data).run().expect_code(0);
    json_lines_of(&audit.stdout).remove(0)
}

/// Nearly no start came early at the server, but for so many, and in all no more came than the pace allows.
#[track_caller]
pub fn assert_pace_at_the_server(shop: &Shop, interval: Duration, but: usize) {
    let report = shop.gaps(interval);
    tell(&format!("  {}: {report}", shop.plan.name));
    assert!(report.early.len() <= 1 + but + report.count / 100, "{report}");
    let arrivals = shop.arrivals();
    let (first, last) = (arrivals.iter().map(|a| a.at).min(), arrivals.iter().map(|a| a.at).max());
    let span = last.unwrap_or_default().saturating_sub(first.unwrap_or_default());
    let allowed = interval * u32::try_from(report.count.saturating_sub(but)).expect("few gaps");
    assert!(span + 2 * grace(interval) >= allowed, "{span:?} for {report}");
}
