//! `status` and `audit`: as text for people, as JSON for machines.

use std::time::Duration;

use paced::internals::clock::Timestamp;
use regex::Regex;

use crate::expected::*;
use crate::support::*;

/// What differs from run to run: times, ports, measured numbers.
fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, name) in [
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"\b\d+(\.\d+)?/s\b", "N/s"),
        (r"\b\d+(\.\d+)?/min\b", "N/min"),
        (r"\b\d+(\.\d+)? ?ms\b", "N ms"),
        (r"\b\d+s\b", "Ns"),
        (r" +", " "),
    ] {
        text = Regex::new(pattern).expect("a pattern").replace_all(&text, name).into_owned();
    }
    text
}

#[test]
fn status_shows_each_site_on_a_line() {
    let (data, _site, file) = crawled();
    let run = Paced::new(["status"]).data(&data).run().expect_code(0);
    assert_eq!(
        plain(&run.stdout),
        "site run state waiting oldest running delayed dead done allowed reached response eta fresh oldest page in out full in \
         p50 p95\n\
         shop 1 finished 0 - 0 0 0 5 N/s N/s N ms - - - N/min N/min - Ns Ns\n"
    );
    let line = run.stdout.lines().nth(1).expect("the site's line");
    assert_eq!(line.split_whitespace().count(), 20, "each column of a site is one word for awk: {line}");
    for site in [&["shop"][..], &[file.to_str().expect("a path")]] {
        let same = Paced::new(["status"].iter().chain(site)).data(&data).run().expect_code(0);
        assert_eq!(same.stdout.lines().nth(1).map(plain), Some(plain(line)));
    }
    let run = Paced::new(["status", "books"]).data(&data).run().expect_code(2);
    assert!(
        run.stderr.contains("there is no site `books`") && run.stderr.contains("it knows shop"),
        "{run:?}"
    );
}

#[test]
fn status_as_json_has_every_value_that_scripts_rely_on() {
    let (data, ..) = crawled();
    let site = status(&data);
    for (name, value) in [
        ("site", "shop".into()),
        ("unit", "shop".into()),
        ("run", 1.into()),
        ("state", "finished".into()),
        ("finished", true.into()),
        ("interval_ms", 10.into()),
        ("parallel", 8.into()),
        ("waiting", 0.into()),
        ("running", 0.into()),
        ("delayed", 0.into()),
        ("dead", 0.into()),
        ("done", 5.into()),
        ("paused", serde_json::Value::Null),
        ("blocked_until", serde_json::Value::Null),
    ] {
        assert_eq!(site[name], value, "{name} in {site}");
    }
    assert!(site["allowed_per_s"].as_f64().is_some_and(|rate| (rate - 100.0).abs() < 0.01), "{site}");
    assert!(site["reached_per_s"].is_f64() && site["response_ms"].is_u64(), "{site}");
}

#[test]
fn v13_status_shows_the_age_of_the_oldest_page_that_is_to_be_fetched_again() {
    let (data, site) = (TempData::new(), small_site());
    let rules = RULES.replace("item = true", "item = true\nrecrawl = \"6h\"");
    let file = data.write("shop.toml", &(site.toml("shop", Duration::from_millis(10)) + &rules));
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    let object = status(&data);
    let time = |name: &str| {
        object[name].as_str().expect("a time").parse::<Timestamp>().expect("RFC 3339").as_millis()
    };
    let (oldest, part) = (time("oldest_page"), 6 * 3_600_000 / 128);
    assert!(time("run_began") - part < oldest && oldest < time("at"), "to a part of its period: {object}");
    assert_eq!(object["fresh_percent"], 100);
    let run = Paced::new(["status"]).data(&data).run().expect_code(0);
    let age = Regex::new(r" 100% +\d+(m|s|ms|m\d+s) ").expect("a pattern");
    assert!(age.is_match(&run.stdout), "{}", run.stdout);
}

#[test]
fn a_site_that_never_ran_has_no_time_at_which_its_run_began() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    Paced::new(["seed"]).arg(&file).data(&data).run().expect_code(0);
    assert!(status(&data)["run_began"].is_string());
    let frontier = rusqlite::Connection::open(data.file("frontier.db")).expect("a frontier");
    let none = "UPDATE site SET state = json_set(state, '$.run', 0, '$.run_began', 0)";
    frontier.execute(none, []).expect("as it is registered before its first run");
    drop(frontier);
    let site = status(&data);
    assert_eq!((&site["run"], &site["run_began"]), (&0.into(), &serde_json::Value::Null), "{site}");
}

#[test]
fn a_watch_that_is_written_to_a_file_clears_no_screen() {
    let (data, ..) = crawled();
    let running = Paced::new(["status", "--watch"]).data(&data).start();
    eventually("a second look", || (running.stdout().matches("shop").count() >= 2).then_some(()));
    running.interrupt();
    let run = running.finish().expect_code(0);
    assert!(!run.stdout.contains('\u{1b}'), "{:?}", run.stdout);
}

#[test]
fn status_watches_until_it_is_stopped() {
    let (data, ..) = crawled();
    let running = Paced::new(["status", "--watch", "--json"]).data(&data).start();
    eventually("a second look", || (running.stdout().lines().count() >= 2).then_some(()));
    running.interrupt();
    let run = running.finish().expect_code(0);
    assert_eq!(json_lines_of(&run.stdout)[1]["site"], "shop");
}

#[test]
fn audit_proves_the_pace_for_people_and_for_machines() {
    let (data, ..) = crawled();
    let run = Paced::new(["audit", "shop"]).data(&data).run().expect_code(0);
    assert_eq!(
        plain(&run.stdout),
        "shop\n starts 5 from TIME to TIME\n interval N ms\n gaps min N ms, p50 N ms, p99 N ms, max N ms\n \
         lateness p50 N ms, p99 N ms\n mean N ms of N ms due\n early 0\n answers 200: 4, 404: 1; none: 0\n bytes BYTES\n"
            .replace("BYTES", run.stdout.split_whitespace().next_back().expect("a number"))
    );
    let run = Paced::new(["audit", "--json"]).data(&data).run().expect_code(0);
    let unit = json_lines_of(&run.stdout).remove(0);
    assert_eq!(
        (&unit["unit"], &unit["starts"], &unit["early"]),
        (&"shop".into(), &5.into(), &0.into()),
        "{unit}"
    );
    assert_eq!((&unit["statuses"]["200"], &unit["statuses"]["404"]), (&4.into(), &1.into()), "{unit}");
    assert!(
        unit["gap_ms"]["min"].as_u64().is_some() && unit["lateness_ms"]["p99"].as_u64().is_some(),
        "{unit}"
    );
    let run = Paced::new(["audit", "books"]).data(&data).run().expect_code(1);
    assert!(run.stderr.contains("no request to site `books` is kept"), "{}", run.stderr);
}

/// Two requests of a group's sites, as builds kept them that told of the site's interval alone.
const OLDER: &str = "WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: <a>\r\nWARC-Date: 2026-11-20T09:00:00Z\r\n\
    WARC-Target-URI: http://a.example/\r\nPaced-Site: a\r\nPaced-Unit: group:g\r\n\
    Paced-Interval-Ms: 1000\r\nPaced-Fence: 1\r\nContent-Length: 0\r\n\r\n\r\n\r\n\
    WARC/1.1\r\nWARC-Type: metadata\r\nPaced-Erased: yes\r\nPaced-Status: 200\r\n\
    Content-Length: 0\r\n\r\n\r\n\r\n";

#[test]
fn audit_says_which_starts_it_can_judge_by_their_own_site_alone() {
    let data = TempData::new();
    let other = OLDER.replace("a.example", "b.example").replace("Paced-Site: a", "Paced-Site: b");
    let kept = OLDER.to_owned() + &other.replace("<a>", "<b>").replace("09:00:00Z", "09:00:00.010Z");
    std::fs::create_dir_all(data.file("pages")).expect("a folder");
    std::fs::write(data.file("pages/older.warc"), kept).expect("written");
    let run = Paced::new(["audit"]).data(&data).run().expect_code(0);
    let told = "  untold    2 starts without their group's wait, as older builds kept them:\n            \
                gaps between sites of the group aren't judged there\n";
    assert!(run.stdout.contains(&format!("  early     0\n{told}")), "{}", run.stdout);
    let run = Paced::new(["audit", "--json"]).data(&data).run().expect_code(0);
    assert_eq!(json_lines_of(&run.stdout)[0]["without_unit_wait"], 2, "{}", run.stdout);
}
