//! Batches as scripts have them: put on any sites, waited for, and told by an exit code (N4, C11).

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::expected::*;
use crate::support::*;

fn file_of(data: &TempData, site: &TestSite, name: &str) -> PathBuf {
    data.write(&format!("{name}.toml"), &(site.toml(name, Duration::from_millis(10)) + RULES))
}

/// Two shops that were crawled; `/p/5` of the first is redirected to a page of the second, `/p/6` to one of its own.
fn two_shops() -> (TempData, [TestSite; 2], [PathBuf; 2]) {
    let (data, other) = (TempData::new(), small_site());
    let mut shop = TestSite::builder().page("/", "");
    for n in [1, 2, 3, 9] {
        shop = shop.page(&format!("/p/{n}"), format!("<h1>Thing {n}</h1>"));
    }
    let shop = shop.redirect("/p/5", 302, &other.url("/p/9")).redirect("/p/6", 302, "/p/9");
    let shop = shop.latency(Latency::fixed(Duration::from_millis(20))).serve();
    let files = [file_of(&data, &shop, "shop"), file_of(&data, &other, "other")];
    crawl(&data, &files);
    (data, [shop, other], files)
}

fn crawl(data: &TempData, files: &[PathBuf]) {
    Paced::new(["crawl"]).args(files).data(data).run().expect_code(0);
}

fn put(data: &TempData, name: &str, site: &TestSite, paths: &[&str], words: &[&str]) -> Paced {
    let urls: Vec<String> = paths.iter().map(|path| site.url(path)).collect();
    Paced::new(["put", name]).args(urls).args(words).data(data)
}

fn look(data: &TempData, words: &[&str]) -> Paced {
    Paced::new(["status", "--batch"]).args(words).data(data)
}

#[track_caller]
fn told(data: &TempData, code: i32) -> Value {
    let run = look(data, &["spring", "--json"]).run().expect_code(code);
    json_lines_of(&run.stdout).pop().expect("one object")
}

/// Pages that joined, are open, done, dead, excluded, dropped.
fn counts(told: &Value) -> [u64; 6] {
    ["joined", "open", "done", "dead", "excluded", "dropped"].map(|what| told[what].as_u64().expect(what))
}

#[test]
fn n4_a_batch_over_two_sites_is_waited_for_and_ends_with_0() {
    let (data, [shop, other], files) = two_shops();
    put(&data, "shop", &shop, &["/p/1", "/p/2"], &["--batch", "spring"]).run().expect_code(0);
    put(&data, "other", &other, &["/p/1"], &["--batch", "spring"]).run().expect_code(0);
    let run = look(&data, &["spring"]).run().expect_code(0);
    for said in [
        "batch `spring`: under way",
        "3 open, 0 done, 0 dead",
        "3 created, 0 coalesced",
        "on site     shop: 2 joined, 2 open",
        "on site     other: 1 joined, 1 open",
    ] {
        assert!(run.stdout.contains(said), "no `{said}` in\n{}", run.stdout);
    }
    let mut waiting = look(&data, &["spring", "--wait", "--deadline", "2m", "--json"]).start();
    waiting.wait_for_stderr("no process works on shop now; open pages of `spring` there: 2");
    crawl(&data, &files[..1]);
    assert!(!waiting.ended(), "a page of the other site is open");
    crawl(&data, &files[1..]);
    let run = waiting.finish().expect_code(0);
    let told = json_lines_of(&run.stdout).pop().expect("one object");
    assert_eq!(counts(&told), [3, 0, 3, 0, 0, 0]);
    assert_eq!((&told["state"], told["sites"].as_array().map(Vec::len)), (&"ended".into(), Some(2)));
    assert!(told["ended_at"].is_string() && told["began_at"].is_string(), "{told}");
}

#[test]
fn n4_a_dead_page_ends_a_batch_with_3_until_it_is_revived() {
    let (data, [shop, _other], files) = two_shops();
    shop.remove("/p/3");
    put(&data, "shop", &shop, &["/p/2", "/p/3"], &["--batch", "spring"]).run().expect_code(0);
    crawl(&data, &files);
    let run = look(&data, &["spring", "--wait"]).run().expect_code(3);
    assert!(run.stdout.contains("1 done, 1 dead"), "{}", run.stdout);
    assert!(run.stdout.contains("`paced dead list SITE` says why"), "{}", run.stdout);
    shop.put("/p/3", Reply::html("<h1>Thing 3</h1>"));
    Paced::new(["dead", "revive", "shop"]).data(&data).run().expect_code(0);
    assert_eq!(counts(&told(&data, 0)), [2, 1, 1, 0, 0, 0], "it is open again");
    crawl(&data, &files);
    assert_eq!(counts(&told(&data, 0)), [2, 0, 2, 0, 0, 0]);
}

#[test]
fn n4_a_deadline_that_passes_ends_the_wait_with_3() {
    let (data, [shop, _other], _) = two_shops();
    put(&data, "shop", &shop, &["/p/2"], &["--batch", "spring"]).run().expect_code(0);
    let run = look(&data, &["spring", "--wait", "--deadline", "1s"]).run().expect_code(3);
    assert!(run.stderr.contains("open pages of batch `spring`: 1"), "{}", run.stderr);
    assert!(run.stdout.contains("1 open, 0 done"), "{}", run.stdout);
}

#[test]
fn n4_where_a_redirect_leads_stands_in_place_of_where_it_began_on_any_site() {
    let (data, [shop, other], files) = two_shops();
    put(&data, "shop", &shop, &["/p/5", "/p/6"], &["--batch", "spring"]).run().expect_code(0);
    crawl(&data, &files);
    assert_eq!((other.count("/p/9"), shop.count("/p/9")), (1, 1));
    let ended = told(&data, 0);
    assert_eq!(counts(&ended), [2, 0, 2, 0, 0, 0], "{ended}");
    assert_eq!(ended["sites"].as_array().map(Vec::len), Some(2), "the other site is found: {ended}");
}

#[test]
fn n4_a_worker_that_is_killed_in_between_loses_no_page_of_a_batch() {
    let (data, [shop, _other], files) = two_shops();
    let paths: Vec<String> = (0..40).map(|n| format!("/p/k{n}")).collect();
    for path in &paths {
        shop.put(path, Reply::html("<h1>One of many</h1>"));
    }
    let lines: Vec<String> = paths.iter().map(|path| shop.url(path) + "\n").collect();
    put(&data, "shop", &shop, &[], &["-", "--batch", "spring"]).stdin(&lines.concat()).run().expect_code(0);
    let waiting = look(&data, &["spring", "--wait", "--deadline", "3m"]).start();
    let begun = || paths.iter().filter(|path| shop.count(path) > 0).count();
    let worker = Paced::new(["work", "--name", "w"]).data(&data).start();
    eventually("some of the pages", || (begun() > 5).then_some(()));
    worker.kill();
    drop(worker.finish());
    let left = told(&data, 0);
    assert!(counts(&left)[1] > 0 && counts(&left)[0] == 40, "{left}");
    crawl(&data, &files[..1]);
    waiting.finish().expect_code(0);
    assert_eq!(counts(&told(&data, 0)), [40, 0, 40, 0, 0, 0]);
}

#[test]
fn n4_a_ninth_batch_of_a_page_is_refused_and_says_so() {
    let (data, [shop, _other], _) = two_shops();
    for n in 0..8 {
        put(&data, "shop", &shop, &["/p/2"], &["--batch", &format!("b{n}")]).run().expect_code(0);
    }
    let two = shop.url("/p/2");
    let run = put(&data, "shop", &shop, &["/p/2"], &["--batch", "ninth"]).run().expect_code(1);
    assert_eq!(run.stdout, format!("refused\t{two}\n"));
    assert!(run.stderr.contains("a page is of 8 batches at most"), "{}", run.stderr);
    put(&data, "shop", &shop, &["/p/2"], &["--batch", "b3"]).run().expect_code(0);
    let run = Paced::new(["explain", &two]).data(&data).run().expect_code(0);
    assert!(run.stdout.contains(", batch b0, batch b1"), "{}", run.stdout);
}

#[test]
fn n4_waiting_pages_of_a_batch_are_listed_and_dropped() {
    let (data, [shop, _other], _) = two_shops();
    put(&data, "shop", &shop, &["/p/1", "/p/2"], &["--batch", "spring"]).run().expect_code(0);
    put(&data, "shop", &shop, &["/p/9"], &[]).run().expect_code(0);
    let queue = |words: &[&str]| Paced::new(["queue", "shop"]).args(words).data(&data).run().expect_code(0);
    let listed = json_lines_of(&queue(&["list", "--batch", "spring", "--json"]).stdout);
    assert_eq!((listed.len(), &listed[0]["batches"]), (2, &serde_json::json!(["spring"])));
    let run = queue(&["drop", "--batch", "spring", "--yes"]);
    assert_eq!(run.stdout, "shop: 2 of 3 waiting pages dropped\n");
    assert_eq!(counts(&told(&data, 0)), [2, 0, 0, 0, 0, 2]);
    let log = Paced::new(["log", "shop"]).data(&data).run().expect_code(0).stdout;
    assert!(log.contains("queue drop --batch spring: 2 pages"), "{log}");
}

#[test]
fn n4_pages_that_are_new_enough_do_not_join_and_are_told() {
    let (data, [_shop, other], _) = two_shops();
    put(&data, "other", &other, &["/p/1"], &["--batch", "spring", "--unless-newer", "1h"])
        .run()
        .expect_code(0);
    let run = look(&data, &["spring", "--wait"]).run().expect_code(0);
    assert!(run.stdout.contains("0 joined") && run.stdout.contains("1 known"), "{}", run.stdout);
}

#[test]
fn n4_what_is_no_batch_is_said() {
    let (data, _sites, _) = two_shops();
    for (words, code, told) in [
        (&["put", "shop", "-", "--batch", "a b"][..], 2, "`a b` is no batch; write up to 64 letters"),
        (&["put", "shop", "-", "--batch", "campaign/x"], 2, "`campaign/x` is no batch"),
        (&["status", "--batch", "none"], 1, "there is no batch `none`"),
        (&["status", "shop", "--batch", "none"], 2, "cannot be used with"),
        (&["status", "--wait"], 2, "--batch <NAME>"),
        (&["status", "--batch", "none", "--deadline", "1h"], 2, "--wait"),
    ] {
        let run = Paced::new(words).data(&data).run().expect_code(code);
        assert!(run.stderr.contains(told), "no `{told}` in\n{}", run.stderr);
    }
}
