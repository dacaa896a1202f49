//! A frontier that was backed up beside its crawl, and brought back: what came after the copy is lost, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::books::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(1_500);

fn open(data: &TempData) -> (Shops, PathBuf) {
    let plan = ShopPlan::new("saved", 6).latency(Latency::fixed(Duration::from_secs(1)));
    let shops = serve([plan]).expect("a shop");
    let site = data.write("saved.toml", &shops.all()[0].site_toml(INTERVAL));
    (shops, site)
}

fn backup(data: &TempData, to: &Path) -> Paced {
    Paced::new(["backup"]).arg(to).data(data)
}

/// The pages and items of a data folder, in another one.
fn copy_what_was_stored(from: &TempData, to: &TempData) {
    for folder in ["pages", "items"] {
        fs::create_dir_all(to.file(folder)).expect("a folder");
        for entry in fs::read_dir(from.file(folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            fs::copy(entry.path(), to.file(folder).join(entry.file_name())).expect("a copy");
        }
    }
}

/// No two requests came closer than the interval, less what a busy machine adds, whoever sent them.
#[track_caller]
fn assert_no_gap_is_short(shop: &Shop) {
    let arrivals = shop.arrivals();
    let gaps = arrivals.windows(2).map(|two| two[1].at.saturating_sub(two[0].at));
    let least = gaps.min().expect("some requests");
    assert!(least + Duration::from_millis(250) >= INTERVAL, "{least:?}");
}

/// The copy is made in the middle, and brought back right after a request that it knows nothing of.
#[test]
fn n10_a_copy_made_beside_a_crawl_goes_on_in_a_fresh_folder_and_starts_nothing_early() {
    let (there, here) = (TempData::new(), TempData::new());
    let (shops, site) = open(&there);
    let shop = &shops.all()[0];
    let running = crawl(&there, &site).start();
    eventually("a request under way", || {
        let arrivals = shop.arrivals();
        (arrivals.len() > 3 && arrivals.iter().any(|arrival| arrival.done.is_none())).then_some(())
    });
    let file = here.file("frontier.db");
    let told = backup(&there, &file).run().expect_code(0).stdout;
    assert!(told.contains("a copy of sqlite:"), "{told}");
    let copied_at = shop.arrivals().len();
    let names = || fs::read_dir(here.path()).expect("a folder").count();
    assert_eq!(names(), 1, "one file, and nothing beside it");
    eventually("two requests more", || (shop.arrivals().len() >= copied_at + 2).then_some(()));
    running.kill();
    running.finish();
    copy_what_was_stored(&there, &here);
    let run = crawl(&here, &site).run().expect_code(0);
    assert_no_gap_is_short(shop);
    assert_all_items(&here, shop);
    let after = status(&here);
    assert_eq!((&after["state"], &after["run"], &after["dead"]), (&"finished".into(), &1.into(), &0.into()));
    assert!(after["download"]["lost"].as_u64() >= Some(1), "what the copy's process held: {}", run.stderr);
    // What was asked for before the copy, and kept, isn't asked for again.
    let asked = answered(&shop.arrivals());
    let again: Vec<_> = asked.iter().filter(|(_, times)| **times > 1).collect();
    assert!(again.len() <= 3, "{again:?}");
}

#[test]
fn n10_the_crawl_that_was_backed_up_comes_to_its_end_as_if_nothing_had_been() {
    let data = TempData::new();
    let (shops, site) = open(&data);
    let shop = &shops.all()[0];
    let running = crawl(&data, &site).start();
    eventually("a few requests", || (shop.arrivals().len() > 2).then_some(()));
    for number in 0..3 {
        backup(&data, &data.file(&format!("copy-{number}.db"))).run().expect_code(0);
    }
    let run = running.finish().expect_code(0);
    assert!(!run.stderr.contains("lease") && !run.stderr.contains("WARN"), "{}", run.stderr);
    assert_all_items(&data, shop);
    assert_eq!(repeats(&shop.arrivals()), 0);
    assert_eq!(status(&data)["download"]["lost"], 0);
    assert_no_gap_is_short(shop);
}

#[test]
fn n10_a_copy_takes_no_file_s_place_and_says_what_to_do() {
    let data = TempData::new();
    let (_shops, site) = open(&data);
    let missing = backup(&data, &data.file("copy.db")).run().expect_code(1).stderr;
    assert!(missing.contains("there is no frontier yet"), "{missing}");
    Paced::new(["seed"]).arg(&site).data(&data).run().expect_code(0);
    let there = data.write("there.db", "somebody's");
    let refused = backup(&data, &there).run().expect_code(1).stderr;
    assert!(refused.contains("there.db: there is such a file; name another one"), "{refused}");
    assert_eq!(data.read("there.db"), "somebody's");
    let own = backup(&data, &data.file("frontier.db")).run().expect_code(1).stderr;
    assert!(own.contains("there is such a file"), "{own}");
    let nowhere = backup(&data, &data.file("none/copy.db")).run().expect_code(1).stderr;
    assert!(nowhere.contains("no copy can be made there; name a file in a folder"), "{nowhere}");
}

#[test]
fn n10_a_full_disk_is_told_and_nothing_is_left_of_the_copy() {
    with_mounts("backed_up::n10_a_full_disk_is_told_and_nothing_is_left_of_the_copy", || {
        let (data, disk) = (TempData::new(), SmallDisk::new(64));
        let (_shops, site) = open(&data);
        Paced::new(["seed"]).arg(&site).data(&data).run().expect_code(0);
        let to = disk.data().file("copy.db");
        let told = backup(&data, &to).run().expect_code(1).stderr;
        assert!(told.contains("copy.db: no space left for the copy, and nothing was kept of it"), "{told}");
        assert_eq!(fs::read_dir(disk.data().path()).expect("a folder").count(), 0);
        assert_eq!(status(&data)["state"], "stopped", "the frontier itself is as it was");
    });
}

/// A server's own copy of its data, brought back on another server right after requests that it knows nothing of.
#[test]
fn n10_a_dump_of_a_redis_goes_on_at_another_server_and_starts_nothing_early() {
    let Some(mut redis) = redis_or_skip() else { return };
    let data = TempData::new();
    let (shops, site) = open(&data);
    let shop = &shops.all()[0];
    let crawl = |url: String| crawl(&data, &site).env("PACED_FRONTIER", url);
    let running = crawl(redis.url(0)).start();
    eventually("some requests", || (shop.arrivals().len() > 3).then_some(()));
    redis.cli(&["BGSAVE"]);
    eventually("the dump", || {
        let saved = redis.folder().join("dump.rdb").exists();
        (saved && redis.info("rdb_bgsave_in_progress").as_deref() == Some("0")).then_some(())
    });
    let saved = data.file("saved.rdb");
    fs::copy(redis.folder().join("dump.rdb"), &saved).expect("a copy");
    let copied_at = shop.arrivals().len();
    eventually("two requests more", || (shop.arrivals().len() >= copied_at + 2).then_some(()));
    running.kill();
    running.finish();
    redis.kill9();
    let other = RedisServer::builder().dump(&saved).start().expect("a server as before");
    crawl(other.url(0)).run().expect_code(0);
    assert_no_gap_is_short(shop);
    assert_all_items(&data, shop);
}
