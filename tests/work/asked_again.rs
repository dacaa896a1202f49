//! A page that is asked for again while it runs: `paced put` beside a worker.

use crate::fleet::{register_only, worker};
use crate::ground::*;
use crate::support::*;

/// How long the page takes: longer than two puts, on a busy machine too.
const RUN: std::time::Duration = ms(5_000);

fn put(ground: &Ground, url: &str) -> String {
    let run = ground.verb("put").args(["shop", url]).run().expect_code(0);
    run.stdout.split('\t').next().expect("an answer").to_owned()
}

#[test]
fn m3_m8_m12_of_three_requests_during_two_runs_one_is_run_again_and_none_holds_a_worker() {
    on_each_frontier(|shared| {
        let slow =
            |request: &Request| (request.path == "/p").then(|| Reply::html(page("p", [""; 0])).after(RUN));
        let site = TestSite::builder().page("/q", page("q", [""; 0])).faults(slow).serve();
        let file = SiteFile::of("shop", &site).interval(ms(20)).pace("robots = \"ignore\"");
        let ground = Ground::on(shared, [file]);
        register_only(&ground, "shop");
        let mut crew = worker(&ground, "w").args(["--workers", "2"]).start();
        crew.wait_for_stderr("at work");
        let (p, q) = (site.url("/p"), site.url("/q"));
        let mut said = vec![put(&ground, &p)];
        eventually("the first run", || (site.count("/p") == 1).then_some(()));
        said.extend([put(&ground, &p), put(&ground, &p)]);
        assert_eq!(said, ["created", "deferred", "coalesced"]);
        put(&ground, &q);
        eventually("another page", || (site.count("/q") == 1).then_some(()));
        assert!(site.arrivals()[0].done.is_none(), "the first run is over");
        eventually("the second run", || {
            (site.arrivals().iter().filter(|one| one.done.is_some()).count() == 3).then_some(())
        });
        eventually("the end", || (ground.view("shop").download.done == 3).then_some(()));
        let runs: Vec<_> = site.arrivals().into_iter().filter(|arrival| arrival.path == "/p").collect();
        assert_eq!(runs.len(), 2, "{runs:?}");
        assert!(runs[0].done <= Some(runs[1].at), "one at a time: {runs:?}");
        crew.terminate();
        crew.finish().expect_code(0);
    });
}
