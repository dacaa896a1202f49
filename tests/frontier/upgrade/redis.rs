//! The fixtures of earlier schemas on a Redis, opened by this build.

use std::collections::BTreeSet;

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{Frontier, FrontierErrorKind};

use super::make::fixtures;
use super::state::{FETCHED, HOUR, crawls_on, fill, is_the_same};
use crate::support::RedisServer;
use crate::world::{START, World, url, wait_for};

fn clock(after: i64) -> Clock {
    Clock::fake(Timestamp::from_millis(START + after))
}

const SCHEMAS: [i64; 5] = [3, 5, 6, 7, 8];

fn old(schema: i64) -> Option<RedisServer> {
    RedisServer::builder().dump(&fixtures().join(format!("schema-{schema}.rdb"))).start()
}

fn open(server: &RedisServer, clock: &Clock) -> Frontier {
    Frontier::redis(&server.url(0), Some(clock.clone())).expect("a URL")
}

/// A key without the names in it: `{paced:0}:q:d:big:general` is `q:d:general`.
fn kind(key: &str) -> String {
    let words = key
        .split(':')
        .skip(2)
        .take_while(|word| *word != "client")
        .filter(|word| !NAMES.contains(word) && word.parse::<u64>().is_err());
    words.filter(|word| !word.contains("//") && !word.contains("example")).collect::<Vec<_>>().join(":")
}

const NAMES: [&str; 12] = [
    "big",
    "slow",
    "obeying",
    "paused",
    "blocked",
    "one",
    "two",
    "pair",
    "thrifty",
    "https",
    "reports/daily",
    "mail",
];

/// The kinds of keys of a frontier that this build filled, but for what a living process has.
fn kinds_of_a_new_one() -> BTreeSet<String> {
    let server = RedisServer::builder().start().expect("Redis is installed");
    let time = clock(0);
    let w = World::of(open(&server, &time), time);
    wait_for(fill(&w));
    kinds_on(&server)
}

/// The kinds of keys but what flows through queues, which of an older one is known from the upgrade on.
fn kinds_on(server: &RedisServer) -> BTreeSet<String> {
    let is_state = |kind: &String| !["flow", "waits"].contains(&kind.as_str());
    server.cli(&["KEYS", "*"]).lines().map(kind).filter(is_state).collect()
}

/// When its last process had been silent for long.
const LATER: i64 = HOUR / 2;

#[test]
fn n9_an_older_frontier_is_refused_while_one_of_its_processes_lives_and_that_one_is_named() {
    for schema in SCHEMAS {
        let Some(server) = old(schema) else { return };
        let error = wait_for(async { open(&server, &clock(1_000)).sites().await.expect_err("it is in use") });
        assert_eq!(error.kind, FrontierErrorKind::OlderInUse(schema));
        assert!(error.to_string().contains("the process one (pid "), "{error}");
        assert_eq!(server.cli(&["GET", "{paced:0}:schema"]), format!("{schema} 1"));
    }
}

#[test]
fn n9_two_processes_that_start_at_once_upgrade_once_and_lose_nothing() {
    for schema in SCHEMAS {
        let Some(server) = old(schema) else { return };
        let time = clock(LATER);
        let [first, second] = [open(&server, &time), open(&server, &time)];
        wait_for(async {
            let (one, other) = tokio::join!(first.sites(), second.sites());
            assert_eq!(one.expect("upgraded"), other.expect("upgraded"));
        });
        assert_eq!(server.cli(&["GET", "{paced:0}:schema"]), "9 1");
        assert_eq!(server.cli(&["EXISTS", "{paced:0}:page:big"]), "0");
        assert_eq!(server.cli(&["HGET", "{paced:0}:pages:big", "count"]), FETCHED.to_string());
        wait_for(async { is_the_same(&World::of(first, time)).await });
        assert_eq!(kinds_on(&server), kinds_of_a_new_one(), "from schema {schema}");
    }
}

#[test]
fn n9_an_upgraded_frontier_is_crawled_on_each_page_once_and_at_its_pace() {
    for schema in SCHEMAS {
        let Some(server) = old(schema) else { return };
        let time = clock(LATER);
        let w = World::of(open(&server, &time), time);
        wait_for(crawls_on(&w));
    }
}

fn redis_of_a_dead_process(server: &RedisServer) {
    server.cli(&["HSET", "{paced:0}:owner:two", "pid", "2", "dead", "1"]);
    server.cli(&["SADD", "{paced:0}:owners", "two"]);
    server.cli(&["HSET", "{paced:0}:dead", "two", "0"]);
    server.cli(&["SADD", "{paced:0}:named:three", "slow"]);
    server.cli(&["SADD", "{paced:0}:named", "three"]);
}

#[test]
fn n9_an_upgrade_that_was_cut_off_is_gone_on_with_in_steps_of_a_thousand() {
    let Some(server) = old(3) else { return };
    let row = "1800000000000 - {\"place\":\"a:1:2\",\"fetched_at\":\"2027-01-15T08:00:00.250Z\"}";
    for first in (0..3_000).step_by(500) {
        let pages: Vec<String> =
            (first..first + 500).map(|page| format!("https://slow.example/{page}")).collect();
        let mut words = vec!["HSET", "{paced:0}:page:slow"];
        words.extend(pages.iter().flat_map(|page| [page.as_str(), row]));
        server.cli(&words);
    }
    // As an older version leaves it: a dead process with a lease, one without, and the set of a third one's sites.
    redis_of_a_dead_process(&server);
    // As who began it, and moved what it could, leaves it.
    server.cli(&["SET", "{paced:0}:schema", "9 1 3"]);
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
    let dead = ["lease", "dead", "picky", "named", "owner:two", "named:three"]
        .map(|key| format!("{{paced:0}}:{key}"));
    let dead: Vec<&str> = ["EXISTS"].into_iter().chain(dead.iter().map(String::as_str)).collect();
    assert_eq!(server.cli(&dead), "0");
}

#[test]
fn n9_a_long_queue_what_waits_for_a_host_and_idle_units_are_brought_along_from_schema_5() {
    let Some(server) = old(5) else { return };
    // Two queues of one site, as they are where an upgrade was cut off: the second one is longer than a step.
    server.cli(&["ZADD", "{paced:0}:q:d:slow:general", "1", "https://slow.example/first"]);
    for first in (0..3_000).step_by(500) {
        let pages: Vec<String> =
            (first..first + 500).map(|page| format!("https://slow.example/{page}")).collect();
        let mut words = vec!["ZADD", "{paced:0}:q:d:slow"];
        words.extend(pages.iter().flat_map(|page| ["2", page.as_str()]));
        server.cli(&words);
    }
    server.cli(&["ZADD", "{paced:0}:away:slow", "5", "https://slow.example"]);
    server.cli(&["COPY", "{paced:0}:pace:slow", "{paced:0}:pace:gone"]);
    wait_for(async { open(&server, &clock(LATER)).sites().await.expect("upgraded") });
    assert_eq!(server.cli(&["EXISTS", "{paced:0}:q:d:slow"]), "0");
    assert!(server.cli(&["ZCARD", "{paced:0}:q:d:slow:general"]).parse::<u32>().is_ok_and(|all| all > 3_000));
    assert_eq!(server.cli(&["ZSCORE", "{paced:0}:wait-for:https://slow.example", "slow"]), "5");
    assert_eq!(server.cli(&["ZRANGE", "{paced:0}:idle-units", "0", "-1"]), "gone");
}
