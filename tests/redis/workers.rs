//! Those who work on a shared frontier are killed, stopped, or come back after they were given up.

use paced::internals::frontier::{Frontier, WorkScope};
use paced::internals::task::Settled;

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::Signal;

use crate::ground::{Ground, SiteFile, ms, path_of, paths, star, text, wait};
use crate::steps::*;
use crate::support::*;

/// Lets so many seconds pass at the server while that member is heard of every three.
async fn live_on(
    redis: &RedisServer,
    frontier: &Frontier,
    member: &paced::internals::frontier::Member,
    from: i64,
    seconds: i64,
) {
    for second in (from..=from + seconds).step_by(3) {
        redis.shift_clock(second * 1_000);
        frontier.beat(member, true).await.expect("beaten");
    }
}

#[test]
fn l4_c10_the_leases_of_a_process_that_is_not_heard_of_for_ten_seconds_return_and_it_comes_back_as_a_stranger()
 {
    let Some(redis) = RedisServer::builder().movable_clock().start() else { return };
    let (here, there) = (open(&redis.url(0)), open(&redis.url(0)));
    wait(async {
        shop(&here, 0, 3).await;
        let zombie = there.join(WorkScope::All).await.expect("joined");
        let alive = here.join(WorkScope::All).await.expect("joined");
        let lease = claim(&there, &zombie.name, 1).await.leases.pop().expect("a page is due");
        live_on(&redis, &here, &alive, 0, 6).await;
        assert_eq!(books(&here).await.lost, 0, "it is not given up yet");
        live_on(&redis, &here, &alive, 6, 9).await;

        let again = claim(&here, &alive.name, 3).await.leases;
        let same = again.iter().find(|other| other.url == lease.url).expect("the lost page is granted anew");
        assert!(same.fence > lease.fence, "I6: {} after {}", same.fence, lease.fence);
        assert_eq!(same.attempts, 0, "a lost lease is no attempt");
        assert_eq!(settle(&there, &zombie.name, &lease, fetched(&lease)).await, Settled::Stale);
        assert_eq!(there.extend(vec![lease.key()]).await.expect("answers"), [false]);
        assert!(!there.landed(lease.key()).await.expect("answers"));
        assert_eq!(settle(&here, &alive.name, same, fetched(same)).await, Settled::Kept);
        assert_eq!(settle(&there, &zombie.name, &lease, done()).await, Settled::Stale);
        let stored = here.stored("shop", &lease.url).await.expect("answers").expect("the page is kept");
        assert_eq!(stored.place, format!("segment:{}:1", same.fence), "the newer one's");
        let books = books(&here).await;
        assert_eq!((books.done, books.lost), (1, 1), "{books:?}");
    });
}

/// A worker of that name on that server, which ends once nothing is left.
pub(super) fn worker(ground: &Ground, redis: &RedisServer, name: &str) -> Paced {
    let worker = ground.verb("work").env("PACED_FRONTIER", redis.url(0));
    worker.arg("--name").arg(name).arg("--until-empty")
}

/// A site that is seeded: its front page and so many others.
pub(super) fn seeded(site: &TestSite, seeds: usize, redis: &RedisServer) -> Ground {
    let file = SiteFile::of("shop", site).interval(ms(50));
    let ground = Ground::new([paths(seeds).fold(file, |file, path| file.seed(site.url(&path)))]);
    let file = ground.data.file("sites/shop.toml");
    ground.verb("seed").arg(file).env("PACED_FRONTIER", redis.url(0)).run().expect_code(0);
    ground
}

/// The paths of the items that these workers wrote, in order, each as often as it was written.
pub(super) fn items(ground: &Ground, names: &[&str]) -> Vec<String> {
    let files = names.iter().map(|name| ground.data.file(&format!("data/items/shop-{name}.jsonl")));
    let lines = files.filter(|file| file.exists()).flat_map(|file| json_lines(&file));
    let mut paths: Vec<String> = lines.map(|item| path_of(&text(&item["url"]))).collect();
    paths.sort();
    paths
}

pub(super) fn all_paths(count: usize) -> BTreeSet<String> {
    paths(count).chain(["/".to_owned()]).collect()
}

/// Nothing came early, though processes were killed that may have sent so many requests without a record of them.
pub(super) fn assert_nothing_early(ground: &Ground, site: &TestSite, unrecorded: usize) {
    ground.assert_paced_but(unrecorded, "shop", site, ms(50));
}

#[test]
fn l4_workers_killed_again_and_again_leave_their_pages_to_the_others_and_the_pace_stands() {
    let Some(redis) = redis_or_skip() else { return };
    let site = star(120).latency(Latency::fixed(ms(250))).serve();
    let ground = seeded(&site, 0, &redis);
    let steady = worker(&ground, &redis, "steady").start();
    let mut in_flight = 0;
    for round in 1..=3 {
        let doomed = worker(&ground, &redis, "doomed").start();
        eventually("a few more pages", || (site.arrivals().len() > round * 20).then_some(()));
        std::thread::sleep(ms(fastrand::u64(0..200)));
        doomed.kill();
        assert_eq!(doomed.finish().code, None);
        in_flight += usize::try_from(wait(books(&open(&redis.url(0)))).leased).expect("few");
    }
    let run = steady.finish().expect_code(0);
    let found: BTreeSet<String> = items(&ground, &["steady", "doomed"]).into_iter().collect();
    assert_eq!(found, all_paths(120), "{}", run.stderr);
    assert_nothing_early(&ground, &site, in_flight);
    let books = wait(books(&open(&redis.url(0))));
    assert_eq!((books.waiting, books.delayed, books.leased, books.dead), (0, 0, 0, 0), "{books:?}");
}

#[test]
fn i5_i6_a_worker_that_stood_still_past_its_beat_is_told_and_nothing_of_it_is_kept_over_the_newer() {
    let Some(redis) = redis_or_skip() else { return };
    let site = star(60).latency(Latency::fixed(ms(400))).serve();
    let ground = seeded(&site, 40, &redis);
    let zombie = worker(&ground, &redis, "zombie").arg("--role").arg("download").start();
    eventually("requests in flight", || {
        let arrivals = site.arrivals();
        let in_flight = arrivals.iter().filter(|arrival| arrival.done.is_none()).count();
        (arrivals.len() > 10 && in_flight > 1).then_some(())
    });
    zombie.signal(Signal::STOP);
    let run = worker(&ground, &redis, "alive").start().finish().expect_code(0);
    zombie.signal(Signal::CONT);
    let back = zombie.finish().expect_code(0);
    let found = items(&ground, &["alive", "zombie"]);
    let once: BTreeSet<String> = found.iter().cloned().collect();
    assert_eq!((once, found.len()), (all_paths(60), 61), "each page is an item once\n{}", run.stderr);
    assert!(back.stderr.contains("lease was lost") || back.stderr.contains("given up"), "{}", back.stderr);
    assert!(!back.stderr.contains("panicked"), "{}", back.stderr);
    let books = wait(books(&open(&redis.url(0))));
    assert!(books.lost > 0, "what it had in flight was granted anew: {books:?}");
    assert_eq!((books.waiting, books.delayed, books.leased, books.dead), (0, 0, 0, 0), "{books:?}");
}

#[test]
fn r5_a_lease_that_is_asked_about_after_a_lapsed_beat_holds_for_as_long_as_is_said() {
    let Some(redis) = RedisServer::builder().movable_clock().start() else { return };
    let (here, there) = (open(&redis.url(0)), open(&redis.url(0)));
    wait(async {
        shop(&here, 0, 2).await;
        let member = here.join(WorkScope::All).await.expect("joined");
        let other = there.join(WorkScope::All).await.expect("joined");
        let [asked, unasked] = [(); 2].map(|()| claim(&here, &member.name, 1));
        let (asked, unasked) = (asked.await.leases.pop(), unasked.await.leases.pop());
        let (asked, unasked) = (asked.expect("a page is due"), unasked.expect("and another one"));
        redis.shift_clock(11_000);
        let before = paced::internals::clock::since_boot();
        let until =
            here.hold_lease(&member, asked.key()).await.expect("answers").expect("nobody has noticed");
        assert!((before + ms(9_000)..before + ms(11_000)).contains(&until), "{until:?} after {before:?}");
        // The other one declares those dead that it hasn't heard of for ten seconds.
        there.beat(&other, true).await.expect("beaten");
        redis.shift_clock(20_000);
        there.beat(&other, true).await.expect("beaten");
        assert_eq!(settle(&here, &member.name, &asked, fetched(&asked)).await, Settled::Kept);
        redis.shift_clock(32_000);
        there.beat(&other, true).await.expect("beaten");
        assert_eq!(here.hold_lease(&member, unasked.key()).await.expect("answers"), None, "it is lost");
    });
}

#[test]
fn r5_the_item_of_a_worker_that_stood_still_past_its_beat_is_not_written_behind_that_of_another() {
    let Some(redis) = redis_or_skip() else { return };
    let (site, road) = (star(300).serve(), RedisProxy::to(redis.port()));
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    let file = ground.data.file("sites/shop.toml");
    ground.verb("seed").arg(file).env("PACED_FRONTIER", redis.url(0)).run().expect_code(0);
    // The links of the front page are put in many steps, before its item is written.
    road.slow(ms(150));
    let zombie = worker(&ground, &redis, "zombie").env("PACED_FRONTIER", road.url(0)).start();
    let frontier = open(&redis.url(0));
    eventually("the first links", || (wait(books(&frontier)).created > 10).then_some(()));
    zombie.signal(Signal::STOP);
    worker(&ground, &redis, "alive").start().finish().expect_code(0);
    assert!(items(&ground, &["alive"]).contains(&"/".to_owned()), "it has taken the page over");
    road.slow(Duration::ZERO);
    zombie.signal(Signal::CONT);
    let back = zombie.finish().expect_code(0);
    assert!(back.stderr.contains("its lease was lost"), "{}", back.stderr);
    assert!(!items(&ground, &["zombie"]).contains(&"/".to_owned()), "{}", back.stderr);
}

#[test]
fn a_worker_with_nothing_to_do_hardly_asks_and_is_there_when_something_comes() {
    let Some(redis) = redis_or_skip() else { return };
    let site = star(5).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    let mut idle = ground.verb("work").env("PACED_FRONTIER", redis.url(0)).arg("--name").arg("idle").start();
    idle.wait_for_stderr("at work");
    std::thread::sleep(ms(500));
    in_three_tries(|| {
        redis.cli(&["CONFIG", "RESETSTAT"]);
        std::thread::sleep(ms(6_000));
        let asked = redis.batches();
        println!("{asked} batches in 6 s: {:?}", redis.calls());
        assert!(asked > 0, "it isn't heard of: {:?}", redis.calls());
        bound(asked <= 10, format_args!("{asked} batches in 6 s: {:?}", redis.calls()))
    });
    let file = ground.data.file("sites/shop.toml");
    ground.verb("seed").arg(file).env("PACED_FRONTIER", redis.url(0)).run().expect_code(0);
    eventually("all items", || (items(&ground, &["idle"]).len() == 6).then_some(()));
    idle.terminate();
    idle.finish().expect_code(0);
}

#[test]
fn the_views_of_many_sites_travel_together() {
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    let mut names: Vec<String> = (0..100).map(|n| format!("s{n:03}")).collect();
    wait(async {
        for name in &names {
            register_as(&frontier, name, 1_000).await;
        }
    });
    let before = redis.batches();
    let sites = |views: Vec<paced::internals::frontier::View>| {
        views.into_iter().map(|view| view.site).collect::<Vec<_>>()
    };
    assert_eq!(sites(wait(frontier.views(&names)).expect("views")), names);
    let asked = redis.batches() - before;
    assert!(asked <= 20, "{asked} calls for {} sites", names.len());
    names.insert(50, "nobody".to_owned());
    assert_eq!(wait(frontier.views(&names)).expect("views").len(), 100, "who isn't there is left out");
}
