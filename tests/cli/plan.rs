//! `plan`: what sites need, from their files and from what was measured.

use crate::expected::*;
use crate::support::*;

const RULE: &str = "[[page]]\nname = \"all\"\nmatch = \"/**\"\nfollow = \"*\"\n";

fn file(host: &str, more: &str, pace: &str, pages: u64) -> String {
    format!(
        "{more}seeds = [\"https://{host}.example/\"]\n[pace]\ncontact = \"a@b.example\"\n{pace}\n\
         [scope]\nmax_pages = {pages}\n{RULE}"
    )
}

fn three_sites() -> TempData {
    let data = TempData::new();
    data.write("sites/big.toml", &file("big", "", "interval = \"2s\"", 412_000));
    // The larger of a site's own interval and its group's is in force.
    let quick = "interval = \"100ms\"\nparallel = 4";
    data.write("sites/slow.toml", &file("slow", "group = \"slow\"\n", quick, 3_000));
    data.write("sites/twin.toml", &file("twin", "group = \"slow\"\n", quick, 1_000));
    data.write("paced.toml", "[group.slow]\ninterval = \"500ms\"\n");
    data
}

#[test]
fn v15_plan_tells_workers_pages_a_day_and_how_long_it_takes_from_files() {
    let data = three_sites();
    let plan = ["plan", "big", "slow", "twin", "--response", "3s"];
    let run = Paced::new(plan).dir(data.path()).run().expect_code(0);
    assert_text("plan.txt", &run.stdout);
    let room = "1 process has room for so many workers, up to 1,000 each; more workers make nothing faster, as the pace sets the time";
    assert_eq!(run.stderr.trim_end(), room);
    let run =
        Paced::new(plan.iter().chain(&["--json", "--count", "100"])).dir(data.path()).run().expect_code(0);
    let objects = json_lines_of(&run.stdout);
    let units: Vec<_> = objects.iter().map(|object| object["unit"].as_str()).collect();
    assert_eq!(units, [Some("big"), Some("group:slow"), None]);
    assert_eq!((&objects[1]["pages"], &objects[1]["takes_s"]), (&200.into(), &100.into()));
    let all = &objects[2];
    assert_eq!(
        (&all["workers"], &all["processes"], &all["pages"], &all["takes_s"]),
        (&9.into(), &1.into(), &300.into(), &200.into()),
        "{all}"
    );
    assert!(all["ends"].is_string(), "{all}");
}

#[test]
fn a_site_that_is_named_twice_is_planned_once() {
    let data = three_sites();
    let plan = |sites: &[&str]| {
        let plan = Paced::new(["plan", "--json"].iter().chain(sites)).dir(data.path());
        json_lines_of(&plan.run().expect_code(0).stdout).remove(0)
    };
    let (mut once, mut twice) = (plan(&["slow", "twin"]), plan(&["slow", "twin", "slow", "sites/slow.toml"]));
    assert_eq!(once["pages"], 4_000, "{once}");
    assert!(once["ends"].take().is_string() && twice["ends"].take().is_string());
    assert_eq!(once, twice);
}

#[test]
fn v15_plan_says_how_many_processes_have_so_many_workers() {
    let data = three_sites();
    data.write(
        "sites/wide.toml",
        &file("wide", "", "interval = \"10ms\"\nparallel = 2000\nmin_interval = \"10ms\"", 9),
    );
    let run = Paced::new(["plan", "wide", "--response", "15s"]).dir(data.path()).run().expect_code(0);
    assert!(run.stderr.contains("2 processes have room"), "{run:?}");
}

#[test]
fn plan_says_what_parallel_would_do() {
    let data = three_sites();
    let run = Paced::new(["plan", "big", "--response", "20s"]).dir(data.path()).run().expect_code(0);
    let says = "big: parallel = 8 keeps it below its pace; 12 would use every start";
    assert_eq!(run.stderr.lines().next(), Some(says));
}

#[test]
fn plan_uses_what_a_crawl_measured() {
    let (data, ..) = crawled();
    let run = Paced::new(["plan", "--json"]).data(&data).run().expect_code(0);
    let shop = &json_lines_of(&run.stdout)[0];
    assert_eq!((&shop["unit"], &shop["measured"]), (&"shop".into(), &true.into()), "{shop}");
    assert_eq!((&shop["interval_ms"], &shop["pages"]), (&10.into(), &serde_json::Value::Null), "{shop}");
}

#[test]
fn a_plan_of_no_sites_needs_no_worker() {
    let (data, ..) = crawled();
    Paced::new(["forget", "shop"]).data(&data).run().expect_code(0);
    let run = Paced::new(["plan"]).data(&data).run().expect_code(0);
    let all = run.stdout.lines().last().expect("the line of all sites");
    assert_eq!(all.split_whitespace().collect::<Vec<_>>().join(" "), "all: 0 workers 0.0 0 0 -", "{run:?}");
    let run = Paced::new(["plan", "--json"]).data(&data).run().expect_code(0);
    assert!(
        run.stdout.contains("\"workers\":0,\"processes\":0,\"in_flight\":0.0,\"pages_a_day\":0.0,"),
        "{run:?}"
    );
}

#[test]
fn plan_without_a_frontier_or_a_file_says_what_to_name() {
    let data = TempData::new();
    let run = Paced::new(["plan"]).dir(data.path()).run().expect_code(1);
    assert!(run.stderr.contains("there is no frontier yet"), "{run:?}");
    let run = Paced::new(["plan", "nowhere"]).dir(data.path()).run().expect_code(2);
    assert!(run.stderr.contains("there is no site `nowhere`"), "{run:?}");
}
