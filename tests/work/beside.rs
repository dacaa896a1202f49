//! A crawl on a frontier that others share: it is about its own sites alone.

use crate::fleet::{items_of, seed, to_the_end, worker};
use crate::ground::*;
use crate::support::*;

#[test]
fn a_crawl_on_a_shared_frontier_neither_touches_nor_waits_for_nor_counts_other_sites() {
    on_each_frontier(|shared| {
        let (own, other) = (star(3).serve(), TestSite::builder().status("/", 404).serve());
        let ground = Ground::on(shared, [SiteFile::of("own", &own), SiteFile::of("other", &other)]);
        seed(&ground);
        let run = ground.verb("crawl").arg(ground.file("own")).run().expect_code(0);
        assert!(other.requests().is_empty(), "{other:?}");
        assert!(!run.stderr.contains("other"), "{}", run.stderr);
        to_the_end(&ground, "w").run().expect_code(0);
        assert_eq!(ground.dead("other")["/"], "HTTP 404 Not Found");
        let run = ground.verb("crawl").arg(ground.file("own")).arg("--fail-on-dead").run().expect_code(0);
        assert!(run.stderr.ends_with("done dead=0\n"), "{}", run.stderr);
    });
}

#[test]
fn a_crawl_shares_its_site_with_workers_and_ends_with_its_run() {
    on_each_frontier(|shared| {
        let site = star(20).latency(Latency::fixed(ms(60))).serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).interval(ms(30))]);
        let mut running = worker(&ground, "w").start();
        running.wait_for_stderr("at work");
        ground.crawled();
        // A worker stands in no fresh run's way: it takes up whatever is there.
        ground.crawl().arg("--fresh").run().expect_code(0);
        running.terminate();
        running.finish().expect_code(0);
        let by = ground.items("shop").len() + items_of(&ground, "shop", "w").len();
        assert_eq!(by, 2 * 21, "each page is an item once a run");
        assert!(site.counts().values().all(|count| *count <= 2), "{site:?}");
        ground.assert_paced("shop", &site, ms(30));
    });
}
