//! The programs of `examples/`, each run as its first lines say.

#[path = "crawl/ground.rs"]
mod ground;
mod support;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ground::{Ground, Shared, SiteFile, asked, ms, on_each_frontier, star};
use support::*;

/// Those that a test below runs.
const RUN: [&str; 4] = ["crawl_one_site", "seed_extractor", "share_a_pace", "timed_mutex"];

#[test]
fn each_example_is_run_by_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let paths = std::fs::read_dir(folder).expect("the examples").map(|entry| entry.expect("an entry").path());
    let programs = paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let names: BTreeSet<String> =
        programs.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    assert_eq!(names, RUN.map(str::to_owned).into());
}

/// What an example prints that does its work.
#[track_caller]
fn run(name: &str, arguments: &[&str], stdin: &str) -> String {
    assert!(RUN.contains(&name), "{name} is not listed");
    let program = paced().with_file_name("examples").join(name);
    let mut example = Command::new(&program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|why| panic!("{}: {why}; `cargo build --examples` makes it", program.display()));
    example.stdin.take().expect("a pipe").write_all(stdin.as_bytes()).expect("it reads");
    let output = example.wait_with_output().expect("an end");
    let (out, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} {arguments:?}: {out}{log}");
    out.into_owned()
}

#[test]
fn v1_v3_five_processes_of_timed_mutex_start_a_second_apart() {
    let told = run("timed_mutex", &[], "");
    let start = |line: &str| line.split_whitespace().rev().nth(1).and_then(|word| word.parse::<i64>().ok());
    let mut starts: Vec<i64> = told.lines().map(|line| start(line).expect("a start")).collect();
    starts.sort_unstable();
    assert_eq!(starts.len(), 5, "{told}");
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 1_000), "{told}");
}

#[test]
fn crawl_one_site_ends_after_its_pages_and_goes_on_at_its_next_start() {
    let site = star(30).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    let (file, data) = (ground.file("shop"), ground.data.file("data"));
    let arguments = [file.to_str().expect("UTF-8"), data.to_str().expect("UTF-8")];
    let told = run("crawl_one_site", &arguments, "");
    assert_eq!(told, "shop: 20 pages and 20 items in this crawl\n");
    let told = run("crawl_one_site", &arguments, "");
    assert_eq!(told, "shop: 11 pages and 11 items in this crawl\n");
    assert!(site.counts().values().all(|count| *count == 1), "{site:?}");
}

#[test]
fn seed_extractor_puts_the_pages_of_its_numbers() {
    let site = star(0).page("/n/1", "<h1>1</h1>").page("/n/2", "<h1>2</h1>").serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    ground.crawled();
    let (frontier, pattern) = (ground.data.file("data/frontier.db"), site.url("/n/{}"));
    let told = run("seed_extractor", &[frontier.to_str().expect("UTF-8"), "shop", &pattern], "1\n2\n");
    assert_eq!(told, format!("Created {}\nCreated {}\n", site.url("/n/1"), site.url("/n/2")));
    ground.verb("work").arg("--name").arg("w").arg("--until-empty").run().expect_code(0);
    assert_eq!(asked(&site).into_iter().filter(|path| path.starts_with("/n/")).count(), 2);
}

#[test]
fn v1_share_a_pace_takes_the_site_s_starts_an_interval_apart_on_each_kind_of_frontier() {
    on_each_frontier(|shared: &Shared| {
        let site = star(40).serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).interval(ms(150))]);
        let crawl = ground.crawl().start();
        eventually("a page", || (site.count("/") == 1).then_some(()));
        let told = run("share_a_pace", &[&ground.frontier_url(), "shop", "4"], "");
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 4, "{told}");
        for line in &lines[1..] {
            let gap = line.split_whitespace().nth(2).and_then(|word| word.parse::<u64>().ok());
            assert!(gap.is_some_and(|gap| gap >= 150), "{told}");
        }
        crawl.finish().expect_code(0);
        ground.assert_paced("shop", &site, ms(150));
    });
}
