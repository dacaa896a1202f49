//! The wall clock jumps an hour while a crawl runs: no start moves, no time that was asked for does, and the archive's dates
//! go on.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use paced::internals::archive::{Filter, scan};
use paced::internals::clock::{Timestamp, since_boot};

use crate::books::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(100);
const HOUR: i64 = 3_600_000;

fn open(data: &TempData, products: u32) -> (Shops, PathBuf, PathBuf) {
    let plan = ShopPlan::new("jumps", products).latency(Latency::fixed(Duration::from_millis(50)));
    let shops = serve([plan]).expect("a shop");
    let site = data.write("jumps.toml", &shops.all()[0].site_toml(INTERVAL));
    (shops, site, data.file("clock"))
}

fn wall() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(now.as_millis()).expect("a time")
}

#[test]
fn i1_a_wall_clock_that_jumps_an_hour_moves_no_start_and_no_date() {
    in_three_tries(an_hour_forth_and_back);
}

fn an_hour_forth_and_back() -> Result<(), String> {
    let data = TempData::new();
    let (shops, site, clock) = open(&data, 60);
    let shop = &shops.all()[0];
    let began = wall();
    let mut running = crawl(&data, &site).movable_clock(&clock).start();
    for shift in [HOUR, -HOUR, 0, -HOUR, HOUR] {
        let asked = shop.arrivals().len();
        eventually("some requests", || (running.ended() || shop.arrivals().len() > asked + 6).then_some(()));
        moved_clock::shift(&clock, shift);
    }
    running.finish().expect_code(0);
    assert_eq!(repeats(&shop.arrivals()), 0);
    assert_all_items(&data, shop);
    assert_pace(&data, shop, INTERVAL);
    let ended = wall() + 1;
    let records = scan(data.file("pages").as_path(), Filter::default()).expect("pages");
    let dates: Vec<i64> = records.map(|record| record.expect("a record").sent_at.as_millis()).collect();
    assert!(dates.len() >= 60, "{}", dates.len());
    for date in dates {
        assert!((began..=ended).contains(&date), "{date} is not between {began} and {ended}");
    }
    for line in json_lines(&data.file("items/jumps.jsonl")) {
        let at: Timestamp = line["fetched_at"].as_str().and_then(|at| at.parse().ok()).expect("a time");
        assert!((began..=ended).contains(&at.as_millis()), "{line}");
    }
    let stall = shop.gaps(INTERVAL).max;
    bound(stall <= 10 * INTERVAL, format_args!("it stood still for {stall:?}"))
}

#[test]
fn a_deadline_is_so_much_time_whatever_the_wall_clock_says() {
    for shift in [HOUR, -HOUR] {
        let data = TempData::new();
        let (shops, site, clock) = open(&data, 300);
        let shop = &shops.all()[0];
        let began = since_boot();
        let running = crawl(&data, &site).args(["--deadline", "4s"]).movable_clock(&clock).start();
        eventually("a request", || (!shop.arrivals().is_empty()).then_some(()));
        moved_clock::shift(&clock, shift);
        let run = running.finish().expect_code(3);
        assert!(run.stderr.contains("the deadline is over"), "{}", run.stderr);
        let took = since_boot().saturating_sub(began);
        assert!(took >= Duration::from_secs(4), "it ended after {took:?}");
        assert_pace(&data, shop, INTERVAL);
    }
}

#[test]
fn i12_a_page_put_for_a_time_is_fetched_then_by_the_time_that_all_processes_share() {
    for shift in [HOUR, -HOUR] {
        let data = TempData::new();
        let (shops, site, clock) = open(&data, 5);
        let shop = &shops.all()[0];
        crawl(&data, &site).run().expect_code(0);
        let (asked, at) = (shop.arrivals().len(), wall() + 4_000);
        moved_clock::shift(&clock, shift);
        let time = Timestamp::from_millis(at).to_string();
        let put = Paced::new(["put", "jumps", &shop.url("/product/1"), "--at", &time]);
        put.data(&data).movable_clock(&clock).run().expect_code(0);
        let worker = Paced::new(["work"]).data(&data).movable_clock(&clock).start();
        eventually("the page", || (shop.arrivals().len() > asked).then_some(()));
        assert!(wall() >= at - 1, "it came before its time, at a clock that is {shift} ms off");
        worker.terminate();
        worker.finish().expect_code(0);
    }
}
