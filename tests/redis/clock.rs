//! The wall clock of the server jumps an hour: forward, at most one start a site comes early; back, hardly anybody waits.

use std::time::{Duration, Instant};

use paced::internals::frontier::{Frontier, WorkScope};
use paced::internals::mutex::TimedMutex;
use paced::internals::task::Settled;

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;

const HOUR: i64 = 3_600_000;
const INTERVAL: i64 = 400;

/// A start by this machine's steady clock: after it was asked for, and before it was told.
type Within = (Instant, Instant);

/// Starts so many pages, one after the other.
async fn starts(frontier: &Frontier, count: usize) -> Vec<Within> {
    let mut starts = Vec::new();
    while starts.len() < count {
        let asked = Instant::now();
        let grant = claim(frontier, "one", 1).await;
        if let Some(lease) = grant.leases.first() {
            starts.push((asked, Instant::now()));
            assert_eq!(settle(frontier, "one", lease, done()).await, Settled::Kept);
        }
        let next_in = grant.next_in.expect("pages are waiting");
        assert!(next_in <= INTERVAL + 1_000, "a stall of {next_in} ms");
        sleep(next_in.min(20)).await;
    }
    starts
}

/// Gaps that are clearly below the interval, each as long as it can have been: a busy machine makes none of them.
fn early(starts: &[Within]) -> Vec<Duration> {
    let least = Duration::from_millis(u64::try_from(INTERVAL).expect("forward") * 9 / 10);
    starts.windows(2).map(|pair| pair[1].1 - pair[0].0).filter(|gap| *gap < least).collect()
}

#[test]
fn i1_the_server_s_clock_jumps_forward_and_back_and_at_most_one_start_comes_early() {
    let Some(redis) = RedisServer::builder().movable_clock().start() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, INTERVAL, 100).await;
        let mut all = starts(&frontier, 4).await;
        redis.shift_clock(HOUR);
        all.extend(starts(&frontier, 4).await);
        let before_back = early(&all);
        assert!(before_back.len() <= 1, "forward: early {before_back:?}");
        redis.shift_clock(0);
        all.extend(starts(&frontier, 4).await);
        redis.shift_clock(-HOUR);
        all.extend(starts(&frontier, 4).await);
        assert_eq!(early(&all), before_back, "back: nothing comes early");
        let books = books(&frontier).await;
        assert_eq!((books.done, books.dead), (16, 0), "{books:?}");
    });
}

#[test]
fn a_start_s_own_key_that_outlives_a_jump_back_stalls_nobody() {
    let Some(redis) = RedisServer::builder().movable_clock().start() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, INTERVAL, 100).await;
        starts(&frontier, 2).await;
        redis.shift_clock(-HOUR);
        let left: i64 = redis.cli(&["PTTL", "{paced:0}:mutex:shop"]).parse().expect("a number");
        assert!(left > HOUR / 2, "the server keeps the key for an hour: {left}");
        starts(&frontier, 3).await;
    });
}

#[test]
fn what_an_outsider_took_before_a_jump_back_stalls_the_site_no_longer_than_an_interval_and_a_second() {
    let Some(redis) = RedisServer::builder().movable_clock().start() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, INTERVAL, 100).await;
        let outsider = TimedMutex::of_site_in(&frontier, "shop").await.expect("the site");
        outsider.lock().await.expect("the frontier");
        redis.shift_clock(-HOUR);
        // Every wait that is told is short, and they come to an end.
        starts(&frontier, 3).await;
        let left = outsider.left().await.expect("the frontier");
        assert!(left <= Some(Duration::from_millis(1_400)), "{left:?}");
    });
}

#[test]
fn v6_a_named_mutex_taken_before_a_jump_back_ends_all_the_same() {
    let Some(redis) = RedisServer::builder().movable_clock().start() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        let mutex = TimedMutex::new(&frontier, "mail").expire(Duration::from_millis(500)).auto_release(false);
        mutex.lock().await.expect("the frontier");
        redis.shift_clock(-HOUR);
        let left = mutex.left().await.expect("the frontier");
        assert!(left <= Some(Duration::from_millis(1_500)), "{left:?}");
    });
}

#[test]
fn a_jump_forward_takes_no_process_for_dead_that_is_alive() {
    let Some(redis) = RedisServer::builder().movable_clock().start() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, 0, 10).await;
        let (one, two) =
            (frontier.join(WorkScope::All).await, frontier.join(WorkScope::All).await.expect("joined"));
        let one = one.expect("joined");
        redis.shift_clock(HOUR);
        frontier.beat(&two, true).await.expect("beaten");
        frontier.beat(&one, true).await.expect("beaten");
        let owners = frontier.owners().await.expect("answers");
        assert!(owners.iter().all(|owner| !owner.dead), "{owners:?}");
        let lease = claim(&frontier, &one.name, 1).await.leases.pop().expect("a page is due");
        assert_eq!(settle(&frontier, &one.name, &lease, done()).await, Settled::Kept);
    });
}

#[test]
fn l7_an_answer_that_was_lost_and_comes_again_sets_no_clock_back() {
    const AWAY: u64 = 1_000;
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let (near, frontier) = (open(&redis.url(0)), open(&road.url(0)));
    wait(async {
        shop(&near, 0, 0).await;
        for number in 0..5 {
            put(&frontier, number..number + 1).await.expect("answers");
        }
        // What was done at once is answered a second later, with the time of its doing.
        road.lose_answer_to("put.step");
        let robbed = road.lost();
        let away = async {
            while road.lost() == robbed {
                tokio::task::yield_now().await;
            }
            road.close();
            sleep(AWAY.try_into().expect("small")).await;
            road.open();
        };
        let (answered, ()) = tokio::join!(put(&frontier, 5..6), away);
        answered.expect("answers");
        // Before anything else is heard of the server.
        let (told, since) = (frontier.clock().now(), Instant::now());
        books(&near).await;
        let behind = near.clock().now().since(told).saturating_sub(since.elapsed());
        assert!(behind < Duration::from_millis(AWAY / 2), "it is {behind:?} behind the server");
    });
}
