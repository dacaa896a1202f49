//! A site is slowed, stopped and let go on while it is crawled, by whoever has the frontier.

use serde_json::Value;

use crate::ground::*;
use crate::support::*;

const INTERVAL: u64 = 50;
const SLOW: u64 = 400;
/// What was granted before goes out this long after.
const AHEAD: u64 = 120;

#[test]
fn l6_a_tuned_interval_and_a_pause_are_in_force_from_the_next_start_of_a_running_crawl_on() {
    on_each_frontier(|shared| {
        let shop = star(400).serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &shop).interval(ms(INTERVAL))]);
        let verb = |verb: &str| ground.verb(verb).arg("shop").env("PACED_OPERATOR", "ann");
        let running = ground.crawl().start();
        eventually("a few pages", || (shop.arrivals().len() > 20).then_some(()));

        let refused = verb("tune").arg("interval=10ms").run().expect_code(2);
        assert!(refused.stderr.contains("interval can be 50 ms to 1 day"), "{refused:?}");
        verb("tune").args([&format!("interval={SLOW}ms"), "--why", "their sale"]).run().expect_code(0);
        std::thread::sleep(ms(AHEAD));
        let before = shop.arrivals().len();
        eventually("slow pages", || (shop.arrivals().len() > before + 5).then_some(()));
        let arrivals = shop.arrivals();
        let gaps = arrivals[before..].windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at));
        // A start may be late by its grace.
        assert!(gaps.clone().all(|gap| gap >= ms(SLOW - SLOW / 20 - 5)), "{:?}", gaps.collect::<Vec<_>>());

        verb("pause").args(["--why", "lunch"]).run().expect_code(0);
        std::thread::sleep(ms(AHEAD));
        let before = shop.arrivals().len();
        std::thread::sleep(ms(3 * SLOW));
        assert_eq!(shop.arrivals().len(), before, "a paused site is asked for nothing");
        let told = verb("explain").run().expect_code(0).stdout;
        assert!(told.contains("paused: by ann: lunch"), "{told}");
        assert!(told.contains("set while it runs by ann at ") && told.contains("their sale"), "{told}");

        verb("resume").run().expect_code(0);
        verb("tune").args(["--reset", "interval"]).run().expect_code(0);
        eventually("further pages", || (shop.arrivals().len() > before + 20).then_some(()));
        running.interrupt();
        running.finish().expect_code(130);

        let log = verb("log").arg("--json").run().expect_code(0).stdout;
        let acts = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let done: Vec<String> = acts
            .map(|act| format!("{} {} ({})", act["who"], act["did"], act["why"]).replace('"', ""))
            .collect();
        assert_eq!(
            done,
            [
                "ann tune interval=400ms (their sale)",
                "ann pause (lunch)",
                "ann resume (no reason was given)",
                "ann tune --reset interval (no reason was given)",
            ]
        );
        ground.assert_paced("shop", &shop, ms(INTERVAL));
    });
}

#[test]
fn c13_a_pause_now_drops_requests_in_flight_and_their_pages_are_fetched_later_with_no_attempt_lost() {
    on_each_frontier(|shared| {
        let slow = || Reply::html("slow").after(ms(60_000));
        let front = TestSite::builder().page("/", page("front", paths(3)));
        let shop = paths(3).fold(front, |shop, path| shop.reply(&path, slow())).serve();
        let other = star(0).reply("/", slow()).serve();
        let file = |name: &str, site: &TestSite| {
            SiteFile::of(name, site).interval(ms(INTERVAL)).pace("robots = \"ignore\"").pace("parallel = 3")
        };
        let ground = Ground::on(shared, [file("shop", &shop), file("other", &other)]);
        let running = ground.crawl().start();
        let in_flight =
            |site: &TestSite| site.arrivals().iter().filter(|request| request.done.is_none()).count();
        eventually("requests in flight", || (in_flight(&shop) == 3 && in_flight(&other) == 1).then_some(()));

        let paused = ground.verb("pause").args(["shop", "--now"]).run().expect_code(0);
        assert!(
            paused.stdout.contains("shop: paused, requests in flight are dropped within 3 s"),
            "{paused:?}"
        );
        eventually("they are dropped", || (in_flight(&shop) == 0).then_some(()));
        assert_eq!(in_flight(&other), 1, "another site's goes on");
        let books = || ground.status()["shop"].clone();
        eventually("they are back", || (books()["running"] == 0 && books()["waiting"] == 3).then_some(()));
        assert_eq!((&books()["download"]["retried"], &books()["download"]["lost"]), (&0.into(), &0.into()));
        ground.verb("pause").args(["--all", "--now"]).run().expect_code(0);
        eventually("all are dropped", || (in_flight(&other) == 0).then_some(()));

        paths(3).for_each(|path| shop.put(&path, Reply::html(page(&path, [""; 0]))));
        other.put("/", Reply::html(page("front", [""; 0])));
        ground.verb("resume").arg("shop").run().expect_code(0);
        ground.verb("resume").arg("--all").run().expect_code(0);
        running.finish().expect_code(0);
        assert!(paths(3).all(|path| shop.count(&path) == 2), "{:?}", shop.counts());
        assert_eq!((ground.items("shop").len(), ground.items("other").len()), (4, 1));
        assert_eq!(books()["download"]["retried"], 0);
        let log = ground.verb("log").arg("shop").run().expect_code(0).stdout;
        assert!(log.contains(": pause --now ("), "{log}");
    });
}

#[test]
fn i11_a_pause_with_an_end_ends_by_itself_and_a_crawl_waits_for_it() {
    on_each_frontier(|shared| {
        let shop = star(10).serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &shop).interval(ms(10))]);
        ground.verb_on_all("seed").run().expect_code(0);
        ground.verb("pause").args(["shop", "--until", "3s"]).run().expect_code(0);
        let began = std::time::Instant::now();
        ground.crawl().run().expect_code(0);
        assert!(began.elapsed() >= ms(1_500), "it didn't wait: {:?}", began.elapsed());
        assert_eq!(ground.items("shop").len(), 11);
    });
}

#[test]
fn what_was_done_to_a_site_that_is_gone_is_told_of_all() {
    let shop = star(2).serve();
    let ground = Ground::new([SiteFile::of("shop", &shop)]);
    ground.crawled();
    ground.verb("forget").args(["shop", "--yes"]).env("PACED_OPERATOR", "ben").run().expect_code(0);
    let log = ground.verb("log").run().expect_code(0).stdout;
    assert!(log.contains("ben: forget shop"), "{log}");
    ground.verb("log").arg("shop").run().expect_code(2);
}

#[test]
fn a_crawl_whose_items_nobody_takes_in_ends_when_it_is_told_to_and_the_next_one_writes_them() {
    // More than a pipe holds.
    let long = "x".repeat(2_000);
    let front = TestSite::builder().page("/", page("front", paths(80)));
    let shop = paths(80).fold(front, |shop, path| shop.page(&path, page(format!("{path}{long}"), [""; 0])));
    let shop = shop.serve();
    let ground = Ground::new([SiteFile::of("shop", &shop)]);
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mut running = ground.crawl().args(["--items", "-"]).stdout_to(writer).start();
    eventually("all pages", || (shop.requests().len() >= 82).then_some(()));
    std::thread::sleep(ms(1_000));
    assert!(!running.ended(), "{}", running.stderr());
    running.interrupt();
    let run = running.finish().expect_code(130);
    assert!(run.stderr.contains("the items were not taken in before this process had to end"), "{run:?}");
    let mut taken = String::new();
    std::io::Read::read_to_string(&mut reader, &mut taken).expect("what the pipe held");
    let rest = ground.crawl().args(["--items", "-"]).run().expect_code(0);
    let whole = taken.lines().chain(rest.stdout.lines());
    let items = whole.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let urls: std::collections::BTreeSet<String> = items.map(|item| item["url"].to_string()).collect();
    assert_eq!(urls.len(), 81, "{}", rest.stderr);
    assert!(paths(80).all(|path| shop.count(&path) == 1), "its pages were kept");
}
