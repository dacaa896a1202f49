//! Told to stop while Redis is away: a process ends by itself, and what it could not tell is done by the next one.

use std::collections::BTreeSet;

use crate::ground::{Ground, SiteFile, ms, star, wait};
use crate::steps::*;
use crate::support::*;
use crate::workers::{all_paths, assert_nothing_early, items, seeded, worker};

const PAGES: usize = 60;

/// How a server is away.
#[derive(Clone, Copy)]
enum Away {
    /// It keeps its connections and answers nobody.
    Still,
    /// It was killed.
    Killed,
}

impl Away {
    fn begin(self, redis: &mut RedisServer) {
        match self {
            Self::Still => redis.pause(),
            Self::Killed => redis.kill9(),
        }
    }

    fn end(self, redis: &mut RedisServer) {
        match self {
            Self::Still => redis.resume(),
            Self::Killed => redis.restart(),
        }
    }
}

fn slow_star() -> TestSite {
    star(PAGES).latency(Latency::fixed(ms(400))).serve()
}

/// Stops a process that has something to tell, while the server is away for good; how it ended.
fn stopped_while_away(away: Away, redis: &mut RedisServer, site: &TestSite, mut busy: Running) -> Run {
    eventually("requests in flight", || {
        assert!(!busy.ended(), "it ended:\n{}", busy.stderr());
        let arrivals = site.arrivals();
        let in_flight = arrivals.iter().filter(|arrival| arrival.done.is_none()).count();
        (arrivals.len() > 10 && in_flight > 1).then_some(())
    });
    away.begin(redis);
    eventually("answers that can't be told", || {
        site.arrivals().iter().all(|arrival| arrival.done.is_some()).then_some(())
    });
    busy.terminate();
    let run = busy.finish();
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    run
}

fn assert_nothing_left(redis: &RedisServer) {
    let books = wait(books(&open(&redis.url(0))));
    assert_eq!((books.waiting, books.delayed, books.leased, books.dead), (0, 0, 0, 0), "{books:?}");
}

fn a_worker_ends_and_another_one_goes_on(away: Away) {
    let Some(mut redis) = RedisServer::builder().append_only().start() else { return };
    let site = slow_star();
    let ground = seeded(&site, 0, &redis);
    let first = worker(&ground, &redis, "first").start();
    let run = stopped_while_away(away, &mut redis, &site, first).expect_code(0);
    assert!(run.stderr.contains("left as they were"), "it had something to tell:\n{}", run.stderr);
    away.end(&mut redis);
    let next = worker(&ground, &redis, "second").run().expect_code(0);
    let found: BTreeSet<String> = items(&ground, &["first", "second"]).into_iter().collect();
    assert_eq!(found, all_paths(PAGES), "{}", next.stderr);
    assert_nothing_early(&ground, &site, 0);
    assert_nothing_left(&redis);
}

#[test]
fn l4_a_worker_told_to_stop_while_redis_stands_still_ends_and_another_one_loses_nothing() {
    a_worker_ends_and_another_one_goes_on(Away::Still);
}

#[test]
fn l4_a_worker_told_to_stop_after_redis_was_killed_ends_and_another_one_loses_nothing() {
    a_worker_ends_and_another_one_goes_on(Away::Killed);
}

fn a_crawl_ends_and_the_next_one_goes_on(away: Away) {
    let Some(mut redis) = RedisServer::builder().append_only().start() else { return };
    let site = slow_star();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(50))]);
    let crawl = || ground.crawl().env("PACED_FRONTIER", redis.url(0));
    let (first, next) = (crawl(), crawl());
    let run = stopped_while_away(away, &mut redis, &site, first.start()).expect_code(1);
    assert!(run.stderr.contains("how the sites stand can't be told"), "{}", run.stderr);
    away.end(&mut redis);
    let run = next.run().expect_code(0);
    let found: BTreeSet<String> = ground.item_paths("shop").into_iter().collect();
    assert_eq!(found, all_paths(PAGES), "{}", run.stderr);
    ground.assert_paced("shop", &site, ms(50));
    assert_nothing_left(&redis);
}

#[test]
fn l4_a_crawl_told_to_stop_while_redis_stands_still_ends_and_the_next_one_loses_nothing() {
    a_crawl_ends_and_the_next_one_goes_on(Away::Still);
}

#[test]
fn l4_a_crawl_told_to_stop_after_redis_was_killed_ends_and_the_next_one_loses_nothing() {
    a_crawl_ends_and_the_next_one_goes_on(Away::Killed);
}
