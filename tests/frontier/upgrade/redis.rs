//! The fixture of schema 3 on a Redis, opened by this build.

use std::collections::BTreeSet;

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{Frontier, FrontierErrorKind, MutexKey};
use paced::internals::task::Stage;

use super::make::fixtures;
use super::state::{BEHIND, FETCHED, HOUR, fill, path};
use crate::support::RedisServer;
use crate::world::{START, World, path_of, url, wait_for};

fn clock(after: i64) -> Clock {
    Clock::fake(Timestamp::from_millis(START + after))
}

fn old() -> Option<RedisServer> {
    RedisServer::builder().dump(&fixtures().join("schema-3.rdb")).start()
}

fn open(server: &RedisServer, clock: &Clock) -> Frontier {
    Frontier::redis(&server.url(0), Some(clock.clone())).expect("a URL")
}

/// When its last process had been silent for long.
const LATER: i64 = HOUR / 2;

#[test]
fn n9_an_older_frontier_is_refused_while_one_of_its_processes_lives_and_that_one_is_named() {
    let Some(server) = old() else { return };
    let error = wait_for(async { open(&server, &clock(1_000)).sites().await.expect_err("it is in use") });
    assert_eq!(error.kind, FrontierErrorKind::OlderInUse(3));
    assert!(error.to_string().contains("the process one works on it"), "{error}");
    assert_eq!(server.cli(&["GET", "{paced:0}:schema"]), "3 1");
}

#[test]
fn n9_two_processes_that_start_at_once_upgrade_once_and_lose_nothing() {
    let Some(server) = old() else { return };
    let time = clock(LATER);
    let [first, second] = [open(&server, &time), open(&server, &time)];
    wait_for(async {
        let (one, other) = tokio::join!(first.sites(), second.sites());
        assert_eq!(one.expect("upgraded"), other.expect("upgraded"));
    });
    assert_eq!(server.cli(&["GET", "{paced:0}:schema"]), "4 1");
    assert_eq!(server.cli(&["EXISTS", "{paced:0}:page:big"]), "0");
    assert_eq!(server.cli(&["HGET", "{paced:0}:pages:big", "count"]), FETCHED.to_string());
    wait_for(async { is_the_same(&World::of(first, time)).await });
}

/// As a frontier has it that was filled by this build.
async fn is_the_same(w: &World) {
    let same_clock = clock(0);
    let model = World::of(Frontier::model(same_clock.clone()), same_clock);
    fill(&model).await;
    let [mut told, mut expected] = [w, &model].map(|world| world.frontier.clone());
    let [there, here] = [&mut told, &mut expected];
    let [inside, by_model] =
        [there.inspect().await.expect("answers"), here.inspect().await.expect("answers")];
    assert_eq!((inside.tasks, inside.dead, inside.known), (by_model.tasks, by_model.dead, by_model.known));
    for page in 0..FETCHED {
        let url = url("big", &path(page));
        let latest = there.latest("big", &url).await.expect("answers").expect("it is kept");
        assert_eq!(Some(&latest), here.latest("big", &url).await.expect("answers").as_ref(), "{url}");
    }
    let paused = w.view("paused").await.paused;
    assert_eq!(paused.as_deref(), Some("the owner asked"));
    assert!(w.view("blocked").await.blocked_until.is_some());
    assert!(there.robots("https://obeying.example").await.expect("answers").is_some());
    assert!(there.lock_left(&MutexKey::named("mail")).await.expect("answers").is_some());
}

#[test]
fn n9_an_upgraded_frontier_is_crawled_on_each_page_once_and_at_its_pace() {
    let Some(server) = old() else { return };
    let time = clock(LATER);
    let w = World::of(open(&server, &time), time);
    wait_for(async {
        let (mut seen, mut last) = (BTreeSet::new(), None);
        for _ in 0..500 {
            for lease in w.grant_of(&["big"], w.want(1, 1)).await.leases {
                if lease.stage == Stage::Download {
                    assert!(last.is_none_or(|last| w.now() - last >= 1_000), "paced");
                    last = Some(w.now());
                    assert!(seen.insert(path_of(&lease)), "{} came twice", lease.url);
                }
                w.done(&lease).await;
            }
            w.pass(250);
        }
        assert_eq!(seen, (FETCHED..FETCHED + BEHIND).map(path).collect());
        assert_eq!(w.view("big").await.download.imbalance(), 0);
    });
}

#[test]
fn n9_an_upgrade_that_was_cut_off_is_gone_on_with_in_steps_of_a_thousand() {
    let Some(server) = old() else { return };
    let row = "1800000000000 - {\"place\":\"a:1:2\",\"fetched_at\":\"2027-01-15T08:00:00.250Z\"}";
    for first in (0..3_000).step_by(500) {
        let pages: Vec<String> =
            (first..first + 500).map(|page| format!("https://slow.example/{page}")).collect();
        let mut words = vec!["HSET", "{paced:0}:page:slow"];
        words.extend(pages.iter().flat_map(|page| [page.as_str(), row]));
        server.cli(&words);
    }
    // As who began it, and moved what it could, leaves it.
    server.cli(&["SET", "{paced:0}:schema", "4 1 3"]);
    server.cli(&["SET", "{paced:0}:upgrading", "somebody", "PX", "300"]);
    let time = clock(LATER);
    let frontier = open(&server, &time);
    wait_for(async {
        let kept =
            frontier.latest("slow", &url("slow", "2999")).await.expect("upgraded").expect("it is kept");
        assert_eq!((kept.stored.place.as_str(), kept.stored.fetched_at.as_millis()), ("a:1:2", START + 250));
    });
    assert_eq!(server.cli(&["HGET", "{paced:0}:pages:slow", "count"]), "3000");
    assert!(server.batches() > 6, "a step moves a thousand at most");
}
