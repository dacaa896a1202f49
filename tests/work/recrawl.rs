//! Pages that are asked for again when their time has come, for as long as a worker works.

use crate::fleet::{register_only, seed, to_the_end, worker};
use crate::ground::*;
use crate::support::*;

/// A front page that is fetched once, and links to a page that is to be fetched again each second, told by its tag.
fn site() -> TestSite {
    let same = |request: &Request| {
        let known = request.header("if-none-match") == Some("\"v1\"");
        (request.path == "/p/1" && known).then(|| Reply::status(304))
    };
    let tagged = Reply::html(page("tagged", [""; 0])).header("etag", "\"v1\"");
    TestSite::builder().page("/", page("front", ["/p/1"])).reply("/p/1", tagged).faults(same).serve()
}

fn file(site: &TestSite) -> SiteFile {
    let again = EVERY_PAGE.replace("match = \"/**\"", "match = \"/p/*\"\nrecrawl = \"1s\"");
    let once = EVERY_PAGE.replace("name = \"page\"", "name = \"front\"");
    SiteFile::of("shop", site).interval(ms(50)).pages(&format!("{again}{once}"))
}

#[test]
fn v13_a_page_is_fetched_again_each_time_its_recrawl_is_over_and_unchanged_it_costs_a_304() {
    on_each_frontier(|shared| {
        let site = site();
        let ground = Ground::on(shared, [file(&site)]);
        seed(&ground);
        let running = worker(&ground, "w").start();
        eventually("four visits", || (site.count("/p/1") >= 4).then_some(()));
        running.terminate();
        running.finish().expect_code(0);
        assert_eq!(site.count("/"), 1, "a page without `recrawl` is fetched once");
        let visits: Vec<Arrival> = site.arrivals().into_iter().filter(|a| a.path == "/p/1").collect();
        assert!(visits.windows(2).all(|pair| pair[1].at - pair[0].at >= ms(1_000)), "{visits:?}");
        assert_eq!(visits[0].status, 200);
        assert!(visits[1..].iter().all(|visit| visit.status == 304), "{visits:?}");
    });
}

#[test]
fn v13_a_worker_that_ends_with_the_work_neither_waits_for_re_crawls_nor_asks_for_them() {
    let site = site();
    let ground = Ground::new([file(&site)]);
    register_only(&ground, "shop");
    seed(&ground);
    to_the_end(&ground, "w").run().expect_code(0);
    std::thread::sleep(ms(1_100));
    to_the_end(&ground, "w").run().expect_code(0);
    assert_eq!((site.count("/"), site.count("/p/1")), (1, 1));
}
