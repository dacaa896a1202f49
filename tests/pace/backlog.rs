//! Downloads that don't wait: for a slow parse, or for each other after an outage.

use std::fs;
use std::time::Duration;

use crate::alone;
use crate::ground::*;
use crate::machine::Machine;
use crate::proof::*;
use crate::support::*;

#[test]
fn v12_pages_that_take_long_to_parse_hold_no_download_up() {
    let _turn = alone();
    let interval = ms(100);
    // All slots for parsing are busy with these for a while.
    let huge = format!("<h1>huge</h1>{}", "<p class=a>x<b>y</b>".repeat(100_000));
    let pages: Vec<String> = (1..=16).map(|n| format!("/huge/{n}")).chain(paths(60)).collect();
    let site = TestSite::builder().page("/", page("front", &pages));
    let site = pages.iter().fold(site, |site, path| {
        site.page(path, if path.starts_with("/huge") { huge.clone() } else { page(path, [""; 0]) })
    });
    let site = site.serve();
    let rules = EVERY_PAGE.replace("title = \"h1\"", "title = \"h1\"\nlast = \"p ~ p:last-of-type > i\"");
    let ground = Ground::new([SiteFile::of("shop", &site).interval(interval).pages(&rules)]);
    let machine = Machine::watch();
    let crawl = ground.crawl().start();
    let items = ground.data.file("data/items/shop.jsonl");
    let parsed = || fs::read_to_string(&items).unwrap_or_default().matches("\"title\":\"huge\"").count();
    eventually("the last huge page's download", || (site.count("/huge/16") == 1).then_some(()));
    let downloaded = site.arrivals().len();
    eventually("the last huge page's item", || (parsed() == 16).then_some(()));
    let meanwhile = site.arrivals().len() - downloaded;
    crawl.finish().expect_code(0);
    let seen = machine.seen();
    println!("{meanwhile} downloads while the huge pages were parsed");
    assert!(meanwhile >= 5, "only {meanwhile} downloads while the huge pages were parsed");
    let starts: Vec<Duration> =
        site.arrivals().iter().filter(|a| a.path.starts_with("/p/")).map(|a| a.at).collect();
    assert_used(0.9, &[starts], interval, &seen);
    assert_eq!(ground.items("shop").len(), 77);
}

#[test]
fn v17_after_an_outage_with_a_piled_up_queue_each_site_still_gets_one_start_an_interval() {
    let _turn = alone();
    let interval = ms(200);
    let sites: Vec<TestSite> = (0..5).map(|_| star(300).serve()).collect();
    let files = sites.iter().enumerate();
    let files =
        files.map(|(n, site)| SiteFile::of(&format!("s{n}"), site).interval(interval).pace("parallel = 50"));
    let ground = Ground::new(files);
    let crawl = ground.crawl().start();
    eventually("a page of each site", || sites.iter().all(|site| site.count("/") == 1).then_some(()));
    let full = |n: usize| ground.view(&format!("s{n}")).download.waiting > 250;
    eventually("full queues", || (0..sites.len()).all(full).then_some(()));
    crawl.kill();
    crawl.finish();
    let before: Vec<usize> = sites.iter().map(|site| site.arrivals().len()).collect();
    let machine = Machine::watch();
    ground.crawl().arg("--workers").arg("100").arg("--deadline").arg("4s").run().expect_code(3);
    let seen = machine.seen();
    let measured: Vec<Measured> = sites
        .iter()
        .map(|site| measure(&site.addr().to_string(), &site.arrivals(), &site.stalls(), &seen, interval))
        .collect();
    assert_kept(&measured, &seen);
    for (site, before) in sites.iter().zip(before) {
        let after = site.arrivals().len() - before;
        assert!((2..=22).contains(&after), "{after} starts in four seconds");
    }
}
