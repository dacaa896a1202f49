//! A slot of the cluster moves from one master to another, while its sites are worked on.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use paced::internals::task::Settled;

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;
use crate::{assert_all_done, sites, work_on};

#[test]
fn l4_i3_while_a_slot_moves_nothing_runs_on_half_a_partition_and_then_it_goes_on() {
    const PAGES: u32 = 20;
    let Some(cluster) = RedisCluster::start() else { return };
    let url = cluster.url();
    let names = wait(async { sites(&open(&url), 6, 100, PAGES).await });
    // A partition with a site, and not the one of the directory.
    let keys = cluster.nodes().map(|node| node.cli(&["KEYS", "*:state:*"])).collect::<Vec<_>>().join("\n");
    let key = keys.lines().find(|key| !key.is_empty() && !key.starts_with("{paced:0}"));
    let key = key.expect("a site of another partition").to_owned();
    let granted = std::thread::scope(|scope| {
        let worker = scope.spawn(|| wait(work_on(&open(&url), "one", &names, &AtomicU64::new(0))));
        std::thread::sleep(std::time::Duration::from_millis(500));
        cluster.move_slot(&key, |to, moved| {
            std::thread::sleep(std::time::Duration::from_millis(1_500));
            let tag = key.split('}').next().expect("a tag");
            let there = to.cli(&["KEYS", &format!("{tag}}}*")]);
            let there: BTreeSet<&str> = there.lines().collect();
            let moved: BTreeSet<&str> = moved.iter().copied().collect();
            let added: Vec<&&str> = there.difference(&moved).collect();
            assert!(added.is_empty(), "a step was done on half a partition: {added:?}");
        });
        worker.join().expect("no panic")
    });
    assert!(granted.iter().all(|(_, settled)| *settled == Settled::Kept));
    let pages: BTreeSet<&str> = granted.iter().map(|(lease, _)| lease.url.as_str()).collect();
    assert_eq!((granted.len(), pages.len()), (6 * PAGES as usize, 6 * PAGES as usize), "each page once");
    wait(async { assert_all_done(&open(&url), &names, PAGES.into()).await });
}
