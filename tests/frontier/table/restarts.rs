//! A restart may have forgotten starts that were granted ahead: each unit and site counts as started by when they went out.

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{Claim, Frontier, Grant, LockReply, MutexKey, Rearm, WorkScope};
use paced::internals::task::Lease;

use crate::support::redis_or_skip;
use crate::world::{AHEAD, OWNER, START, ms, request, shop, starts_at, wait_for};

async fn put_up(frontier: &Frontier, interval: i64) {
    let mut site = shop("a");
    site.settings.interval = interval;
    frontier.register(site).await.expect("registered");
    frontier.put("a", (0..5).map(|i| request("a", &i.to_string())).collect()).await.expect("put");
    frontier.work_on(OWNER, WorkScope::All).await.expect("said");
}

async fn grant(frontier: &Frontier) -> Grant {
    let token = fastrand::u64(1..1 << 60);
    let claim = Claim { owner: OWNER.to_owned(), token, download: 1, parse: 0, dice: vec![0], lead: 0 };
    frontier.claim(claim).await.expect("a grant")
}

async fn take(frontier: &Frontier) -> Lease {
    grant(frontier).await.leases.pop().expect("a download is due")
}

#[test]
fn g8_on_redis_a_grant_that_the_server_forgot_counts_as_started_50_ms_after_it_came_back() {
    let Some(mut redis) = redis_or_skip() else { return };
    let clock = Clock::fake(Timestamp::from_millis(START));
    let frontier = Frontier::redis(&redis.url(0), Some(clock.clone())).expect("a URL of Redis");
    wait_for(async {
        put_up(&frontier, 200).await;
        assert_eq!(redis.cli(&["SAVE"]), "OK");
        assert_eq!(starts_at(&take(&frontier).await), 10);
        redis.restart();
        let first = grant(&frontier).await;
        assert_eq!((first.leases.len(), first.next_in), (0, Some(50 + 200 - AHEAD / 2)));
        let outsider = frontier.try_lock(&MutexKey::unit("a"), "outsider", 200).await.expect("answers");
        assert_eq!(outsider, LockReply::Held(250));
        clock.advance(ms(249));
        assert_eq!(grant(&frontier).await.leases, [], "nor ahead: the outsider waits for it");
    });
}

#[test]
fn g8_on_redis_a_far_start_granted_before_a_restart_moves_once_and_stands_then() {
    let Some(mut redis) = redis_or_skip() else { return };
    let clock = Clock::fake(Timestamp::from_millis(START));
    let frontier = Frontier::redis(&redis.url(0), Some(clock.clone())).expect("a URL of Redis");
    wait_for(async {
        put_up(&frontier, 200).await;
        let first = take(&frontier).await;
        clock.advance(ms(200));
        let second = take(&frontier).await;
        let ask = async |lease: &Lease, whether: Option<i64>| {
            let whether = whether.map(|at| START + at);
            match frontier.rearm_asking(&lease.key(), whether, 0).await.expect("answers") {
                Rearm::Departs(departure) => departure.at - START,
                other => panic!("it has a start: {other:?}"),
            }
        };
        assert_eq!((ask(&first, None).await, ask(&second, None).await), (410, 610));
        assert_eq!(ask(&first, Some(410)).await, 410);
        assert_eq!(redis.cli(&["SAVE"]), "OK");
        redis.restart();
        assert_eq!(ask(&first, Some(410)).await, 810, "others may have been granted since it was saved");
        clock.advance(ms(1));
        assert_eq!(ask(&second, Some(610)).await, 1_010);
        assert_eq!((ask(&first, Some(810)).await, ask(&first, Some(810)).await), (1_210, 1_210));
        assert_eq!(ask(&second, Some(1_010)).await, 1_010);
    });
}

#[test]
fn g8_on_sqlite_after_a_boot_a_grant_that_was_forgotten_counts_as_started_50_ms_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    let open = || Frontier::sqlite(&file, None).expect("our file");
    wait_for(async {
        let before = open();
        put_up(&before, 60_000).await;
        drop(before);
        let changed = rusqlite::Connection::open(&file)
            .and_then(|file| file.execute("UPDATE meta SET value = 'another' WHERE key = 'boot'", []));
        assert_eq!(changed.expect("its boot"), 1);
        let after = open();
        let view = after.view("a").await.expect("answers").expect("it is there");
        let last = view.last_start.expect("it counts as started").as_millis();
        assert_eq!(view.due.as_millis(), last + 60_000);
        assert!(last <= view.at.as_millis() + 50, "{last}, now {}", view.at);
        let put_at = view.oldest.expect("it has pages").as_millis();
        assert!(last >= put_at + 50, "{last}, put at {put_at}");
        assert_eq!(grant(&after).await.leases, []);
    });
}
