//! Downloads that don't wait: for a slow parse, or for each other after an outage.

use std::time::Duration;

use crate::alone;
use crate::ground::*;
use crate::machine::Machine;
use crate::proof::*;
use crate::support::*;

/// All slots for parsing are busy with these for a while.
const HUGE: usize = 16;

#[test]
fn v12_pages_that_take_long_to_parse_hold_no_download_up() {
    let _turn = alone();
    let interval = ms(100);
    // The selector looks at all that stands before each of them, in vain.
    let huge = format!("<h1>huge</h1>{}<u></u>", "<p>x</p>".repeat(8_000));
    let pages: Vec<String> = (1..=HUGE).map(|n| format!("/huge/{n}")).chain(paths(60)).collect();
    let rules = EVERY_PAGE.replace("title = \"h1\"", "title = \"h1\"\nlast = \"u ~ p\"");
    in_three_tries(|| {
        let site = TestSite::builder().page("/", page("front", &pages));
        let site = pages.iter().fold(site, |site, path| {
            site.page(path, if path.starts_with("/huge") { huge.clone() } else { page(path, [""; 0]) })
        });
        let site = site.serve();
        let ground = Ground::new([SiteFile::of("shop", &site)
            .interval(interval)
            .fetch("parse_budget = \"1m\"")
            .pages(&rules)]);
        let crawl = ground.crawl().start();
        let last = format!("/huge/{HUGE}");
        eventually("the last huge page's download", || (site.count(&last) == 1).then_some(()));
        let downloaded = site.arrivals().len();
        let parsed = || ground.items("shop").iter().filter(|item| item["fields"]["title"] == "huge").count();
        eventually("the last huge page's item", || (parsed() == HUGE).then_some(()));
        let meanwhile = site.arrivals().len() - downloaded;
        crawl.finish().expect_code(0);
        assert_eq!(ground.items("shop").len(), 77);
        assert_audited(&ground.audit()["shop"], site.arrivals().len());
        println!("{meanwhile} downloads while the huge pages were parsed");
        assert!(meanwhile >= 5, "only {meanwhile} downloads while the huge pages were parsed");
        let starts: Vec<Duration> =
            site.arrivals().iter().filter(|a| a.path.starts_with("/p/")).map(|a| a.at).collect();
        used(0.9, &[starts], interval)
    });
}

#[test]
fn v17_after_an_outage_with_a_piled_up_queue_each_site_still_gets_one_start_an_interval() {
    let _turn = alone();
    in_three_tries(|| {
        let interval = ms(200);
        let sites: Vec<TestSite> = (0..5).map(|_| star(300).serve()).collect();
        let names: Vec<String> = (0..sites.len()).map(|n| format!("s{n}")).collect();
        let files = names.iter().zip(&sites);
        let files =
            files.map(|(name, site)| SiteFile::of(name, site).interval(interval).pace("parallel = 50"));
        let ground = Ground::new(files);
        let crawl = ground.crawl().start();
        eventually("a page of each site", || sites.iter().all(|site| site.count("/") == 1).then_some(()));
        let full = |name: &String| ground.view(name).download.waiting > 250;
        eventually("full queues", || names.iter().all(full).then_some(()));
        crawl.kill();
        crawl.finish();
        let before: Vec<usize> = sites.iter().map(|site| site.arrivals().len()).collect();
        let lost: Vec<u64> = names.iter().map(|name| ground.view(name).download.leased).collect();
        let machine = Machine::watch();
        ground.crawl().arg("--workers").arg("100").arg("--deadline").arg("4s").run().expect_code(3);
        let stalls = machine.stalls();
        let mut measured = Vec::new();
        for (n, (name, site)) in names.iter().zip(&sites).enumerate() {
            let arrivals = site.arrivals();
            ground.assert_paced_but(usize::try_from(lost[n]).expect("few"), name, site, interval);
            measured.push(measure(name, &arrivals, &site.stalls(), &stalls, interval));
            let after: Vec<Duration> = arrivals[before[n]..].iter().map(|arrival| arrival.at).collect();
            bound((10..=21).contains(&after.len()), format_args!("{} starts in four seconds", after.len()))?;
            used(0.9, &[after], interval)?;
        }
        kept(&measured)
    });
}
