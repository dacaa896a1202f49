//! A worker that has nothing to do, and a page that is put then: it is asked for at once, not when the worker would look next.

use std::time::{Duration, Instant};

use paced::internals::task::{Priority, Put};

use crate::fleet::{register_only, worker};
use crate::ground::*;
use crate::support::*;

/// How long a worker sleeps at most where it counts on hints.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

#[test]
fn a_put_on_an_idle_fleet_wakes_it() {
    let Some(shared) = Shared::redis() else { return };
    let site = star(60).serve();
    let ground =
        Ground::on(&shared, [SiteFile::of("shop", &site).interval(ms(20)).pace("robots = \"ignore\"")]);
    register_only(&ground, "shop");
    let mut workers = ["a", "b"].map(|name| worker(&ground, name).start());
    for worker in &mut workers {
        worker.wait_for_stderr("at work");
    }
    let mut pages = paths(60);
    in_three_tries(|| {
        let mut waits = Vec::new();
        for path in pages.by_ref().take(20) {
            // Both have fallen asleep again.
            std::thread::sleep(ms(300));
            let put = Put::request(site.url(&path).parse().expect("a URL"), Priority::OPERATOR);
            let began = Instant::now();
            wait(ground.frontier().put("shop", vec![put])).expect("put");
            eventually("its request", || (site.count(&path) == 1).then_some(()));
            waits.push(began.elapsed());
        }
        waits.sort();
        println!("from put to request: p50 {:?}, max {:?}", waits[10], waits[19]);
        // Without a hint half of them would take half of that sleep and more.
        bound(waits[10] < LONGEST_SLEEP / 20, format_args!("{waits:?}"))
    });
    for worker in workers {
        worker.terminate();
        worker.finish().expect_code(0);
    }
}
