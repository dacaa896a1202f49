//! What one server of the cluster is like concerns its own partitions: the others are asked nothing of it, and wait for it nowhere.

use paced::internals::frontier::FrontierErrorKind;

use crate::ground::wait;
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
