//! `kill -9` while much is put in at once, and while another process works on the same site.

use std::path::PathBuf;
use std::time::Duration;

use crate::books::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(20);

fn open(data: &TempData, products: u32) -> (Shops, PathBuf) {
    let plan = ShopPlan::new("phase", products).latency(Latency::fixed(Duration::from_millis(100)));
    let shops = serve([plan]).expect("a shop");
    let site = data.write("phase.toml", &shops.all()[0].site_toml(INTERVAL));
    (shops, site)
}

/// The number at a JSON pointer of the only site's status.
fn count(data: &TempData, at: &str) -> u64 {
    status(data).pointer(at).and_then(serde_json::Value::as_u64).expect("a number")
}

#[test]
fn i14_a_feed_killed_half_way_is_put_again_and_makes_no_page_twice() {
    const PAGES: usize = 40_000;
    let data = TempData::new();
    let (shops, site) = open(&data, 5);
    Paced::new(["seed"]).arg(&site).data(&data).run().expect_code(0);
    let url = |n: usize| shops.all()[0].url(&format!("/product/{n}")) + "\n";
    let feed: String = (1..=PAGES).map(url).collect();
    let put = || Paced::new(["put", "phase", "-"]).data(&data).stdin(&feed);
    let mut running = put().start();
    eventually("some of it", || (count(&data, "/download/waiting") > 500).then_some(()));
    assert!(!running.ended(), "it was over before it was killed");
    running.kill();
    running.finish();
    let taken_in = count(&data, "/download/created");
    assert!((500..PAGES as u64).contains(&taken_in), "{taken_in}");
    put().run().expect_code(0);
    // The seed besides.
    assert_eq!(count(&data, "/download/created"), PAGES as u64 + 1);
    assert_eq!(count(&data, "/download/waiting"), PAGES as u64 + 1);
}

#[test]
fn l4_a_crawl_killed_while_it_puts_a_long_list_of_seeds_puts_all_of_them_once() {
    const SEEDS: u32 = 200;
    let data = TempData::new();
    let (shops, site) = open(&data, SEEDS);
    let shop = &shops.all()[0];
    let seeds: Vec<String> =
        (1..=SEEDS).map(|n| format!("\"{}\"", shop.url(&format!("/product/{n}")))).collect();
    let text = std::fs::read_to_string(&site).expect("the site file");
    let begin = text.find("seeds = [").expect("seeds");
    let end = begin + text[begin..].find(']').expect("an end");
    let text = format!("{}seeds = [{}{}", &text[..begin], seeds.join(", "), &text[end..]);
    std::fs::write(&site, text).expect("the site file");
    let (mut in_flight, mut dice) = (0, fastrand::Rng::new());
    for _ in 0..5 {
        let running = crawl(&data, &site).start();
        eventually("a frontier", || data.file("frontier.db").exists().then_some(()));
        std::thread::sleep(Duration::from_millis(dice.u64(0..60)));
        running.kill();
        running.finish();
        let run = Paced::new(["status", "--json"]).data(&data).run();
        let sites = json_lines_of(&run.stdout);
        in_flight += sites.first().map_or(0, |site| site["download"]["leased"].as_u64().expect("a number"));
    }
    crawl(&data, &site).run().expect_code(0);
    assert_all_items(&data, shop);
    assert!(repeats(&shop.arrivals()) as u64 <= in_flight, "{:?}", answered(&shop.arrivals()));
    let status = status(&data);
    assert_eq!(
        (&status["state"], &status["run"], &status["dead"]),
        (&"finished".into(), &1.into(), &0.into())
    );
    assert_pages_readable(&data);
}

#[test]
fn l4_c10_one_of_two_crawls_is_killed_and_the_other_does_what_it_had() {
    let data = TempData::new();
    let (shops, site) = open(&data, 150);
    let shop = &shops.all()[0];
    let (one, other) = (crawl(&data, &site).start(), crawl(&data, &site).start());
    eventually("requests of both", || {
        let arrivals = shop.arrivals();
        let connections: std::collections::BTreeSet<_> = arrivals.iter().map(|a| a.connection).collect();
        (arrivals.len() > 40 && connections.len() > 1).then_some(())
    });
    one.kill();
    one.finish();
    let leased = count(&data, "/download/leased");
    let run = other.finish().expect_code(0);
    assert!(repeats(&shop.arrivals()) as u64 <= leased, "{leased} leased\n{}", run.stderr);
    assert_all_items(&data, shop);
    assert_pace(&data, shop, INTERVAL);
    let status = status(&data);
    assert_eq!((&status["state"], &status["dead"]), (&"finished".into(), &0.into()), "{}", run.stderr);
    // The one that was killed left its segment: the next that starts looks after it.
    crawl(&data, &site).run().expect_code(0);
    assert_pages_readable(&data);
}

#[test]
fn l4_a_log_of_the_frontier_that_is_lost_takes_the_last_steps_back_and_no_more() {
    let data = TempData::new();
    let (shops, site) = open(&data, 60);
    let shop = &shops.all()[0];
    let running = crawl(&data, &site).start();
    eventually("pages", || (shop.arrivals().len() > 30).then_some(()));
    running.kill();
    running.finish();
    for file in ["frontier.db-wal", "frontier.db-shm"] {
        std::fs::remove_file(data.file(file)).expect("left by the killed process");
    }
    let run = crawl(&data, &site).run().expect_code(0);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    assert_all_items(&data, shop);
    assert_eq!(status(&data)["state"], "finished");
    assert_pages_readable(&data);
}
