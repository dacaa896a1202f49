//! Several processes on one data folder: two crawls, and every verb beside a running crawl.

use std::path::PathBuf;
use std::sync::Barrier;
use std::time::Duration;

use paced::internals::frontier::Frontier;

use crate::books::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(50);

fn plan(name: &str) -> ShopPlan {
    ShopPlan::new(name, 60).per_page(10).latency(Latency::fixed(Duration::from_millis(120)))
}

fn open(data: &TempData, names: &[&str]) -> (Shops, Vec<PathBuf>) {
    let shops = serve(names.iter().map(|name| plan(name))).expect("shops");
    let file = |shop: &Shop| data.write(&format!("{}.toml", shop.plan.name), &shop.site_toml(INTERVAL));
    let files = shops.all().iter().map(file).collect();
    (shops, files)
}

#[test]
fn i3_two_crawls_of_one_site_on_one_folder_fetch_no_page_twice() {
    let data = TempData::new();
    let (shops, files) = open(&data, &["one"]);
    let shop = &shops.all()[0];
    let crawls = [crawl(&data, &files[0]).start(), crawl(&data, &files[0]).start()];
    for run in crawls.map(Running::finish) {
        let run = run.expect_code(0);
        assert_no_lock_trouble(&run.stderr);
    }
    assert_eq!(repeats(&shop.arrivals()), 0, "{:?}", answered(&shop.arrivals()));
    let connections = shop.arrivals().iter().map(|arrival| arrival.connection).max();
    assert!(connections > Some(1), "both processes asked");
    assert_all_items(&data, shop);
    let lines = data.read("items/one.jsonl").lines().count();
    assert_eq!(lines, shop.plan.products as usize, "each item is written once");
    assert_pace(&data, shop, INTERVAL);
    assert_pages_readable(&data);
    assert_eq!(status(&data)["run"], 1);
}

#[test]
fn two_crawls_of_different_sites_on_one_folder_mind_their_own() {
    let data = TempData::new();
    let (shops, files) = open(&data, &["left", "right"]);
    let crawls = [crawl(&data, &files[0]).start(), crawl(&data, &files[1]).start()];
    for (run, (own, other)) in
        crawls.map(Running::finish).into_iter().zip([("left", "right"), ("right", "left")])
    {
        let run = run.expect_code(0);
        assert_no_lock_trouble(&run.stderr);
        assert!(run.stderr.contains(&format!("site={own}")), "{}", run.stderr);
        assert!(!run.stderr.contains(&format!("site={other}")), "{}", run.stderr);
    }
    for shop in shops.all() {
        assert_eq!(repeats(&shop.arrivals()), 0, "{:?}", answered(&shop.arrivals()));
        assert_all_items(&data, shop);
        assert_pace(&data, shop, INTERVAL);
    }
    assert_pages_readable(&data);
}

fn assert_no_lock_trouble(log: &str) {
    for word in ["locked", "busy", "could not", "can't", "lease was lost"] {
        assert!(!log.contains(word), "`{word}` in\n{log}");
    }
}

#[test]
fn every_verb_answers_right_beside_a_running_crawl() {
    let data = TempData::new();
    let (shops, files) = open(&data, &["beside"]);
    let shop = &shops.all()[0];
    let mut running = crawl(&data, &files[0]).start();
    running.wait_for_stderr("run begun");
    eventually("pages", || (shop.arrivals().len() > 5).then_some(()));
    let (mut looks, mut done, mut starts) = (0, 0, 0);
    while !running.ended() {
        let site = status(&data);
        assert_eq!(site["site"], "beside");
        let now_done = site["done"].as_u64().expect("a number");
        assert!(now_done >= done, "{now_done} done, {done} before");
        let audit = Paced::new(["audit", "beside", "--json"]).data(&data).run().expect_code(0);
        let unit = json_lines_of(&audit.stdout).remove(0);
        let now_starts = unit["starts"].as_u64().expect("a number");
        assert!(now_starts >= starts && unit["early"] == 0, "{unit}, {starts} before");
        let check = Paced::new(["check", "--json"]).arg(&files[0]).data(&data).run().expect_code(0);
        assert_eq!(json_lines_of(&check.stdout)[0]["ok"], true);
        let url = shop.url("/nowhere");
        let put = Paced::new(["put", "beside", "--json", &url]).data(&data).run();
        assert!(put.stdout.contains("no page rule"), "{put:?}");
        for log in [audit.stderr, check.stderr, put.stderr] {
            assert_no_lock_trouble(&log);
        }
        (looks, done, starts) = (looks + 1, now_done, now_starts);
    }
    let run = running.finish().expect_code(0);
    assert_no_lock_trouble(&run.stderr);
    assert!(looks > 2, "{looks} looks");
    assert_eq!(repeats(&shop.arrivals()), 0, "{:?}", answered(&shop.arrivals()));
    assert_all_items(&data, shop);
}

#[test]
fn a_page_put_beside_a_running_crawl_is_fetched_by_it() {
    let data = TempData::new();
    let links: Vec<String> = (0..120).map(|n| format!("<a href=\"/p/{n}\">{n}</a>")).collect();
    let mut site = TestSite::builder().page("/", links.concat()).page("/hidden/1", "<h1>Hidden</h1>");
    for n in 0..120 {
        site = site.page(&format!("/p/{n}"), format!("<h1>Page {n}</h1>"));
    }
    let site = site.serve();
    let rules = "[[page]]\nname = \"front\"\nmatch = \"/\"\nfollow = [\"a\"]\n\n\
                 [[page]]\nname = \"page\"\nmatch = [\"/p/*\", \"/hidden/*\"]\nitem = true\n  \
                 [page.fields]\n  title = \"h1\"\n";
    let file = data.write("put.toml", &(site.toml("put", INTERVAL) + rules));
    let running = crawl(&data, &file).start();
    eventually("a page", || (site.count("/p/1") == 1).then_some(()));
    let url = site.url("/hidden/1");
    let put = Paced::new(["put", "put", &url]).data(&data).run().expect_code(0);
    assert_eq!(put.stdout, format!("created\t{url}\n"));
    running.finish().expect_code(0);
    assert_eq!(site.count("/hidden/1"), 1);
    let asked: Vec<String> = site.requests().into_iter().map(|request| request.path).collect();
    let place = asked.iter().position(|path| path == "/hidden/1");
    assert!(place < Some(asked.len() - 5), "an operator's page goes before links: {asked:?}");
    assert!(data.read("items/put.jsonl").contains("\"Hidden\""));
}

#[test]
fn fresh_is_refused_while_another_process_crawls_and_names_it() {
    let data = TempData::new();
    let (shops, files) = open(&data, &["fresh"]);
    let shop = &shops.all()[0];
    let running = crawl(&data, &files[0]).start();
    eventually("a page", || (shop.arrivals().len() > 3).then_some(()));
    let fresh = || crawl(&data, &files[0]).arg("--fresh");
    let refused = fresh().run().expect_code(1);
    let pid = format!("process {} crawls fresh right now", running.pid());
    assert!(refused.stderr.contains(&pid), "no `{pid}` in\n{}", refused.stderr);
    running.kill();
    running.finish();
    let run = fresh().run().expect_code(0);
    assert!(run.stderr.contains("run begun site=fresh run=2"), "{}", run.stderr);
    assert_all_items(&data, shop);
    let site = status(&data);
    assert_eq!((&site["run"], &site["state"]), (&2.into(), &"finished".into()), "{site}");
}

#[test]
fn all_who_make_the_same_frontier_at_once_get_it() {
    for round in 0..60 {
        let data = TempData::new();
        let url = format!("sqlite:{}", data.file("frontier.db").display());
        let together = Barrier::new(8);
        let open = || {
            together.wait();
            Frontier::open(&url).map(drop)
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            for thread in threads {
                let opened = thread.join().expect("a thread");
                assert!(opened.is_ok(), "round {round}: {opened:?}");
            }
        });
    }
}
