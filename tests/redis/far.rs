//! A Redis so far away that its time is known badly: the mean rate is kept, and that is said.

use std::time::{Duration, Instant};

use paced::internals::clock::millis;
use paced::internals::frontier::permit::Permit;
use paced::internals::frontier::{Frontier, MutexKey};
use paced::internals::manners::grace;

use crate::ground::{Ground, SiteFile, asked, ms, star, wait};
use crate::steps::open;
use crate::support::*;

#[test]
fn a_redis_far_away_keeps_the_mean_rate_and_says_so_once() {
    const PAGES: usize = 12;
    let interval = ms(200);
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    road.slow(ms(15));
    let site = star(PAGES).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(interval)]);
    let run = ground.crawl().arg("--frontier").arg(road.url(0)).run().expect_code(0);
    assert_eq!(asked(&site).len(), PAGES + 2, "each page once, and robots.txt");
    assert_eq!(run.stderr.matches("only the mean rate of starts is kept").count(), 1, "{}", run.stderr);
    let arrivals: Vec<_> = site.arrivals().iter().map(|arrival| arrival.at).collect();
    let took = arrivals[arrivals.len() - 1].saturating_sub(arrivals[0]);
    let due = interval * u32::try_from(PAGES + 1).expect("a few");
    assert!(took + interval / 2 >= due, "{took:?} for what takes {due:?}");
}

/// A permit that has its start and lets it grow late; what the frontier answers next takes so long there and back.
async fn late_permit(frontier: &Frontier, interval: Duration, road: &RedisProxy, slow: Duration) -> Permit {
    let permit = Permit::single(frontier, "shop", interval);
    permit.start().await.expect("nobody has it");
    tokio::time::sleep(grace(interval) + ms(50)).await;
    road.slow(slow);
    permit
}

#[test]
fn v5_a_permit_that_is_moved_counts_from_when_that_was_asked_for_not_from_its_answer() {
    let interval = Duration::from_secs(3);
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let (frontier, near) = (open(&road.url(0)), open(&redis.url(0)));
    let unit = MutexKey::unit("shop");
    wait(async {
        let permit = late_permit(&frontier, interval, &road, ms(100)).await;
        let asked = near.clock_of(&unit).now();
        permit.start().await.expect("it is moved");
        let left = near.lock_left(&unit).await.expect("answers").expect("it is held");
        let ends = near.clock_of(&unit).now().as_millis() + left;
        let at = permit.departure().at;
        assert!(
            at >= asked.as_millis() && at + millis(interval) <= ends + 2,
            "{at} in {asked:?}, until {ends}"
        );
    });
}

#[test]
fn a_permit_is_moved_by_a_slow_answer_too_however_short_its_grace() {
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let frontier = open(&road.url(0));
    wait(async {
        let permit = late_permit(&frontier, ms(200), &road, ms(60)).await;
        let moved = tokio::time::timeout(Duration::from_secs(30), permit.start()).await;
        moved.expect("it finds a time").expect("answers");
    });
}

#[test]
fn after_one_slow_answer_a_permit_holds_its_unit_for_its_interval_and_no_second_more() {
    let interval = Duration::from_secs(1);
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let (frontier, near) = (open(&road.url(0)), open(&redis.url(0)));
    let unit = MutexKey::unit("shop");
    wait(async {
        let permit = late_permit(&frontier, interval, &road, ms(1_000)).await;
        let moved = permit.start();
        let mut longest = 0;
        let looks = async {
            let began = Instant::now();
            loop {
                if began.elapsed() > ms(1_500) {
                    road.slow(ms(0));
                }
                longest = longest.max(near.lock_left(&unit).await.expect("answers").unwrap_or(0));
                tokio::time::sleep(ms(20)).await;
            }
        };
        tokio::select! {
            moved = moved => assert!(moved.is_ok(), "{moved:?}"),
            () = looks => {}
        }
        assert!(longest > 0 && longest <= millis(interval) + 1_000, "{longest} ms");
    });
}
