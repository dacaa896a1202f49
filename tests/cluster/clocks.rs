//! The servers of a cluster have a clock each: a start leaves by that of the server that granted it.

use paced::internals::clock::Timestamp;
use paced::internals::manners::grace;

use paced::internals::manners::departure::is_early;

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

#[test]
fn l7_a_try_waits_by_the_clock_of_the_server_that_paces_its_site() {
    const DELAY: std::time::Duration = std::time::Duration::from_secs(2);
    let Some(cluster) = RedisCluster::with_clocks([0, 20_000, -20_000]) else { return };
    // What robots.txt asks for is longer than what its own request paid.
    let served = || TestSite::builder().robots("User-agent: *\nCrawl-delay: 2\n").page("/", "<p>").serve();
    let sites: Vec<TestSite> = (0..6).map(|_| served()).collect();
    let file = |(number, site)| SiteFile::of(&format!("shop{number}"), site).interval(ms(200));
    let ground = Ground::new(sites.iter().enumerate().map(file));
    std::thread::scope(|scope| {
        for (number, site) in sites.iter().enumerate() {
            let file = ground.file(&format!("shop{number}"));
            let tried = ground.verb("try").arg(site.url("/")).arg("--site").arg(file);
            let tried = tried.env("PACED_FRONTIER", cluster.url());
            scope.spawn(move || tried.run().expect_code(0));
        }
    });
    for site in &sites {
        let at: Vec<_> = site.arrivals().iter().map(|arrival| arrival.at).collect();
        assert_eq!(at.len(), 2, "robots.txt and the page");
        let gap = at[1].saturating_sub(at[0]);
        assert!(!is_early(gap, DELAY), "{gap:?} between the two");
    }
}
