//! Workers side by side: they share the pages, their roles may differ, and rules travel through the frontier.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::ground::*;
use crate::support::*;

/// A worker of that name.
pub fn worker(ground: &Ground, name: &str) -> Paced {
    ground.verb("work").arg("--name").arg(name)
}

/// A worker that ends once nothing is left.
pub fn to_the_end(ground: &Ground, name: &str) -> Paced {
    worker(ground, name).arg("--until-empty")
}

/// Seeds all the sites of the ground.
#[track_caller]
pub fn seed(ground: &Ground) -> Run {
    ground.verb_on_all("seed").run().expect_code(0)
}

/// What a worker wrote for a site.
pub fn items_of(ground: &Ground, site: &str, worker: &str) -> Vec<Value> {
    let file = ground.data.file(&format!("data/items/{site}-{worker}.jsonl"));
    if file.exists() { json_lines(&file) } else { Vec::new() }
}

/// The paths of a site's items, by whomever; none twice.
#[track_caller]
pub fn paths_by(ground: &Ground, site: &str, workers: &[&str]) -> BTreeSet<String> {
    let items: Vec<Value> = workers.iter().flat_map(|worker| items_of(ground, site, worker)).collect();
    let paths: BTreeSet<String> = items.iter().map(|item| path_of(&text(&item["url"]))).collect();
    assert_eq!(paths.len(), items.len(), "a page is an item once");
    paths
}

/// Puts a site's rules in force, and nothing into its queue.
pub fn register_only(ground: &Ground, site: &str) {
    let site = paced::internals::site::load(&ground.file(site)).expect("a good file");
    let settings = paced::internals::settings::Settings::default();
    wait(paced::internals::run::register(&ground.frontier(), &settings, &[site])).expect("registered");
}

fn star_paths(count: usize) -> BTreeSet<String> {
    paths(count).chain(["/".to_owned()]).collect()
}

#[test]
fn i3_an_answer_slower_than_a_lease_is_waited_for_and_nobody_else_asks() {
    let slow = |shared: &Shared| {
        let front = TestSite::builder().page("/", page("front", [""; 0]));
        let site = front.latency(Latency::fixed(ms(33_000))).serve();
        let file = SiteFile::of("shop", &site).pace("robots = \"ignore\"");
        let file = file.fetch("timeout = \"60s\"").fetch("read_timeout = \"60s\"");
        let ground = Ground::on(shared, [file]);
        seed(&ground);
        let workers = ["left", "right"].map(|name| to_the_end(&ground, name).start());
        (site, ground, workers)
    };
    // Both at once, as it takes that long.
    let shared = [Some(Shared::default()), Shared::redis()];
    let under_way: Vec<_> = shared.iter().flatten().map(slow).collect();
    for (site, ground, workers) in under_way {
        for worker in workers {
            let run = worker.finish().expect_code(0);
            assert!(!run.stderr.contains("lease"), "{}", run.stderr);
        }
        assert_eq!(site.count("/"), 1);
        assert_eq!(paths_by(&ground, "shop", &["left", "right"]).len(), 1);
        assert_eq!(ground.view("shop").download.lost, 0);
    }
}

#[test]
fn i3_two_workers_on_one_folder_share_the_pages_of_all_sites_and_keep_the_pace() {
    on_each_frontier(|shared| {
        let sites = [star(30).latency(Latency::fixed(ms(150))).serve(), star(30).serve()];
        let files = ["a", "b"].into_iter().zip(&sites);
        let ground = Ground::on(shared, files.map(|(name, site)| SiteFile::of(name, site).interval(ms(50))));
        let mut workers = ["left", "right"].map(|name| worker(&ground, name).start());
        for worker in &mut workers {
            worker.wait_for_stderr("at work");
        }
        seed(&ground);
        eventually("the end of both runs", || {
            ["a", "b"].iter().all(|site| ground.view(site).finished).then_some(())
        });
        for worker in workers {
            worker.terminate();
            let run = worker.finish().expect_code(0);
            assert!(!run.stderr.contains("lease was lost"), "{}", run.stderr);
        }
        for (name, site) in ["a", "b"].into_iter().zip(&sites) {
            assert!(site.counts().values().all(|count| *count == 1), "{site:?}");
            ground.assert_paced(name, site, ms(50));
            assert_eq!(paths_by(&ground, name, &["left", "right"]), star_paths(30));
        }
        let of_all =
            |worker| ["a", "b"].map(|site| items_of(&ground, site, worker).len()).iter().sum::<usize>();
        let shares = ["left", "right"].map(of_all);
        assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
        assert!(ground.items("a").is_empty(), "each worker writes files of its own");
    });
}

#[test]
fn v12_downloads_and_parses_may_be_processes_of_their_own() {
    on_each_frontier(|shared| {
        let site = star(12).serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).interval(ms(20))]);
        seed(&ground);
        let roles = [("dl", "download"), ("px", "parse")];
        let [download, parse] =
            roles.map(|(name, role)| to_the_end(&ground, name).arg("--role").arg(role).start());
        let (download, parse) = (download.finish().expect_code(0), parse.finish().expect_code(0));
        assert_eq!(paths_by(&ground, "shop", &["px"]), star_paths(12));
        assert!(items_of(&ground, "shop", "dl").is_empty(), "it parses nothing");
        assert!(site.counts().values().all(|count| *count == 1), "{site:?}");
        assert!(download.stderr.contains("starts=14 pages=13 items=0"), "{}", download.stderr);
        assert!(parse.stderr.contains("starts=0 pages=0 items=13"), "{}", parse.stderr);
    });
}

#[test]
fn v12_a_downloader_alone_leaves_its_pages_for_a_parser_that_comes_later() {
    on_each_frontier(|shared| {
        let site = star(4).serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &site)]);
        seed(&ground);
        let mut download = worker(&ground, "dl").arg("--role").arg("download").start();
        eventually("the front page, kept", || (ground.view("shop").parse.waiting == 1).then_some(()));
        assert_eq!(asked(&site), ["/robots.txt", "/"], "its links are not known yet");
        let parse = to_the_end(&ground, "px").arg("--role").arg("parse").run().expect_code(0);
        assert!(!download.ended());
        download.terminate();
        download.finish().expect_code(0);
        assert_eq!(paths_by(&ground, "shop", &["px"]), star_paths(4), "{}", parse.stderr);
    });
}

#[test]
fn a_worker_serves_a_site_that_is_registered_while_it_runs() {
    on_each_frontier(|shared| {
        let site = star(3).serve();
        let ground = Ground::on(shared, [SiteFile::of("late", &site)]);
        let mut running = worker(&ground, "w").start();
        running.wait_for_stderr("at work");
        seed(&ground);
        eventually("all items", || (items_of(&ground, "late", "w").len() == 4).then_some(()));
        running.terminate();
        running.finish().expect_code(0);
    });
}

#[test]
fn links_and_redirects_lead_into_queues_of_sites_that_the_worker_has_no_file_of() {
    on_each_frontier(|shared| {
        let other = star(2).page("/moved", page("moved", [""; 0])).serve();
        let front =
            page("front", [other.url("/p/1"), "/away".to_owned(), "http://127.0.0.1:1/nobody".to_owned()]);
        let first = TestSite::builder().page("/", front).redirect("/away", 302, &other.url("/moved")).serve();
        let ground = Ground::on(shared, [SiteFile::of("first", &first), SiteFile::of("other", &other)]);
        // The other site is known, and none of its pages is asked for by itself.
        register_only(&ground, "other");
        ground.verb("seed").arg(ground.file("first")).run().expect_code(0);
        let roles = [("dl", "download"), ("px", "parse")];
        let workers = roles.map(|(name, role)| to_the_end(&ground, name).arg("--role").arg(role).start());
        for run in workers.map(Running::finish) {
            run.expect_code(0);
        }
        assert_eq!(paths_by(&ground, "first", &["px"]), BTreeSet::from(["/".to_owned()]));
        let found = BTreeSet::from(["/moved".to_owned(), "/p/1".to_owned()]);
        assert_eq!(paths_by(&ground, "other", &["px"]), found);
        assert_eq!(ground.view("first").download.redirected, 1);
    });
}

#[test]
fn l4_a_worker_that_is_killed_leaves_its_pages_to_the_others() {
    on_each_frontier(|shared| {
        let site = star(20).latency(Latency::fixed(ms(100))).serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).interval(ms(30))]);
        seed(&ground);
        let [doomed, other] = ["doomed", "other"].map(|name| to_the_end(&ground, name).start());
        eventually("a few pages", || (site.arrivals().len() > 8).then_some(()));
        doomed.kill();
        assert_eq!(doomed.finish().code, None);
        let in_flight = usize::try_from(ground.view("shop").download.leased).expect("few");
        let run = other.finish().expect_code(0);
        let by = ["doomed", "other"].iter().flat_map(|worker| items_of(&ground, "shop", worker));
        let paths: BTreeSet<String> = by.map(|item| path_of(&text(&item["url"]))).collect();
        assert_eq!(paths, star_paths(20), "{}", run.stderr);
        ground.assert_paced_but(in_flight, "shop", &site, ms(30));
    });
}

#[test]
fn v15_a_worker_takes_as_many_requests_in_flight_as_slow_sites_need() {
    on_each_frontier(|shared| {
        let slow = Latency::fixed(ms(60_000));
        let sites: Vec<TestSite> = (0..24).map(|_| star(0).latency(slow).serve()).collect();
        let file = |(n, site)| SiteFile::of(&format!("s{n}"), site).pace("robots = \"ignore\"");
        let ground = Ground::on(shared, sites.iter().enumerate().map(file));
        seed(&ground);
        let running = worker(&ground, "w").start();
        // None of them is answered before the last one is asked.
        eventually("a request to each site", || sites.iter().all(|site| site.count("/") == 1).then_some(()));
        assert!(running.stderr().contains("workers scaled"), "{}", running.stderr());
        running.kill();
    });
}

#[test]
fn v15_c18_two_workers_share_the_requests_in_flight_that_a_slow_site_needs() {
    on_each_frontier(|shared| {
        let site = star(100).latency(Latency::fixed(ms(2_000))).serve();
        let file = SiteFile::of("shop", &site).interval(ms(200)).pace("parallel = 32\nrobots = \"ignore\"");
        let ground = Ground::on(shared, [file]);
        seed(&ground);
        let both = ["one", "other"].map(|name| to_the_end(&ground, name).start());
        let runs = both.map(|running| running.finish().expect_code(0));
        // 2 s / 200 ms and 15 % more are 12 for one alone, as which each takes itself for its first seconds.
        let last = |run: &Run| {
            let scaled =
                run.stderr.lines().filter_map(|line| line.split_once("workers scaled").map(|_| line));
            let mut workers =
                scaled.filter_map(|line| line.split("workers=").nth(1)?.split(' ').next()?.parse().ok());
            workers.next_back().unwrap_or(0_usize)
        };
        let workers = runs.each_ref().map(last);
        assert!(workers.iter().sum::<usize>() < 20, "{workers:?}");
        ground.assert_paced("shop", &site, ms(200));
    });
}

#[test]
fn a_link_is_followed_soon_after_the_site_it_leads_to_is_registered() {
    on_each_frontier(|shared| {
        let other = star(1).serve();
        let links = |path: String| page(path, [other.url("/p/1")]);
        let first = TestSite::builder().page("/", page("front", paths(60)));
        let first = paths(60).fold(first, |site, path| site.page(&path, links(path.clone()))).serve();
        let files = [SiteFile::of("first", &first).interval(ms(200)), SiteFile::of("other", &other)];
        let ground = Ground::on(shared, files);
        ground.verb("seed").arg(ground.file("first")).run().expect_code(0);
        let running = worker(&ground, "w").start();
        eventually("a page with a link to nobody", || {
            (items_of(&ground, "first", "w").len() > 2).then_some(())
        });
        assert!(other.requests().is_empty());
        register_only(&ground, "other");
        eventually("the link's page", || items_of(&ground, "other", "w").first().cloned());
        running.terminate();
        running.finish().expect_code(0);
    });
}

#[test]
fn n7_a_worker_for_some_sites_leaves_the_others_alone_and_ends_when_they_are_done() {
    on_each_frontier(|shared| {
        let [books, music] = [0; 2].map(|_| star(3).serve());
        let ground = Ground::on(shared, [SiteFile::of("books", &books), SiteFile::of("music", &music)]);
        seed(&ground);
        let only = |names: &str| to_the_end(&ground, "one").args(["--only-sites", names]).run();
        let told = only("books,bokks").expect_code(1).stderr;
        assert!(told.contains("there is no site `bokks`: `paced seed` its file first"), "{told}");
        only(" books,books").expect_code(0);
        assert_eq!(paths_by(&ground, "books", &["one"]), star_paths(3));
        assert!(ground.view("music").download.waiting > 0 && music.requests().is_empty());
        only("music").expect_code(0);
        assert_eq!(paths_by(&ground, "music", &["one"]), star_paths(3));
    });
}
