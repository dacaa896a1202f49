//! Pages that are asked for again and again, as their rules say.

use crate::fleet::{items_of, seed, to_the_end, worker};
use crate::ground::*;
use crate::support::*;

const RULES: &str = r#"
[[page]]
name = "front"
match = "/"
follow = ["a"]

[[page]]
name = "thing"
match = "/p/*"
recrawl = "1s"
item = true
[page.fields]
title = "h1"
"#;

/// A page of which the site says that it is unchanged to whoever has it.
fn tagged(title: &str, tag: &str) -> Reply {
    Reply::html(page(title, [""; 0])).header("etag", tag)
}

/// Two things, each unchanged as long as its tag is.
fn site() -> TestSite {
    let site = TestSite::builder().page("/", page("front", ["/p/1", "/p/2"]));
    let site = site.reply("/p/1", tagged("One", "\"v1\"")).reply("/p/2", tagged("Two", "\"v1\""));
    site.faults(|request| {
        let has = |tag| request.header("if-none-match") == Some(tag);
        let same = has("\"v1\"") && request.path == "/p/1";
        same.then(|| Reply::status(304))
    })
    .serve()
}

#[test]
fn v13_pages_are_fetched_again_when_their_recrawl_is_over_and_unchanged_ones_cost_a_304() {
    on_each_frontier(|shared| {
        let site = site();
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).pages(RULES)]);
        seed(&ground);
        let workers = ["a", "b"].map(|name| worker(&ground, name).start());
        eventually("a few re-crawls", || (site.count("/p/1") > 3).then_some(()));
        site.put("/p/2", tagged("Two, and cheaper", "\"v2\""));
        let newest = eventually("the changed page's item", || {
            let items = ["a", "b"].iter().flat_map(|worker| items_of(&ground, "shop", worker));
            items.into_iter().find(|item| item["fields"]["title"] == "Two, and cheaper")
        });
        assert_eq!(newest["page"], "thing");
        for worker in workers {
            worker.terminate();
            worker.finish().expect_code(0);
        }
        let of = |path: &str| -> Vec<Arrival> {
            site.arrivals().into_iter().filter(|arrival| arrival.path == path).collect()
        };
        let statuses: Vec<u16> = of("/p/1").iter().map(|arrival| arrival.status).collect();
        assert!(statuses[0] == 200 && statuses[1..].iter().all(|status| *status == 304), "{statuses:?}");
        for path in ["/p/1", "/p/2"] {
            let gaps: Vec<_> =
                of(path).windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at)).collect();
            assert!(gaps.iter().all(|gap| *gap >= ms(1_000)), "two workers feed a page once: {gaps:?}");
        }
        assert_eq!(site.count("/"), 1, "its rule names no recrawl");
    });
}

#[test]
fn v13_a_worker_that_ends_once_nothing_is_left_does_not_feed() {
    let site = site();
    let ground = Ground::new([SiteFile::of("shop", &site).pages(RULES)]);
    seed(&ground);
    to_the_end(&ground, "w").run().expect_code(0);
    std::thread::sleep(ms(1_100));
    let run = to_the_end(&ground, "w").run().expect_code(0);
    assert!(run.stderr.contains("starts=0"), "{}", run.stderr);
    assert_eq!(site.count("/p/1"), 1);
}

#[test]
fn v13_where_the_worker_that_feeds_is_killed_another_one_does() {
    on_each_frontier(|shared| {
        let site = site();
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).pages(RULES)]);
        seed(&ground);
        let feeds = worker(&ground, "a").start();
        eventually("a re-crawl", || (site.count("/p/1") > 1).then_some(()));
        let mut other = worker(&ground, "b").start();
        other.wait_for_stderr("at work on");
        feeds.kill();
        feeds.finish();
        let before = site.count("/p/1");
        eventually("further re-crawls", || (site.count("/p/1") > before + 2).then_some(()));
        other.terminate();
        other.finish().expect_code(0);
    });
}
