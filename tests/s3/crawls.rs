//! Whole crawls with their pages in a bucket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::server::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(20);

fn paced(words: &[&str], s3: &S3, data: &TempData) -> Paced {
    let paced = Paced::new(words).data(data).arg("--pages").arg(format!("s3://{BUCKET}/crawl"));
    s3.variables().into_iter().fold(paced, |paced, (name, value)| paced.env(name, value))
}

fn shop(data: &TempData, plan: ShopPlan) -> (Shops, PathBuf) {
    let shops = serve([plan]).expect("a shop");
    let site = data.write("shop.toml", &shops.all()[0].site_toml(INTERVAL));
    (shops, site)
}

/// The titles of all items, sorted; `name` is their file's.
fn titles(data: &TempData, name: &str) -> Vec<String> {
    let file: &Path = &data.file("items").join(format!("{name}.jsonl"));
    let items =
        paced::internals::sink::latest(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    let title = |item| {
        let item: Value = serde_json::to_value(item).expect("an item is JSON");
        item["fields"]["title"].as_str().unwrap_or_default().to_owned()
    };
    let mut titles: Vec<String> = items.into_values().map(title).collect();
    titles.sort();
    titles
}

fn true_titles(shop: &Shop) -> Vec<String> {
    let mut titles: Vec<String> =
        (1..=shop.plan.products).map(|n| shop.plan.truth(n).title.clone()).collect();
    titles.sort();
    titles
}

#[test]
fn a_crawl_into_a_bucket_has_all_items_and_its_proof_of_pace() {
    let Some(server) = Server::start() else { return };
    let (s3, data) = (&server.s3, TempData::new());
    let (shops, site) = shop(&data, ShopPlan::new("bucket", 60));
    let shop = &shops.all()[0];
    let site = site.to_str().expect("text");
    let loud = "paced=debug,object_store=trace,reqwest=trace,hyper=trace,hyper_util=trace";
    let run = paced(&["crawl", site], s3, &data).env("RUST_LOG", loud).run().expect_code(0);
    assert!(run.stderr.contains("starting new connection"), "the log is loud: {}", run.stderr);
    assert!(!run.stderr.contains(&s3.secret), "the secret is in the log");
    assert_eq!(titles(&data, "bucket"), true_titles(shop));
    assert!(!data.file("pages").exists(), "nothing is kept beside the bucket");
    let requests = shop.arrivals().len();
    let audit = paced(&["audit", "bucket", "--json"], s3, &data).run().expect_code(0);
    let report: Value = serde_json::from_str(&audit.stdout).expect("JSON");
    assert_eq!(
        (report["starts"].as_u64(), report["early"].as_u64()),
        (Some(requests as u64), Some(0)),
        "{report}"
    );
    let status = paced(&["status", "--json"], s3, &data).run().expect_code(0);
    let status: Value = serde_json::from_str(&status.stdout).expect("JSON");
    assert_eq!((status["finished"].as_bool(), status["dead"].as_u64()), (Some(true), Some(0)), "{status}");
    let objects = s3.count("PUT", false);
    assert!(objects < requests / 2, "{objects} objects for {requests} requests");
    // What is in the handover isn't fetched back, and nothing is asked for a page at a time.
    assert!(s3.count("HEAD", false) == 0, "{:?}", s3.requests());
}

#[test]
fn one_process_downloads_and_another_parses_with_nothing_shared_but_frontier_and_bucket() {
    let Some(server) = Server::start() else { return };
    let (s3, here, there) = (&server.s3, TempData::new(), TempData::new());
    let (shops, site) = shop(&here, ShopPlan::new("split", 60));
    let frontier = format!("sqlite:{}", here.file("frontier.db").display());
    let work = |role: &str, data: &TempData| {
        let words = ["work", "--until-empty", "--frontier", &frontier, "--role", role, "--name", role];
        paced(&words, s3, data).start()
    };
    paced(&["seed", site.to_str().expect("text"), "--frontier", &frontier], s3, &here).run().expect_code(0);
    let (download, parse) = (work("download", &here), work("parse", &there));
    let (download, parse) = (download.finish().expect_code(0), parse.finish().expect_code(0));
    assert_eq!(titles(&there, "split-parse"), true_titles(&shops.all()[0]), "{}", parse.stderr);
    for (data, log) in [(&here, &download), (&there, &parse)] {
        assert!(!data.file("pages").exists(), "{}", log.stderr);
    }
    // Each page was fetched back by the one who parsed it: in one request, and no more.
    let (read, kept) = (s3.count("GET", false), shops.all()[0].arrivals().len());
    assert!((61..=kept).contains(&read), "{read} of {kept} pages read: {:?}", s3.requests());
    let writers = s3.requests().into_iter().filter(|(method, _)| method == "PUT");
    assert!(writers.count() > 0, "{:?}", s3.requests());
}

#[test]
fn l4_pages_that_a_killed_process_kept_are_parsed_by_the_next_one() {
    let Some(server) = Server::start() else { return };
    let (s3, data) = (&server.s3, TempData::new());
    let (shops, site) = shop(&data, ShopPlan::new("killed", 60));
    let shop = &shops.all()[0];
    let site = site.to_str().expect("text");
    for objects in [2, 4] {
        let running = paced(&["crawl", site], s3, &data).start();
        eventually("objects", || (s3.count("PUT", false) >= objects).then_some(()));
        running.kill();
        running.finish();
    }
    paced(&["crawl", site], s3, &data).run().expect_code(0);
    assert_eq!(titles(&data, "killed"), true_titles(shop));
    let audit = paced(&["audit", "killed", "--json"], s3, &data).run().expect_code(0);
    let report: Value = serde_json::from_str(&audit.stdout).expect("JSON");
    assert_eq!(report["early"].as_u64(), Some(0), "{report}");
}

#[test]
fn the_next_run_asks_whether_pages_changed_while_their_bodies_are_in_the_bucket() {
    let Some(server) = Server::start() else { return };
    let (s3, data) = (&server.s3, TempData::new());
    let links: Vec<String> = (0..12).map(|n| format!("<a href=\"/p/{n}\">{n}</a>")).collect();
    let mut site = TestSite::builder().reply("/", Reply::html(links.concat()).header("etag", "\"v1\""));
    for n in 0..12 {
        site = site.reply(&format!("/p/{n}"), Reply::html(format!("<h1>{n}</h1>")).header("etag", "\"v1\""));
    }
    let same = |request: &Request| request.header("if-none-match").map(|_| Reply::status(304));
    let site = site.faults(same).serve();
    let rules = "[[page]]\nname = \"front\"\nmatch = \"/\"\nfollow = \"*\"\n\n\
                 [[page]]\nname = \"thing\"\nmatch = \"/p/*\"\nitem = true\n  [page.fields]\n  title = \"h1\"\n";
    let file = data.write("shop.toml", &(site.toml("shop", INTERVAL) + rules));
    let file = file.to_str().expect("text");
    let count = |status: u16| site.arrivals().iter().filter(|arrival| arrival.status == status).count();
    paced(&["crawl", file], s3, &data).run().expect_code(0);
    assert_eq!(count(304), 0);
    let listed = s3.count("GET", true);
    paced(&["crawl", file], s3, &data).run().expect_code(0);
    assert!(count(304) > 0, "{:?}", site.arrivals());
    let listings = s3.count("GET", true) - listed;
    assert!(listings <= 1 + s3.count("PUT", false), "{listings} listings");
}

#[test]
fn stored_pages_are_tried_and_parsed_again_from_the_bucket() {
    let Some(server) = Server::start() else { return };
    let (s3, data) = (&server.s3, TempData::new());
    let (shops, site) = shop(&data, ShopPlan::new("again", 20));
    let name = site.to_str().expect("text");
    paced(&["crawl", name], s3, &data).run().expect_code(0);
    let requests = shops.all()[0].arrivals().len();
    let counts = |words: &[&str]| -> Value {
        let run = paced(words, s3, &data).run().expect_code(0);
        serde_json::from_str(run.stdout.lines().next_back().unwrap_or_default()).expect("JSON")
    };
    let before = counts(&["reparse", name, "--diff", "--json"]);
    assert_eq!((&before["same"], &before["changed"], &before["failed"]), (&20.into(), &0.into(), &0.into()));
    let rules = data.read("shop.toml").replacen("[page.fields]", "[page.fields]\n  heading = \"h1\"", 1);
    data.write("shop.toml", &rules);
    assert_eq!(counts(&["reparse", name, "--json"])["changed"], 20);
    let items = paced::internals::sink::latest(&data.file("items/again.jsonl")).expect("items");
    assert!(items.len() == 20 && items.values().all(|item| item.fields.contains_key("heading")));
    let url = items.values().next().map(|item| item.url.clone()).unwrap_or_default();
    let tried = counts(&["try", &url, "--stored", "--json"]);
    assert_eq!((&tried["source"], &tried["taken"]), (&"stored".into(), &true.into()), "{tried}");
    assert_eq!(shops.all()[0].arrivals().len(), requests, "nothing was asked for");
}
