//! No step takes longer as more is there (I16): the same call at N and at 10 N of something, by the commands that it takes.

use std::collections::BTreeMap;

use paced::internals::frontier::{Frontier, WorkScope};

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
            let frontier = open(&redis.url(if each == 200 { 0 } else { 1 }));
            shop(&frontier, 0, 2 * each).await;
            frontier
                .tune("shop", paced::internals::frontier::Tuning::Parallel(Some(9_999)))
                .await
                .expect("set");
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
