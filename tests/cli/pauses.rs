//! `pause` and `resume` of a site, of a group, of all sites, and of parses: what they say, and who did so.

use std::time::Duration;

use crate::expected::*;
use crate::support::*;

/// A site of a group that was crawled.
fn in_group() -> (TempData, TestSite) {
    let (data, site) = (TempData::new(), small_site());
    let text = format!("group = \"shops\"\n{}{RULES}", site.toml("shop", Duration::from_millis(10)));
    let file = data.write("shop.toml", &text);
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    (data, site)
}

fn paced(data: &TempData, words: &[&str]) -> Run {
    Paced::new(words).data(data).env("PACED_OPERATOR", "ann").run()
}

#[track_caller]
fn says(data: &TempData, words: &[&str], code: i32, told: &str) {
    let run = paced(data, words).expect_code(code);
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains(told), "{words:?}: no `{told}` in\n{said}");
}

#[test]
fn c13_pauses_of_a_site_of_its_group_and_of_all_are_told_apart_and_lifted_one_by_one() {
    let (data, _site) = in_group();
    says(&data, &["pause", "shop"], 0, "shop: paused; `paced resume shop` goes on with it");
    says(
        &data,
        &["pause", "--group", "shops", "--until", "2h", "--why", "a mail"],
        0,
        "the group shops: paused until 20",
    );
    says(
        &data,
        &["pause", "--all", "--why", "the night"],
        0,
        "all sites: paused; `paced resume --all` goes on with it",
    );
    let view = status(&data);
    let marks: Vec<(&str, &str)> = view["pauses"]
        .as_array()
        .expect("pauses")
        .iter()
        .map(|pause| (pause["whose"].as_str().expect("whose"), pause["why"].as_str().expect("why")))
        .collect();
    assert_eq!(
        marks,
        [("site", "by ann: no reason was given"), ("group", "by ann: a mail"), ("all", "by ann: the night")]
    );
    assert_eq!(view["paused_until"], serde_json::Value::Null);
    for words in [&["status"][..], &["explain", "shop"]] {
        says(
            &data,
            words,
            0,
            "paused: by ann: no reason was given; the group shops, by ann: a mail (until 20",
        );
        says(&data, words, 0, "; all sites, by ann: the night");
    }
    let held = "a pause of the group shops holds: `paced resume --group shops` ends it; a pause of all sites holds: \
                `paced resume --all` ends it";
    says(&data, &["resume", "shop"], 0, &format!("shop: its own pause is over; {held}"));
    says(&data, &["resume", "shop"], 0, &format!("shop: {held}"));
    says(&data, &["resume", "--all"], 0, "all sites: the pause is over");
    says(&data, &["explain", "shop"], 0, ": the group shops, by ann: a mail\n");
    says(&data, &["resume", "--group", "shops"], 0, "the group shops: the pause is over");
    says(
        &data,
        &["resume", "--group", "shops"],
        0,
        "the group shops: no such pause was known; a site that still had it goes on",
    );
    assert_eq!(status(&data)["pauses"], serde_json::json!([]));
    let log = paced(&data, &["log"]).expect_code(0).stdout;
    for did in [
        "  shop  ann: pause (no reason was given)\n",
        "  -  ann: pause --all (the night)\n",
        "  -  ann: resume --all (no reason was given)\n",
        "  -  ann: resume --group shops (no reason was given)\n",
    ] {
        assert!(log.contains(did), "no `{did}` in\n{log}");
    }
    assert!(log.contains("  -  ann: pause --group shops until 20"), "{log}");
}

#[test]
fn c13_paused_parses_are_told_and_go_on_when_they_are_resumed() {
    let (data, site, file) = crawled();
    let crawl =
        |words: &[&str]| Paced::new(["crawl", "--fresh"].iter().chain(words)).arg(&file).data(&data).run();
    says(
        &data,
        &["pause", "shop", "--parse"],
        0,
        "shop: parses are paused; `paced resume shop` goes on with it",
    );
    let before = site.requests().len();
    let stopped = crawl(&["--give-up", "1s"]).expect_code(3);
    assert!(stopped.stderr.contains("parses are paused: by "), "{stopped:?}");
    assert_eq!(site.requests().len() - before, 1, "its start page was asked for, and no link was found");
    says(&data, &["status"], 0, "\nshop: parses are paused: by ann: no reason was given\n");
    says(&data, &["explain", "shop"], 0, "; parses are paused: by ann: no reason was given\n");
    says(&data, &["pause", "--all", "--parse", "--until", "1h"], 0, "all sites: parses are paused until 20");
    says(&data, &["resume", "--all"], 0, "all sites: the pause is over");
    says(&data, &["resume", "shop"], 0, "shop: goes on");
    crawl(&[]).expect_code(0);
    says(&data, &["log", "shop"], 0, "ann: pause --parse (");
}

#[test]
fn c13_a_pause_of_nobody_or_of_two_at_once_is_refused() {
    let (data, _site, _) = crawled();
    for verb in ["pause", "resume"] {
        says(&data, &[verb], 2, "<SITE|--group <NAME>|--all>");
        says(&data, &[verb, "shop", "--all"], 2, "cannot be used with");
        says(&data, &[verb, "--group", "shops"], 2, "there is no group `shops`: name one that `group` has");
    }
    says(&data, &["pause", "--all", "--until", "2020-01-01T00:00:00Z"], 2, "is over: nothing was paused");
    assert_eq!(status(&data)["pauses"], serde_json::json!([]));
    says(&data, &["log"], 0, "nobody did anything yet");
}

#[test]
fn c13_max_pages_and_lane_are_set_within_bounds_that_are_told() {
    let (data, site) = (TempData::new(), small_site());
    let scope = "[scope]\nmax_pages = 2\n\n";
    let text = format!("{}{scope}{RULES}", site.toml("shop", Duration::from_millis(10)));
    let file = data.write("shop.toml", &text);
    let config = data.write("paced.toml", "[lanes]\ngeneral = 6\nslow = 3\n");
    let config = config.to_str().expect("a path");
    Paced::new(["crawl", "--config", config]).arg(&file).data(&data).run().expect_code(0);
    for fewer_or_too_many in ["1", "-1", "99999999999999999999"] {
        let words = ["tune", "shop", &format!("max_pages={fewer_or_too_many}")];
        says(&data, &words, 2, "shop: max_pages can be 2 to 1000000000000: it is raised alone");
    }
    for none_or_too_many in ["0", "-1", "5000000000"] {
        let words = ["tune", "shop", &format!("parallel={none_or_too_many}")];
        says(&data, &words, 2, "shop: parallel can be 1 to ");
    }
    says(&data, &["tune", "shop", "parallel=1.5"], 2, "`1.5` is no whole number");
    says(&data, &["tune", "shop", "lane=fast"], 2, "lane can be general, slow, not `fast`");
    says(&data, &["tune", "shop", "lane=now"], 2, "lane can be general, slow, not `now`");
    says(&data, &["tune", "shop", "depth=1"], 2, "interval, parallel, max_pages, lane can");
    says(
        &data,
        &["tune", "shop", "max_pages=3", "lane=slow"],
        0,
        ", max_pages 3, lane slow, from its next start on",
    );
    says(&data, &["explain", "shop"], 0, "  max pages   3: set while it runs by ann at 20");
    says(&data, &["explain", "shop"], 0, "  lane        slow: set while it runs by ann at 20");
    let before = site.requests().len();
    Paced::new(["crawl", "--fresh", "--config", config]).arg(&file).data(&data).run().expect_code(0);
    assert_eq!(site.requests().len() - before, 3, "a page more than the file allows");
    says(&data, &["put", "shop", &site.url("/p/9"), "--priority", "system"], 0, "");
    says(&data, &["tune", "shop", "--reset", "max_pages", "--reset", "lane"], 0, "parallel");
    let told = paced(&data, &["explain", "shop"]).expect_code(0).stdout;
    assert!(!told.contains("max pages") && !told.contains("  lane  "), "{told}");
    says(&data, &["log", "shop"], 0, "ann: tune max_pages=3 lane=slow (");
}

#[test]
fn f17_a_group_and_a_tenant_are_tuned_within_bounds_that_are_told_and_explain_says_by_whom() {
    let (data, site) = (TempData::new(), small_site());
    let top = "group = \"shops\"\ntenant = \"acme\"\n";
    let text = format!("{top}{}{RULES}", site.toml("shop", Duration::from_millis(10)));
    let file = data.write("shop.toml", &text);
    let config = "[lanes]\nslow = 3\n[[fairness]]\nlane = \"slow\"\nthreshold = 500\n";
    let config = data.write("paced.toml", config);
    Paced::new(["crawl", "--config"]).arg(config).arg(&file).data(&data).run().expect_code(0);
    says(&data, &["tune", "--group", "shop", "interval=1s"], 2, "there is no group `shop`: name one");
    let range =
        "the group shops: interval can be 10 ms to 1 day; the least is that of its files or of a robots.txt";
    says(&data, &["tune", "--group", "shops", "interval=1ms"], 2, range);
    says(&data, &["tune", "--group", "shops", "parallel=2"], 2, "a group has an interval alone");
    says(&data, &["tune", "--group", "shops"], 2, "say what to set");
    says(
        &data,
        &["tune", "--group", "shops", "interval=5s", "--why", "a sale"],
        0,
        "the group shops: interval 5 s",
    );
    says(&data, &["explain", "shop"], 0, ", set while it runs by ann at 20");
    says(
        &data,
        &["tune", "--group", "shops", "--reset", "interval"],
        0,
        "the group shops: interval that of its files",
    );
    let told = paced(&data, &["explain", "shop"]).expect_code(0).stdout;
    assert!(
        !told.contains("set while it runs") && told.contains("slow after 500 in 24h: paced.toml"),
        "{told}"
    );

    let acme = |words: &[&'static str]| [&["tune", "--tenant", "acme"], words].concat();
    says(&data, &acme(&["lane=fast", "threshold=1"]), 2, "lane can be general, slow, not `fast`");
    says(&data, &acme(&["lane=slow", "threshold=0"]), 2, "threshold can be 1 to 10,000, not `0`");
    says(&data, &acme(&["lane=slow", "threshold=1", "per=32d"]), 2, "per can be 1 s to 31 days, not `32d`");
    says(&data, &acme(&["lane=slow", "--reset", "fairness"]), 2, "nothing set with it");
    says(&data, &["tune", "shop", "--reset", "fairness"], 2, "`fairness` is a tenant's: name it by --tenant");
    let set = "the tenant acme: fairness slow after 2 in 1h, from its next task on";
    says(&data, &acme(&["lane=slow", "threshold=2", "per=1h", "--why", "a flood"]), 0, set);
    says(&data, &["explain", "shop"], 0, "  fairness    slow after 2 in 1h: set while it runs by ann at 20");
    says(&data, &["explain", "shop"], 0, "a flood, over paced.toml (slow after 500 in 24h)");
    says(&data, &["status"], 0, "tenant acme: slow after 2 in 1h, set while sites run");
    says(&data, &acme(&["fairness=none"]), 0, "the tenant acme: fairness none");
    says(&data, &acme(&["--reset", "fairness"]), 0, "the tenant acme: fairness that of paced.toml");
    says(&data, &["log"], 0, "-  ann: tune --tenant acme lane=slow threshold=2 per=1h (a flood)");
    says(&data, &["log"], 0, "-  ann: tune --group shops interval=5s (a sale)");
}
