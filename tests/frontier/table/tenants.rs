//! Whose a waiting task is: kept beside it, whatever happens to it.

use std::collections::BTreeMap;

use paced::internals::frontier::{Claim, QueueChange, Renamed};
use paced::internals::task::{LaneWish, Put};

use crate::world::{World, on_every_backend, path_of, request, url};

const TASKS: u32 = 300;

/// Of every third task none, of the others one of seven.
fn tenant_of(number: u32) -> Option<String> {
    (!number.is_multiple_of(3)).then(|| format!("tenant{}", number % 7))
}

fn put_for(path: &str, tenant: Option<String>) -> Put {
    Put { wish: LaneWish { tenant, ..LaneWish::default() }, ..request("a", path) }
}

/// What is waiting in a lane: each page with its tenant.
async fn queued(w: &World, site: &str, lane: &str) -> Vec<(u32, Option<String>)> {
    let all = w.frontier.queued(site, lane, None, 1_000).await.expect("answers").expect("the site");
    let number = |path: &str| path.trim_start_matches('/').parse().expect("a number");
    all.into_iter().map(|task| (number(task.url.url().path()), task.tenant)).collect()
}

/// Keys in which tenants lie, where that can be looked at from outside.
fn kept(w: &World) -> Option<usize> {
    Some(w.redis()?.cli(&["KEYS", "{paced:0}:whose:*"]).lines().count())
}

#[test]
fn f8_hundreds_of_tasks_keep_their_tenants_through_lanes_and_a_rename_and_nothing_is_left_of_them() {
    on_every_backend(async |w| {
        w.site_with("a", |a| {
            a.settings.interval = 0;
            (a.settings.parallel, a.settings.max_parallel) = (1_000, 1_000);
        })
        .await;
        let puts = (0..TASKS).map(|number| put_for(&number.to_string(), tenant_of(number)));
        w.frontier.put("a", puts.collect()).await.expect("answers");
        let all: Vec<_> = (0..TASKS).map(|number| (number, tenant_of(number))).collect();
        assert_eq!(queued(w, "a", "general").await, all);
        assert!(kept(w).is_none_or(|keys| (4..40).contains(&keys)), "{:?}", kept(w));

        let [moved, dropped] =
            [100..150, 150..200].map(|some: std::ops::Range<u32>| some.collect::<Vec<_>>());
        let urls = |some: &[u32]| some.iter().map(|number| url("a", &number.to_string())).collect();
        let lane = QueueChange::Lane { from: "general".to_owned(), to: "slow".to_owned() };
        assert_eq!(w.frontier.requeue("a", urls(&moved), lane).await.expect("answers"), Some(50));
        assert_eq!(
            w.frontier.requeue("a", urls(&dropped), QueueChange::Drop).await.expect("answers"),
            Some(50)
        );
        while w.frontier.rename("a", "b").await.expect("answers") != Renamed::Done {}
        assert_eq!(queued(w, "b", "slow").await, all[100..150]);

        let mut told = Vec::new();
        while told.len() < 250 {
            let grant = w.grant(Claim { dice: vec![5; 64], ..w.want(50, 0) }).await;
            for lease in &grant.leases {
                told.push((path_of(lease).parse().expect("a number"), lease.tenant.clone()));
                w.done(lease).await;
            }
        }
        told.sort();
        let left: Vec<_> = all.into_iter().filter(|(number, _)| !dropped.contains(number)).collect();
        assert_eq!(told, left);
        assert_eq!(kept(w).unwrap_or(0), 0);
    });
}

#[test]
fn f9_a_task_that_comes_back_has_its_tenant_again_wherever_it_waits() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.put_with("a", put_for("1", Some("acme".to_owned()))).await;
        w.take().await;
        assert_eq!(kept(w).unwrap_or(0), 0, "its record tells it while it runs");
        w.pass(31_000);
        w.grant(w.want(0, 0)).await;
        assert_eq!(queued(w, "a", "general").await, [(1, Some("acme".to_owned()))], "after a lost lease");
        let lease = w.take().await;
        assert_eq!(lease.tenant.as_deref(), Some("acme"));
        w.done(&lease).await;
        w.check_books().await;
        assert_eq!(kept(w).unwrap_or(0), 0);
    });
}

/// Writes what waits in a lane as schema 8 kept it: a record beside the task, and the counts of lanes as a text.
const AS_BEFORE: &str = r#"
local queue, tasks, state = '{paced:0}:q:d:a:slow', '{paced:0}:tasks:a', '{paced:0}:state:a'
local first = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
local depth, score = first[2] % 16, math.floor(first[2] / 16)
local position, priority = math.floor(score / 2) % 2 ^ 39, math.floor(score / 2 ^ 40)
local record = struct.pack('<sssdi2i6i4i1ddi6i1ddd', 'waiting', '', '', -1, priority, position, depth, 0, -1, -1, -1, 0, -1, -1, -1)
redis.call('HSET', tasks, 'd' .. first[1], record .. cmsgpack.pack({ tenant = 'acme', lane = 'slow' }))
redis.call('ZADD', queue, string.format('%d', score * 16 + 15), first[1])
local text, count = string.gsub(redis.call('GET', state), '(d%.lanes)\129\164slow\1', '%1\170{"slow":1}')
redis.call('SET', state, text)
return count"#;

#[test]
fn n9_a_tenant_and_counts_of_lanes_that_an_earlier_build_wrote_are_read() {
    on_every_backend(async |w| {
        let Some(db) = w.redis() else { return };
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.put_with(
            "a",
            Put {
                wish: LaneWish { lane: Some("slow".to_owned()), ..LaneWish::default() },
                ..request("a", "1")
            },
        )
        .await;
        assert_eq!(db.cli(&["EVAL", AS_BEFORE, "0"]).trim(), "1");
        assert_eq!(queued(w, "a", "slow").await, [(1, Some("acme".to_owned()))]);
        assert_eq!(w.downloads("a").await.lanes, [("slow".to_owned(), 1)].into());
        let lease = w.take().await;
        assert_eq!(lease.tenant.as_deref(), Some("acme"));
        assert_eq!(w.downloads("a").await.lanes, BTreeMap::new());
        w.pass(31_000);
        w.grant(w.want(0, 0)).await;
        assert_eq!(w.downloads("a").await.lanes, [("slow".to_owned(), 1)].into());
        assert_eq!(queued(w, "a", "slow").await, [(1, Some("acme".to_owned()))]);
    });
}
