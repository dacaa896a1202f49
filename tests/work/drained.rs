//! Processes that people drain: each claims nothing more, finishes what runs, and ends with a code of its own.

use serde_json::Value;

use crate::fleet::{paths_by, seed, to_the_end, worker};
use crate::ground::*;
use crate::support::*;

fn fleet(ground: &Ground) -> Vec<Value> {
    let shown = ground.verb("status").args(["--fleet", "--json"]).run().expect_code(0).stdout;
    shown.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn slow_star(count: usize) -> TestSite {
    star(count).latency(Latency::fixed(ms(300))).serve()
}

/// A crawl is slow until the drained one is gone, however long that takes.
fn tune(ground: &Ground, how: &[&str]) {
    ground.verb("tune").arg("shop").args(how).run().expect_code(0);
}

/// Each page was asked for once, by whomever.
#[track_caller]
fn assert_each_once(site: &TestSite, count: usize) {
    let counts = site.counts();
    let pages = counts.iter().filter(|(path, _)| *path != "/robots.txt");
    assert!(pages.clone().all(|(_, times)| *times == 1), "{counts:?}");
    assert_eq!(pages.count(), count + 1);
}

#[test]
fn a_drained_worker_finishes_what_runs_and_ends_with_75_while_the_other_goes_on() {
    on_each_frontier(|shared| {
        let site = slow_star(120);
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).interval(ms(40))]);
        seed(&ground);
        tune(&ground, &["interval=250ms"]);
        let drained = worker(&ground, "dl-1").start();
        let other = to_the_end(&ground, "dl-2").start();
        let rows = eventually("the first beats", || {
            let rows = fleet(&ground);
            let have_begun = rows.iter().filter(|row| row["download_slots"].as_u64() > Some(0)).count();
            (have_begun == 2).then_some(rows)
        });
        for (row, name) in rows.iter().zip(["dl-1", "dl-2"]) {
            assert_eq!((&row["name"], &row["role"]), (&name.into(), &"both".into()), "{rows:?}");
            assert_eq!((&row["drained"], &row["sites"]), (&false.into(), &Value::Null), "{rows:?}");
            assert_eq!(row["version"], env!("CARGO_PKG_VERSION"));
            assert!(row["parse_slots"].as_u64() > Some(0) && row["last_beat"].is_string(), "{row}");
        }
        let table = ground.verb("status").arg("--fleet").run().expect_code(0).stdout;
        assert!(table.starts_with("name ") && table.contains("all sites"), "{table}");

        let unknown = ground.verb("drain").arg("dl-9").run().expect_code(2).stderr;
        assert!(unknown.contains("no process `dl-9` lives") && unknown.contains("dl-1, dl-2"), "{unknown}");
        let run = ground.verb("drain").args(["dl-1", "--why", "a new disk"]).run().expect_code(0);
        assert!(run.stdout.contains("dl-1 (process ") && run.stdout.contains("drained"), "{run:?}");
        let ended = drained.finish().expect_code(75);
        assert!(ended.stderr.contains("drained") && !ended.stderr.contains("lease was lost"), "{ended:?}");
        let left = ground.view("shop");
        assert!(!left.finished && left.download.lost == 0, "{left:?}");
        assert_eq!(fleet(&ground).len(), 1);
        tune(&ground, &["--reset", "interval"]);
        other.finish().expect_code(0);
        assert_each_once(&site, 120);
        assert_eq!(paths_by(&ground, "shop", &["dl-1", "dl-2"]).len(), 121);
        let log = ground.verb("log").run().expect_code(0).stdout;
        assert!(log.contains(": drain dl-1 (a new disk)"), "{log}");
        ground.assert_paced("shop", &site, ms(40));
    });
}

#[test]
fn all_are_drained_and_who_starts_again_works() {
    on_each_frontier(|shared| {
        let site = slow_star(160);
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).interval(ms(40))]);
        seed(&ground);
        let mut downloads = worker(&ground, "dl").args(["--role", "download"]).start();
        let mut parses =
            worker(&ground, "px").args(["--role", "parse"]).env("PACED_DRAINED_EXIT", "0").start();
        downloads.wait_for_stderr("at work");
        parses.wait_for_stderr("at work");
        eventually("some requests", || (site.requests().len() > 5).then_some(()));
        let told = ground.verb("drain").args(["--all", "--json"]).run().expect_code(0).stdout;
        assert_eq!(told.matches("\"drained\":true").count(), 2, "{told}");
        downloads.finish().expect_code(75);
        parses.finish().expect_code(0);
        assert!(fleet(&ground).is_empty());
        let nobody = ground.verb("drain").arg("--all").run().expect_code(0).stderr;
        assert!(nobody.contains("no process works on this frontier"), "{nobody}");
        to_the_end(&ground, "dl").run().expect_code(0);
        assert_each_once(&site, 160);
        assert!(ground.view("shop").finished);
    });
}

#[test]
fn a_drained_crawl_ends_with_75_and_the_next_start_goes_on() {
    on_each_frontier(|shared| {
        let site = slow_star(100);
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).interval(ms(40))]);
        let crawl = ground.crawl().start();
        eventually("some requests", || (site.requests().len() > 5).then_some(()));
        tune(&ground, &["interval=250ms"]);
        let member = fleet(&ground).remove(0);
        assert_eq!(member["sites"], serde_json::json!(["shop"]));
        ground.verb("drain").arg(text(&member["name"])).run().expect_code(0);
        let ended = crawl.finish().expect_code(75);
        assert!(ended.stderr.contains("drained; the next start goes on here"), "{}", ended.stderr);
        assert!(!ground.view("shop").finished);
        tune(&ground, &["--reset", "interval"]);
        ground.crawled();
        assert_each_once(&site, 100);
        assert_eq!(ground.item_paths("shop").len(), 101);
    });
}
