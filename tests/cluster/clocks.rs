//! The servers of a cluster have a clock each: a start leaves by that of the server that granted it.

use paced::internals::clock::Timestamp;
use paced::internals::manners::grace;

use crate::ground::{Ground, SiteFile, assert_audited, assert_gaps_paced, ms, star};
use crate::support::*;

#[test]
fn l7_each_partition_s_starts_leave_by_the_clock_of_its_own_server() {
    const PAGES: usize = 12;
    let interval = ms(200);
    let Some(cluster) = RedisCluster::with_clocks([0, 20_000, -20_000]) else { return };
    let sites: Vec<TestSite> = (0..6).map(|_| star(PAGES).serve()).collect();
    let file = |(number, site)| SiteFile::of(&format!("shop{number}"), site).interval(interval);
    let ground = Ground::new(sites.iter().enumerate().map(file));
    ground.crawl().args(["--frontier", &cluster.url(), "--deadline", "90s"]).run().expect_code(0);
    let audit = ground.audit();
    let first = |unit: &serde_json::Value| -> Timestamp {
        unit["first"].as_str().expect("a time").parse().expect("a time")
    };
    let (least, most) = (audit.values().map(first).min(), audit.values().map(first).max());
    let apart = most.expect("six").since(least.expect("six"));
    assert!(apart >= ms(15_000), "they are of servers whose clocks differ: {apart:?}");
    for (unit, site) in audit.values().zip(&sites) {
        assert_audited(unit, PAGES + 2);
        let late = unit["lateness_ms"]["p99"].as_u64().map(ms).expect("on record");
        assert!(late <= grace(interval), "{unit}");
        assert_gaps_paced(&site.gaps(interval));
    }
}
