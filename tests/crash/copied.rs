//! A data folder that comes from another machine: copied after a crawl was killed there, or beside one that goes on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use crate::books::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_secs(1);
const HOUR: i64 = 3_600_000;

fn open(data: &TempData) -> (Shops, PathBuf) {
    let plan = ShopPlan::new("copied", 6).latency(Latency::fixed(Duration::from_millis(300)));
    let shops = serve([plan]).expect("a shop");
    let site = data.write("copied.toml", &shops.all()[0].site_toml(INTERVAL));
    (shops, site)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("a copy");
        }
    }
}

/// The frontier as a machine left it that was booted under another id, so much earlier or later than this one.
fn from_another_machine(data: &TempData, booted: i64) {
    let frontier = Connection::open(data.file("frontier.db")).expect("the frontier");
    let changed = frontier
        .execute("UPDATE meta SET value = 'e2b0a5f4-0000-4000-8000-another-boot' WHERE key = 'boot'", [])
        .and_then(|_| frontier.execute("UPDATE meta SET value = value + ?1 WHERE key = 'base'", [booted]));
    assert_eq!(changed.expect("a clock"), 1);
}

/// Killed there in the middle of its requests, it goes on here.
#[track_caller]
fn goes_on_here(booted: i64, wall: i64) {
    let (there, here) = (TempData::new(), TempData::new());
    let (shops, site) = open(&there);
    let shop = &shops.all()[0];
    let running = crawl(&there, &site).start();
    eventually("a request under way", || {
        let arrivals = shop.arrivals();
        (arrivals.len() > 3 && arrivals.iter().any(|arrival| arrival.done.is_none())).then_some(())
    });
    running.kill();
    running.finish();
    copy(there.path(), here.path());
    let before = status(&there);
    from_another_machine(&here, booted);
    let clock = here.file("clock");
    moved_clock::shift(&clock, wall);
    let run = crawl(&here, &site).movable_clock(&clock).run().expect_code(0);
    let after = status(&here);
    assert_eq!(after["download"]["lost"], before["download"]["leased"], "{}", run.stderr);
    assert_eq!((&after["state"], &after["dead"], &after["run"]), (&"finished".into(), &0.into(), &1.into()));
    assert!(after["last_start"].as_str() > before["last_start"].as_str(), "time goes on: {before}\n{after}");
    assert_all_items(&here, shop);
    assert_pages_readable(&here);
    assert_pace(&here, shop, INTERVAL);
}

#[test]
fn i1_l4_a_folder_of_a_machine_that_runs_for_longer_goes_on_here_at_its_pace() {
    goes_on_here(-200 * HOUR, 0);
}

#[test]
fn i1_l4_a_folder_of_a_machine_that_was_booted_later_goes_on_here_at_its_pace() {
    goes_on_here(200 * HOUR, 0);
}

#[test]
fn i1_l4_a_folder_goes_on_here_though_the_clock_here_is_behind_or_ahead() {
    goes_on_here(-HOUR, -HOUR);
    goes_on_here(0, HOUR);
}

/// A power cut takes what the disk had not taken in yet, and with it the first starts.
#[test]
fn i1_starts_that_a_power_cut_made_the_frontier_forget_are_waited_for() {
    const LONG: Duration = Duration::from_secs(4);
    let (there, here) = (TempData::new(), TempData::new());
    let plan = ShopPlan::new("copied", 6).latency(Latency::fixed(Duration::from_millis(10)));
    let shops = serve([plan]).expect("a shop");
    let shop = &shops.all()[0];
    let site = there.write("copied.toml", &shop.site_toml(LONG));
    Paced::new(["seed"]).arg(&site).data(&there).run().expect_code(0);
    copy(there.path(), here.path());
    let running = crawl(&there, &site).start();
    eventually("the first request", || (!shop.arrivals().is_empty()).then_some(()));
    running.kill();
    running.finish();
    from_another_machine(&here, 0);
    let again = crawl(&here, &site).start();
    eventually("the next one", || (shop.arrivals().len() > 1).then_some(()));
    again.kill();
    again.finish();
    let arrivals = shop.arrivals();
    let gap = arrivals[1].at.saturating_sub(arrivals[0].at);
    assert!(gap + Duration::from_millis(250) >= LONG, "{gap:?}");
}

#[test]
fn a_crawl_and_one_on_a_copy_of_its_folder_leave_each_other_alone() {
    let (data, copied) = (TempData::new(), TempData::new());
    let (shops, site) = open(&data);
    let shop = &shops.all()[0];
    let running = crawl(&data, &site).start();
    eventually("a few requests", || (shop.arrivals().len() > 3).then_some(()));
    // What it has claimed is running in the copy too: of a process that isn't there.
    running.signal(rustix::process::Signal::STOP);
    copy(data.path(), copied.path());
    running.signal(rustix::process::Signal::CONT);
    let other = crawl(&copied, &site).run().expect_code(0);
    let run = running.finish().expect_code(0);
    for (data, run) in [(&data, run), (&copied, other)] {
        assert_all_items(data, shop);
        assert_pages_readable(data);
        assert!(!run.stderr.contains("lease was lost"), "{}", run.stderr);
        assert_eq!(status(data)["state"], "finished");
    }
}
