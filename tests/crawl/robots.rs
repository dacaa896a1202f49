//! `robots.txt` from end to end: asked first, paid for, obeyed; and what happens while it can't be had.

use std::time::Duration;

use paced::internals::frontier::KnownRobots;
use paced::internals::task::RobotsAccess;

use crate::ground::*;
use crate::support::*;

/// The lines of a log in which it says this.
fn said<'a>(log: &'a str, what: &str) -> Vec<&'a str> {
    log.lines().filter(|line| line.contains(what)).collect()
}

/// Site, with the time of each arrival of a path.
fn times(site: &TestSite, path: &str) -> Vec<Duration> {
    site.arrivals().iter().filter(|arrival| arrival.path == path).map(|arrival| arrival.at).collect()
}

/// More than a `robots.txt` holds.
fn a_day_passes(ground: &Ground) {
    let frontier = rusqlite::Connection::open(ground.data.file("data/frontier.db")).expect("a frontier");
    let changed = frontier.execute("UPDATE meta SET value = value + ?1 WHERE key = 'base'", [25 * 3_600_000]);
    assert_eq!(changed.expect("a clock"), 1);
}

fn record(ground: &Ground, origin: &str) -> KnownRobots {
    wait(ground.frontier().robots(origin)).expect("an answer").expect("a record")
}

#[test]
fn robots_txt_comes_first_pays_the_pace_and_what_it_forbids_is_neither_asked_for_nor_put() {
    let interval = ms(120);
    let site = star(8)
        .robots("User-agent: paced\nDisallow: /p/3\nDisallow: /p/5\n\nUser-agent: *\nDisallow: /\n")
        .serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(interval)]);
    ground.crawled();
    let asked = asked(&site);
    assert_eq!(asked[..2], ["/robots.txt", "/"]);
    assert_eq!(asked.len(), 2 + 6, "{asked:?}");
    assert!(!asked.iter().any(|path| path == "/p/3" || path == "/p/5"), "{asked:?}");
    ground.assert_paced("shop", &site, interval);
    let created = &ground.status()["shop"]["download"]["created"];
    assert_eq!(created, 2 + 6, "forbidden links were put");
}

#[test]
fn a_seed_that_robots_txt_forbids_is_excluded_and_nothing_is_crawled() {
    let site = star(2).robots("User-agent: *\nDisallow: /\n").serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    ground.crawl().run().expect_code(1);
    assert_eq!(asked(&site), ["/robots.txt"]);
    assert_eq!(ground.status()["shop"]["download"]["excluded"]["robots"], 1);
}

#[test]
fn a_start_that_robots_txt_makes_needless_is_given_back() {
    let interval = ms(400);
    let site = TestSite::builder()
        .page("/open", page("open", [""; 0]))
        .robots("User-agent: *\nDisallow: /shut\n")
        .serve();
    let seeds = SiteFile::new("shop", site.url("/shut/1")).seed(site.url("/shut/2")).seed(site.url("/open"));
    let ground = Ground::new([seeds.interval(interval)]);
    ground.crawled();
    assert_eq!(asked(&site), ["/robots.txt", "/open"]);
    assert_eq!(ground.view("shop").starts, 2);
    ground.assert_paced("shop", &site, interval);
}

#[test]
fn a_crawl_delay_is_a_floor_for_the_interval() {
    let site = star(4).robots("User-agent: *\nCrawl-delay: 0.3\n").serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(20))]);
    let log = ground.crawled().stderr;
    let raised = said(&log, "raises the interval from 20 ms to 300 ms by its Crawl-delay");
    assert!(raised.len() == 1 && raised[0].contains(" INFO robots.txt of http://127.0.0.1:"), "{log}");
    ground.assert_paced("shop", &site, ms(300));
    assert_eq!(ground.status()["shop"]["interval_ms"], 300);
    assert_eq!(site.arrivals().len(), 6);
}

#[test]
fn a_crawl_delay_above_the_bound_blocks_the_site_says_why_and_the_crawl_gives_it_up() {
    let slow = star(3).robots("User-agent: *\nCrawl-delay: 60\n").serve();
    let fine = star(3).serve();
    let ground = Ground::new([SiteFile::of("slow", &slow), SiteFile::of("fine", &fine)]);
    let run = ground.crawl().arg("--give-up").arg("1s").run().expect_code(3);
    let why = "robots.txt asks for 1 min between requests, more than max_crawl_delay = 30 s";
    assert!(run.stderr.contains("given up") && run.stderr.contains(why), "{}", run.stderr);
    let blocked = said(&run.stderr, "the site is left alone");
    assert!(
        blocked.len() == 1 && blocked[0].contains(why) && blocked[0].contains("site=slow"),
        "{}",
        run.stderr
    );
    assert_eq!(asked(&slow), ["/robots.txt"]);
    assert_eq!(ground.items("fine").len(), 4);
    let status = ground.status();
    assert_eq!(text(&status["slow"]["blocked_why"]), why);
    assert!(text(&status["slow"]["state"]).starts_with("blocked until "), "{status:?}");
    assert_eq!(status["fine"]["state"], "finished");
}

#[test]
fn without_a_robots_txt_everything_is_allowed() {
    for status in [404, 403, 410] {
        let site = star(2).status("/robots.txt", status).serve();
        let ground = Ground::new([SiteFile::of("shop", &site)]);
        ground.crawled();
        assert_eq!(ground.items("shop").len(), 3, "HTTP {status}");
        assert_eq!(site.count("/robots.txt"), 1, "HTTP {status}");
    }
}

#[test]
fn a_host_whose_robots_txt_fails_is_left_alone_asked_again_later_and_holds_up_no_other_host() {
    let mut failed = false;
    let broken = star(2).faults(move |request| {
        let first = request.path == "/robots.txt" && !std::mem::replace(&mut failed, true);
        first.then(|| Reply::status(503))
    });
    let (broken, fine) = (broken.serve(), star(2).serve());
    let file = SiteFile::of("shop", &broken).seed(fine.url("/"));
    let ground = Ground::new([file]);
    ground.crawled();
    assert_eq!(asked(&broken)[..3], ["/robots.txt", "/robots.txt", "/"]);
    let [first, second] = times(&broken, "/robots.txt")[..] else { panic!("{broken:?}") };
    let apart = second.saturating_sub(first);
    assert!(apart >= ms(22_500), "again after {apart:?}");
    let others: Vec<Duration> = fine.arrivals().iter().map(|arrival| arrival.at).collect();
    assert!(others.len() == 4 && others.iter().all(|at| *at < second), "{fine:?}");
    assert_eq!(ground.items("shop").len(), 6);
    assert!(ground.letters("shop").is_empty());
}

#[test]
fn links_to_a_host_whose_robots_txt_fails_wait_with_its_other_pages() {
    let broken = star(2).status("/robots.txt", 503).serve();
    let front = Reply::html(page("front", [broken.url("/p/1"), broken.url("/p/2")]));
    let mut front = Some(front);
    // Its links are seen once the other host is known to be unreachable.
    let fine = TestSite::builder()
        .robots("")
        .redirect("/", 302, "/late")
        .reply("/late", front.take().expect("one"))
        .serve();
    let file = SiteFile::of("shop", &broken).seed(fine.url("/")).interval(ms(200));
    let ground = Ground::new([file]);
    ground.crawl().arg("--give-up").arg("1s").run().expect_code(3);
    assert_eq!(asked(&broken), ["/robots.txt"]);
    let download = ground.view("shop").download;
    assert_eq!((download.parked, download.ready()), (3, 0), "the seed and two links: {download:?}");
}

#[test]
fn a_redirected_robots_txt_is_followed_within_the_site_and_pays_each_hop() {
    let interval = ms(120);
    let site = star(2).redirect("/robots.txt", 301, "/a.txt").redirect("/a.txt", 302, "/b.txt");
    let site = site.reply("/b.txt", Reply::text("User-agent: *\nDisallow: /p/2\n")).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(interval)]);
    ground.crawled();
    assert_eq!(asked(&site), ["/robots.txt", "/a.txt", "/b.txt", "/", "/p/1"]);
    ground.assert_paced("shop", &site, interval);
}

#[test]
fn a_robots_txt_that_is_redirected_to_a_private_host_that_is_not_the_sites_counts_as_unreachable() {
    let foreign = TestSite::builder().robots("User-agent: *\nAllow: /\n").serve();
    for (to, why) in [
        (foreign.url("/robots.txt"), "private address"),
        ("http://169.254.169.254/latest/".to_owned(), "a cloud tells a machine its passwords"),
    ] {
        let site = star(2).redirect("/robots.txt", 301, &to).serve();
        // The site's own address is private, and allowed.
        let ground = Ground::new([SiteFile::of("shop", &site)]);
        let run = ground.crawl().arg("--give-up").arg("1s").run().expect_code(3);
        assert_eq!((asked(&site), asked(&foreign)), (vec!["/robots.txt".to_owned()], vec![]));
        let record = record(&ground, site.url("").trim_end_matches('/')).record;
        let RobotsAccess::Unreachable(told) = record.access else { panic!("{record:?}") };
        assert!(told.contains(why), "{told}");
        assert!(run.stderr.contains("given up"), "{}", run.stderr);
    }
}

/// Crawls `shop.example`, whose `robots.txt` is at `other.example`.
fn led_to_two_hosts(ground: &Ground, shop: &TestSite, other: &TestSite) -> Paced {
    let led = |host: &str, site: &TestSite| format!("{host}:80:{}", site.addr());
    let paced = ground.crawl().arg("--connect-to").arg(led("shop.example", shop));
    paced.arg("--connect-to").arg(led("other.example", other))
}

#[test]
fn a_redirected_robots_txt_is_followed_to_another_public_host_at_the_pace_of_the_one_that_asks() {
    let interval = ms(150);
    let other = TestSite::builder()
        .redirect("/robots.txt", 302, "/there.txt")
        .reply("/there.txt", Reply::text("User-agent: *\nDisallow: /p/2\n"))
        .serve();
    let shop = star(3).redirect("/robots.txt", 301, "http://other.example/robots.txt").serve();
    let file = SiteFile::new("shop", "http://shop.example/").interval(interval);
    let ground = Ground::new([file]);
    led_to_two_hosts(&ground, &shop, &other).run().expect_code(0);
    assert_eq!(asked(&other), ["/robots.txt", "/there.txt"]);
    assert_eq!(asked(&shop), ["/robots.txt", "/", "/p/1", "/p/3"]);
    assert_audited(&ground.audit()["shop"], 6);
}

#[test]
fn a_robots_txt_takes_five_redirects_in_all_and_no_sixth() {
    let other = TestSite::builder().redirect("/robots.txt", 302, "/robots.txt").serve();
    let shop = star(1).redirect("/robots.txt", 301, "http://other.example/robots.txt").serve();
    let ground = Ground::new([SiteFile::new("shop", "http://shop.example/").interval(ms(20))]);
    led_to_two_hosts(&ground, &shop, &other).args(["--give-up", "1s"]).run().expect_code(3);
    assert_eq!((shop.arrivals().len(), other.arrivals().len()), (1, 5));
    let RobotsAccess::Unreachable(why) = record(&ground, "http://shop.example").record.access else {
        panic!("it is not unreachable")
    };
    assert!(why.contains("redirected more than 5 times"), "{why}");
}

#[test]
fn a_crawl_delay_of_more_seconds_than_a_clock_counts_blocks_the_site() {
    let site = star(3).robots(&format!("User-agent: *\nCrawl-delay: {}\n", "9".repeat(400))).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    let run = ground.crawl().args(["--give-up", "1s"]).run().expect_code(3);
    assert!(run.stderr.contains("more than max_crawl_delay = 30 s"), "{}", run.stderr);
    assert_eq!(asked(&site), ["/robots.txt"]);
}

#[test]
fn a_robots_txt_that_differs_when_it_is_asked_for_again_is_said_with_what_changed() {
    let site = star(2).robots("User-agent: *\nAllow: /\n").serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(20))]);
    let log_of_a_day = || {
        let log = ground.crawled().stderr;
        a_day_passes(&ground);
        log
    };
    let rules = |text: &str| site.put("/robots.txt", Reply::text(text.to_owned()));
    let of = format!("robots.txt of {} ", site.url("").trim_end_matches('/'));
    let log = log_of_a_day();
    assert_eq!(said(&log, &of), [""; 0], "the first one is no change");
    assert_eq!(said(&log_of_a_day(), &of), [""; 0], "nor is the same one");
    rules("User-agent: *\nDisallow: /p/2\nCrawl-delay: 0.1\n");
    let log = log_of_a_day();
    let what =
        "changed (2 lines before, 3 now) and raises the interval from 20 ms to 100 ms by its Crawl-delay";
    let lines = said(&log, &of);
    assert!(lines.len() == 1 && lines[0].contains(&format!(" INFO {of}{what} site=shop")), "{log}");
    site.remove("/robots.txt");
    let log = log_of_a_day();
    let what = "is gone (3 lines before) and asks for no Crawl-delay any more (100 ms before)";
    let lines = said(&log, &of);
    assert!(lines.len() == 1 && lines[0].contains(&format!("{of}{what}")), "{log}");
    assert_eq!(site.count("/robots.txt"), 4);
}

#[test]
fn ignoring_robots_txt_is_said_at_each_start() {
    let site = star(2).robots("User-agent: *\nDisallow: /\n").serve();
    let ground = Ground::new([SiteFile::of("shop", &site).pace("robots = \"ignore\"")]);
    for _ in 0..2 {
        let run = ground.crawled();
        assert_eq!(said(&run.stderr, "robots.txt is ignored").len(), 1, "{}", run.stderr);
    }
    assert_eq!(site.count("/robots.txt"), 0);
    assert_eq!(site.count("/p/1"), 2);
}

#[test]
fn each_host_of_a_site_is_asked_for_its_own_robots_txt() {
    let first = star(3).robots("User-agent: *\nDisallow: /p/1\n").serve();
    let second = star(3).robots("User-agent: *\nDisallow: /p/2\n").serve();
    let ground = Ground::new([SiteFile::of("shop", &first).seed(second.url("/"))]);
    ground.crawled();
    for (site, forbidden) in [(&first, "/p/1"), (&second, "/p/2")] {
        assert_eq!(asked(site)[..2], ["/robots.txt", "/"]);
        assert_eq!(site.count(forbidden), 0);
        assert_eq!(site.arrivals().len(), 4, "{site:?}");
    }
}
