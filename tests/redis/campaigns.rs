//! What a long list takes on a server: bytes a URL, and how long it takes to start (C15).

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::support::*;

/// In release mode: `cargo test --release --test redis c15_ -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement, for a release build"]
fn c15_a_million_urls_take_twenty_bytes_each_at_most_and_start_within_twenty_seconds() {
    const URLS: u32 = 1_000_000;
    let Some(redis) = redis_or_skip() else { return };
    let (data, site) = (TempData::new(), TestSite::builder().page("/", "").serve());
    let file = data.write("shop.toml", &(site.toml("shop", Duration::from_secs(1)) + RULES));
    let paced = |words: &[&str]| Paced::new(words).data(&data).env("PACED_FRONTIER", redis.url(0));
    paced(&["seed"]).arg(&file).run().expect_code(0);
    let mut lines = String::new();
    for n in 0..URLS {
        let _ = writeln!(lines, "{}", site.url(&format!("/p/a-thing-of-the-catalogue-{n}/index.html")));
    }
    let list = data.write("list.txt", &lines);
    let memory = || -> u64 {
        let info = redis.cli(&["INFO", "memory"]);
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        used.and_then(|bytes| bytes.trim().parse().ok()).expect("a number")
    };
    let (before, began) = (memory(), Instant::now());
    let start = paced(&["campaign", "start", "--name", "all", "--site", "shop", "--urls"]).arg(&list).run();
    let (took, start) = (began.elapsed(), start.expect_code(0));
    let bytes = (memory() - before) / u64::from(URLS);
    println!("{}{bytes} bytes a URL, started in {:.1} s", start.stdout, took.as_secs_f64());
    assert!(bytes <= 20, "{bytes} bytes a URL");
    assert!(took <= Duration::from_secs(20), "{took:?}");
}

const RULES: &str = "[[page]]\nname = \"thing\"\nmatch = [\"/\", \"/p/**\"]\n";
