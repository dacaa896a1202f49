//! Campaigns as an operator has them: a long list is checked, started, watched, set while it runs, and stopped (C11-C16).

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::expected::*;
use crate::support::*;

/// A site of so many things, registered, with its file.
fn site_of(things: u32, latency: u64) -> (TempData, TestSite, PathBuf) {
    let (data, mut site) = (TempData::new(), TestSite::builder().page("/", ""));
    for n in 0..things {
        site = site.page(&format!("/p/{n}"), format!("<h1>Thing {n}</h1>"));
    }
    let site = site.latency(Latency::fixed(Duration::from_millis(latency))).serve();
    let toml = site.toml("shop", Duration::from_millis(5)).replace("[pace]\n", "[pace]\nparallel = 8\n");
    let file = data.write("shop.toml", &(toml + RULES));
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    (data, site, file)
}

fn urls(site: &TestSite, things: std::ops::Range<u32>) -> String {
    things.map(|n| site.url(&format!("/p/{n}")) + "\n").collect()
}

fn campaign(data: &TempData, words: &str) -> Paced {
    Paced::new(["campaign"].into_iter().chain(words.split_whitespace())).data(data)
}

/// The only campaign.
#[track_caller]
fn only(data: &TempData) -> Value {
    json_lines_of(&campaign(data, "list --json").run().expect_code(0).stdout).pop().expect("one campaign")
}

#[track_caller]
fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("{key} of {of}"))
}

fn work(data: &TempData) -> Paced {
    Paced::new(["work", "--name", "w"]).data(data)
}

#[test]
fn c11_a_campaign_is_fed_to_its_end_while_it_is_watched() {
    let (data, site, _) = site_of(40, 0);
    let list = data.write("list.txt", &format!("# things\n\n{}", urls(&site, 0..40)));
    let start = campaign(&data, "start --name autumn --site shop --portion 5 --tick 1s --urls").arg(&list);
    let run = start.run().expect_code(0);
    assert!(run.stdout.starts_with("autumn: started on shop with 40 URLs; portion 5, tick 1 s"), "{run:?}");
    let told = only(&data);
    assert_eq!(
        (told["state"].as_str(), number(&told, "total"), number(&told, "fed")),
        (Some("running"), 40, 0)
    );
    let explained = Paced::new(["explain", "shop"]).data(&data).run().expect_code(0).stdout;
    assert!(explained.contains("autumn: running, 0 of 40 URLs fed"), "{explained}");
    work(&data).arg("--until-empty").run().expect_code(0);
    let told = only(&data);
    let counted = ["fed", "done", "dead", "open", "left", "coalesced"].map(|key| number(&told, key));
    assert_eq!((told["state"].as_str(), counted), (Some("ended"), [40, 40, 0, 0, 0, 0]));
    assert!((0..40).all(|n| site.count(&format!("/p/{n}")) == 1));
    let table = campaign(&data, "list").run().expect_code(0).stdout;
    assert!(table.contains("autumn") && table.contains("ended"), "{table}");
    let log = Paced::new(["log", "shop"]).data(&data).run().expect_code(0).stdout;
    assert!(log.contains("campaign start autumn, 40 URLs"), "{log}");
}

#[test]
fn c12_a_crawl_neither_feeds_a_campaign_nor_waits_for_it() {
    let (data, site, file) = site_of(3, 0);
    campaign(&data, "start --name autumn --site shop --urls -")
        .stdin(&urls(&site, 0..3))
        .run()
        .expect_code(0);
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    assert_eq!(number(&only(&data), "fed"), 0);
    assert_eq!(site.count("/p/0"), 0);
}

#[test]
fn a_list_with_a_bad_line_starts_nothing_and_the_first_twenty_are_told_with_their_numbers() {
    let (data, site, _) = site_of(5, 0);
    let bad: Vec<_> = (0..30).map(|n| format!("https://elsewhere.example/{n}\n")).collect();
    let text = format!("{}\n# bad ones\n{}nonsense\n{}", urls(&site, 0..3), bad.concat(), urls(&site, 2..5));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes()).expect("in memory");
    let list = data.path().join("list.txt.gz");
    std::fs::write(&list, gzip.finish().expect("in memory")).expect("written");
    let start = || campaign(&data, "start --name autumn --site shop --urls").arg(&list);
    let run = start().run().expect_code(2);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 22, "{}", run.stderr);
    assert!(
        lines[0].contains("line 6: https://elsewhere.example/0: elsewhere.example is no host"),
        "{}",
        lines[0]
    );
    assert!(lines[19].contains("line 25: ") && lines[20].ends_with("and 11 more"), "{}", run.stderr);
    assert!(
        lines[21].contains("31 lines can't be crawled; mend the list, or add --skip-bad"),
        "{}",
        lines[21]
    );
    let run = campaign(&data, "list").run().expect_code(0);
    assert_eq!((run.stdout.as_str(), run.stderr.trim()), ("", "there are no campaigns"));
    let run = start().arg("--skip-bad").run().expect_code(0);
    assert!(run.stdout.contains("5 URLs (1 line named twice) (31 lines bad, passed over)"), "{}", run.stdout);
    assert_eq!(number(&only(&data), "total"), 5);
}

#[test]
fn lines_of_a_list_that_are_no_text_or_too_long_are_bad_and_comments_may_be_anything() {
    let (data, site, _) = site_of(3, 0);
    let mut list = b"\xef\xbb\xbf".to_vec();
    list.extend(site.url("/p/0\n# B").bytes());
    list.extend(b"\xfccher\n# ");
    list.extend(b"x".repeat(100_000).into_iter().chain(*b"\n"));
    list.extend(site.url("/p/caf").bytes().chain(*b"\xe9\n"));
    list.extend(site.url("/p/").bytes().chain(b"x".repeat(100_000)).chain(*b"\n"));
    let start = |words: &str| {
        campaign(&data, &format!("start --name autumn --site shop --urls - {words}")).stdin_bytes(&list).run()
    };
    let run = start("").expect_code(2);
    let caf = site.url("/p/caf");
    for told in [
        format!("line 4: `{caf}\u{fffd}` is not UTF-8 text; percent-encode it"),
        "line 5: `".to_owned(),
        "…` is longer than 8192 bytes, and a URL may have no more".to_owned(),
        "2 lines can't be crawled".to_owned(),
    ] {
        assert!(run.stderr.contains(&told), "no `{told}` in\n{}", run.stderr);
    }
    let run = start("--skip-bad").expect_code(0);
    assert!(run.stdout.contains("1 URLs (2 lines bad, passed over)"), "{}", run.stdout);
}

#[test]
fn what_a_campaign_can_not_be_is_refused_with_what_it_can() {
    let (data, site, _) = site_of(3, 0);
    let start = |words: &str| {
        campaign(&data, &format!("start --site shop --urls - {words}")).stdin(&urls(&site, 0..3)).run()
    };
    for (words, told) in [
        ("--name a/b", "letters, digits"),
        ("--name a --portion 0", "1 to 100000 pages"),
        ("--name a --portion 101x", "1x to 100x"),
        ("--name a --tick 500ms", "1 s to 1 h"),
        ("--name a --lane nowhere", "there is no lane `nowhere`"),
        ("--name a --batch b/c", "is no batch"),
    ] {
        let run = start(words).expect_code(2);
        assert!(run.stderr.contains(told), "{words}: {}", run.stderr);
    }
    let empty =
        campaign(&data, "start --name a --site shop --urls -").stdin("# nothing\n").run().expect_code(2);
    assert!(empty.stderr.contains("there is no URL in it"), "{}", empty.stderr);
    start("--name a").expect_code(0);
    assert!(start("--name a").expect_code(2).stderr.contains("campaign `a` of shop is under way"));
    for (words, told) in [
        ("tune a speed=9", "portion, tick and priority can"),
        ("tune a tick=2h", "1 s to 1 h"),
        ("tune b portion=9", "there is no campaign `b`; there are a"),
    ] {
        let run = campaign(&data, words).run().expect_code(2);
        assert!(run.stderr.contains(told), "{words}: {}", run.stderr);
    }
}

#[test]
fn c13_what_is_set_while_it_runs_is_in_force_at_the_next_tick() {
    let (data, site, _) = site_of(200, 20);
    let start = "start --name autumn --site shop --portion 4 --tick 1s --urls -";
    campaign(&data, start).stdin(&urls(&site, 0..200)).run().expect_code(0);
    let worker = work(&data).start();
    eventually("the first portion", || (number(&only(&data), "done") >= 4).then_some(()));
    campaign(&data, "pause autumn").run().expect_code(0);
    let paused = eventually("the end of what waits", || {
        let told = only(&data);
        (number(&told, "open") == 0).then_some(told)
    });
    assert_eq!(paused["state"], "paused");
    let run = campaign(&data, "tune autumn portion=50 priority=user:high").run().expect_code(0);
    assert!(run.stdout.contains("portion 50, tick 1 s, priority user:high"), "{}", run.stdout);
    campaign(&data, "resume autumn").run().expect_code(0);
    let fed = number(&paused, "fed");
    eventually("the larger portion", || (number(&only(&data), "fed") >= fed + 50).then_some(()));
    let run = campaign(&data, "stop autumn").run().expect_code(0);
    assert!(run.stdout.contains(" waiting pages dropped; autumn: "), "{}", run.stdout);
    let told = eventually("its end", || {
        let told = only(&data);
        (told["state"] == "stopped").then_some(told)
    });
    let [fed, done, dropped] = ["fed", "done", "dropped"].map(|key| number(&told, key));
    assert!(fed < 200 && done + dropped == fed, "{told}");
    let requested = (0..200).filter(|n| site.count(&format!("/p/{n}")) == 1).count() as u64;
    assert_eq!(requested, done, "what was dropped was never asked for");
    let run = campaign(&data, "resume autumn").run().expect_code(1);
    assert!(run.stderr.contains("has ended, or was stopped"), "{}", run.stderr);
    let log = Paced::new(["log", "shop"]).data(&data).run().expect_code(0).stdout;
    for act in ["pause autumn", "tune autumn portion=50 priority=user:high", "resume autumn", "stop autumn"] {
        assert!(log.contains(&format!("campaign {act}")), "{act}: {log}");
    }
    worker.terminate();
    worker.finish().expect_code(0);
}

#[test]
fn c16_whatever_feeds_may_be_killed_each_url_is_put_once_and_none_is_lost() {
    const THINGS: u32 = 1_500;
    let (data, site, file) = site_of(THINGS, 0);
    Paced::new(["pause", "shop"]).data(&data).run().expect_code(0);
    let start = "start --name autumn --site shop --portion 5000 --tick 1s --urls -";
    campaign(&data, start).stdin(&urls(&site, 0..THINGS)).run().expect_code(0);
    for before in [0, 1] {
        let worker = work(&data).start();
        eventually("some that are fed", || (number(&only(&data), "fed") > before).then_some(()));
        worker.kill();
        worker.finish();
    }
    let worker = work(&data).start();
    eventually("all that are fed", || (number(&only(&data), "fed") == u64::from(THINGS)).then_some(()));
    worker.kill();
    worker.finish();
    assert_eq!(number(&status(&data), "waiting"), u64::from(THINGS));
    Paced::new(["resume", "shop"]).data(&data).run().expect_code(0);
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    let odd: Vec<u32> = (0..THINGS).filter(|n| site.count(&format!("/p/{n}")) != 1).collect();
    assert!(odd.is_empty(), "not asked for once: {odd:?}");
    let told = only(&data);
    assert_eq!((told["state"].as_str(), number(&told, "done")), (Some("ended"), THINGS.into()));
}
