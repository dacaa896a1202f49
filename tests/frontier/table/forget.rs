//! A site is forgotten: all of it goes but its pace.

use paced::internals::frontier::{Forgotten, MutexKey, Tuning};
use paced::internals::task::{Outcome, Put, PutReply, RobotsAccess, RobotsRecord};

use crate::world::{World, ms, on_every_backend, request, url};

async fn forget(w: &World) -> Forgotten {
    loop {
        while w.frontier.give_up("a").await.expect("answers") {}
        match w.frontier.forget("a").await.expect("answers") {
            Forgotten::Partly => {}
            told => return told,
        }
    }
}

#[test]
fn i1_a_forgotten_site_is_gone_and_registered_again_it_starts_no_sooner_than_before() {
    on_every_backend(async |w| {
        assert_eq!(w.frontier.forget("a").await.expect("answers"), Forgotten::Unknown);
        w.site("a").await;
        w.put_many("a", 30).await;
        let page = w.start().await;
        w.fetched_for(&page, 60_000).await;
        let parse = w.parse().await.expect("it waits");
        w.done(&parse).await;
        w.pass(1_000);
        let dead = w.start().await;
        w.die(&dead).await;
        w.pass(400);
        assert_eq!(
            forget(w).await,
            Forgotten::NotYet { wait: 600 },
            "its record is all that knows of its last start"
        );
        w.pass(600);
        assert_eq!(forget(w).await, Forgotten::Wholly);
        assert_eq!(w.frontier.sites().await.expect("answers"), Vec::<String>::new());
        assert_eq!(w.frontier.view("a").await.expect("answers"), None);
        assert_eq!(w.frontier.text("a").await.expect("answers"), None);
        assert_eq!(w.frontier.site_of(&url("a", "p").host()).await.expect("answers"), None);
        let inside = w.frontier.inspect().await.expect("answers");
        assert!(inside.tasks.is_empty() && inside.dead.is_empty() && inside.due.is_empty(), "{inside:?}");
        assert_eq!(inside.known, 0);
        assert_eq!(w.frontier.forget("a").await.expect("answers"), Forgotten::Unknown);
        assert_eq!(w.claim().await, None);

        w.site("a").await;
        let view = w.view("a").await;
        assert_eq!((view.run, view.download.letters, view.download.created), (0, 0, 0));
        assert_eq!(w.frontier.stored("a", &page.url).await.expect("answers"), None);
        assert_eq!(w.put("a", "p").await, PutReply::Created);
        w.take().await;
    });
}

#[test]
fn i1_a_site_registered_again_with_a_longer_interval_waits_that_long() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.start().await;
        w.done(&lease).await;
        w.pass(1_000);
        assert_eq!(forget(w).await, Forgotten::Wholly);
        w.site_with("a", |shop| shop.settings.interval = 5_000).await;
        w.put("a", "p").await;
        w.next_start_in(4_000).await;
    });
}

#[test]
fn i11_a_block_is_not_forgotten_before_it_is_over() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        let block = Some((ms(90_000), "Retry-After".to_owned()));
        w.settle_with(&lease, Outcome::Done { stored: None, recrawl: None }, block).await;
        w.pass(30_000);
        assert_eq!(forget(w).await, Forgotten::NotYet { wait: 60_000 });
        w.pass(60_000);
        assert_eq!(forget(w).await, Forgotten::Wholly);
    });
}

#[test]
fn i11_nor_is_that_of_its_group() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, |shop| shop.group = Some(("g".to_owned(), 0))).await;
        }
        w.put("b", "p").await;
        let lease = w.take().await;
        let block = Some((ms(90_000), "Retry-After".to_owned()));
        w.settle_with(&lease, Outcome::Done { stored: None, recrawl: None }, block).await;
        assert_eq!(forget(w).await, Forgotten::NotYet { wait: 90_000 });
        w.pass(90_000);
        assert_eq!(forget(w).await, Forgotten::Wholly);
    });
}

#[test]
fn a_site_with_tasks_in_workers_hands_is_not_forgotten() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 3).await;
        let lease = w.start().await;
        assert_eq!(w.frontier.forget("a").await.expect("answers"), Forgotten::Busy { tasks: 3, leased: 1 });
        w.tune("a", Tuning::pause("it is being forgotten")).await;
        assert_eq!(forget(w).await, Forgotten::Busy { tasks: 1, leased: 1 });
        w.fetched(&lease).await;
        w.pass(1_000);
        assert_eq!(forget(w).await, Forgotten::Wholly, "the parse that was put meanwhile is given up too");
    });
}

#[test]
fn i17_locks_that_ended_and_the_robots_of_hosts_that_nobody_has_are_forgotten() {
    on_every_backend(async |w| {
        for n in 0..25 {
            let job = MutexKey::named(&format!("job-{n}"));
            w.frontier.try_lock(&job, "somebody", 1_000).await.expect("answers");
        }
        w.site_with("a", |shop| {
            shop.settings.robots = true;
            shop.hosts.push("other.example".to_owned());
        })
        .await;
        w.put("a", "p").await;
        let other = "https://other.example/q".parse().expect("a URL");
        w.put_with("a", Put { url: other, ..request("a", "q") }).await;
        for _ in 0..2 {
            w.pass(10_000);
            let lease = w.start().await;
            let robots = lease.robots.is_some().then(|| RobotsRecord {
                access: RobotsAccess::Absent,
                holds_for: ms(3_600_000),
                crawl_delay: Some(ms(7_000)),
                refuses: None,
            });
            w.settle(&lease, Outcome::Robots(robots.expect("of each host"))).await;
            w.pass(10_000);
            w.done(&w.start().await).await;
        }
        assert_eq!(w.view("a").await.interval, 7_000);
        w.site_with("a", |shop| shop.settings.robots = true).await;
        let known = async |origin: &str| w.frontier.robots(origin).await.expect("answers").is_some();
        assert!(!known("https://other.example").await, "it has that host no more");
        assert_eq!(
            w.view("a").await.says.robots.map(|(_, origin)| origin).as_deref(),
            Some("https://a.example")
        );
        while w.frontier.give_up("a").await.expect("answers") {}
        w.pass(10_000);
        assert_eq!(w.frontier.forget("a").await.expect("answers"), Forgotten::Wholly);
        assert!(!known("https://a.example").await);
        for n in 0..3 {
            let job = MutexKey::named(&format!("last-{n}"));
            w.frontier.try_lock(&job, "somebody", 0).await.expect("answers");
        }
        assert!(w.locks_kept().is_none_or(|locks| locks <= 2), "the last one, and that of the site's unit");
    });
}

#[test]
fn i17_an_outsider_s_lock_on_a_unit_that_never_had_a_site_is_forgotten_once_it_is_over() {
    on_every_backend(async |w| {
        let lock = async |unit: &str, expire| {
            w.frontier.try_lock(&MutexKey::unit(unit), "outsider", expire).await.expect("answers")
        };
        w.site("a").await;
        lock("a", 5_000).await;
        for n in 0..25 {
            lock(&format!("unit-{n}"), 1_000).await;
        }
        let last = MutexKey::unit("unit-24");
        assert!(w.frontier.extend_lock(&last, "outsider", 9_000).await.expect("answers"));
        w.pass(8_999);
        for _ in 0..3 {
            lock("a", 5_000).await;
        }
        assert!(
            w.unit_locks_kept().is_none_or(|locks| locks == 3),
            "that of the site, and what is still held"
        );
        assert!(w.mutex_left("unit-24").await.is_none_or(|left| left == 1));
        w.pass(1);
        lock("a", 5_000).await;
        assert!(w.unit_locks_kept().is_none_or(|locks| locks == 1), "that of the site's unit stays");
    });
}
