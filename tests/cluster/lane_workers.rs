//! Workers that serve some lanes alone, over all partitions (N7).

use std::collections::BTreeSet;

use paced::internals::frontier::{Frontier, WorkScope};
use paced::internals::task::{LaneWish, Priority, Put, Stage};

use crate::sites;
use crate::steps::*;
use crate::support::*;
use crate::wait;

/// A page that waits in the lane, put at a site of that name.
async fn put_slow(frontier: &Frontier, name: &str) {
    let wish = LaneWish { lane: Some("slow".to_owned()), ..LaneWish::default() };
    let put = Put { wish, ..Put::request(url_of(name, 9), Priority::from_value(240)) };
    frontier.put(name, vec![put]).await.expect("answers");
}

/// What is granted until nothing more is.
async fn granted(frontier: &Frontier) -> BTreeSet<String> {
    let mut urls = BTreeSet::new();
    for _ in 0..50 {
        let grant = frontier.claim(want("one", 9, 9)).await.expect("answers");
        assert!(grant.leases.iter().all(|lease| lease.stage == Stage::Download), "{grant:?}");
        urls.extend(grant.leases.into_iter().map(|lease| lease.url.to_string()));
    }
    urls
}

#[test]
fn n7_who_serves_a_lane_is_given_what_is_in_it_of_all_partitions_and_nothing_else() {
    let Some(cluster) = RedisCluster::start() else { return };
    let frontier = Frontier::open(&cluster.url()).expect("a URL");
    wait(async {
        // Sites of twenty names lie in several of sixteen partitions.
        let names = sites(&frontier, 20, 0, 2).await;
        frontier.work_on("one", WorkScope::of_lanes(["slow".to_owned()])).await.expect("said");
        assert_eq!(granted(&frontier).await, BTreeSet::new());
        for name in &names {
            put_slow(&frontier, name).await;
        }
        let slow = names.iter().map(|name| url_of(name, 9).to_string()).collect();
        assert_eq!(granted(&frontier).await, slow);
        for name in ["later", "latest"] {
            register_as(&frontier, name, 0).await;
            put_in(&frontier, name, 0..1).await.expect("answers");
            put_slow(&frontier, name).await;
        }
        let later = ["later", "latest"].map(|name| url_of(name, 9).to_string());
        assert_eq!(granted(&frontier).await, later.into());
    });
}
