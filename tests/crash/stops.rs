//! Ctrl-C and SIGTERM: the first drains, the second leaves at once, and the next start goes on either way.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::books::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(50);

fn open(latency: u64, data: &TempData) -> (Shops, PathBuf) {
    let plan = ShopPlan::new("stop", 40).per_page(10).latency(Latency::fixed(Duration::from_millis(latency)));
    let shops = serve([plan]).expect("a shop");
    let site = data.write("stop.toml", &shops.all()[0].site_toml(INTERVAL));
    (shops, site)
}

/// A crawl that has sent a few requests.
fn under_way(data: &TempData, site: &Path, shop: &Shop) -> Running {
    let running = crawl(data, site).start();
    let before = shop.arrivals().len();
    eventually("requests", || (shop.arrivals().len() >= before + 8).then_some(()));
    running
}

#[test]
fn a_signal_drains_what_runs_and_the_next_start_goes_on() {
    for signal in [Signal::INT, Signal::TERM] {
        let data = TempData::new();
        let (shops, site) = open(250, &data);
        let shop = &shops.all()[0];
        let running = under_way(&data, &site, shop);
        running.signal(signal);
        let run = running.finish().expect_code(130);
        for line in ["stopping: what runs is finished", "stopped; the next start goes on here", "crawled"] {
            assert!(run.stderr.contains(line), "{signal:?}: no `{line}` in\n{}", run.stderr);
        }
        let stopped = status(&data);
        assert_eq!(
            (&stopped["running"], &stopped["download"]["leased"]),
            (&0.into(), &0.into()),
            "{stopped}"
        );
        assert_eq!(stopped["parse"]["leased"], 0, "{stopped}");
        assert_eq!(stopped["download"]["lost"], 0, "{stopped}");
        assert!(stopped["waiting"].as_u64() > Some(0), "{stopped}");
        assert_pages_readable(&data);
        crawl(&data, &site).run().expect_code(0);
        assert_eq!(repeats(&shop.arrivals()), 0, "{:?}", answered(&shop.arrivals()));
        assert_all_items(&data, shop);
        assert_pace(&data, shop, INTERVAL);
    }
}

#[test]
fn a_second_signal_leaves_at_once_and_the_next_start_goes_on() {
    let (data, site) = in_three_tries(|| {
        let data = TempData::new();
        let (shops, site) = open(5_000, &data);
        let shop = &shops.all()[0];
        let mut running = crawl(&data, &site).start();
        eventually("a request", || shop.arrivals().first().cloned());
        running.interrupt();
        running.wait_for_stderr("stopping");
        let stopping = Instant::now();
        eventually("an end by a second signal", || {
            // One that comes right after the first counts as the first.
            running.interrupt();
            std::thread::sleep(Duration::from_millis(50));
            running.ended().then_some(())
        });
        let took = stopping.elapsed();
        let run = running.finish().expect_code(130);
        assert!(run.stderr.contains("left at once"), "{}", run.stderr);
        bound(took <= Duration::from_secs(1), format_args!("it left after {took:?}"))?;
        Ok((data, site))
    });

    let plan = ShopPlan { port: shop_port(&site), ..ShopPlan::new("stop", 40) }.per_page(10);
    let shops = serve([plan]).expect("the shop opens again, quicker now");
    crawl(&data, &site).run().expect_code(0);
    assert_all_items(&data, &shops.all()[0]);
    assert_pages_readable(&data);
}

fn shop_port(site: &Path) -> u16 {
    let text = std::fs::read_to_string(site).expect("the site file");
    let port = text.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(['/', '"']).next());
    port.and_then(|port| port.parse().ok()).expect("a port in the site file")
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let data = TempData::new();
    let (shops, site) = open(250, &data);
    let shop = &shops.all()[0];
    let running = under_way(&data, &site, shop);
    running.terminate();
    running.interrupt();
    let run = running.finish().expect_code(130);
    assert!(run.stderr.contains("stopped; the next start goes on here"), "{}", run.stderr);
    assert_eq!(status(&data)["download"]["leased"], 0);
}

#[test]
fn l4_a_kill_during_the_drain_loses_nothing() {
    let data = TempData::new();
    let (shops, site) = open(400, &data);
    let shop = &shops.all()[0];
    let mut running = under_way(&data, &site, shop);
    running.interrupt();
    running.wait_for_stderr("stopping");
    running.kill();
    assert_eq!(running.finish().code, None);
    let left = status(&data);
    let leased = left["download"]["leased"].as_u64().expect("a number");
    assert!(leased > 0, "{left}");
    crawl(&data, &site).run().expect_code(0);
    assert!(repeats(&shop.arrivals()) as u64 <= leased, "{:?}", answered(&shop.arrivals()));
    assert_all_items(&data, shop);
    assert_pages_readable(&data);
}

#[test]
fn a_signal_while_it_starts_ends_it_and_the_next_start_does_everything() {
    let data = TempData::new();
    let (shops, site) = open(10, &data);
    for wait in [0, 5, 10, 20, 40, 60] {
        let running = crawl(&data, &site).start();
        std::thread::sleep(Duration::from_millis(wait));
        running.terminate();
        let run = running.finish();
        // Before it listens to signals the system ends it.
        assert!(matches!(run.code, None | Some(130)), "{:?}: {}", run.code, run.stderr);
    }
    crawl(&data, &site).run().expect_code(0);
    assert_all_items(&data, &shops.all()[0]);
    assert_eq!(repeats(&shops.all()[0].arrivals()), 0);
}
