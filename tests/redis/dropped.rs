//! A crawl whose packets to its Redis are dropped for fifteen seconds now and then, for as long as `CHAOS_SECONDS` says. With
//! `CHAOS_SECONDS=600` it takes ten minutes; the other such test is `tests/crash/chaos.rs`.

use std::time::{Duration, Instant};

use paced::internals::frontier::state::StageCounts;

use crate::ground::{Ground, SiteFile, ms, star, wait};
use crate::steps::*;
use crate::support::*;

/// The shortest of which each gap is judged.
const INTERVAL: Duration = ms(100);
/// Longer than an answer is waited for, and than a process is taken to be alive without a beat.
const DROPPED: Duration = Duration::from_secs(15);

/// The books as the server has them, which balance.
fn books_of(redis: &RedisServer) -> StageCounts {
    wait(async { books(&open(&redis.url(0))).await })
}

#[test]
fn i5_i14_l4_l7_a_crawl_whose_packets_are_dropped_now_and_then_asks_for_each_page_once_at_the_pace() {
    let Some(redis) = redis_or_skip() else { return };
    let given = std::env::var("CHAOS_SECONDS").ok().and_then(|text| text.parse().ok());
    let time = Duration::from_secs(given.unwrap_or(60));
    let road = RedisProxy::to(redis.port());
    // It can't come to its end before the chaos does.
    let pages = usize::try_from(time.as_millis() / INTERVAL.as_millis()).expect("hours at most");
    let site = star(pages).latency(Latency::between(Duration::ZERO, ms(300))).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(INTERVAL)]);
    let mut crawl = ground.crawl().env("PACED_FRONTIER", road.url(0)).start();
    eventually("a few pages", || (site.arrivals().len() > 10).then_some(()));
    let (began, mut drops) = (Instant::now(), 0);
    while began.elapsed() + DROPPED < time {
        std::thread::sleep(Duration::from_millis(fastrand::u64(3_000..12_000)));
        assert!(!crawl.ended(), "it ended:\n{}", crawl.stderr());
        road.stall();
        std::thread::sleep(DROPPED);
        // What was on its way counts at once or not at all (I14).
        let _ = books_of(&redis);
        road.flow();
        drops += 1;
        let _ = books_of(&redis);
    }
    within(time + Duration::from_mins(5), "its end", || crawl.ended().then_some(()));
    let run = crawl.finish().expect_code(0);
    let gaps = site.gaps(INTERVAL);
    println!("{drops} times dropped, {} requests, {gaps}", site.arrivals().len());
    assert!(site.counts().values().all(|count| *count == 1), "{:?}\n{}", site.counts(), run.stderr);
    assert_eq!(ground.items("shop").len(), pages + 1, "{}", run.stderr);
    ground.assert_paced("shop", &site, INTERVAL);
    let books = books_of(&redis);
    // The pages, the front page and robots.txt.
    assert_eq!((books.created, books.done, books.lost), (pages as u64 + 2, pages as u64 + 2, 0), "{books:?}");
}
