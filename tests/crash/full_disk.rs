//! No space left on a real disk, while pages, items and the frontier are written: the crawl waits with what it has in hand,
//! asks for nothing more, and goes on by itself.

use std::path::PathBuf;
use std::time::Duration;

use crate::books::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(20);

fn plan() -> ShopPlan {
    ShopPlan::new("full", 150).page_size(20_000).latency(Latency::fixed(Duration::from_millis(60)))
}

fn open(folder: &TempData) -> (Shops, PathBuf) {
    let shops = serve([plan()]).expect("a shop");
    let site = folder.write("full.toml", &shops.all()[0].site_toml(INTERVAL));
    (shops, site)
}

/// A crawl that has fetched a few pages.
fn under_way(crawl: Paced, shop: &Shop) -> Running {
    let running = crawl.start();
    eventually("pages", || (shop.arrivals().len() > 20).then_some(()));
    running
}

/// Processor time used so far, in ms.
fn used_ms(running: &Running) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.pid())).expect("a process");
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    (ticks(11) + ticks(12)) * 10
}

/// For a while nothing more is asked for, hardly anything is done, and it is said once.
#[track_caller]
fn assert_waits(running: &mut Running, shop: &Shop, told: &str) {
    running.wait_for_stderr(told);
    // What was granted before is still asked for.
    std::thread::sleep(Duration::from_secs(1));
    let asked = shop.arrivals().len();
    in_three_tries(|| {
        let used = used_ms(running);
        std::thread::sleep(Duration::from_secs(4));
        assert_eq!(shop.arrivals().len(), asked, "requests though nothing can be kept\n{}", running.stderr());
        let used = used_ms(running) - used;
        tell(&format!("  {used} ms of processor time in 4 s of waiting"));
        bound(used <= 400, format_args!("{used} ms of processor time in 4 s"))
    });
    assert_eq!(running.stderr().matches(told).count(), 1, "{}", running.stderr());
}

#[track_caller]
fn assert_as_if_nothing_had_been(data: &TempData, shop: &Shop, run: &Run) {
    assert_eq!(repeats(&shop.arrivals()), 0, "{}", run.stderr);
    assert_all_items(data, shop);
    assert_pages_readable(data);
    let status = status(data);
    assert_eq!((&status["download"]["lost"], &status["dead"]), (&0.into(), &0.into()), "{status}");
    assert_eq!((&status["state"], &status["parse"]["lost"]), (&"finished".into(), &0.into()), "{status}");
    assert_pace(data, shop, INTERVAL);
    for word in ["panicked", "dead letter", "lease"] {
        assert!(!run.stderr.contains(word), "`{word}` in\n{}", run.stderr);
    }
}

/// The disk is the one of the folder that this leads to; the rest is on the system's.
fn elsewhere(data: &TempData, disk: &SmallDisk, name: &str) {
    std::fs::create_dir_all(disk.data().file(name)).expect("a folder");
    std::os::unix::fs::symlink(disk.data().file(name), data.file(name)).expect("a link");
}

fn fill_and_free(name: &str, told: &str, over: &str) {
    let (data, disk) = (TempData::new(), SmallDisk::new(64 * 1024));
    elsewhere(&data, &disk, name);
    let (shops, site) = open(&data);
    let shop = &shops.all()[0];
    let mut running = under_way(crawl(&data, &site), shop);
    disk.fill(0);
    assert_waits(&mut running, shop, told);
    disk.free();
    let run = running.finish().expect_code(0);
    assert_eq!(run.stderr.matches(over).count(), 1, "{}", run.stderr);
    assert_as_if_nothing_had_been(&data, shop, &run);
}

#[test]
fn l4_a_full_disk_of_pages_holds_the_crawl_up_and_costs_no_page() {
    with_mounts("full_disk::l4_a_full_disk_of_pages_holds_the_crawl_up_and_costs_no_page", || {
        fill_and_free(
            "pages",
            "pages can't be kept, and nothing more is asked for",
            "pages can be kept again",
        );
    });
}

#[test]
fn l4_a_full_disk_of_items_holds_the_crawl_up_and_costs_no_item() {
    with_mounts("full_disk::l4_a_full_disk_of_items_holds_the_crawl_up_and_costs_no_item", || {
        fill_and_free(
            "items",
            "items can't be kept, and nothing more is asked for",
            "items can be kept again",
        );
    });
}

/// Everything on one small disk.
fn on_one_disk(spare: u64) {
    let disk = SmallDisk::new(64 * 1024);
    let data = disk.data();
    let (shops, site) = open(data);
    let shop = &shops.all()[0];
    let mut running = under_way(crawl(data, &site), shop);
    disk.fill(spare);
    running.wait_for_stderr("no space left");
    std::thread::sleep(Duration::from_secs(1));
    let asked = shop.arrivals().len();
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(shop.arrivals().len(), asked, "requests though nothing can be kept\n{}", running.stderr());
    disk.free();
    let run = running.finish().expect_code(0);
    for (begins, ends) in
        [("nothing more can be asked for", "answers again"), ("can't be kept", "be kept again")]
    {
        let times = |line: &str| run.stderr.matches(line).count();
        assert_eq!(times(begins), times(ends), "{}", run.stderr);
        assert!(times(begins) < 4, "{}", run.stderr);
    }
    assert_as_if_nothing_had_been(data, shop, &run);
}

#[test]
fn l4_a_full_disk_of_everything_holds_the_crawl_up_and_costs_nothing() {
    with_mounts("full_disk::l4_a_full_disk_of_everything_holds_the_crawl_up_and_costs_nothing", || {
        on_one_disk(0);
        on_one_disk(100);
    });
}

#[test]
fn l4_a_crawl_that_ends_on_a_full_disk_gives_its_pages_back_and_the_next_one_goes_on() {
    with_mounts(
        "full_disk::l4_a_crawl_that_ends_on_a_full_disk_gives_its_pages_back_and_the_next_one_goes_on",
        || {
            let (data, disk) = (TempData::new(), SmallDisk::new(64 * 1024));
            elsewhere(&data, &disk, "pages");
            let (shops, site) = open(&data);
            let shop = &shops.all()[0];
            let under_way = under_way(crawl(&data, &site).args(["--deadline", "4s"]), shop);
            disk.fill(0);
            let run = under_way.finish().expect_code(3);
            for line in
                ["ended early: the deadline is over", "left as they were when they could not be ended"]
            {
                assert!(run.stderr.contains(line), "no `{line}` in\n{}", run.stderr);
            }
            let left = status(&data);
            assert_eq!(
                (&left["download"]["lost"], &left["download"]["leased"]),
                (&0.into(), &0.into()),
                "{left}"
            );
            let running = crawl(&data, &site).start();
            eventually("a page in vain", || running.stderr().contains("pages can't be kept").then_some(()));
            running.interrupt();
            running.finish().expect_code(130);
            disk.free();
            crawl(&data, &site).run().expect_code(0);
            assert_all_items(&data, shop);
            assert_pages_readable(&data);
            let status = status(&data);
            assert_eq!((&status["download"]["lost"], &status["dead"]), (&0.into(), &0.into()), "{status}");
            assert_pace(&data, shop, INTERVAL);
        },
    );
}

#[test]
fn a_crawl_that_starts_on_a_full_disk_says_so_and_leaves_what_is_there() {
    with_mounts("full_disk::a_crawl_that_starts_on_a_full_disk_says_so_and_leaves_what_is_there", || {
        let disk = SmallDisk::new(64 * 1024);
        let data = disk.data();
        let (shops, site) = open(data);
        disk.fill(0);
        let run = crawl(data, &site).run().expect_code(1);
        let told = "frontier.db: no space left to write; free some space (";
        assert!(run.stderr.contains(told), "no `{told}` in\n{}", run.stderr);
        assert_eq!(shops.all()[0].arrivals().len(), 0);
        disk.free();
        crawl(data, &site).run().expect_code(0);
        assert_all_items(data, &shops.all()[0]);
        let items = data.read("items/full.jsonl");
        disk.fill(0);
        for verb in [crawl(data, &site), Paced::new(["status"]).data(data)] {
            let run = verb.run().expect_code(1);
            assert!(run.stderr.contains(told), "no `{told}` in\n{}", run.stderr);
        }
        assert_eq!(data.read("items/full.jsonl"), items);
        disk.free();
        assert_eq!(status(data)["state"], "finished");
    });
}

#[test]
fn l4_a_deadline_ends_a_crawl_on_a_full_disk_though_nobody_can_note_it() {
    with_mounts("full_disk::l4_a_deadline_ends_a_crawl_on_a_full_disk_though_nobody_can_note_it", || {
        let disk = SmallDisk::new(64 * 1024);
        let data = disk.data();
        let (shops, site) = open(data);
        let shop = &shops.all()[0];
        let under_way = under_way(crawl(data, &site).args(["--deadline", "4s"]), shop);
        disk.fill(0);
        let run = under_way.finish().expect_code(3);
        assert!(run.stderr.contains("ended early: the deadline is over"), "{}", run.stderr);
        disk.free();
        let left = status(data);
        crawl(data, &site).run().expect_code(0);
        assert_all_items(data, shop);
        assert_pages_readable(data);
        let status = status(data);
        assert_eq!((&status["state"], &status["dead"]), (&"finished".into(), &0.into()), "{status}");
        assert!(
            repeats(&shop.arrivals()) as u64 <= left["download"]["leased"].as_u64().unwrap_or(0),
            "{left}"
        );
        assert_pace(data, shop, INTERVAL);
    });
}
