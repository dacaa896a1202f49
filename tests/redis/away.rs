//! Redis is away: it stands still, is killed, comes back. What was taken in is there, and no start comes early.

use std::time::Duration;

use paced::internals::frontier::{Frontier, FrontierErrorKind};
use paced::internals::task::Settled;

use crate::forgotten::AHEAD;
use crate::ground::{Ground, SiteFile, ms, star, wait};
use crate::steps::*;
use crate::support::*;

#[test]
fn i1_l4_a_restart_from_the_append_only_file_loses_nothing_and_each_unit_waits_its_own_interval_once() {
    const INTERVAL: i64 = 1_500;
    let Some(mut redis) = RedisServer::builder().append_only().start() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, INTERVAL, 5).await;
        let first = next(&frontier, "one").await;
        assert_eq!(settle(&frontier, "one", &first, done()).await, Settled::Kept);
        let second = next(&frontier, "one").await;
        let before = books(&frontier).await;
        sleep(INTERVAL).await;

        redis.restart();
        let grant = claim(&frontier, "one", 1).await;
        assert!(grant.leases.is_empty(), "another server may have granted a start that this one forgot");
        assert!(grant.next_in.is_some_and(|wait| (1..=INTERVAL + AHEAD).contains(&wait)), "{grant:?}");
        assert_eq!(books(&frontier).await, before);
        let third = next(&frontier, "one").await;
        assert_spaced(&[first, second.clone(), third], INTERVAL);
        assert_eq!(settle(&frontier, "one", &second, done()).await, Settled::Kept, "its lease stands");
        let fourth = next(&frontier, "one").await;
        assert_eq!(settle(&frontier, "one", &fourth, done()).await, Settled::Kept);
    });
}

#[test]
fn a_unit_that_did_not_start_lately_does_not_make_another_one_wait_after_a_restart() {
    let Some(mut redis) = RedisServer::builder().append_only().start() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, 300, 5).await;
        next(&frontier, "one").await;
        redis.restart();
        let asked = claim(&frontier, "one", 1).await;
        assert!(
            asked.next_in.is_some_and(|wait| wait <= 300 + AHEAD),
            "its own interval, no other one's: {asked:?}"
        );
        next(&frontier, "one").await;
    });
}

#[test]
fn i1_a_master_that_failed_over_and_back_is_restarted_though_its_process_never_ended() {
    const INTERVAL: i64 = 1_500;
    let Some(first) = redis_or_skip() else { return };
    let Some(second) = RedisServer::builder().replica_of(&first).start() else { return };
    let follow = |replica: &RedisServer, master: &RedisServer| {
        replica.cli(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
        eventually("it has all that its master has", || {
            let is_up = replica.info("master_link_status").as_deref() == Some("up");
            let [told, heard] = [master, replica].map(|server| server.info("master_repl_offset"));
            (is_up && told == heard).then_some(())
        });
    };
    let frontier = open(&first.url(0));
    wait(async {
        shop(&frontier, INTERVAL, 5).await;
        let lease = next(&frontier, "one").await;
        assert_eq!(settle(&frontier, "one", &lease, done()).await, Settled::Kept);
        follow(&second, &first);
        second.cli(&["REPLICAOF", "NO", "ONE"]);
        follow(&first, &second);
        first.cli(&["REPLICAOF", "NO", "ONE"]);
        sleep(INTERVAL).await;
        let grant = claim(&frontier, "one", 1).await;
        assert!(grant.leases.is_empty(), "the other one may have granted a start that this one doesn't know");
        assert!(grant.next_in.is_some_and(|wait| (1..=INTERVAL + AHEAD).contains(&wait)), "{grant:?}");
        next(&frontier, "one").await;
    });
}

#[test]
fn a_step_under_way_while_the_server_stands_still_is_answered_when_it_goes_on() {
    let Some(redis) = redis_or_skip() else { return };
    let frontier = open(&redis.url(0));
    wait(async {
        shop(&frontier, 0, 3).await;
        let lease = next(&frontier, "one").await;
        redis.pause();
        let settling = settle(&frontier, "one", &lease, done());
        let (settled, ()) = tokio::join!(settling, async {
            sleep(1_500).await;
            redis.resume();
        });
        assert_eq!(settled, Settled::Kept);
        let books = books(&frontier).await;
        assert_eq!((books.done, books.waiting), (1, 2));
    });
}

/// A crawl under way, on a frontier on that server.
fn crawl_on(redis: &RedisServer, site: &TestSite) -> (Ground, Running) {
    let ground = Ground::new([SiteFile::of("shop", site).interval(ms(50))]);
    let mut crawl = ground.crawl().env("PACED_FRONTIER", redis.url(0)).start();
    eventually("a few pages", || {
        assert!(!crawl.ended(), "it ended:\n{}", crawl.stderr());
        (site.arrivals().len() > 10).then_some(())
    });
    (ground, crawl)
}

/// Each page was fetched once at the pace, each item is there, and the log says once that the server was away.
fn assert_untroubled(ground: &Ground, site: &TestSite, run: &Run, pages: usize) {
    assert!(site.counts().values().all(|count| *count == 1), "{:?}\n{}", site.counts(), run.stderr);
    assert_eq!(ground.items("shop").len(), pages + 1, "{}", run.stderr);
    ground.assert_paced("shop", site, ms(50));
    for line in ["the frontier is away", "the frontier is back"] {
        assert_eq!(run.stderr.matches(line).count(), 1, "{line}:\n{}", run.stderr);
    }
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
}

#[test]
fn l4_a_crawl_goes_on_after_redis_was_killed_and_away_for_ten_seconds_and_keeps_what_was_in_flight() {
    let Some(mut redis) = RedisServer::builder().append_only().start() else { return };
    let site = star(60).latency(Latency::fixed(ms(400))).serve();
    let (ground, crawl) = crawl_on(&redis, &site);
    redis.kill9();
    std::thread::sleep(Duration::from_secs(10));
    redis.restart();
    let run = crawl.finish().expect_code(0);
    assert_untroubled(&ground, &site, &run, 60);
}

#[test]
fn l4_a_crawl_goes_on_after_redis_stood_still_for_twelve_seconds() {
    let Some(redis) = redis_or_skip() else { return };
    let site = star(60).latency(Latency::fixed(ms(400))).serve();
    let (ground, crawl) = crawl_on(&redis, &site);
    redis.pause();
    std::thread::sleep(Duration::from_secs(12));
    redis.resume();
    let run = crawl.finish().expect_code(0);
    assert_untroubled(&ground, &site, &run, 60);
}

#[test]
fn while_redis_is_away_a_crawl_asks_for_it_calmly() {
    let Some(mut redis) = RedisServer::builder().append_only().start() else { return };
    let site = star(60).latency(Latency::fixed(ms(400))).serve();
    let (_ground, crawl) = crawl_on(&redis, &site);
    redis.kill9();
    let listener = std::net::TcpListener::bind(("127.0.0.1", redis.port())).expect("its port is free");
    listener.set_nonblocking(true).expect("a socket");
    in_three_tries(|| {
        let (began, mut tries) = (std::time::Instant::now(), 0);
        while began.elapsed() < Duration::from_secs(6) {
            tries += u32::from(listener.accept().is_ok());
            std::thread::sleep(Duration::from_millis(1));
        }
        println!("{tries} tries in 6 s");
        assert!(tries > 0, "it gave up");
        bound(tries <= 20, format_args!("{tries} tries in 6 s"))
    });
    assert!(
        site.arrivals().iter().all(|arrival| arrival.done.is_some()),
        "requests in flight came to their end"
    );
    drop(listener);
    redis.restart();
    crawl.finish().expect_code(0);
}

#[test]
fn a_frontier_that_the_server_lost_with_its_memory_is_told_and_nothing_panics() {
    let Some(mut redis) = redis_or_skip() else { return };
    let site = star(60).latency(Latency::fixed(ms(400))).serve();
    let (_ground, mut crawl) = crawl_on(&redis, &site);
    redis.restart();
    eventually("an end", || crawl.ended().then_some(()));
    let run = crawl.finish();
    assert!(run.code.is_some_and(|code| code != 0), "{run:?}");
    assert!(!run.stderr.contains("panicked") && run.stderr.contains("frontier"), "{}", run.stderr);
}

#[test]
fn one_that_needs_an_answer_now_gives_up_on_a_server_that_was_never_there() {
    let port = free_port();
    let url = format!("redis://127.0.0.1:{port}/0");
    let error = wait(open(&url).sites()).expect_err("nobody is there");
    assert_eq!(error.kind, FrontierErrorKind::Away, "{error}");
    assert!(error.is_transient());
    let error = wait(async { Frontier::open_existing(&url).expect("a URL").sites().await });
    assert_eq!(error.expect_err("nobody is there").kind, FrontierErrorKind::Away);
}
