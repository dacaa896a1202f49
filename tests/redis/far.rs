//! A Redis so far away that its time is known badly: the mean rate is kept, and that is said.

use crate::ground::{Ground, SiteFile, asked, ms, star};
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
