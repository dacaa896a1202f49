//! No step takes longer as more is there (I16): the same call at N and at 10 N of something, by the commands that it takes.

use std::collections::BTreeMap;
use std::time::Duration;

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{Forgotten, Frontier, Registered, Registration, Renamed, Tuning, WorkScope};
use paced::internals::task::{Failure, Outcome, Priority, Put, RobotsAccess, RobotsRecord};

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;

/// What flows through a queue is kept once in so many ms: what begins such a slot takes a few commands more.
const SLOT: i64 = 300_000;

/// A server to count on, at a time when no such slot begins for a while.
fn redis_within_a_slot() -> Option<RedisServer> {
    let redis = redis_or_skip()?;
    let left = SLOT - Clock::wall().now().as_millis() % SLOT;
    if left < 40_000 {
        std::thread::sleep(Duration::from_millis(u64::try_from(left).unwrap_or(0) + 500));
    }
    Some(redis)
}

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
    let Some(redis) = redis_within_a_slot() else { return };
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
    let Some(redis) = redis_within_a_slot() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, 0, 2).await;
        let mut members = Vec::new();
        for _ in 0..2 {
            members.push(frontier.join(WorkScope::All).await.expect("joined"));
        }
        leases(&frontier, "silent", 2).await;
        redis.cli(&["ZADD", "{paced:0}:beat", "1", "silent"]);
        frontier.beat(&members[0], true).await.expect("beaten");
        let owners = frontier.owners().await.expect("answers");
        let dead: Vec<_> = owners.into_iter().filter(|owner| owner.dead).map(|owner| owner.name).collect();
        assert_eq!(dead, ["silent"]);
        assert_eq!(redis.cli(&["ZSCORE", "{paced:0}:beat", "silent"]), "");
    });
}

#[test]
fn i16_the_names_of_sites_are_read_in_portions() {
    let Some(redis) = redis_within_a_slot() else { return };
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
    let Some(redis) = redis_within_a_slot() else { return };
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
    let holds_for = Duration::from_millis(1_500);
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
    let Some(redis) = redis_within_a_slot() else { return };
    let costs = [(0, 300), (1, 3_000)].map(|(db, pages)| wait(unreachable(&redis, db, pages, 0)));
    assert_eq!(costs[0], costs[1]);
}

#[test]
fn i16_the_robots_txt_of_an_unreachable_host_is_asked_for_without_a_look_at_its_pages() {
    let Some(redis) = redis_within_a_slot() else { return };
    // Pages so deep have a record each.
    let [few, many] = [(0, 3), (1, 90)].map(|(db, pages)| wait(unreachable(&redis, db, pages, 20)));
    assert_eq!(few[1], many[1]);
}

#[test]
fn i16_a_site_is_renamed_in_steps_and_goes_on_in_between() {
    let Some(redis) = redis_within_a_slot() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, 0, 0).await;
        for page in 5_000..5_300 {
            put(&frontier, page..page + 1).await.expect("answers");
            let lease = next(&frontier, "one").await;
            settle(&frontier, "one", &lease, done()).await;
        }
        let soon = Timestamp::from_millis(frontier.clock().now().as_millis() + 3_000);
        let later = |page| Put { at: Some(soon), ..Put::request(url(page), Priority::SEED) };
        frontier.put("shop", (0..5_000).map(later).collect()).await.expect("answers");
        assert_eq!(frontier.rename_step("shop", "new").await.expect("answers"), Renamed::Partly);
        let (step, calls) = calls_of(&redis, frontier.rename_step("shop", "new")).await;
        assert_eq!(step.expect("answers"), Renamed::Partly);
        assert!(calls["zadd"] <= 1_100, "about a thousand a step: {calls:?}");
        // Whoever renamed it died here.
        let refused = register(&frontier, 0).await;
        assert!(matches!(&refused, Registered::Refused(why) if why.contains("being renamed")), "{refused:?}");
        sleep(3_000).await;
        let books = async || frontier.view("new").await.expect("answers").expect("it is there").download;
        while books().await.scheduled > 0 {
            claim(&frontier, "one", 0).await;
        }
        for _ in 0..10 {
            let lease = next(&frontier, "one").await;
            assert_eq!(lease.site, "new");
            settle(&frontier, "one", &lease, done()).await;
        }
        let link = |page| Put::link(url(page), 1);
        let known = frontier.put("new", (5_000..5_300).map(link).collect()).await.expect("answers");
        assert!(
            known.iter().all(|reply| *reply == paced::internals::task::PutReply::Known),
            "those of either name"
        );
        assert_eq!(frontier.rename("shop", "new").await.expect("answers"), Renamed::Done);
        assert_eq!(redis.cli(&["ZCARD", "{paced:0}:delay"]), "0");
        for left in ["{paced:0}:renamed", "{paced:0}:known:shop:*", "{paced:0}:*:shop"] {
            assert_eq!(
                redis.cli(&["KEYS", left]),
                "{paced:0}:pace:shop".repeat(usize::from(left.contains("*:shop")))
            );
        }
        assert!(matches!(frontier.rename("shop", "new").await, Ok(Renamed::Unknown)));
        let books = books().await;
        assert_eq!((books.waiting, books.imbalance()), (4_990, 0), "{books:?}");
    });
}

#[test]
fn pages_that_wait_for_a_host_wait_on_while_their_site_is_being_renamed() {
    let Some(redis) = redis_within_a_slot() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        let mut site = registration("shop", 0);
        site.settings.robots = true;
        frontier.register(site).await.expect("registered");
        put(&frontier, 0..10).await.expect("answers");
        let errand = next(&frontier, "one").await;
        let lost = RobotsRecord::unreachable("503", Duration::from_mins(1));
        settle(&frontier, "one", &errand, Outcome::Robots(lost)).await;
        claim(&frontier, "one", 1).await;
        let books = async |name| frontier.view(name).await.expect("answers").expect("it is there").download;
        assert_eq!(books("shop").await.parked, 10);
        assert_eq!(frontier.rename_step("shop", "new").await.expect("answers"), Renamed::Partly);
        // Whoever renamed it died here; the host is looked at again.
        redis.cli(&["ZADD", "{paced:0}:away:new", "1", "https://shop.example"]);
        redis.cli(&["ZADD", "{paced:0}:away", "1", "new"]);
        claim(&frontier, "one", 1).await;
        let books = books("new").await;
        assert_eq!((books.parked, books.excluded.len()), (10, 0), "{books:?}");
    });
}

#[test]
fn a_rename_that_was_cut_off_stands_against_all_else_until_it_is_finished() {
    let Some(redis) = redis_within_a_slot() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, 0, 10).await;
        register_as(&frontier, "other", 0).await;
        let rename = async |from, to| frontier.rename_step(from, to).await.expect("answers");
        let is_told = |why: &String| why.contains("`shop` is being renamed to `new`");
        assert_eq!(rename("shop", "new").await, Renamed::Partly);
        // Whoever renamed it died here.
        for (from, to) in [("shop", "third"), ("other", "shop"), ("other", "new")] {
            let renamed = rename(from, to).await;
            let is_kept_back = match &renamed {
                Renamed::Refused(why) => is_told(why),
                // Its name is still booked.
                Renamed::Taken => to == "shop",
                _ => false,
            };
            assert!(is_kept_back, "{from} to {to}: {renamed:?}");
        }
        for name in ["shop", "new"] {
            let forgotten = frontier.forget(name).await.expect("answers");
            assert!(matches!(&forgotten, Forgotten::Refused(why) if is_told(why)), "{name}: {forgotten:?}");
            let registered = register_as(&frontier, name, 0).await;
            assert!(matches!(&registered, Registered::Refused(_)), "{name}: {registered:?}");
        }
        let mut thief = registration("thief", 0);
        thief.hosts = vec!["shop.example".to_owned()];
        let thief = frontier.register(thief).await.expect("answers");
        assert!(matches!(&thief, Registered::Refused(_)), "its host isn't free: {thief:?}");
        assert_eq!(next(&frontier, "one").await.site, "new");

        assert_eq!(frontier.rename("shop", "new").await.expect("answers"), Renamed::Done);
        // As if it had been cut off right before its end.
        redis.cli(&["HSET", "{paced:0}:renamed", "shop", "new"]);
        assert_eq!(frontier.rename("shop", "new").await.expect("answers"), Renamed::Done);
        assert_eq!(redis.cli(&["EXISTS", "{paced:0}:renamed"]), "0");
        assert_eq!(frontier.site_of(&url(0).host()).await.expect("answers").as_deref(), Some("new"));
        let mut shop = registration("shop", 0);
        shop.hosts = vec!["another.example".to_owned()];
        let shop = frontier.register(shop).await.expect("answers");
        assert!(matches!(shop, Registered::Version(_)), "the old name is free: {shop:?}");
    });
}

/// How long claims took, in µs: the median and the 99th of a hundred.
fn percentiles(mut took: Vec<u128>) -> (u128, u128) {
    took.sort_unstable();
    (took[took.len() / 2], took[took.len() * 99 / 100])
}

/// `FORGOTTEN_TASKS` are as many tasks as the site has that is forgotten.
#[test]
fn i16_claims_wait_no_longer_while_a_huge_site_is_forgotten() {
    let tasks: u32 = std::env::var("FORGOTTEN_TASKS").map_or(20_000, |text| text.parse().expect("a number"));
    in_three_tries(|| {
        let Some(redis) = redis_within_a_slot() else { return Ok(()) };
        let (frontier, other) = (open(&redis.url(0)), open(&redis.url(0)));
        wait(async {
            register_as(&frontier, "huge", 0).await;
            frontier.tune("huge", Tuning::pause("it goes")).await.expect("set");
            for from in (0..tasks).step_by(5_000) {
                put_in(&frontier, "huge", from..(from + 5_000).min(tasks)).await.expect("answers");
            }
            shop(&frontier, 0, 3_000).await;
            let is_over = std::sync::atomic::AtomicBool::new(false);
            let claims = async |least: usize| {
                let mut took = Vec::new();
                while took.len() < least || !is_over.load(std::sync::atomic::Ordering::Relaxed) && least > 400
                {
                    let began = std::time::Instant::now();
                    let grant = claim(&frontier, "one", 1).await;
                    took.push(began.elapsed().as_micros());
                    for lease in &grant.leases {
                        frontier.hand_back(lease.key()).await.expect("answers");
                    }
                    sleep(1).await;
                }
                percentiles(took)
            };
            let alone = claims(400).await;
            let forget = async {
                while other.give_up("huge").await.expect("answers") {}
                while !matches!(other.forget("huge").await, Ok(Forgotten::Wholly)) {}
                is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            };
            let (beside, ()) = futures_util::join!(claims(401), forget);
            let said = format!("median and p99 of claims {beside:?} µs, alone {alone:?} µs");
            println!("{tasks} tasks forgotten: {said}");
            bound(beside.1 <= 2 * alone.1, said)
        })
    });
}
