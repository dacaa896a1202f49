//! Walls end to end: a shop that refuses, as a crawl meets it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::ground::*;
use crate::support::*;

/// Cloudflare's challenge, made after the real one's shape.
fn challenge(status: u16) -> Reply {
    Reply::html("<title>Just a moment...</title><script>window._cf_chl_opt={}</script>").with_status(status)
}

/// A shop of `count` pages that answers so from its `after`-th page on, while it is closed.
fn shop(
    count: usize,
    after: usize,
    refusal: impl Fn() -> Reply + Send + 'static,
) -> (TestSite, Arc<AtomicBool>) {
    let closed = Arc::new(AtomicBool::new(true));
    let (is_closed, asked) = (Arc::clone(&closed), AtomicUsize::new(0));
    let site = star(count).faults(move |request| {
        let is_page = request.path.starts_with("/p/");
        let met = is_page && asked.fetch_add(1, Ordering::SeqCst) >= after;
        (met && is_closed.load(Ordering::SeqCst)).then(&refusal)
    });
    (site.serve(), closed)
}

/// Requests for pages that were refused.
fn refused(site: &TestSite, statuses: &[u16]) -> usize {
    site.arrivals().iter().filter(|arrival| statuses.contains(&arrival.status)).count()
}

#[test]
fn w3_w4_w7_w8_a_shop_that_challenges_is_left_alone_and_nothing_of_it_is_lost() {
    let (site, closed) = shop(30, 10, || challenge(403).header("cf-mitigated", "challenge"));
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(50))]);
    let run = ground.crawl().args(["--give-up", "3s"]).run().expect_code(3);
    assert!(run.stderr.contains("walled: HTTP 403 with cf-mitigated: challenge"), "{}", run.stderr);
    assert_eq!(refused(&site, &[403]), 1, "those that were granted before are void");
    assert!(ground.dead("shop").is_empty(), "{:?}", ground.dead("shop"));
    assert_eq!(ground.items("shop").len(), 11);
    for (verb, told) in [("status", "walled since"), ("explain", "what helps")] {
        let run = ground.verb(verb).arg("shop").run().expect_code(0);
        assert!(run.stdout.contains(told), "{}", run.stdout);
    }
    closed.store(false, Ordering::SeqCst);
    let run = ground.verb("resume").arg("shop").run().expect_code(0);
    assert!(run.stdout.contains("a probe is due now"), "{}", run.stdout);
    let run = ground.crawled();
    assert!(run.stderr.contains("the wall is gone"), "{}", run.stderr);
    assert_eq!((ground.items("shop").len(), ground.dead("shop").len()), (31, 0));
}

#[test]
fn w1_w4_a_challenge_of_200_in_place_of_a_page_is_a_wall_and_never_the_page() {
    let (site, closed) = shop(12, 4, || challenge(200));
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(50))]);
    let run = ground.crawl().args(["--give-up", "3s"]).run().expect_code(3);
    assert!(run.stderr.contains("a page of Cloudflare"), "{}", run.stderr);
    assert_eq!((ground.items("shop").len(), ground.dead("shop").len()), (5, 0));
    let run = ground.verb("reparse").arg("shop").run();
    assert!(!run.stdout.contains("Just a moment"), "{}", run.stdout);
    closed.store(false, Ordering::SeqCst);
    let url = site.url("/p/12");
    let run = ground.verb("try").arg(&url).run().expect_code(0);
    assert!(run.stdout.contains("/p/12"), "{}", run.stdout);
    ground.crawled();
    assert_eq!((ground.items("shop").len(), ground.dead("shop").len()), (13, 0), "try was the probe");
}

#[test]
fn w1_the_third_503_without_a_word_of_when_is_a_wall_and_one_with_it_is_a_block() {
    let (site, _) = shop(12, 4, || Reply::status(503));
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(50))]);
    let run = ground.crawl().args(["--give-up", "3s"]).run().expect_code(3);
    assert!(run.stderr.contains("walled: HTTP 503 without a Retry-After"), "{}", run.stderr);
    assert_eq!(refused(&site, &[503]), 3);
    let (site, closed) = shop(12, 4, || Reply::status(503).header("retry-after", "1"));
    closed.store(true, Ordering::SeqCst);
    let ground = Ground::new([SiteFile::of("other", &site).interval(ms(50))]);
    let run = ground.crawl().args(["--give-up", "3s"]).run();
    assert!(!run.stderr.contains("walled"), "{}", run.stderr);
}

#[test]
fn w1_an_ordinary_shop_that_is_busy_now_and_then_and_says_for_how_long_is_no_wall() {
    let asked = AtomicUsize::new(0);
    let site = star(80).faults(move |request| {
        let is_busy = request.path.starts_with("/p/") && asked.fetch_add(1, Ordering::SeqCst) % 10 == 3;
        is_busy.then(|| Reply::status(503).header("retry-after", "1"))
    });
    let site = site.serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(40))]);
    let run = ground.crawled();
    assert!(refused(&site, &[503]) >= 8 && !run.stderr.contains("walled"), "{}", run.stderr);
    assert_eq!((ground.items("shop").len(), ground.dead("shop").len()), (81, 0));
}

#[test]
fn w1_w6_a_shop_that_is_busy_for_one_page_in_twenty_and_says_for_how_long_keeps_its_other_starts() {
    let (interval, pause) = (ms(100), ms(1_000));
    in_three_tries(|| {
        let asked = AtomicUsize::new(0);
        let site = star(120).faults(move |request| {
            let is_busy = request.path.starts_with("/p/") && asked.fetch_add(1, Ordering::SeqCst) % 20 == 12;
            is_busy.then(|| Reply::status(503).header("retry-after", "1"))
        });
        let site = site.serve();
        let ground = Ground::new([SiteFile::of("shop", &site).interval(interval)]);
        let run = ground.crawled();
        assert!(!run.stderr.contains("walled"), "{}", run.stderr);
        assert_eq!((ground.items("shop").len(), ground.dead("shop").len()), (121, 0));

        // From the first page on, until its queue runs dry.
        let arrivals = site.arrivals();
        let full = &arrivals[1..arrivals.len() * 9 / 10];
        let pauses: Vec<Duration> =
            full.iter().filter(|arrival| arrival.status == 503).map(|arrival| arrival.at).collect();
        assert!(pauses.len() >= 5, "{pauses:?}");
        let is_paused = |at: Duration| pauses.iter().any(|from| (*from..*from + pause).contains(&at));
        let (from, to) = (full[0].at, full[full.len() - 1].at);
        let blocked: Duration = pauses.iter().map(|from| pause.min(to.saturating_sub(*from))).sum();
        // That which is refused is asked for outside of its own pause.
        let starts =
            full.iter().filter(|arrival| arrival.status == 503 || !is_paused(arrival.at)).count() - 1;
        let share = f64::from(u32::try_from(starts).expect("a few")) * interval.as_secs_f64()
            / to.saturating_sub(from + blocked).as_secs_f64();
        bound(share >= 0.95, format_args!("{:.1} % of its unblocked starts", share * 100.0))
    });
}

#[test]
fn w2_one_body_in_place_of_all_listings_is_a_wall_though_no_rule_wants_a_field_of_them() {
    const LISTINGS: &str = "[[page]]\nname = \"list\"\nmatch = \"/**\"\nfollow = \"*\"\n";
    let asked = AtomicUsize::new(0);
    let site = paths(30).fold(star(30), |site, path| site.page(&path, page(&path, ["/"])));
    let site = site.faults(move |request| {
        let is_met = request.path.starts_with("/p/") && asked.fetch_add(1, Ordering::SeqCst) >= 10;
        is_met.then(|| Reply::html("<h1>One moment</h1>"))
    });
    let site = site.serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(40)).pages(LISTINGS)]);
    let run = ground.crawl().args(["--give-up", "2s"]).run().expect_code(3);
    assert!(run.stderr.contains("walled: one and the same body"), "{}", run.stderr);
    assert!(site.arrivals().len() < 22, "{}", site.arrivals().len());
}

#[test]
fn w1_a_page_that_speaks_of_robots_is_a_page_where_it_leads_on_though_its_items_have_no_fields() {
    const NO_FIELDS: &str = "[[page]]\nname = \"page\"\nmatch = \"/**\"\nfollow = \"*\"\nitem = true\n";
    let film = "<title>I'm Not a Robot (2024)</title><a href=\"/\">All films</a>";
    let site = paths(8).fold(star(8), |site, path| site.page(&path, film)).serve();
    let ground = Ground::new([SiteFile::of("films", &site).interval(ms(10)).pages(NO_FIELDS)]);
    ground.crawled();
    assert_eq!((ground.items("films").len(), ground.dead("films").len()), (9, 0));
}

#[test]
fn w2_pages_of_which_no_rule_wants_anything_may_all_be_the_same() {
    const LEAVES: &str = "[[page]]\nname = \"front\"\nmatch = \"/\"\nfollow = \"*\"\n\
                          [[page]]\nname = \"leaf\"\nmatch = \"/p/*\"\n";
    let site = paths(40).fold(star(40), |site, path| site.page(&path, "<h1>Sold out</h1>")).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(10)).pages(LEAVES)]);
    let run = ground.crawled();
    assert!(!run.stderr.contains("is asked for again"), "{}", run.stderr);
    assert!(paths(40).all(|path| site.count(&path) == 1), "{site:?}");
}

#[test]
fn w2_a_shop_that_was_rebuilt_is_one_line_and_no_wall() {
    let page = |n| format!("<h2>product {n} in its new clothes</h2>");
    let site = (11..40).fold(star(40), |site, n| site.page(&format!("/p/{n}"), page(n))).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(20))]);
    let run = ground.crawl().run();
    let told =
        run.stderr.lines().filter(|line| line.contains("finds none of its fields: was the shop rebuilt?"));
    assert_eq!(told.count(), 1, "{}", run.stderr);
    assert!(!run.stderr.contains("walled"), "{}", run.stderr);
}

#[test]
fn w2_products_that_are_gone_are_tried_with_one_that_was_good_and_stay_what_they_say() {
    let site = (20..30).fold(star(40), |site, n| site.status(&format!("/p/{n}"), 404)).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(30))]);
    let run = ground.crawled();
    assert!(run.stderr.contains("a page that was good is asked for again"), "{}", run.stderr);
    assert_eq!(ground.dead("shop").len(), 10);
    let items = ground.items("shop");
    let urls: BTreeSet<String> = items.iter().map(|item| item["url"].to_string()).collect();
    assert_eq!(urls.len(), 31);
}

#[test]
fn w2_a_good_page_that_is_asked_for_again_is_as_deep_as_it_was() {
    let site = paths(19).fold(star(40), |site, path| site.page(&path, page(&path, ["/p/deep"])));
    let site = site.page("/p/deep", page("too deep", [""; 0]));
    let site = (20..30).fold(site, |site, n| site.status(&format!("/p/{n}"), 404)).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(30)).scope("max_depth = 1")]);
    let run = ground.crawled();
    assert!(run.stderr.contains("a page that was good is asked for again"), "{}", run.stderr);
    assert_eq!(site.count("/p/deep"), 0, "its links stay too deep");
}

#[test]
fn w2_a_shop_that_closes_with_404_for_all_is_a_wall_and_its_letters_wait_again() {
    let (site, _) = shop(40, 15, || Reply::status(404));
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(30))]);
    let run = ground.crawl().args(["--give-up", "3s"]).run().expect_code(3);
    assert!(run.stderr.contains("in a row, and for one that was good before"), "{}", run.stderr);
    assert!(ground.dead("shop").len() <= 2, "{:?}", ground.dead("shop"));
    let dead = ground.dead("shop").len();
    ground.verb("resume").arg("shop").run().expect_code(0);
    let run = ground.crawl().args(["--give-up", "3s"]).run().expect_code(3);
    assert!(run.stderr.contains("walled still"), "{}", run.stderr);
    assert_eq!(ground.dead("shop").len(), dead, "the probe's page waits as well");
}

#[test]
fn w3_who_tries_a_page_of_a_walled_shop_ends_the_wall_by_an_answer_alone() {
    let status = Arc::new(AtomicUsize::new(200));
    let now = Arc::clone(&status);
    let site = star(12).faults(move |request| {
        let status = u16::try_from(now.load(Ordering::SeqCst)).expect("a status");
        (request.path.starts_with("/p/") && status != 200).then(|| Reply::status(status))
    });
    let site = site.serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(30))]);
    status.store(430, Ordering::SeqCst);
    ground.crawl().args(["--give-up", "1s"]).run().expect_code(3);
    let tried = |answer| {
        status.store(answer, Ordering::SeqCst);
        ground.verb("try").arg(site.url("/p/1")).run();
        ground.verb("status").arg("shop").run().expect_code(0).stdout.contains("walled since")
    };
    assert!(tried(500), "a 500 is to be asked for again, and tells nothing of the wall");
    assert!(tried(430));
    assert!(!tried(200));
}

#[test]
fn w1_a_refused_robots_txt_is_unreachable_and_allows_nothing() {
    for refusal in [Reply::status(430), Reply::status(999), challenge(403), challenge(200)] {
        let site = star(3).reply("/robots.txt", refusal).serve();
        let ground = Ground::new([SiteFile::of("shop", &site).pace("robots = \"obey\"")]);
        let run = ground.crawl().args(["--give-up", "1s"]).run().expect_code(3);
        assert!(run.stderr.contains("can't be had"), "{}", run.stderr);
        assert_eq!(site.count("/"), 0);
    }
}
