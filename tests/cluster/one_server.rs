//! What one server of the cluster is like concerns its own partitions: the others are asked nothing of it, and wait for it nowhere.

use std::time::{Duration, Instant};

use paced::internals::frontier::{FrontierErrorKind, WorkScope};

use crate::ground::{Ground, SiteFile, ms, star, wait};
use crate::one_away::server_of;
use crate::sites;
use crate::steps::*;
use crate::support::*;

/// Rounds of puts, each with a look at the memory.
const ROUNDS: u32 = 6;

/// A cluster whose servers don't take over from each other.
fn cluster() -> Option<RedisCluster> {
    let cluster = RedisCluster::start()?;
    for node in cluster.nodes() {
        node.cli(&["CONFIG", "SET", "cluster-node-timeout", "600000"]);
    }
    Some(cluster)
}

/// The two servers that don't have the directory, and the sites on each.
fn spread<'a>(cluster: &'a RedisCluster, names: &[String]) -> [(&'a RedisServer, Vec<String>); 2] {
    let directory = cluster.master_of("{paced:0}:").port();
    let mut others: Vec<(&RedisServer, Vec<String>)> = Vec::new();
    for name in names {
        let server = server_of(cluster, name);
        match others.iter_mut().find(|(other, _)| other.port() == server.port()) {
            _ if server.port() == directory => {}
            Some((_, names)) => names.push(name.clone()),
            None => others.push((server, vec![name.clone()])),
        }
    }
    others.try_into().unwrap_or_else(|_| panic!("sites are spread"))
}

#[test]
fn a_full_server_of_a_cluster_refuses_the_puts_of_its_own_sites_and_of_no_others() {
    let Some(cluster) = cluster() else { return };
    let frontier = open(&cluster.url());
    wait(async {
        let names = sites(&frontier, 40, 0, 1).await;
        let [(full, full_names), _] = spread(&cluster, &names);
        full.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        for round in 1..=ROUNDS {
            sleep(1_100).await;
            for name in &names {
                let put = put_in(&frontier, name, 2 * round..2 * round + 2).await.map_err(|error| error.kind);
                let is_refused = put == Err(FrontierErrorKind::MemoryFull);
                assert_eq!(is_refused, full_names.contains(name), "{name}, round {round}: {put:?}");
            }
        }
    });
}

#[test]
fn a_cluster_with_a_server_that_evicts_keys_is_refused_whichever_it_is() {
    let Some(cluster) = cluster() else { return };
    let names = wait(sites(&open(&cluster.url()), 40, 0, 1));
    for (evicting, _) in spread(&cluster, &names) {
        evicting.cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
        for _ in 0..3 {
            let error = wait(open(&cluster.url()).sites()).expect_err("it may lose tasks");
            let FrontierErrorKind::Unfit(why) = &error.kind else { panic!("{error}") };
            assert!(why.contains("allkeys-lru"), "{why}");
        }
        evicting.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    }
    assert_eq!(wait(open(&cluster.url()).sites()).expect("all of them are fit"), names);
}

#[test]
fn l4_puts_on_the_others_and_a_process_that_joins_anew_wait_for_no_silent_server() {
    in_three_tries(|| {
        let Some(cluster) = cluster() else { return Ok(()) };
        let frontier = open(&cluster.url());
        let (names, before) = wait(async {
            let names = sites(&frontier, 40, 0, 1).await;
            (names, frontier.join_as("worker", WorkScope::All).await.expect("joined"))
        });
        let [(silent, _), (_, there)] = spread(&cluster, &names);
        silent.pause();
        let began = Instant::now();
        wait(async {
            for round in 1..=ROUNDS {
                sleep(1_100).await;
                for name in &there {
                    put_in(&frontier, name, 2 * round..2 * round + 2).await.expect("put");
                }
            }
        });
        let puts = began.elapsed();
        let began = Instant::now();
        let member = wait(async {
            let member = frontier.join_as("worker", WorkScope::All).await.expect("joined");
            let granted = async || {
                let grant = frontier.claim(want(&member.name, 50, 0)).await.expect("answers");
                grant.leases.into_iter().any(|lease| there.contains(&lease.site))
            };
            while !granted().await {
                sleep(50).await;
            }
            member
        });
        let joined = began.elapsed();
        silent.resume();
        let names = |pattern: &str| silent.cli(&["KEYS", pattern]);
        within(ms(30_000), "it hears who joined", || {
            (!names(&format!("*:owner:{}", member.name)).is_empty()).then_some(())
        });
        within(ms(30_000), "it buries who had that name", || {
            names(&format!("*:owner:{}", before.name)).is_empty().then_some(())
        });
        let most = Duration::from_secs(5) + ms(1_100) * ROUNDS;
        bound(
            puts < most && joined < Duration::from_secs(5),
            format_args!("puts {puts:?}, joined {joined:?}"),
        )
    });
}

#[test]
fn a_worker_that_waits_for_a_silent_server_as_it_joins_ends_when_it_is_told_to() {
    let Some(cluster) = cluster() else { return };
    let site = star(3).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(20))]);
    let verb = |verb: &str| ground.verb(verb).env("PACED_FRONTIER", cluster.url());
    verb("seed").arg(ground.file("shop")).run().expect_code(0);
    let names = wait(sites(&open(&cluster.url()), 40, 0, 1));
    let [(silent, _), _] = spread(&cluster, &names);
    silent.pause();
    let mut worker = verb("work").arg("--lanes").arg("general").start();
    std::thread::sleep(Duration::from_secs(8));
    assert!(!worker.ended(), "{}", worker.stderr());
    assert!(!worker.stderr().contains("at work on"), "{}", worker.stderr());
    worker.terminate();
    within(ms(5_000), "its end", || worker.ended().then_some(()));
    worker.finish().expect_code(0);
    silent.resume();
}
