//! A crawl's run: what its options bound, how it ends, and how the next one goes on.

use crate::ground::*;
use crate::support::*;

#[test]
fn max_pages_ends_a_crawl_early_and_the_next_goes_on_without_asking_twice() {
    let site = star(12).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    let run = ground.crawl().arg("--max-pages").arg("5").run().expect_code(3);
    assert!(run.stderr.contains("--max-pages"), "{}", run.stderr);
    assert_eq!(site.arrivals().iter().filter(|arrival| arrival.status == 200).count(), 5);
    ground.crawled();
    assert!(site.counts().values().all(|count| *count == 1), "{site:?}");
    assert_eq!(ground.items("shop").len(), 13);
}

#[test]
fn a_deadline_ends_a_crawl_early_and_the_next_goes_on_without_asking_twice() {
    let (site, ground) = in_three_tries(|| {
        let site = star(9).serve();
        let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(200))]);
        let run = ground.crawl().arg("--deadline").arg("1s").run().expect_code(3);
        assert!(run.stderr.contains("deadline"), "{}", run.stderr);
        bound(site.arrivals().len() <= 1 + 1_000 / 200, format_args!("in a second: {site:?}"))?;
        Ok((site, ground))
    });
    ground.crawled();
    assert!(site.counts().values().all(|count| *count == 1), "{site:?}");
    assert_eq!(ground.items("shop").len(), 10);
    ground.assert_paced("shop", &site, ms(200));
}

#[test]
fn i16_a_deadline_ends_a_crawl_that_puts_its_seeds_and_the_next_start_puts_the_others() {
    let site = star(1).serve();
    let seeds = (0..3_000).map(|n| site.url(&format!("/none/{n}")));
    let ground = Ground::new([seeds.fold(SiteFile::of("shop", &site), SiteFile::seed)]);
    let run = ground.crawl().arg("--deadline").arg("0s").run().expect_code(3);
    assert!(run.stderr.contains("the deadline is over; the next start goes on here"), "{}", run.stderr);
    let view = ground.view("shop");
    assert!(view.download.created <= 1_000 && !view.finished, "{view:?}");
    assert!(site.requests().is_empty(), "{site:?}");
    ground.verb_on_all("seed").run().expect_code(0);
    assert_eq!(ground.view("shop").download.waiting, 3_001);
}

#[test]
fn max_rate_bounds_the_whole_process() {
    let sites = [star(5).serve(), star(5).serve(), star(5).serve()];
    let files = ["a", "b", "c"].into_iter().zip(&sites).map(|(name, site)| SiteFile::of(name, site));
    let ground = Ground::new(files);
    ground.crawl().arg("--max-rate").arg("10/s").run().expect_code(0);
    let mut arrivals: Vec<_> = sites.iter().flat_map(TestSite::arrivals).map(|arrival| arrival.at).collect();
    arrivals.sort_unstable();
    assert_eq!(arrivals.len(), 3 * 7);
    let span = arrivals[20].saturating_sub(arrivals[0]);
    assert!(span >= ms(20 * 100 * 9 / 10), "{span:?}");
}

#[test]
fn of_one_page_s_links_those_that_lead_on_are_fetched_before_the_leaves() {
    let shop = ["/l/2", "/l/3"].into_iter().enumerate().fold(TestSite::builder(), |shop, (at, next)| {
        let listing = if at == 0 { "/".to_owned() } else { format!("/l/{}", at + 1) };
        let products: Vec<String> = (0..3).map(|n| format!("/p/{at}-{n}")).collect();
        let shop = products.iter().fold(shop, |shop, path| shop.page(path, page(path, [""; 0])));
        shop.page(&listing, page(&listing, products.iter().map(String::as_str).chain([next])))
    });
    let site = shop.page("/l/3", page("the last", [""; 0])).serve();
    let rules = "[[page]]\nname = \"product\"\nmatch = \"/p/**\"\nitem = true\n[page.fields]\ntitle = \"h1\"\n\n\
                 [[page]]\nname = \"listing\"\nmatch = \"/**\"\nfollow = \"*\"\n";
    let ground = Ground::new([SiteFile::of("shop", &site).pages(rules)]);
    ground.crawl().arg("--workers").arg("1").run().expect_code(0);
    let asked: Vec<String> = site.arrivals().into_iter().map(|arrival| arrival.path).collect();
    let at = |path: &str| asked.iter().position(|asked| asked == path).expect("it was asked for");
    assert!(at("/l/2") < at("/p/0-0") && at("/l/3") < at("/p/1-0"), "{asked:?}");
    assert_eq!(ground.items("shop").len(), 6);
}

#[test]
fn a_crawl_that_comes_to_nothing_fails() {
    let site = TestSite::builder().serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    ground.crawl().run().expect_code(1);
    assert_eq!(ground.dead("shop")["/"], "HTTP 404 Not Found");
}

#[test]
fn a_site_that_nobody_serves_fails_with_the_reason() {
    let addr = TestSite::builder().serve().addr();
    let file =
        SiteFile::new("shop", format!("http://{addr}/")).fetch("attempts = 1").pace("robots = \"ignore\"");
    let ground = Ground::new([file]);
    ground.crawl().run().expect_code(1);
    assert!(ground.dead("shop")["/"].contains("connect"), "{:?}", ground.dead("shop"));
    assert!(!ground.audit_has("shop"), "no request was sent");
}

#[test]
fn items_go_to_one_file_or_to_stdout_where_asked() {
    let sites = [star(2).serve(), star(3).serve()];
    let files = ["a", "b"].into_iter().zip(&sites).map(|(name, site)| SiteFile::of(name, site));
    let ground = Ground::new(files);
    let file = ground.data.file("all.jsonl");
    ground.crawl().arg("--items").arg(&file).run().expect_code(0);
    assert_eq!(json_lines(&file).len(), 7);
    let run = ground.crawl().arg("--items").arg("-").run().expect_code(0);
    let lines: Vec<serde_json::Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("an item a line, and nothing else"))
        .collect();
    assert_eq!(lines.iter().filter(|item| item["site"] == "b").count(), 4);
    assert_eq!(lines.len(), 7);
    assert!(ground.items("a").is_empty());
}

#[test]
fn a_finished_crawl_begins_a_new_run_and_fresh_gives_an_unfinished_one_up() {
    let site = star(6).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    ground.crawled();
    assert_eq!(ground.view("shop").run, 1);
    ground.crawl().arg("--max-pages").arg("3").run().expect_code(3);
    assert_eq!(ground.view("shop").run, 2);
    let run = ground.crawl().arg("--fresh").run().expect_code(0);
    assert!(run.stderr.contains("run begun"), "{}", run.stderr);
    assert_eq!((ground.view("shop").run, site.count("/p/6")), (3, 2));
}

#[test]
fn l4_a_crawl_that_was_buried_by_mistake_says_so_once_and_goes_on() {
    let interval = ms(60);
    let site = star(30).latency(Latency::fixed(ms(400))).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(interval)]);
    let crawl = ground.crawl().start();
    eventually("a few pages", || (site.arrivals().len() >= 8).then_some(()));
    wait(async {
        let frontier = ground.frontier();
        for owner in frontier.owners().await.expect("answers") {
            frontier.bury(&owner.name).await.expect("buried");
        }
    });
    let run = crawl.finish().expect_code(0);
    assert_eq!(run.stderr.matches("taken for dead").count(), 1, "{}", run.stderr);
    let items: std::collections::BTreeSet<String> = ground.item_paths("shop").into_iter().collect();
    assert_eq!(items.len(), 31);
    ground.assert_paced("shop", &site, interval);
}

#[test]
fn l4_an_interrupted_and_a_killed_crawl_go_on_and_each_page_is_kept() {
    let interval = ms(60);
    let site = star(40).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(interval)]);
    let mut in_flight = 0;
    for signal in [Running::interrupt, Running::kill, Running::terminate] {
        let before = site.arrivals().len();
        let crawl = ground.crawl().start();
        eventually("a few pages", || (site.arrivals().len() >= before + 8).then_some(()));
        signal(&crawl);
        let end = crawl.finish();
        assert!(matches!(end.code, Some(130) | None), "{end:?}");
        in_flight += usize::try_from(ground.view("shop").download.leased).expect("few");
    }
    ground.crawled();
    let titles: std::collections::BTreeSet<String> = ground.item_paths("shop").into_iter().collect();
    assert_eq!(titles.len(), 41);
    // Only what the kill met in flight may be asked for again.
    let again: usize = site.counts().values().map(|count| count - 1).sum();
    assert!(again <= in_flight, "{in_flight} in flight: {site:?}");
    ground.assert_paced_but(in_flight, "shop", &site, interval);
    assert_eq!(ground.view("shop").run, 1);
}

#[test]
fn l1_what_a_page_brings_is_asked_for_at_once_where_nothing_else_waits() {
    on_each_frontier(|shared| {
        in_three_tries(|| {
            let chain = (0..12).map(|n| (format!("/{n}"), page(n, [format!("/{}", n + 1)])));
            let site = TestSite::builder().page("/", page("front", ["/0"])).latency(Latency::fixed(ms(30)));
            let site = chain.fold(site, |site, (path, html)| site.page(&path, html)).serve();
            let file = SiteFile::of("shop", &site).interval(ms(50));
            Ground::on(shared, [file]).crawl().run();
            let max = site.gaps(ms(50)).max;
            bound(max < ms(600), format_args!("nothing was asked for {max:?}"))
        });
    });
}
