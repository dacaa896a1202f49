//! Sessions as an operator has them: put, watched, held and gone on with.

use std::path::PathBuf;
use std::time::Duration;

use crate::expected::*;
use crate::support::*;

/// A site of which `/p/1` is gone for ever, crawled to its end.
fn with_a_gone_page() -> (TempData, TestSite, PathBuf) {
    let (data, mut site) = (TempData::new(), TestSite::builder().page("/", "").status("/p/1", 410));
    for n in [2, 3, 4] {
        site = site.page(&format!("/p/{n}"), format!("<h1>Thing {n}</h1>"));
    }
    let site = site.redirect("/p/5", 302, "/p/4").latency(Latency::fixed(Duration::from_millis(60))).serve();
    let file = site_file(&data, &site);
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    (data, site, file)
}

fn put(data: &TempData, site: &TestSite, paths: &[&str], words: &[&str]) -> String {
    let urls = paths.iter().map(|path| site.url(path));
    let put = Paced::new(["put", "shop"]).args(urls.collect::<Vec<_>>()).args(words).data(data);
    put.run().expect_code(0).stdout
}

fn session(data: &TempData) -> serde_json::Value {
    let run =
        Paced::new(["status", "shop", "--session", "roll-out", "--json"]).data(data).run().expect_code(0);
    json_lines_of(&run.stdout).pop().expect("one object")
}

#[test]
fn c6_the_steps_of_a_session_reach_the_site_in_order_and_one_at_a_time() {
    let (data, site, file) = with_a_gone_page();
    put(&data, &site, &["/p/3"], &["--session", "roll-out", "--priority", "user"]);
    put(&data, &site, &["/p/5", "/p/2"], &["--session", "roll-out", "--priority", "user"]);
    let before = site.requests().len();
    Paced::new(["crawl", "--workers", "8"]).arg(&file).data(&data).run().expect_code(0);
    let order: Vec<String> = site.requests()[before..].iter().map(|request| request.path.clone()).collect();
    let steps: Vec<&str> =
        order.iter().map(String::as_str).filter(|path| *path != "/" && *path != "/robots.txt").collect();
    assert_eq!(steps, ["/p/3", "/p/5", "/p/4", "/p/2"], "where a step redirects to comes at its place");
    let told = session(&data);
    assert_eq!((&told["state"], &told["done"], &told["left"]), (&"ended".into(), &4.into(), &0.into()));
    let run = Paced::new(["status", "shop", "--session", "roll-out"]).data(&data).run().expect_code(0);
    let ended = told["ended_at"].as_str().expect("a time");
    assert!(
        run.stdout.starts_with(&format!("session `roll-out` of shop: ended {ended}\n")),
        "{}",
        run.stdout
    );
}

#[test]
fn c6_a_dead_step_ends_a_crawl_with_3_and_is_gone_on_with_or_without() {
    let (data, site, file) = with_a_gone_page();
    put(&data, &site, &["/p/1", "/p/2", "/p/3"], &["--session", "roll-out"]);
    let run = Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(3);
    let held = format!("session `roll-out` is held by a dead step, {}", site.url("/p/1"));
    assert!(run.stderr.contains(&held), "{}", run.stderr);
    assert_eq!((site.count("/p/2"), site.count("/p/3")), (0, 0));
    let run = Paced::new(["work", "--until-empty"]).data(&data).run().expect_code(3);
    assert!(run.stderr.contains(&held), "{}", run.stderr);
    let hint = "`paced dead drop shop --url '/p/1'` without it";
    assert!(run.stderr.contains(hint), "{}", run.stderr);
    for verb in [&["status"][..], &["explain", "shop"]] {
        let run = Paced::new(verb).data(&data).run().expect_code(0);
        assert!(run.stdout.contains(&held), "{}", run.stdout);
    }
    let told = session(&data);
    assert_eq!(
        (&told["state"], &told["head"], &told["left"]),
        (&"held".into(), &site.url("/p/1").into(), &2.into())
    );
    assert_eq!(told["next"][0]["url"], site.url("/p/2"));
    let run = Paced::new(["status", "shop", "--session", "roll-out"]).data(&data).run().expect_code(0);
    assert!(
        run.stdout.contains("held by a dead step") && run.stdout.contains(&site.url("/p/3")),
        "{}",
        run.stdout
    );
    let run = Paced::new(["explain", &site.url("/p/2")]).data(&data).run().expect_code(0);
    assert!(run.stdout.contains("behind other steps of session `roll-out`"), "{}", run.stdout);

    Paced::new(["dead", "revive", "shop"]).data(&data).run().expect_code(0);
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(3);
    assert_eq!((site.count("/p/1"), site.count("/p/2")), (2, 0));
    Paced::new(["dead", "drop", "shop", "--url", "/p/1"]).data(&data).run().expect_code(0);
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    assert_eq!((site.count("/p/2"), site.count("/p/3")), (1, 1));
}

#[test]
fn c6_a_chain_is_put_without_holes_and_dropped_as_a_whole() {
    let (data, site, file) = with_a_gone_page();
    put(&data, &site, &["/p/3"], &["--session", "other"]);
    let urls = ["/p/2", "/p/3", "/p/4"].map(|path| site.url(path));
    let run = Paced::new(["put", "shop"])
        .args(&urls)
        .args(["--session", "roll-out"])
        .data(&data)
        .run()
        .expect_code(1);
    assert_eq!(run.stdout, format!("created\t{}\nbusy\t{}\n", urls[0], urls[1]));
    assert!(run.stderr.contains(&format!("{}: a step before it was not put", urls[2])), "{}", run.stderr);
    put(&data, &site, &["/p/4"], &["--session", "roll-out"]);
    let drop = |words: &[&str]| Paced::new(["queue", "shop", "drop", "--session"]).args(words).data(&data);
    let run = drop(&["roll-out"]).run().expect_code(2);
    assert!(
        run.stderr.contains("shop: 2 steps of session `roll-out` would be dropped; add --yes"),
        "{}",
        run.stderr
    );
    assert_eq!(drop(&["roll-out", "--yes"]).run().expect_code(0).stdout, "shop: 2 of 2 steps dropped\n");
    drop(&["roll-out", "--yes"]).run().expect_code(0);
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    assert_eq!(["/p/2", "/p/3", "/p/4"].map(|path| site.count(path)), [0, 1, 0]);
}

#[test]
fn c6_with_skip_the_next_step_goes_on() {
    let (data, site, file) = with_a_gone_page();
    put(&data, &site, &["/p/1", "/p/2"], &["--session", "roll-out", "--on-failure", "skip"]);
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    assert_eq!(site.count("/p/2"), 1);
    assert_eq!(session(&data)["dead"], 1);
}

#[test]
fn c6_a_page_of_another_session_is_busy_and_what_cannot_be_a_session_is_said() {
    let (data, site, _) = with_a_gone_page();
    put(&data, &site, &["/p/2"], &["--session", "other"]);
    let two = site.url("/p/2");
    let run = Paced::new(["put", "shop", &two, "--session", "roll-out"]).data(&data).run().expect_code(1);
    assert_eq!(run.stdout, format!("busy\t{two}\n"));
    assert!(
        run.stderr.contains("it is a step of another session, or runs outside of this one"),
        "{}",
        run.stderr
    );
    for (words, told) in [
        (&["put", "shop", &two, "--session", "a b"][..], "`a b` is no session; write up to 64 letters"),
        (&["put", "shop", &two, "--session", "a", "--on-failure", "stop"], "write block or skip"),
        (&["put", "shop", &two, "--on-failure", "skip"], "--session <NAME>"),
        (&["status", "--session", "roll-out"], "name the one site whose session it is"),
    ] {
        let run = Paced::new(words).data(&data).run().expect_code(2);
        assert!(run.stderr.contains(told), "no `{told}` in\n{}", run.stderr);
    }
    let run = Paced::new(["status", "shop", "--session", "roll-out"]).data(&data).run().expect_code(1);
    assert!(run.stderr.contains("site `shop` has no session `roll-out`"), "{}", run.stderr);
}
