//! `paced queue`: waiting pages listed and changed by what they are, and what is asked for first.

use std::path::PathBuf;

use serde_json::Value;

use crate::expected::*;
use crate::support::*;

/// A shop that was crawled, with five waiting pages in three lanes, two of them for a tenant.
fn with_waiting() -> (TempData, TestSite, PathBuf) {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    let config = data.write("paced.toml", "[lanes]\ngeneral = 6\nslow = 3\n");
    let crawl = Paced::new(["crawl", "--workers", "1"]).arg(&file).arg("--config").arg(&config);
    crawl.data(&data).run().expect_code(0);
    let put = |path: &str, words: &[&str]| {
        Paced::new(["put", "shop"]).arg(site.url(path)).args(words).data(&data).run().expect_code(0);
    };
    put("/p/1", &["--priority", "user"]);
    put("/p/2", &["--priority", "user", "--tenant", "acme"]);
    put("/p/3", &["--priority", "system:low", "--tenant", "acme"]);
    put("/p/7", &["--priority", "user", "--lane", "slow"]);
    put("/p/9", &[]);
    (data, site, file)
}

fn queue(data: &TempData, words: &str) -> Paced {
    Paced::new(["queue", "shop"].into_iter().chain(words.split_whitespace())).data(data)
}

/// What a change without questions prints.
#[track_caller]
fn changed(data: &TempData, words: &str) -> String {
    queue(data, words).arg("--yes").run().expect_code(0).stdout
}

/// The pages that fit, in order, as objects.
#[track_caller]
fn listed(data: &TempData, words: &str) -> Vec<Value> {
    json_lines_of(&queue(data, &format!("list --json {words}")).run().expect_code(0).stdout)
}

/// Each page's number, priority and lane, in order.
#[track_caller]
fn places(data: &TempData, words: &str) -> Vec<String> {
    let text = |page: &Value, key: &str| page[key].as_str().expect("a text").to_owned();
    let number = |page: &Value| text(page, "url").rsplit('/').next().unwrap_or_default().to_owned();
    let pages = listed(data, words);
    pages
        .iter()
        .map(|page| format!("{} {} {}", number(page), text(page, "priority"), text(page, "lane")))
        .collect()
}

#[test]
fn n5_waiting_pages_are_listed_in_the_order_in_which_they_go() {
    let (data, site, _) = with_waiting();
    let run = queue(&data, "list").run().expect_code(0);
    let told: Vec<String> = run
        .stdout
        .lines()
        .map(|line| {
            let mut cells: Vec<&str> = line.split('\t').collect();
            assert!(cells.len() == 5 && cells[1].ends_with('Z'), "{line}");
            cells.remove(1);
            cells.join(" ")
        })
        .collect();
    let expected = [
        ("operator:middle now -", "/p/9"),
        ("user:middle general -", "/p/1"),
        ("user:middle general acme", "/p/2"),
        ("system:low general acme", "/p/3"),
        ("user:middle slow -", "/p/7"),
    ];
    assert_eq!(told, expected.map(|(cells, path)| format!("{cells} {}", site.url(path))));
    assert_eq!(run.stderr, "");

    let two = &listed(&data, "")[2];
    assert_eq!(two["url"], site.url("/p/2"));
    assert_eq!(
        (&two["priority"], &two["lane"], &two["tenant"], &two["depth"]),
        (&"user:middle".into(), &"general".into(), &"acme".into(), &0.into())
    );
    assert!(two["put_at"].is_string() && listed(&data, "")[0]["tenant"].is_null(), "{two}");
}

#[test]
fn n5_no_more_are_listed_than_asked_for_and_how_many_more_there_are_is_told() {
    let (data, ..) = with_waiting();
    for (words, lines, told) in [
        ("--most 2", 2, "… and 3 more; --most shows more\n"),
        ("--most 2 --match /p/*", 2, "… and 3 more; --most shows more\n"),
        ("--most 1 --lane general", 1, "… and 2 more; --most shows more\n"),
        ("--most 5", 5, ""),
        ("--match /q/*", 0, "no waiting pages match\n"),
        ("--lane slow --tenant acme", 0, "no waiting pages match\n"),
    ] {
        let run = queue(&data, &format!("list {words}")).run().expect_code(0);
        assert_eq!((run.stdout.lines().count(), run.stderr.as_str()), (lines, told), "{words}");
    }
}

#[test]
fn n5_waiting_pages_are_listed_by_pattern_lane_and_tenant_and_dropped_raised_lowered_and_moved() {
    let (data, site, file) = with_waiting();
    for (words, numbers) in [
        ("--match re:/p/[12]$", "1 2"),
        ("--match /p/7", "7"),
        ("--match /q/**", ""),
        ("--lane general", "1 2 3"),
        ("--lane now", "9"),
        ("--tenant acme", "2 3"),
        ("--priority user", "1 2 7"),
        ("--priority user --tenant acme --match /p/*", "2"),
    ] {
        let found = places(&data, words);
        let found: Vec<&str> = found.iter().filter_map(|page| page.split(' ').next()).collect();
        assert_eq!(found.join(" "), numbers, "{words}");
    }

    let raised = "shop: 2 of 5 waiting pages raised\n";
    assert_eq!(changed(&data, "raise --tenant acme"), raised, "by a level");
    assert_eq!(
        places(&data, "--lane general"),
        ["2 user:high general", "1 user:middle general", "3 system:middle general"]
    );
    let raised = "shop: 1 of 5 waiting pages raised to user:high\n";
    assert_eq!(changed(&data, "raise user:high --tenant acme"), raised, "the other one is so already");
    let lowered = "shop: 1 of 5 waiting pages lowered to system:low\n";
    assert_eq!(changed(&data, "lower system:low --match /p/1"), lowered);
    let run = queue(&data, "lower operator --match /p/1 --yes").run().expect_code(0);
    let told = "all waiting pages that match are as little urgent already\n";
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", told));
    let raised = "shop: 3 of 5 waiting pages raised\n";
    assert_eq!(changed(&data, "raise"), raised, "all but those on the most urgent level");
    let lowered = "shop: 2 of 3 waiting pages of lane general lowered\n";
    assert_eq!(changed(&data, "lower --lane general --priority user:high"), lowered);

    let moved = "shop: 2 of 5 waiting pages moved to lane slow\n";
    assert_eq!(changed(&data, "move --lane slow --tenant acme"), moved);
    assert_eq!(changed(&data, "move --lane slow --tenant acme"), "", "they are there already");
    assert_eq!(
        places(&data, ""),
        [
            "9 operator:high now",
            "1 system:middle general",
            "7 user:high slow",
            "2 user:middle slow",
            "3 user:middle slow"
        ]
    );
    assert_eq!(status(&data)["download"]["lanes"], serde_json::json!({ "now": 1, "slow": 3 }));
    let moved = "shop: 1 of 3 waiting pages of lane slow moved to lane general\n";
    assert_eq!(changed(&data, "move --lane general --from slow --match /p/7"), moved);

    let dropped = "shop: 2 of 2 waiting pages of lane slow dropped\n";
    assert_eq!(changed(&data, "drop --lane slow --priority user"), dropped);
    assert_eq!(changed(&data, "drop --match /p/7"), "shop: 1 of 3 waiting pages dropped\n");
    let before = site.requests().len();
    Paced::new(["crawl", "--workers", "1"]).arg(&file).data(&data).run().expect_code(0);
    let asked: Vec<String> = site.requests().split_off(before).into_iter().map(|asked| asked.path).collect();
    assert_eq!(asked, ["/p/9", "/p/1"], "and none that was dropped");
    let log = Paced::new(["log", "shop"]).data(&data).run().expect_code(0).stdout;
    for did in [
        "queue raise to user:high --tenant acme: 1 page (no reason was given)\n",
        "queue move to lane slow --tenant acme: 2 pages (",
        "queue drop of lane slow --priority user:middle: 2 pages (",
    ] {
        assert!(log.contains(did), "no `{did}` in\n{log}");
    }
}

#[test]
fn n5_pages_whose_host_cannot_be_reached_are_told_of_where_no_lane_has_any() {
    let (data, site) =
        (TempData::new(), TestSite::builder().status("/robots.txt", 503).page("/", "").serve());
    let file = site_file(&data, &site);
    Paced::new(["crawl", "--give-up", "1s"]).arg(&file).data(&data).run().expect_code(3);
    for words in ["list", "drop --yes"] {
        let said = queue(&data, words).run().expect_code(0).stderr;
        let told = "no waiting pages match in any lane: 1 page of shop must wait for a host's robots.txt, see `paced explain shop`";
        assert_eq!(said.trim_end(), told);
    }
}

#[test]
fn n5_without_a_terminal_nothing_is_changed_unless_yes_is_said() {
    let (data, ..) = with_waiting();
    for (words, code, told) in [
        ("drop --tenant acme", 2, "paced: shop: 2 of 5 waiting pages would be dropped; add --yes to do it\n"),
        ("raise user:high", 2, "paced: shop: 5 of 5 waiting pages would be raised to user:high; add --yes"),
        ("drop --match /q/*", 0, "no waiting pages match\n"),
        (
            "move --lane slo --yes",
            2,
            "there is no lane `slo`; name now, or one of general, slow (lanes of paced.toml hold",
        ),
        ("drop --lane slo --yes", 2, "there is no lane `slo`; name now, or one of general, slow"),
    ] {
        let run = queue(&data, words).run().expect_code(code);
        assert!(run.stderr.contains(told) && run.stdout.is_empty(), "{words}: {run:?}");
    }
    assert_eq!(status(&data)["waiting"], 5);
    assert_eq!(places(&data, "--lane now"), ["9 operator:middle now"]);
    let run = Paced::new(["queue", "books", "list"]).data(&data).run().expect_code(2);
    assert!(run.stderr.contains("there is no site `books`"), "{run:?}");
}

#[test]
fn n5_on_a_terminal_the_count_and_five_pages_are_shown_and_then_it_is_asked() {
    let (data, site, _) = with_waiting();
    let run = queue(&data, "drop").typed("n\n").run().expect_code(1);
    let pages = ["/p/9", "/p/1", "/p/2", "/p/3", "/p/7"].map(|path| format!("  {}\n", site.url(path)));
    let asked = format!("shop: 5 of 5 waiting pages would be dropped:\n{}drop them? [y/N]\n", pages.concat());
    assert_eq!((run.stdout.as_str(), run.stderr), ("", asked + "nothing was changed\n"));
    assert_eq!(status(&data)["waiting"], 5);

    let raise = queue(&data, "raise user:high --tenant acme");
    let run = raise.typed("y\nthe sale begins\n").run().expect_code(0);
    assert_eq!(run.stdout, "shop: 2 of 5 waiting pages raised to user:high\n");
    assert!(run.stderr.contains("raise them to user:high? [y/N]\nwhy? (for the log"), "{run:?}");
    let log = Paced::new(["log", "shop"]).data(&data).run().expect_code(0).stdout;
    assert!(log.contains("queue raise to user:high --tenant acme: 2 pages (the sale begins)\n"), "{log}");

    Paced::new(["put", "shop"]).arg(site.url("/p/6")).data(&data).run().expect_code(0);
    let run = queue(&data, "drop").typed("\n").run().expect_code(1);
    let asked = "shop: 6 of 6 waiting pages would be dropped, such as:\n";
    assert!(run.stderr.starts_with(asked) && run.stderr.lines().count() == 8, "{run:?}");
    let run = queue(&data, "drop --yes").typed("").run().expect_code(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("shop: 6 of 6 waiting pages dropped\n", ""));
}

#[test]
fn n5_however_many_wait_each_is_changed_once() {
    let (data, site, _) = crawled();
    let lines: String = (0..1200).flat_map(|n| [site.url(&format!("/p/n{n}")), "\n".to_owned()]).collect();
    let put = Paced::new(["put", "shop", "-", "--priority", "user:high"]).data(&data);
    put.stdin(&lines).run().expect_code(0);
    assert_eq!(changed(&data, "lower"), "shop: 1200 of 1200 waiting pages lowered\n");
    let run = queue(&data, "list --most 1100 --priority user").run().expect_code(0);
    let told = "… and 100 more; --most shows more\n";
    assert_eq!((run.stdout.lines().count(), run.stderr.as_str()), (1100, told), "lowered by one level");
    assert_eq!(changed(&data, "drop --match /p/n1*"), "shop: 311 of 1200 waiting pages dropped\n");
    assert_eq!(changed(&data, "drop"), "shop: 889 of 889 waiting pages dropped\n");
    assert_eq!(status(&data)["waiting"], 0);
}
