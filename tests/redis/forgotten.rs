//! A server that comes back without its last second: the starts of that second are forgotten, and none comes early for it.

use paced::internals::frontier::{Frontier, Grant, LockReply, MutexKey, Registered, Registration, WorkScope};
use paced::internals::task::Lease;

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;

const MINUTE: i64 = 60_000;
/// A start granted right before the restart may have gone out so long after it.
pub const AHEAD: i64 = 50;

/// A server of one's own and its frontier.
fn on_a_server(test: impl AsyncFnOnce(&mut RedisServer, &Frontier)) {
    let Some(mut redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    wait(test(&mut redis, &frontier));
}

/// About all of an interval is left: of the shorter ones that it might be mistaken for, none is half as long.
fn is_left_of(interval: i64, left: i64) -> bool {
    (interval / 2..=interval + AHEAD).contains(&left)
}

/// What comes after this is forgotten with the next restart.
fn remember(redis: &RedisServer) {
    assert_eq!(redis.cli(&["SAVE"]), "OK");
}

async fn register(frontier: &Frontier, new: Registration) {
    let answer = frontier.register(new).await.expect("a frontier that answers");
    assert!(matches!(answer, Registered::Version(_)), "{answer:?}");
}

/// A site of a group, with a page.
async fn member(frontier: &Frontier, name: &str, interval: i64, group: i64) {
    let group = Some(("g".to_owned(), group));
    register(frontier, Registration { group, ..registration(name, interval) }).await;
    put_in(frontier, name, 0..1).await.expect("a frontier that answers");
}

/// A claim of a process that works on that site alone while it makes it.
async fn claim_of(frontier: &Frontier, site: &str) -> Grant {
    frontier.work_on("one", WorkScope::of([site.to_owned()])).await.expect("a frontier that answers");
    let grant = claim(frontier, "one", 1).await;
    frontier.work_on("one", WorkScope::All).await.expect("a frontier that answers");
    grant
}

/// A download of that site, which is due.
async fn take(frontier: &Frontier, site: &str) -> Lease {
    let grant = claim_of(frontier, site).await;
    assert_eq!(grant.leases.len(), 1, "{site}: {grant:?}");
    grant.leases[0].clone()
}

/// Nothing is granted for so long, nor is the mutex of the unit to be had, ask as often as one will.
async fn assert_waits(frontier: &Frontier, unit: &str, interval: i64) {
    let grant = claim(frontier, "one", 5).await;
    assert!(grant.leases.is_empty(), "the start before may be forgotten: {grant:?}");
    assert!(grant.next_in.is_some_and(|wait| is_left_of(interval, wait)), "{grant:?}");
    assert_held(frontier, unit, interval).await;
}

async fn assert_held(frontier: &Frontier, unit: &str, interval: i64) {
    for _ in 0..3 {
        let lock = frontier.try_lock(&MutexKey::unit(unit), "outsider", 100).await;
        let lock = lock.expect("a frontier that answers");
        assert!(matches!(lock, LockReply::Held(left) if is_left_of(interval, left)), "{lock:?}");
    }
}

#[test]
fn i1_a_unit_whose_first_start_is_forgotten_waits_its_interval() {
    const INTERVAL: i64 = 1_500;
    on_a_server(async |redis, frontier| {
        shop(frontier, INTERVAL, 5).await;
        remember(redis);
        let first = next(frontier, "one").await;
        redis.restart();
        assert_waits(frontier, "shop", INTERVAL).await;
        let second = next(frontier, "one").await;
        assert_spaced(&[first, second], INTERVAL);
    });
}

#[test]
fn i1_an_outsider_that_comes_first_after_a_restart_waits_the_interval_and_so_does_the_site() {
    on_a_server(async |redis, frontier| {
        shop(frontier, MINUTE, 5).await;
        remember(redis);
        next(frontier, "one").await;
        redis.restart();
        assert_held(frontier, "shop", MINUTE).await;
        assert_waits(frontier, "shop", MINUTE).await;
    });
}

#[test]
fn i1_after_a_restart_a_group_waits_its_interval_and_each_of_its_sites_its_own() {
    on_a_server(async |redis, frontier| {
        for (name, interval) in [("a", 1_000), ("b", MINUTE), ("c", 20_000)] {
            member(frontier, name, interval, 4_000).await;
        }
        remember(redis);
        let forgotten = take(frontier, "c").await;
        settle(frontier, "one", &forgotten, done()).await;
        redis.restart();
        assert_waits(frontier, "g", 4_000).await;
        sleep(4_100).await;
        for (name, wait) in [("b", MINUTE), ("c", 20_000)] {
            assert_waits_of(frontier, name, wait).await;
        }
        take(frontier, "a").await;
    });
}

#[test]
fn i1_after_a_restart_a_group_waits_the_longest_that_its_files_name_and_those_who_left_it_count_no_more() {
    on_a_server(async |redis, frontier| {
        for (name, interval) in [("a", 1_000), ("moved", MINUTE), ("gone", MINUTE), ("old", 3_000)] {
            member(frontier, name, interval, 0).await;
        }
        register(frontier, registration("moved", MINUTE)).await;
        while frontier.give_up("gone").await.expect("answers") {}
        frontier.forget("gone").await.expect("answers");
        frontier.rename("old", "new").await.expect("answers");
        remember(redis);
        redis.restart();
        assert_waits_of(frontier, "a", 3_000).await;
        redis.restart();
        frontier
            .tune("new", paced::internals::frontier::Tuning::Interval(Some(30_000)))
            .await
            .expect("tuned");
        assert_waits_of(frontier, "a", 3_000).await;
        sleep(3_000).await;
        assert_waits_of(frontier, "new", 30_000).await;
        take(frontier, "a").await;
    });
}

/// One site's unit alone.
async fn assert_waits_of(frontier: &Frontier, site: &str, interval: i64) {
    let grant = claim_of(frontier, site).await;
    assert!(grant.leases.is_empty(), "{site}: {grant:?}");
    assert!(grant.next_in.is_some_and(|wait| is_left_of(interval, wait)), "{site}: {grant:?}");
}

#[test]
fn i1_a_site_that_changes_its_group_or_its_name_after_a_restart_waits_as_well() {
    on_a_server(async |redis, frontier| {
        shop(frontier, MINUTE, 5).await;
        remember(redis);
        next(frontier, "one").await;
        redis.restart();
        member(frontier, "shop", MINUTE, 0).await;
        assert_waits(frontier, "g", MINUTE).await;
        redis.restart();
        frontier.rename("shop", "store").await.expect("answers");
        assert_waits(frontier, "store", MINUTE).await;
    });
}

#[test]
fn what_is_registered_on_the_new_server_waits_for_nothing() {
    on_a_server(async |redis, frontier| {
        shop(frontier, MINUTE, 5).await;
        remember(redis);
        redis.restart();
        register_as(frontier, "later", MINUTE).await;
        put_in(frontier, "later", 0..1).await.expect("answers");
        take(frontier, "later").await;
        member(frontier, "a", MINUTE, MINUTE).await;
        take(frontier, "a").await;
    });
}
