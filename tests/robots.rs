//! Tables of `robots.txt` files and what they say, from the projects that other crawlers test themselves with.

use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use paced::internals::robots::RobotsRules;
use serde_json::Value;
use url::Url;

#[test]
fn googles_own_cases_are_answered_as_the_rfc_has_them() {
    let Some(rows) = rows("google_robots_test") else { return };
    let rows: Vec<_> = rows.into_iter().filter(|row| row["rfc"] != false && row["url"] != "").collect();
    assert!(rows.len() > 40, "only {} rows", rows.len());
    assert_none(&wrong(&rows));
}

#[test]
fn wherever_three_parsers_agree_ours_agrees_with_them() {
    for table in TABLES {
        let Some(rows) = rows(table) else { return };
        let rows: Vec<_> =
            rows.into_iter().filter(|row| row["consensus"] == true && row["url"] != "").collect();
        assert!(rows.len() > 40, "only {} rows in {table}", rows.len());
        let wrong = wrong(&rows);
        eprintln!("{table}: {} rows {} wrong", rows.len(), wrong.len());
        assert_none(&wrong);
    }
}

const TABLES: [&str; 6] = [
    "google_robots_test",
    "google_spec_test",
    "protego_tests",
    "reppy_tests",
    "texting_robots_tests",
    "crawlercommons",
];

#[test]
fn real_files_are_read_as_two_other_parsers_read_them() {
    let Some(rows) = rows("real_verdicts") else { return };
    let wrong = wrong(&rows);
    eprintln!("{} verdicts, {} otherwise:\n{}", rows.len(), wrong.len(), wrong.join("\n"));
    assert!(rows.len() > 8000 && wrong.len() * 1000 <= rows.len());
}

#[test]
fn crawl_delays_of_real_files_are_read_as_another_parser_reads_them() {
    let Some(rows) = rows("real_sitemaps_delay") else { return };
    let wrong: Vec<_> = rows
        .iter()
        .filter_map(|row| {
            let rules = RobotsRules::parse_for(&text(row), row["agent"].as_str().expect("an agent"));
            let ours = rules.crawl_delay().map(|delay| delay.as_secs_f64());
            (ours != row["crawl_delay"].as_f64())
                .then(|| format!("{} {ours:?} {}", row["file"], row["crawl_delay"]))
        })
        .collect();
    assert_none(&wrong);
}

/// The rows of a table; none, said loudly, where the tables aren't on this machine. In CI they must be.
fn rows(table: &str) -> Option<Vec<Value>> {
    let file = corpora().join(format!("robots/cases/{table}.public.jsonl"));
    let Ok(text) = std::fs::read_to_string(&file) else {
        assert!(std::env::var_os("CI").is_none(), "{} is missing; set PACED_CORPORA", file.display());
        eprintln!("SKIPPED: {} is missing; set PACED_CORPORA to the folder of tables", file.display());
        return None;
    };
    Some(text.lines().map(|line| serde_json::from_str(line).expect("a row is JSON")).collect())
}

fn corpora() -> PathBuf {
    std::env::var_os("PACED_CORPORA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora"), PathBuf::from)
}

fn wrong(rows: &[Value]) -> Vec<String> {
    rows.iter()
        .filter(|row| row["allowed"].is_boolean())
        .filter_map(|row| {
            let rules = RobotsRules::parse_for(&text(row), agent(row));
            (allows(&rules, row["url"].as_str().expect("a URL")) != row["allowed"]).then(|| row.to_string())
        })
        .collect()
}

fn text(row: &Value) -> Vec<u8> {
    if let Some(file) = row["file"].as_str() {
        return std::fs::read(corpora().join("robots").join(file)).expect("the file of a row");
    }
    match row["robots_b64"].as_str() {
        Some(text) => BASE64.decode(text.as_bytes()).expect("base 64"),
        None => row["robots"].as_str().expect("a text").as_bytes().to_vec(),
    }
}

fn agent(row: &Value) -> &str {
    row["agent"].as_str().or(row["agents"][0].as_str()).expect("an agent")
}

/// The URL is asked for as the crawler would, except where the row is about octets that no parsed URL has.
fn allows(rules: &RobotsRules, url: &str) -> bool {
    if url.is_ascii() {
        let base = Url::parse("http://site.example/").expect("a URL");
        return rules.allows(&base.join(url).expect("a URL"));
    }
    let (_, rest) = url.split_once("://").expect("an absolute URL");
    rules.allows_path(&rest[rest.find('/').expect("a path")..])
}

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} otherwise:\n{}", wrong.len(), wrong.join("\n"));
}
