//! How a worker ends: drained by a signal, at once by the second one, or because nothing is left.

use std::time::Instant;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::task::Put;

use crate::fleet::{items_of, register_only, seed, to_the_end, worker};
use crate::ground::*;
use crate::support::*;

/// A worker with a request in flight that takes a while.
fn under_way(ground: &Ground, site: &TestSite) -> Running {
    seed(ground);
    let running = worker(ground, "w").start();
    eventually("a page's request", || (site.count("/") > 0).then_some(()));
    running
}

#[test]
fn a_supervisors_signal_drains_what_runs_and_ends_with_0() {
    on_each_frontier(|shared| drained(shared, Running::terminate, 0));
}

#[test]
fn a_persons_signal_drains_what_runs_and_ends_with_130() {
    on_each_frontier(|shared| drained(shared, Running::interrupt, 130));
}

fn drained(shared: &Shared, signal: fn(&Running), code: i32) {
    let site = star(5).latency(Latency::fixed(ms(500))).serve();
    let ground = Ground::on(shared, [SiteFile::of("shop", &site)]);
    let running = under_way(&ground, &site);
    signal(&running);
    let run = running.finish().expect_code(code);
    for line in ["stopping: what runs is finished", "this worker did", "stopped; others, or the next start"] {
        assert!(run.stderr.contains(line), "no `{line}` in\n{}", run.stderr);
    }
    let view = ground.view("shop");
    assert_eq!((view.download.leased, view.parse.leased, view.download.lost), (0, 0, 0));
    assert_eq!(view.download.done, 2, "robots.txt and the page in flight: {:?}", asked(&site));
    to_the_end(&ground, "w").run().expect_code(0);
    assert!(site.counts().values().all(|count| *count == 1), "{site:?}");
    assert_eq!(items_of(&ground, "shop", "w").len(), 6);
}

#[test]
fn a_second_signal_leaves_at_once_and_the_leases_return() {
    let (site, ground) = in_three_tries(|| {
        let site = TestSite::builder().page("/", page("front", [""; 0])).latency(Latency::fixed(ms(5_000)));
        let site = site.serve();
        let ground = Ground::new([SiteFile::of("shop", &site).pace("robots = \"ignore\"")]);
        let mut running = under_way(&ground, &site);
        running.terminate();
        running.wait_for_stderr("stopping");
        let stopping = Instant::now();
        eventually("an end by a second signal", || {
            // One that comes right after the first counts as the first.
            running.terminate();
            std::thread::sleep(ms(50));
            running.ended().then_some(())
        });
        let took = stopping.elapsed();
        let run = running.finish().expect_code(130);
        assert!(run.stderr.contains("left at once"), "{}", run.stderr);
        bound(took <= ms(1_000), format_args!("it left after {took:?}"))?;
        Ok((site, ground))
    });
    assert_eq!(ground.view("shop").download.leased, 1);
    to_the_end(&ground, "other").run().expect_code(0);
    assert_eq!(site.count("/"), 2);
    assert_eq!(ground.view("shop").download.lost, 1);
}

#[test]
fn until_empty_waits_for_what_others_run_and_for_back_offs_but_not_for_what_was_put_for_later() {
    on_each_frontier(|shared| {
        let site = star(1).status("/flaky", 503).latency(Latency::fixed(ms(200))).serve();
        let ground =
            Ground::on(shared, [SiteFile::of("shop", &site).fetch("attempts = 2").seed(site.url("/flaky"))]);
        seed(&ground);
        let later = ["shop", &site.url("/p/9"), "--at", "2100-01-01T00:00:00Z"];
        later.into_iter().fold(ground.verb("put"), Paced::arg).run().expect_code(0);
        let [one, two] = ["one", "two"].map(|name| to_the_end(&ground, name).start());
        for run in [one.finish(), two.finish()] {
            let run = run.expect_code(0);
            assert!(run.stderr.ends_with("done dead=1\n"), "{}", run.stderr);
        }
        let view = ground.view("shop");
        assert_eq!((view.download.scheduled, site.count("/flaky"), site.count("/p/9")), (1, 2, 0));
        let run = to_the_end(&ground, "one").arg("--fail-on-dead").run().expect_code(3);
        assert!(
            run.stderr.ends_with("done dead=1\n"),
            "dead letters of others count as well: {}",
            run.stderr
        );
    });
}

#[test]
fn i16_until_empty_waits_for_seeds_that_are_not_all_put() {
    on_each_frontier(|shared| {
        let site = star(2).serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &site)]);
        register_only(&ground, "shop");
        let url = |path: String| CanonicalUrl::parse(&site.url(&path)).expect("a URL");
        let seeds: Vec<Put> =
            ["/".to_owned()].into_iter().chain(paths(2)).map(|p| Put::seed(url(p))).collect();
        let frontier = ground.frontier();
        wait(frontier.begin("shop", &seeds, None)).expect("begun, and no seed is put");
        let mut worker = to_the_end(&ground, "w").start();
        worker.wait_for_stderr("at work");
        std::thread::sleep(ms(1_500));
        assert!(!worker.ended(), "it took a run for finished whose seeds aren't put");
        wait(frontier.begin_run("shop", seeds.clone())).expect("put");
        worker.finish().expect_code(0);
        assert_eq!(["/", "/p/1", "/p/2"].map(|path| site.count(path)), [1; 3]);
    });
}

#[test]
fn until_empty_ends_at_once_where_nothing_is() {
    on_each_frontier(|shared| {
        let ground = Ground::on(shared, []);
        let run = to_the_end(&ground, "w").run().expect_code(0);
        assert!(run.stderr.ends_with("done dead=0\n"), "{}", run.stderr);
        assert_eq!(run.stdout, "");
    });
}

#[test]
fn the_pulse_tells_of_the_sites_that_this_worker_works_on_and_of_no_others() {
    let (busy, idle) = (star(60).serve(), star(2).serve());
    let files = [SiteFile::of("busy", &busy).interval(ms(100)), SiteFile::of("idle", &idle)];
    let ground = Ground::new(files);
    let mut running = worker(&ground, "w").start();
    running.wait_for_stderr("at work");
    ground.verb("seed").arg(ground.file("busy")).run().expect_code(0);
    // Known to the frontier, and nothing of it is asked for.
    register_only(&ground, "idle");
    running.wait_for_stderr("pulse site=busy");
    running.wait_for_stderr("pulse sites=1");
    running.terminate();
    let run = running.finish().expect_code(0);
    assert!(!run.stderr.contains("site=idle"), "{}", run.stderr);
}
