//! A reader that went away, a disk that is full: `paced status | head -0` is no failure, `paced status > /dev/full` is one.

use std::fs::OpenOptions;
use std::io::{PipeWriter, pipe};

use crate::expected::*;
use crate::support::*;

/// A pipe that nobody reads.
fn closed() -> PipeWriter {
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    writer
}

#[test]
fn results_that_nobody_reads_are_no_failure() {
    let (data, _site, file) = crawled();
    let file = file.to_str().expect("a path");
    for words in [
        &["status"][..],
        &["status", "--json"],
        &["status", "--watch"],
        &["status", "--watch", "--json"],
        &["audit"],
        &["audit", "--json"],
        &["check", file],
        &["check", file, "--json"],
        &["seed", file, "--quiet"],
        &["--help"],
        &["crawl", "--help"],
        &["--version"],
    ] {
        let run = Paced::new(words).data(&data).stdout_to(closed()).run().expect_code(0);
        assert_eq!(run.stderr, "", "{words:?}");
    }
}

#[test]
fn pages_are_put_also_where_nobody_reads_the_answers() {
    let (data, site, _) = crawled();
    let lines: String = (0..1200).flat_map(|n| [site.url(&format!("/p/n{n}")), "\n".to_owned()]).collect();
    let put = Paced::new(["put", "shop", "-", "--priority", "user"]).data(&data);
    let run = put.stdin(&lines).stdout_to(closed()).run().expect_code(0);
    assert_eq!(run.stderr, "");
    assert_eq!(status(&data)["waiting"], 1200);
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    Paced::new(["crawl"]).arg(&file).data(&data).stderr_to(closed()).run().expect_code(0);
    assert_eq!(data.read("items/shop.jsonl").lines().count(), 3);
    Paced::new(["check", "nowhere.toml"]).stderr_to(closed()).stdout_to(closed()).run().expect_code(2);
    Paced::new(["status", "books"]).data(&data).stderr_to(closed()).run().expect_code(2);
}

#[test]
fn items_that_nobody_reads_end_the_crawl_early_and_are_written_at_the_next_start() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    let run =
        Paced::new(["crawl", "--items", "-"]).arg(&file).data(&data).stdout_to(closed()).run().expect_code(3);
    assert!(run.stderr.contains("paced: nobody reads stdout any more"), "{}", run.stderr);
    let run = Paced::new(["crawl", "--items", "-"]).arg(&file).data(&data).run().expect_code(0);
    assert_eq!(json_lines_of(&run.stdout).len(), 3, "{}", run.stderr);
    assert_eq!(site.count("/p/1"), 1, "its page was kept");
}

#[test]
fn results_that_cannot_be_written_are_a_failure() {
    let (data, ..) = crawled();
    let full = OpenOptions::new().write(true).open("/dev/full").expect("the full device");
    let run = Paced::new(["status"]).data(&data).stdout_to(full).run().expect_code(1);
    assert!(run.stderr.contains("paced: stdout can't be written to: No space left"), "{}", run.stderr);
}
