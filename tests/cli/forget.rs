//! `forget`: a site goes, its pace stays.

use crate::expected::*;
use crate::support::*;

#[test]
fn a_site_is_forgotten_with_its_items_and_may_be_crawled_anew() {
    let (data, _site, file) = crawled();
    data.write("items/shop-two.jsonl", "");
    let run = Paced::new(["forget", "shop", "--items"]).data(&data).run().expect_code(0);
    let items = data.file("items/shop.jsonl");
    assert!(run.stdout.starts_with("shop: forgotten; its stored pages stay in the archive\n"), "{run:?}");
    assert!(run.stdout.contains(&format!("{}: removed", items.display())) && !items.exists(), "{run:?}");
    let run = Paced::new(["status", "shop"]).data(&data).run().expect_code(2);
    assert!(run.stderr.contains("it knows none"), "{run:?}");
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    // Its robots.txt is read anew: what it asks of the pace went with the site.
    let shop = status(&data);
    assert_eq!(
        (&shop["run"], &shop["done"], &shop["state"]),
        (&1.into(), &5.into(), &"finished".into()),
        "{shop}"
    );
    let audit = Paced::new(["audit", "shop", "--json"]).data(&data).run().expect_code(0);
    assert_eq!(json_lines_of(&audit.stdout)[0]["early"], 0, "{}", audit.stdout);
}

#[test]
fn its_stored_pages_go_where_that_is_asked_for_and_those_of_others_stay() {
    let (data, _site, file) = crawled();
    let other = TestSite::builder().page("/", "<p>nothing</p>").serve();
    let others = other.toml("other", std::time::Duration::from_millis(10)) + RULES;
    let others = data.write("other.toml", &others);
    Paced::new(["crawl", "--fresh"]).arg(&file).arg(&others).data(&data).run().expect_code(0);
    let audited = |site: &str| {
        let audit = Paced::new(["audit", site, "--json"]).data(&data).run();
        json_lines_of(&audit.stdout).first().map(|line| line["starts"].clone())
    };
    let kept = audited("other");
    assert!(kept.is_some() && audited("shop").is_some());
    let run = Paced::new(["forget", "shop", "--stored-pages", "--yes"]).data(&data).run().expect_code(0);
    assert!(
        run.stdout.ends_with(" stored requests erased; segments removed: 1\nshop: forgotten\n"),
        "{run:?}"
    );
    assert_eq!((audited("shop"), audited("other")), (None, kept));
    let run = Paced::new(["forget", "shop", "--stored-pages", "--yes"]).data(&data).run().expect_code(2);
    assert!(run.stderr.contains("it knows other"), "{run:?}");
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
}

#[test]
fn stored_pages_that_a_renamed_site_needs_are_spared() {
    let (data, site, old) = crawled();
    let interval = std::time::Duration::from_millis(10);
    let new = data.write("store.toml", &(site.toml("store", interval) + RULES));
    Paced::new(["forget", "shop", "--rename-to"]).arg(&new).data(&data).run().expect_code(0);
    let run = Paced::new(["forget", "shop", "--stored-pages", "--yes"]).data(&data).run().expect_code(2);
    assert!(run.stderr.contains("there is no site `shop`"), "{run:?}");
    let starts = |site: &str| {
        let audit = Paced::new(["audit", site, "--json"]).data(&data).run().expect_code(0);
        json_lines_of(&audit.stdout)[0]["starts"].as_u64().expect("a number")
    };
    let before = starts("shop");
    let other = small_site();
    data.write("shop.toml", &(other.toml("shop", interval) + RULES));
    Paced::new(["crawl"]).arg(&old).data(&data).run().expect_code(0);
    assert!(starts("shop") > before);
    let run = Paced::new(["forget", "shop", "--stored-pages", "--yes"]).data(&data).run().expect_code(0);
    assert!(run.stdout.contains(" stored requests erased"), "{run:?}");
    assert_eq!(starts("shop"), before, "those of the host that is the store's by now");
}

#[test]
fn i11_a_block_is_not_forgotten_and_no_page_goes_before_it_is_over() {
    let data = TempData::new();
    let busy = Reply::status(429).header("Retry-After", "3600");
    let site = TestSite::builder().page("/", "<a href=\"/p/1\">1</a>").reply("/p/1", busy).serve();
    let file = data.write("shop.toml", &(site.toml("shop", std::time::Duration::from_millis(10)) + RULES));
    Paced::new(["crawl", "--give-up", "1s"]).arg(&file).data(&data).run().expect_code(3);
    let audit = || Paced::new(["audit", "shop", "--json"]).data(&data).run().expect_code(0).stdout;
    let before = json_lines_of(&audit())[0]["starts"].clone();
    let run = Paced::new(["forget", "shop", "--stored-pages", "--yes"]).data(&data).run().expect_code(1);
    let (_, wait) = run.stderr.split_once("for anything for another ").expect("how long");
    assert!(wait.starts_with("59.") || wait.starts_with("1 h,"), "{run:?}");
    assert_eq!((run.stdout.as_str(), &json_lines_of(&audit())[0]["starts"]), ("", &before));
}

#[test]
fn a_site_that_workers_of_all_sites_may_have_in_hand_is_not_forgotten() {
    let (data, _site, _file) = crawled();
    let mut working = Paced::new(["work"]).data(&data).start();
    working.wait_for_stderr("at work on");
    let run = Paced::new(["forget", "shop"]).data(&data).run();
    assert!(run.stderr.contains("site `shop` is being worked on by"), "{run:?}");
    working.signal(rustix::process::Signal::TERM);
    working.finish().expect_code(0);
}

#[test]
fn i1_it_waits_for_the_last_start_and_for_what_a_killed_crawl_had_in_hand() {
    let interval = std::time::Duration::from_secs(2);
    let data = TempData::new();
    let site = TestSite::builder().page("/", "<p>slow</p>").latency(Latency::fixed(interval * 5)).serve();
    let file = data.write("shop.toml", &(site.toml("shop", interval) + RULES));
    let running = Paced::new(["crawl"]).arg(&file).data(&data).start();
    eventually("a request", || (!site.arrivals().is_empty()).then_some(()));
    running.signal(rustix::process::Signal::KILL);
    running.finish();
    let last = std::time::Instant::now();
    Paced::new(["forget", "shop", "--yes"]).data(&data).run().expect_code(0);
    assert!(last.elapsed() + std::time::Duration::from_secs(1) >= interval, "{:?}", last.elapsed());
}

#[test]
fn items_of_a_site_whose_name_begins_in_the_same_way_stay() {
    let (data, site, _file) = crawled();
    let other = TestSite::builder().page("/", "<p>nothing</p>").serve();
    let file =
        data.write("shop-two.toml", &(other.toml("shop-two", std::time::Duration::from_millis(10)) + RULES));
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    data.write("items/shop-two.jsonl", "{}\n");
    let items = std::fs::read_to_string(data.file("items/shop.jsonl")).expect("its items");
    data.write("items/shop-worker.jsonl", &items);
    // No site of the frontier has that name any more, or yet.
    data.write("items/shop-three.jsonl", &items.replace("\"site\":\"shop\"", "\"site\":\"shop-three\""));
    data.write("items/shop-empty.jsonl", "");
    Paced::new(["forget", "shop", "--items", "--yes"]).data(&data).run().expect_code(0);
    for (name, stays) in [
        ("shop", false),
        ("shop-worker", false),
        ("shop-two", true),
        ("shop-three", true),
        ("shop-empty", true),
    ] {
        assert_eq!(data.file(&format!("items/{name}.jsonl")).exists(), stays, "{name}");
    }
    drop(site);
}

#[test]
fn a_site_that_is_being_crawled_is_not_forgotten() {
    let data = TempData::new();
    let site = small_site();
    let file = data.write("shop.toml", &(site.toml("shop", std::time::Duration::from_secs(2)) + RULES));
    let running = Paced::new(["crawl"]).arg(&file).data(&data).start();
    eventually("a request", || (!site.arrivals().is_empty()).then_some(()));
    let run = Paced::new(["forget", "shop", "--yes"]).data(&data).run().expect_code(1);
    assert!(
        run.stderr.contains("site `shop` is being worked on by") && run.stderr.contains("stop it first"),
        "{run:?}"
    );
    running.signal(rustix::process::Signal::INT);
    running.finish().expect_code(130);
    Paced::new(["forget", "shop", "--yes"]).data(&data).run().expect_code(0);
}
