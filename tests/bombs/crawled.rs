//! Crawls of sites that serve such pages, beside a good one.

use std::time::{Duration, Instant};

use super::child::status;
use super::ground::{Ground, SiteFile, ms, page, star};
use super::pages::{Bomb, SITE};
use super::support::{Reply, Running, TestSite, bound, eventually, in_three_tries, used_share};
use super::{all, alone};

/// How often the good site may be asked.
const INTERVAL: Duration = ms(40);
/// How often the site with the bombs may be asked, where it is crawled beside the other: a bomb takes longer than that.
const BOMBS_INTERVAL: Duration = ms(200);
/// The good site's pace is measured for so long.
const WINDOW: Duration = Duration::from_secs(20);
/// The share of its starts that it keeps.
const SHARE: f64 = 0.97;
/// Memory that pages made to cost much take at most, however many there are at once.
const MOST_MEMORY: u64 = 400 << 20;
/// In which time a process ends, whatever a page does to it.
const END: Duration = Duration::from_secs(10);

/// A site that serves each page made to cost much, and whose robots.txt is made so too: 32,000 rules fit none of the links.
fn bombs() -> TestSite {
    let rules = (0..32_000).map(|n| format!("Disallow:*~{n:x}\n")).collect::<Vec<_>>().concat();
    let site = TestSite::builder().robots(&format!("User-agent: *\n{rules}"));
    let paths: Vec<String> =
        all().zip(1..).map(|(Bomb { rule, .. }, nth)| format!("/{rule}/{nth}")).collect();
    let site = paths.iter().zip(all()).fold(site, |site, (path, bomb)| {
        site.reply(path, Reply::status(200).header("content-type", "text/html").with_body((bomb.body)()))
    });
    site.page("/", page("front", &paths)).serve()
}

/// Both sites; the one with the bombs may be asked so often.
fn ground(good: &TestSite, bombs: &TestSite, interval: Duration) -> Ground {
    let rules = &SITE[SITE.find("[[page]]").expect("rules")..];
    let bombs =
        SiteFile::of("bombs", bombs).interval(interval).scope("strip_query = [\"a*b*c*d\"]").pages(rules);
    Ground::new([SiteFile::of("good", good).interval(INTERVAL), bombs])
}

#[test]
fn a_process_ends_when_told_whatever_a_page_does_to_it() {
    let _turn = alone();
    let bombs = bombs();
    in_three_tries(|| {
        let good = star(2_000).serve();
        let ground = ground(&good, &bombs, Duration::ZERO);
        let running = ground.crawl().start();
        eventually("the good site's first pages", || (good.arrivals().len() > 20).then_some(()));
        std::thread::sleep(Duration::from_secs(5));
        let told = Instant::now();
        running.interrupt();
        let run = running.finish();
        let ended = told.elapsed();
        assert_eq!(run.code, Some(130), "there was more to parse: {}", run.stderr);
        bound(ended <= END, format_args!("{ended:?} to its end"))
    });
}

#[test]
fn a_deadline_ends_a_process_whatever_a_page_does_to_it() {
    let _turn = alone();
    let (good, bombs) = (star(10).serve(), bombs());
    in_three_tries(|| {
        let began = Instant::now();
        let run =
            ground(&good, &bombs, Duration::ZERO).crawl().args(["--deadline", "2s"]).run().expect_code(3);
        let took = began.elapsed();
        assert!(run.stderr.contains("deadline"), "{}", run.stderr);
        bound(took <= Duration::from_secs(2) + END, format_args!("{took:?}"))
    });
}

/// The most memory that the process had so far.
fn peak(running: &Running) -> u64 {
    status(&running.pid().to_string(), "VmHWM").expect("a process")
}

/// The memory of a crawl whose pages are small.
fn small_crawl() -> u64 {
    let good = star(200).serve();
    let ground = Ground::new([SiteFile::of("good", &good).interval(INTERVAL)]);
    let running = ground.crawl().start();
    eventually("a hundred pages", || (good.arrivals().len() > 100).then(|| peak(&running)))
}

#[test]
fn beside_pages_made_to_cost_much_a_good_site_keeps_its_pace_and_the_process_its_memory() {
    let _turn = alone();
    let small = small_crawl();
    let bombs = bombs();
    in_three_tries(|| {
        let good = star(2_000).serve();
        let ground = ground(&good, &bombs, BOMBS_INTERVAL);
        let running = ground.crawl().start();
        let first =
            eventually("the good site's first pages", || good.arrivals().get(20).map(|start| start.at));
        std::thread::sleep(WINDOW);
        let arrivals: Vec<Duration> = good.arrivals().iter().map(|start| start.at).collect();
        let share = used_share(&arrivals, first, first + WINDOW, INTERVAL);
        let more = peak(&running).saturating_sub(small);
        eprintln!("{share:.3} of the pace, {} MiB more", more >> 20);
        let explained = ground.verb("explain").arg("bombs").run().stdout;
        assert!(explained.contains("links dropped") && explained.contains("left out"), "{explained}");
        bound(share >= SHARE, format_args!("{share} of the pace"))?;
        bound(more <= MOST_MEMORY, format_args!("{more} bytes"))
    });
}
