//! Bytes of a batch arrive after its connection was given up, and after later batches: nothing changes.

use paced::internals::frontier::{Frontier, FrontierErrorKind, LockReply, MutexKey};
use paced::internals::task::{PutReply, Settled};

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;

/// What is kept on the server of those who send batches.
fn clients(redis: &RedisServer) -> Vec<String> {
    redis.cli(&["KEYS", "*:client:*"]).lines().map(str::to_owned).collect()
}

fn forget_clients(redis: &RedisServer) {
    for client in clients(redis) {
        redis.cli(&["DEL", &client]);
    }
}

/// A request for one page, a claim and a lock, the first bytes of each held back; then all is ended.
async fn done_at_the_second_try(frontier: &Frontier, road: &RedisProxy) {
    road.hold_back("put.step");
    assert_eq!(put(frontier, 0..1).await.expect("answers"), [PutReply::Created]);
    road.hold_back("claim.step");
    let leases = claim(frontier, "one", 1).await.leases;
    assert_eq!(leases.len(), 1);
    road.hold_back("lock.try");
    let locked = frontier.try_lock(&MutexKey::named("m"), "token", 60_000).await.expect("answers");
    assert!(matches!(locked, LockReply::Taken(_)), "{locked:?}");
    assert_eq!(settle(frontier, "one", &leases[0], done()).await, Settled::Kept);
    assert!(frontier.unlock(&MutexKey::named("m"), "token").await.expect("answers"));
    assert_eq!(road.held(), 3);
}

async fn assert_done_once(frontier: &Frontier) {
    let books = books(frontier).await;
    assert_eq!((books.created, books.done, books.waiting, books.leased), (1, 1, 0, 0), "{books:?}");
    let left = frontier.lock_left(&MutexKey::named("m")).await.expect("answers");
    assert_eq!(left, None, "it was unlocked");
}

#[test]
fn i5_a_batch_whose_bytes_arrive_after_later_ones_changes_nothing() {
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let frontier = open(&road.url(0));
    wait(async {
        shop(&frontier, 0, 0).await;
        claim(&frontier, "one", 1).await;
        done_at_the_second_try(&frontier, &road).await;
        for answer in road.let_through() {
            assert!(answer.starts_with("-OVERTAKEN"), "{answer}");
        }
        assert_done_once(&frontier).await;
    });
}

#[test]
fn i5_i17_a_batch_of_a_client_that_the_server_knows_no_more_changes_nothing() {
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let frontier = open(&road.url(0));
    wait(async {
        shop(&frontier, 0, 0).await;
        claim(&frontier, "one", 1).await;
        done_at_the_second_try(&frontier, &road).await;
        for client in clients(&redis) {
            let left: i64 = redis.cli(&["PTTL", &client]).parse().expect("a number");
            assert!(left > 0, "{client} is kept for ever");
        }
        // Their time is over.
        forget_clients(&redis);
        for answer in road.let_through() {
            assert!(answer.starts_with("-NOTJOINED"), "{answer}");
        }
        assert_done_once(&frontier).await;
    });
}

#[test]
fn i5_a_client_that_was_silent_for_so_long_that_it_was_forgotten_goes_on_and_does_each_step_once() {
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let frontier = open(&road.url(0));
    wait(async {
        shop(&frontier, 0, 0).await;
        for page in 0..4 {
            forget_clients(&redis);
            if page % 2 == 1 {
                road.lose_answer_to("put.step");
            }
            let replies = put(&frontier, page..page + 1).await.expect("answers");
            assert_eq!(replies, [PutReply::Created], "page {page}");
        }
        assert_eq!(road.lost(), 2);
        assert_eq!(books(&frontier).await.created, 4);
    });
}

#[test]
fn a_late_hello_makes_nobody_s_late_batch_good_and_disturbs_nobody() {
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let frontier = open(&road.url(0));
    wait(async {
        assert_eq!(frontier.sites().await.expect("answers"), Vec::<String>::new());
        road.hold_back("FCALL");
        shop(&frontier, 0, 0).await;
        assert_eq!(road.held(), 1, "the first thing that a client sends is its hello");
        road.let_through();
        assert_eq!(put(&frontier, 0..1).await.expect("answers"), [PutReply::Created]);

        let frontier = open(&road.url(0));
        assert_eq!(frontier.sites().await.expect("answers"), ["shop"]);
        road.hold_back("FCALL");
        frontier.unlock(&MutexKey::named("m"), "nobody's").await.expect("answers");
        road.hold_back("put.step");
        put(&frontier, 1..2).await.expect("answers");
        forget_clients(&redis);
        let answers = road.let_through();
        assert!(answers[0].starts_with('$') && answers[1].starts_with("-NOTJOINED"), "{answers:?}");
        put(&frontier, 2..3).await.expect("answers");
        assert_eq!(books(&open(&redis.url(0))).await.created, 3);
    });
}

#[test]
fn a_server_that_lost_its_memory_is_told_everything_anew_and_once() {
    let Some(redis) = redis_or_skip() else { return };
    let road = RedisProxy::to(redis.port());
    let frontier = open(&road.url(0));
    wait(async {
        shop(&frontier, 0, 3).await;
        redis.cli(&["FLUSHALL"]);
        let error = put(&frontier, 0..2).await.expect_err("it knows of nothing");
        assert!(matches!(error.kind, FrontierErrorKind::NoSite(_)), "{error}");
        redis.cli(&["FLUSHALL"]);
        road.lose_answer_to("sites.register");
        shop(&frontier, 0, 2).await;
        assert_eq!((road.lost(), books(&frontier).await.created), (1, 2));
    });
}
