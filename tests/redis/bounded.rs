//! No step takes longer as more is there (I16): the same call at N and at 10 N of something, by the commands that it takes.

use std::collections::BTreeMap;

use paced::internals::frontier::{Frontier, Registered, Registration, Tuning, WorkScope};
use paced::internals::task::{Failure, Outcome, Priority, Put, RobotsAccess, RobotsRecord};

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;

/// How often each command was called by a step.
async fn calls_of<T>(redis: &RedisServer, step: impl Future<Output = T>) -> (T, BTreeMap<String, u64>) {
    redis.cli(&["CONFIG", "RESETSTAT"]);
    let answer = step.await;
    let mut calls = redis.calls();
    calls.retain(|command, _| !command.starts_with("config"));
    (answer, calls)
}

/// The process gets so many leases of the site.
async fn leases(frontier: &Frontier, owner: &str, count: usize) {
    let mut granted = 0;
    while granted < count {
        granted += claim(frontier, owner, 50).await.leases.len();
    }
}

#[test]
fn i16_a_burial_takes_as_long_however_many_leases_there_are_and_is_done_once() {
    let Some(redis) = redis_or_skip() else { return };
    let costs = [200_u32, 2_000].map(|each| {
        wait(async {
            let frontier = open(&redis.url(u32::from(each != 200)));
            shop(&frontier, 0, 2 * each).await;
            frontier.tune("shop", Tuning::Parallel(Some(9_999))).await.expect("set");
            for owner in ["living", "dying"] {
                leases(&frontier, owner, each as usize).await;
            }
            let (_, burial) = calls_of(&redis, frontier.bury("dying")).await;
            let (_, again) = calls_of(&redis, frontier.bury("dying")).await;
            let (grant, freed) = calls_of(&redis, frontier.claim(want("living", 0, 0))).await;
            assert_eq!(grant.expect("a grant").lost.len(), 100);
            [burial, again, freed]
        })
    });
    assert_eq!(costs[0], costs[1]);
}

#[test]
fn c10_who_was_silent_for_too_long_is_declared_dead_by_the_first_beat_of_another() {
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, 0, 2).await;
        let mut members = Vec::new();
        for _ in 0..2 {
            members.push(frontier.join(WorkScope::All).await.expect("joined"));
        }
        leases(&frontier, "silent", 2).await;
        redis.cli(&["ZADD", "{paced:0}:beat", "1", "silent"]);
        frontier.beat(&members[0]).await.expect("beaten");
        let owners = frontier.owners().await.expect("answers");
        let dead: Vec<_> = owners.into_iter().filter(|owner| owner.dead).map(|owner| owner.name).collect();
        assert_eq!(dead, ["silent"]);
        assert_eq!(redis.cli(&["ZSCORE", "{paced:0}:beat", "silent"]), "");
    });
}

#[test]
fn i16_the_names_of_sites_are_read_in_portions() {
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        register(&frontier, 0).await;
        let many = "for i = 1, 20000 do redis.call('HSET', KEYS[1], 'site-' .. i, 'site-' .. i) end";
        redis.cli(&["EVAL", many, "1", "{paced:0}:units"]);
        let (names, calls) = calls_of(&redis, frontier.sites()).await;
        assert_eq!(names.expect("answers").len(), 20_001);
        let portions = calls["fcall"];
        assert!((10..=30).contains(&portions) && calls["hscan"] == portions, "{calls:?}");
        assert_eq!(calls.get("hkeys"), None);
    });
}

#[test]
fn i16_a_site_is_registered_at_the_same_cost_however_many_of_its_group_share_its_host() {
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    let member = |name: String| Registration {
        group: Some(("group:g".to_owned(), 1_000)),
        hosts: vec!["shared.example".to_owned()],
        ..registration(&name, 1_000)
    };
    wait(async {
        let mut costs = Vec::new();
        for upto in [20, 200] {
            for n in 0..upto {
                frontier.register(member(format!("s{n:03}"))).await.expect("answers");
            }
            let (answer, calls) = calls_of(&redis, frontier.register(member(format!("new-{upto}")))).await;
            assert!(matches!(answer, Ok(Registered::Version(_))), "{answer:?}");
            costs.push(calls);
        }
        assert_eq!(costs[0], costs[1]);
        let alone = Registration { group: None, ..member("alone".to_owned()) };
        assert!(matches!(frontier.register(alone).await, Ok(Registered::Refused(_))));
    });
}

/// A host with so many pages of that depth is unreachable for a while, then answers: what a claim takes that meets it as it is kept back, as
/// its `robots.txt` is to be asked for, and as its pages return.
async fn unreachable(redis: &RedisServer, db: u32, pages: u32, depth: u32) -> [BTreeMap<String, u64>; 3] {
    let frontier = open(&redis.url(db));
    let mut site = registration("shop", 0);
    site.settings.robots = true;
    frontier.register(site).await.expect("answers");
    for page in 0..pages {
        let page = Put { depth, ..Put::request(url(page), Priority::from_value(240)) };
        frontier.put("shop", vec![page]).await.expect("answers");
    }
    register_as(&frontier, "other", 0).await;
    put_in(&frontier, "other", 0..1).await.expect("answers");
    let mut found = claim(&frontier, "one", 2).await.leases;
    let (errands, pages): (Vec<_>, Vec<_>) = found.drain(..).partition(|lease| lease.robots.is_some());
    let holds_for = std::time::Duration::from_millis(1_500);
    let lost = |holds_for| Outcome::Robots(RobotsRecord::unreachable("503", holds_for));
    settle(&frontier, "one", &errands[0], lost(holds_for)).await;
    while claim(&frontier, "one", 1).await.next_in == Some(0) {}
    let later = Outcome::Retry { after: holds_for, why: Failure::new("503") };
    settle(&frontier, "one", &pages[0], later).await;
    let (_, asleep) = calls_of(redis, frontier.claim(want("one", 1, 0))).await;
    sleep(1_700).await;
    let (due, asks) = calls_of(redis, frontier.claim(want("one", 2, 0))).await;
    let leases = due.expect("a grant").leases;
    assert_eq!(leases.len(), 2, "robots.txt, and the page that was delayed until the same time");
    let errand = leases.iter().find(|lease| lease.robots.is_some()).expect("robots.txt");
    let absent = RobotsRecord { access: RobotsAccess::Absent, ..RobotsRecord::unreachable("", holds_for) };
    settle(&frontier, "one", errand, Outcome::Robots(absent)).await;
    let (_, returns) = calls_of(redis, frontier.claim(want("one", 0, 0))).await;
    [asleep, asks, returns]
}

#[test]
fn i16_a_claim_takes_as_long_however_many_pages_wait_for_an_unreachable_host() {
    let Some(redis) = redis_or_skip() else { return };
    let costs = [(0, 300), (1, 3_000)].map(|(db, pages)| wait(unreachable(&redis, db, pages, 0)));
    assert_eq!(costs[0], costs[1]);
}

#[test]
fn i16_the_robots_txt_of_an_unreachable_host_is_asked_for_without_a_look_at_its_pages() {
    let Some(redis) = redis_or_skip() else { return };
    // Pages so deep have a record each.
    let [few, many] = [(0, 3), (1, 90)].map(|(db, pages)| wait(unreachable(&redis, db, pages, 20)));
    assert_eq!(few[1], many[1]);
}
