//! On Redis a mutex is a key: what an operator sees of it, and what a program that has nothing but Redis may do with it.

use paced::internals::frontier::{Grant, Tuning, WorkScope};
use paced::internals::mutex::TimedMutex;

use super::shared_pace::{INTERVAL, claim, with_books};
use super::{Backend, PATIENCE, assert_spaced, ms, pace};
use crate::support::RedisDb;
use paced::internals::clock::Timestamp;

const BOOKS: &str = "{paced:0}:mutex:books";

/// A frontier on Redis where `books` has many pages, and the name of a process that claims.
async fn books() -> Option<(Backend, String)> {
    let backend = Backend::redis(None)?;
    with_books(&backend.frontier).await;
    let member = backend.frontier.join(WorkScope::All).await.expect("the frontier");
    Some((backend, member.name.clone()))
}

fn db(backend: &Backend) -> &RedisDb {
    backend.db.as_ref().expect("it is on Redis")
}

/// How long a key lives, in ms.
fn pttl(backend: &Backend, key: &str) -> u64 {
    let told = db(backend).cli(&["PTTL", key]);
    told.parse().unwrap_or_else(|_| panic!("{key} has no time: {told}"))
}

/// The time of the server.
fn now(backend: &Backend) -> Timestamp {
    let told = db(backend).cli(&["TIME"]);
    let (seconds, micros) = told.split_once('\n').expect("two numbers");
    let [seconds, micros] = [seconds, micros].map(|number| number.parse::<i64>().expect("a number"));
    Timestamp::from_millis(seconds * 1_000 + micros / 1_000)
}

async fn tune(backend: &Backend, interval: i64) {
    let tuned = backend.frontier.tune("books", Tuning::Interval(Some(interval))).await;
    assert!(tuned.expect("the frontier"));
}

/// Claims until something is granted, waiting as long as it is told.
async fn next_start(backend: &Backend, owner: &str) -> Timestamp {
    for _ in 0..100 {
        let Grant { leases, next_in, .. } = claim(&backend.frontier, owner).await;
        if let Some(lease) = leases.first() {
            return lease.departure.at();
        }
        let wait = next_in.and_then(|wait| u64::try_from(wait).ok()).expect("pages are waiting");
        tokio::time::sleep(ms(wait)).await;
    }
    panic!("it asked a hundred times in vain");
}

#[tokio::test]
async fn v11_the_time_of_a_site_s_key_tells_when_the_site_is_next() {
    let Some((backend, owner)) = books().await else { return };
    tune(&backend, 60_000).await;
    let start = next_start(&backend, &owner).await;
    let left = pttl(&backend, BOOKS);
    assert!((1..=60_010).contains(&left), "{left}: from a start on that is 10 ms ahead");
    let ends = now(&backend).plus(ms(left));
    assert!(ends >= start.plus(ms(59_999)), "{ends} for a start at {start}");
}

/// The server measures a key's time from when a call came, and reads the clock later: now and then in another millisecond.
#[tokio::test]
async fn v3_a_key_ends_a_full_time_after_the_instant_that_its_holder_is_told() {
    let Some(backend) = Backend::redis(None) else { return };
    for n in 0..1_000 {
        let name = format!("name-{n}");
        let mutex = TimedMutex::new(&backend.frontier, &name).expire(ms(60_000));
        let held = mutex.try_lock().await.expect("the frontier").expect("it is free");
        let ends = db(&backend).cli(&["PEXPIRETIME", &format!("{{paced:0}}:named//{name}")]);
        assert_eq!(ends.parse(), Ok(held.taken_at().plus(ms(60_000)).as_millis()), "{name}");
    }
}

#[tokio::test]
async fn an_outsider_s_plain_set_is_waited_for_by_the_claim_and_refused_while_a_start_holds_the_key() {
    let Some((backend, owner)) = books().await else { return };
    let before = now(&backend);
    assert_eq!(db(&backend).cli(&["SET", BOOKS, "stranger", "NX", "PX", "700"]), "OK");
    let grant = claim(&backend.frontier, &owner).await;
    assert!(grant.leases.is_empty(), "the stranger has it");
    assert!(grant.next_in.is_some_and(|wait| (1..=700).contains(&wait)), "{grant:?}");
    let start = next_start(&backend, &owner).await;
    assert!(start >= before.plus(ms(699)), "{start} although it was taken for 700 ms at {before}");

    tune(&backend, 60_000).await;
    assert_eq!(db(&backend).cli(&["SET", BOOKS, "stranger", "NX", "PX", "700"]), "", "a start holds it");
}

#[tokio::test]
async fn a_key_without_a_time_is_looked_at_again_after_a_second_or_the_interval() {
    let Some((backend, owner)) = books().await else { return };
    db(&backend).cli(&["SET", BOOKS, "stranger"]);
    let grant = claim(&backend.frontier, &owner).await;
    assert_eq!((grant.leases.len(), grant.next_in), (0, Some(1_000)));
    tokio::time::sleep(ms(1_000)).await;
    let again = claim(&backend.frontier, &owner).await;
    assert!(again.leases.is_empty() && again.next_in.is_some_and(|wait| wait > 0), "{again:?}");
    db(&backend).cli(&["DEL", BOOKS]);
    next_start(&backend, &owner).await;

    tune(&backend, 5_000).await;
    db(&backend).cli(&["SET", BOOKS, "stranger"]);
    let grant = claim(&backend.frontier, &owner).await;
    assert!(grant.leases.is_empty(), "the stranger has it");
    assert!(grant.next_in.is_some_and(|wait| (1..=5_000).contains(&wait)), "{grant:?}");
}

#[tokio::test]
async fn i1_no_start_comes_early_though_the_key_of_each_start_is_flushed() {
    let Some((backend, owner)) = books().await else { return };
    let outsider = TimedMutex::of_site_in(&backend.frontier, "books").await.expect("the site");
    let (mut starts, mut outside) = (Vec::new(), 0);
    while starts.len() < 12 {
        let grant = claim(&backend.frontier, &owner).await;
        if let Some(lease) = grant.leases.first() {
            starts.push(lease.departure.at());
            db(&backend).cli(&["DEL", BOOKS]);
        }
        if let Some(held) = outsider.try_lock().await.expect("the frontier") {
            starts.push(held.taken_at());
            outside += 1;
        }
        tokio::time::sleep(ms(fastrand::u64(0..30))).await;
    }
    assert!((1..12).contains(&outside), "both sides had turns: {outside} of 12");
    assert_spaced(starts, 12, ms(INTERVAL), "starts");
}

#[tokio::test]
async fn l6_a_tuned_interval_moves_the_key_at_once_and_is_in_force_for_the_very_next_claim() {
    let Some((backend, owner)) = books().await else { return };
    tune(&backend, 600_000).await;
    let first = next_start(&backend, &owner).await;
    assert!(pttl(&backend, BOOKS) > 60_000);
    tune(&backend, 300).await;
    let left = db(&backend).cli(&["PTTL", BOOKS]).parse::<i64>().expect("a number");
    // The start is 10 ms ahead, and may be 250 ms late on the wire instead of 30.
    assert!(left <= 300 + 10 + 220, "{left} ms are left of a key that holds for 300");
    let second = next_start(&backend, &owner).await;
    assert_spaced(vec![first, second], 2, ms(300), "after a quicker pace");
    tune(&backend, 600_000).await;
    assert!(pttl(&backend, BOOKS) > 60_000, "a slower pace holds outsiders off as well");
    assert!(claim(&backend.frontier, &owner).await.leases.is_empty());
}

#[tokio::test]
async fn v6_v8_a_named_mutex_is_a_key_of_its_name_which_anybody_may_take_and_free() {
    let Some(backend) = Backend::redis(None) else { return };
    for (namespace, name, key) in
        [("", "mail", "{paced:0}:named//mail"), ("nightly", "a/b", "{paced:0}:named/nightly/a/b")]
    {
        let mutex = TimedMutex::new(&backend.frontier, name).namespace(namespace).expire(PATIENCE);
        let held = mutex.try_lock().await.expect("the frontier").expect("nobody has it");
        let left = pttl(&backend, key);
        assert!((1..=60_000).contains(&left), "{key}: {left}");
        assert_eq!(db(&backend).cli(&["SET", key, "stranger", "NX", "PX", "700"]), "", "{key}: it is held");
        db(&backend).cli(&["DEL", key]);
        assert!(!held.is_owned().await.expect("the frontier"), "{key}: its key is gone");
        assert_eq!(db(&backend).cli(&["SET", key, "stranger", "NX", "PX", "60000"]), "OK");
        assert!(mutex.try_lock().await.expect("the frontier").is_none(), "{key}: the stranger has it");
        assert!(mutex.left().await.expect("the frontier").is_some_and(|left| left <= PATIENCE));
    }
}

#[tokio::test]
async fn r4_no_key_that_a_guard_holds_is_without_an_end() {
    let Some(backend) = Backend::redis(None) else { return };
    let plain = TimedMutex::new(&backend.frontier, "plain");
    let _held = plain.try_lock().await.expect("the frontier").expect("nobody has it");
    let _paced = pace(&backend.frontier, PATIENCE).try_lock().await.expect("the frontier");
    let keys = db(&backend).cli(&["KEYS", "{paced:0}:named/*"]);
    assert_eq!(keys.lines().count(), 2, "{keys}");
    keys.lines().for_each(|key| assert!(pttl(&backend, key) > 0, "{key}"));
}
