//! Who claims, while processes of an older version work beside, or left something behind.

use std::pin::pin;

use futures_util::future::{FutureExt, join3};
use paced::internals::frontier::{Frontier, Registration, WorkScope};

use crate::ground::{Ground, SiteFile, ms, star, wait};
use crate::steps::*;
use crate::support::*;

/// What a process of the version before writes when it joins to crawl a site. No beat of it follows.
fn older_member(redis: &RedisServer, name: &str, crawls: &str) {
    redis.cli(&["HSET", &format!("{{paced:0}}:owner:{name}"), "pid", "7", "crawls", crawls]);
    redis.cli(&["SADD", "{paced:0}:owners", name]);
    redis.cli(&["SADD", "{paced:0}:picky", name]);
}

#[test]
fn the_last_worker_that_was_killed_counts_as_at_work_for_as_long_as_its_beat_lasts() {
    let Some(redis) = redis_or_skip() else { return };
    let (frontier, killed) = (open(&redis.url(0)), open(&redis.url(0)));
    let member = wait(killed.join_as("last", WorkScope::All)).expect("joined");
    let at_work = || wait(frontier.at_work()).expect("answers");
    assert_eq!(at_work().len(), 1);
    std::thread::sleep(ms(5_000));
    wait(killed.beat(&member, true)).expect("beaten");
    std::thread::sleep(ms(6_000));
    assert_eq!(at_work().len(), 1, "it was heard of since");
    within(ms(30_000), "the end of its beat", || at_work().is_empty().then_some(()));
    assert!(!wait(frontier.owners()).expect("answers")[0].dead, "nobody was there to declare it dead");
}

fn only(site: &str) -> WorkScope {
    WorkScope::of([site.to_owned()])
}

#[test]
fn a_fresh_crawl_is_refused_while_a_process_of_an_older_version_crawls_the_site() {
    let Some(redis) = redis_or_skip() else { return };
    let site = star(3).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(20))]);
    let fresh = || ground.crawl().env("PACED_FRONTIER", redis.url(0)).arg("--fresh");
    ground.crawl().env("PACED_FRONTIER", redis.url(0)).run().expect_code(0);
    older_member(&redis, "older", r#"["shop","other"]"#);
    older_member(&redis, "worker", "[]");
    let owners = wait(open(&redis.url(0)).owners()).expect("answers");
    let scopes: Vec<_> = owners.into_iter().map(|owner| (owner.name, owner.scope)).collect();
    let older = WorkScope::of(["shop".to_owned(), "other".to_owned()]);
    assert_eq!(scopes, [("older".to_owned(), older), ("worker".to_owned(), WorkScope::All)]);
    let run = fresh().run();
    assert!(run.code != Some(0) && run.stderr.contains("process 7 crawls other, shop"), "{}", run.stderr);
    wait(open(&redis.url(0)).bury("older")).expect("declared dead");
    fresh().run().expect_code(0);
}

async fn in_group(frontier: &Frontier, name: &str, interval: i64) {
    let group = Some(("g".to_owned(), interval));
    frontier.register(Registration { group, ..registration(name, interval) }).await.expect("answers");
    put_in(frontier, name, 0..3).await.expect("answers");
}

#[test]
fn a_claim_passes_over_sites_that_are_listed_as_of_a_group_and_are_gone_or_have_left_it() {
    const MINUTE: i64 = 60_000;
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, MINUTE, 3).await;
        redis.cli(&["SADD", "{paced:0}:grouped", "gone", "shop"]);
        let scope = WorkScope::of(["gone".to_owned(), "shop".to_owned()]);
        frontier.work_on("one", scope).await.expect("said");
        let grant = claim(&frontier, "one", 1).await;
        assert_eq!(grant.leases.len(), 1);
        assert!(grant.next_in.is_some_and(|wait| wait > 20_000), "the site is one unit: {grant:?}");
    });
}

#[test]
fn a_claim_goes_by_the_sites_that_its_process_named_in_the_same_batch() {
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, 0, 1).await;
        frontier.work_on("one", only("nowhere")).await.expect("said");
        let (held, before) = (frontier.hold(), frontier.calls());
        let claim = || frontier.claim(want("one", 1, 0));
        let mut posted = pin!(join3(claim(), frontier.work_on("one", only("shop")), claim()));
        assert!(posted.as_mut().now_or_never().is_none(), "they are held");
        drop(held);
        let (first, said, second) = posted.await;
        said.expect("said");
        let granted = [first, second].map(|grant| grant.expect("answers").leases.len());
        assert_eq!(granted, [0, 1]);
        assert_eq!(frontier.calls(), before.map(|calls| calls + 1), "they travel together");
    });
}

#[test]
fn i16_a_claim_among_named_sites_copes_with_a_large_group_and_lists_its_sites_once_a_look() {
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        in_group(&frontier, "a", 60_000).await;
        let crowd = "for i = 1, 9000 do redis.call('ZADD', KEYS[1], 0, 'crowd' .. i) end";
        redis.cli(&["EVAL", crowd, "1", "{paced:0}:ready:d:g:general"]);
        frontier.work_on("one", only("a")).await.expect("said");
        assert_eq!(claim(&frontier, "one", 1).await.leases.len(), 1);
        redis.cli(&["CONFIG", "RESETSTAT"]);
        let grant = frontier.claim(want("one", 1, 1)).await.expect("answers");
        assert!(grant.leases.is_empty() && grant.next_in.is_some_and(|wait| wait > 0), "{grant:?}");
        let calls = redis.calls();
        assert_eq!(
            calls.get("zinter"),
            Some(&3),
            "once a stage, and once to find the first that is ready: {calls:?}"
        );
    });
}
