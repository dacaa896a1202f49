//! `robots.txt` is a task: granted before the host's first page, with nothing else of the site beside it.

use std::time::Duration;

use paced::internals::frontier::{Forgotten, Registration, Renamed, Tuning};
use paced::internals::task::{
    Exclusion, Failure, Lease, Outcome, PutReply, RobotsAccess, RobotsRecord, Settled,
};

use crate::world::{World, at, ms, on_every_backend, path_of, request, url};

const HOUR: i64 = 3_600_000;

fn obeying(shop: &mut Registration) {
    shop.settings.robots = true;
}

/// A site with two hosts.
async fn site(w: &World) {
    w.site_with("a", |shop| {
        obeying(shop);
        shop.hosts.push("other.example".to_owned());
    })
    .await;
}

fn record(access: RobotsAccess) -> RobotsRecord {
    RobotsRecord { access, holds_for: ms(HOUR), crawl_delay: None, refuses: None }
}

fn is_errand(lease: &Lease) -> bool {
    path_of(lease) == "robots.txt" && lease.robots.as_ref().is_some_and(|errand| errand.fetch == lease.url)
}

#[test]
fn a_page_whose_host_has_no_record_is_preceded_by_its_robots_txt() {
    on_every_backend(async |w| {
        site(w).await;
        w.put("a", "p").await;
        let errand = w.take().await;
        assert!(is_errand(&errand), "{errand:?}");
        assert_eq!(errand.priority.value(), 0);
        assert_eq!(w.place("a", "p").await, "waiting");
        assert_eq!(w.downloads("a").await.created, 2, "it is created by the claim");
        w.robots(&errand, RobotsAccess::Absent, HOUR).await;
        assert_eq!(w.claim().await, None, "it paid for a start as any request does");
        w.pass(1_000);
        let page = w.take().await;
        assert_eq!((path_of(&page), page.robots, page.robots_until), ("p".to_owned(), None, Some(at(HOUR))));
    });
}

#[test]
fn l2_a_record_that_ends_before_its_site_may_start_again_serves_that_start() {
    on_every_backend(async |w| {
        site(w).await;
        w.tune("a", Tuning::Interval(Some(2 * HOUR))).await;
        w.put("a", "p").await;
        let errand = w.start().await;
        assert!(is_errand(&errand));
        w.robots(&errand, RobotsAccess::Absent, HOUR).await;
        w.pass(2 * HOUR + 4_000);
        assert_eq!(path_of(&w.start().await), "p", "not robots.txt for ever");
    });
}

#[test]
fn from_its_grant_on_nothing_else_of_the_site_is_granted() {
    on_every_backend(async |w| {
        site(w).await;
        w.put("a", "p").await;
        w.put_with(
            "a",
            paced::internals::task::Put {
                url: "https://other.example/q".parse().expect("a URL"),
                ..request("a", "q")
            },
        )
        .await;
        let errand = w.take().await;
        w.pass(10_000);
        let grant = w.grant(w.want(9, 0)).await;
        assert_eq!(grant.leases, []);
        assert_eq!(grant.next_in, Some(20_000), "when its lease ends");
        w.robots(&errand, RobotsAccess::Absent, HOUR).await;
        let page = w.take().await;
        assert_eq!(path_of(&page), "p");
        w.pass(1_000);
        let second = w.take().await;
        assert_eq!(second.url.origin(), "https://other.example", "a record is per origin");
        assert!(is_errand(&second));
    });
}

#[test]
fn given_back_or_lost_it_comes_again_and_then_the_site_goes_on() {
    on_every_backend(async |w| {
        site(w).await;
        w.put("a", "p").await;
        let errand = w.take().await;
        w.back(&errand).await;
        assert_eq!(w.claim().await, None, "not before a second");
        w.pass(1_000);
        let again = w.take().await;
        assert!(is_errand(&again));
        w.pass(30_000);
        let again = w.take().await;
        assert!(is_errand(&again), "lost: at once");
        assert_eq!(w.downloads("a").await.created, 2, "the same task each time");
        w.robots(&again, RobotsAccess::Rules(String::new()), HOUR).await;
        w.pass(1_000);
        assert_eq!(path_of(&w.take().await), "p");
    });
}

#[test]
fn queued_known_or_dead_it_is_raised() {
    on_every_backend(async |w| {
        site(w).await;
        w.put_with("a", paced::internals::task::Put { at: Some(at(HOUR)), ..request("a", "robots.txt") })
            .await;
        w.put("a", "p").await;
        let errand = w.take().await;
        assert!(is_errand(&errand), "queued for later");
        w.robots(&errand, RobotsAccess::Absent, 10_000).await;
        w.pass(10_000);
        let errand = w.take().await;
        assert!(is_errand(&errand), "known");
        w.robots(&errand, RobotsAccess::Absent, 10_000).await;
        w.put("a", "robots.txt").await;
        w.put_with("a", crate::world::urgent("a", "robots.txt", 120)).await;
        w.pass(1_000);
        let plain = w.take().await;
        assert!(plain.robots.is_none(), "under a fresh record it is a page as any other");
        w.die(&plain).await;
        assert_eq!(w.place("a", "robots.txt").await, "dead");
        w.pass(10_000);
        let errand = w.take().await;
        assert!(is_errand(&errand), "dead");
        assert_eq!(w.downloads("a").await.revived, 1);
        assert_eq!(w.place("a", "robots.txt").await, "running");
    });
}

#[test]
fn asked_for_as_a_page_while_the_record_ends_its_host_waits_for_it() {
    on_every_backend(async |w| {
        site(w).await;
        w.put("a", "first").await;
        let errand = w.take().await;
        w.robots(&errand, RobotsAccess::Absent, 6_000).await;
        w.put_with("a", crate::world::urgent("a", "robots.txt", 120)).await;
        w.pass(1_000);
        let plain = w.take().await;
        assert!(plain.robots.is_none());
        w.pass(6_000);
        let grant = w.grant(w.want(1, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(1_000)));
        w.done(&plain).await;
        w.pass(1_000);
        assert!(is_errand(&w.take().await));
    });
}

#[test]
fn every_outcome_leaves_a_record_and_it_never_backs_off_and_never_dies() {
    on_every_backend(async |w| {
        let why = || Failure::status(500, "500");
        let outcomes = [
            Outcome::Retry { after: ms(7_000), why: why() },
            Outcome::Dead { why: why() },
            Outcome::Done { stored: None, recrawl: None },
            Outcome::Excluded { why: Exclusion::Type, unused: false },
            Outcome::Redirected { to: url("a", "elsewhere") },
        ];
        for (i, outcome) in outcomes.into_iter().enumerate() {
            let name = format!("s{i}");
            w.site_with(&name, obeying).await;
            w.put(&name, "p").await;
            let errand = w.take().await;
            assert_eq!(w.settle(&errand, outcome.clone()).await, Settled::Kept);
            let known = w.frontier.robots(&errand.url.origin()).await.expect("answers").expect("a record");
            assert!(matches!(known.record.access, RobotsAccess::Unreachable(_)), "{outcome:?}: {known:?}");
            assert_eq!(known.failures, 1);
            if i == 0 {
                assert_eq!(known.until, at(w.now() + 7_000), "unreachable until then");
            }
            assert_eq!(w.place(&name, "robots.txt").await, "absent");
            let books = w.downloads(&name).await;
            assert_eq!((books.done, books.dead, books.delayed), (1, 0, 0));
            assert_eq!(w.claim().await, None);
        }
    });
}

#[test]
fn pages_of_an_unreachable_host_wait_without_an_attempt_and_hold_up_no_other_host() {
    on_every_backend(async |w| {
        site(w).await;
        for i in 0..3 {
            w.put("a", &i.to_string()).await;
        }
        let other = "https://other.example/q".parse().expect("a URL");
        w.put_with("a", paced::internals::task::Put { url: other, ..request("a", "q") }).await;
        let errand = w.take().await;
        w.robots(&errand, RobotsAccess::Unreachable("503".to_owned()), 60_000).await;
        w.pass(1_000);
        let errand = w.take().await;
        assert_eq!(errand.url.origin(), "https://other.example");
        w.robots(&errand, RobotsAccess::Absent, HOUR).await;
        let books = w.downloads("a").await;
        assert_eq!((books.waiting, books.parked, books.delayed), (4, 3, 0), "until the record ends");
        w.pass(1_000);
        let page = w.take().await;
        assert_eq!(path_of(&page), "q");
        w.done(&page).await;
        let grant = w.grant(w.want(1, 0)).await;
        assert_eq!(grant.next_in, Some(58_000));
        w.pass(58_000);
        let errand = w.take().await;
        assert!(is_errand(&errand));
        assert_eq!(errand.robots.as_ref().map(|robots| robots.failures), Some(1));
        w.robots(&errand, RobotsAccess::Absent, HOUR).await;
        w.pass(1_000);
        let page = w.take().await;
        assert_eq!((path_of(&page), page.attempts), ("0".to_owned(), 0), "position kept");
    });
}

#[test]
fn i13_however_often_a_host_can_t_be_reached_its_pages_wait_and_no_attempt_is_counted() {
    on_every_backend(async |w| {
        w.site_with("a", |shop| {
            obeying(shop);
            shop.settings.attempts = 3;
        })
        .await;
        w.put("a", "p").await;
        for failures in 1..=9 {
            let errand = w.take().await;
            assert!(is_errand(&errand));
            w.robots(&errand, RobotsAccess::Unreachable("503".to_owned()), 5_000).await;
            let known = w.frontier.robots("https://a.example").await.expect("answers").expect("a record");
            assert_eq!(known.failures, failures);
            w.pass(1_000);
            assert_eq!(w.claim().await, None);
            assert_eq!(w.place("a", "p").await, "parked");
            assert!(!w.view("a").await.finished, "it still has it to do");
            w.pass(4_000);
        }
        assert_eq!(w.frontier.dead_letters("a", 9).await.expect("answers"), []);
        let errand = w.take().await;
        w.robots(&errand, RobotsAccess::Absent, HOUR).await;
        let known = w.frontier.robots("https://a.example").await.expect("answers").expect("a record");
        assert_eq!(known.failures, 0, "in a row");
        w.pass(1_000);
        let page = w.take().await;
        assert_eq!((path_of(&page), page.attempts), ("p".to_owned(), 0));
    });
}

#[test]
fn i16_pages_of_an_unreachable_host_are_parked_and_return_a_hundred_a_step() {
    on_every_backend(async |w| {
        site(w).await;
        w.put_many("a", 250).await;
        let errand = w.take().await;
        w.robots(&errand, RobotsAccess::Unreachable("503".to_owned()), 60_000).await;
        w.pass(1_000);
        for parked in [100, 200, 250] {
            let grant = w.grant(w.want(1, 0)).await;
            assert_eq!(grant.leases, []);
            let books = w.downloads("a").await;
            assert_eq!((books.parked, books.waiting, books.delayed), (parked, 250, 0));
            assert_eq!(grant.next_in == Some(0), parked < 250, "{grant:?}");
        }
        w.pass(59_000);
        let errand = w.take().await;
        assert!(is_errand(&errand), "one entry, whatever waits for it");
        assert_eq!(w.downloads("a").await.parked, 250);
        w.robots(&errand, RobotsAccess::Absent, HOUR).await;
        for parked in [150, 50, 0] {
            let grant = w.grant(w.want(0, 0)).await;
            assert_eq!(w.downloads("a").await.parked, parked);
            assert_eq!(grant.next_in == Some(0), parked > 0, "{grant:?}");
        }
        w.pass(1_000);
        assert_eq!(path_of(&w.take().await), "00000", "position kept");
    });
}

#[test]
fn i16_a_host_that_answers_with_many_pages_holds_up_neither_another_one_nor_a_retry() {
    on_every_backend(async |w| {
        for name in ["a", "b", "c"] {
            w.site_with(name, |shop| {
                shop.settings.robots = name != "c";
                shop.settings.interval = 0;
            })
            .await;
        }
        w.put_many("a", 1_000).await;
        w.put("b", "p").await;
        w.put("c", "p").await;
        for lease in w.grant(w.want(3, 0)).await.leases {
            match lease.site.as_str() {
                "c" => drop(w.retry(&lease, 60_001).await),
                _ => drop(w.robots(&lease, RobotsAccess::Unreachable("503".to_owned()), 60_000).await),
            }
        }
        while w.grant(w.want(9, 0)).await.next_in == Some(0) {}
        w.pass(60_001);
        let mut seen = Vec::new();
        for lease in w.grant(w.want(9, 0)).await.leases {
            match lease.site.as_str() {
                "c" => seen.push(path_of(&lease)),
                _ => drop(w.robots(&lease, RobotsAccess::Absent, HOUR).await),
            }
        }
        assert_eq!(seen, ["p"], "the retry comes at once");
        let sites = async || {
            let leases = w.grant(w.want(9, 0)).await.leases;
            leases.into_iter().map(|lease| lease.site).collect::<Vec<_>>()
        };
        let mut first = sites().await;
        for _ in 0..2 {
            w.pass(1);
            first.extend(sites().await);
        }
        assert!(first.contains(&"b".to_owned()), "{first:?}");
        assert!(w.downloads("a").await.parked >= 700, "while most of the others are still to return");
    });
}

#[test]
fn i14_parked_pages_are_put_again_renamed_given_up_and_forgotten_as_waiting_ones() {
    on_every_backend(async |w| {
        site(w).await;
        for i in 0..3 {
            w.put("a", &i.to_string()).await;
        }
        let errand = w.take().await;
        w.robots(&errand, RobotsAccess::Unreachable("503".to_owned()), 60_000).await;
        w.pass(1_000);
        assert_eq!(w.claim().await, None);
        assert_eq!(w.put_with("a", crate::world::urgent("a", "2", 120)).await, PutReply::Coalesced);
        assert_eq!(w.link("a", "1").await, PutReply::Coalesced);
        assert_eq!(w.place("a", "2").await, "parked");
        assert_eq!(w.frontier.rename("a", "z").await.expect("answers"), Renamed::Done);
        let found = w.frontier.whereabouts("z", &url("a", "2")).await.expect("answers");
        assert_eq!((found.tasks[0].place.as_str(), found.tasks[0].priority.value()), ("parked", 120));
        w.pass(59_000);
        let errand = w.take().await;
        assert_eq!((errand.site.as_str(), is_errand(&errand)), ("z", true));
        w.robots(&errand, RobotsAccess::Absent, HOUR).await;
        w.pass(1_000);
        let page = w.take().await;
        assert_eq!(path_of(&page), "2", "the most urgent first");
        w.done(&page).await;
        assert_eq!(w.frontier.rename("z", "a").await.expect("answers"), Renamed::Done);
        w.pass(HOUR);
        let errand = w.take().await;
        w.robots(&errand, RobotsAccess::Unreachable("503".to_owned()), 60_000).await;
        w.pass(1_000);
        assert_eq!((w.claim().await, w.downloads("a").await.parked), (None, 2));
        while w.frontier.give_up("a").await.expect("answers") {}
        let books = w.downloads("a").await;
        assert_eq!((books.waiting, books.parked, books.dropped), (0, 0, 2));
        assert_eq!(w.grant(w.want(9, 9)).await.next_in, None, "nothing is left to look at");
        w.pass(1_000);
        assert_eq!(w.frontier.forget("a").await.expect("answers"), Forgotten::Wholly);
    });
}

#[test]
fn turned_off_in_the_file_parked_pages_return_at_once() {
    on_every_backend(async |w| {
        site(w).await;
        w.put("a", "p").await;
        let errand = w.take().await;
        w.robots(&errand, RobotsAccess::Unreachable("503".to_owned()), HOUR).await;
        w.pass(1_000);
        assert_eq!((w.claim().await, w.place("a", "p").await), (None, "parked".to_owned()));
        w.site_with("a", |_| {}).await;
        assert_eq!(path_of(&w.take().await), "p");
    });
}

#[test]
fn i12_a_parked_page_that_expires_spends_no_start() {
    on_every_backend(async |w| {
        site(w).await;
        let expiring = paced::internals::task::Put { expires: Some(at(30_000)), ..request("a", "p") };
        w.put_with("a", expiring).await;
        let errand = w.take().await;
        w.robots(&errand, RobotsAccess::Unreachable("503".to_owned()), 60_000).await;
        w.pass(1_000);
        assert_eq!((w.claim().await, w.place("a", "p").await), (None, "parked".to_owned()));
        w.pass(59_000);
        let errand = w.take().await;
        w.robots(&errand, RobotsAccess::Absent, HOUR).await;
        w.pass(1_000);
        assert_eq!(w.claim().await, None);
        assert_eq!(w.downloads("a").await.excluded.get(&Exclusion::Expired), Some(&1));
    });
}

#[test]
fn a_robots_txt_whose_workers_died_each_time_is_unreachable() {
    on_every_backend(async |w| {
        site(w).await;
        w.put("a", "p").await;
        for _ in 0..6 {
            assert!(is_errand(&w.take().await));
            w.pass(30_000);
        }
        assert_eq!(w.claim().await, None);
        let known = w.frontier.robots("https://a.example").await.expect("answers").expect("a record");
        assert_eq!(known.record.access, RobotsAccess::Unreachable("its worker died each time".to_owned()));
        let books = w.downloads("a").await;
        assert_eq!((books.lost, books.letters), (6, 0));
    });
}

#[test]
fn redirected_within_the_site_it_is_the_same_task_again_and_pays_for_each_hop() {
    on_every_backend(async |w| {
        site(w).await;
        w.put_with("a", crate::world::urgent("a", "p", 120)).await;
        let mut lease = w.take().await;
        for hop in 1..=5 {
            let to = url("a", &format!("robots-{hop}.txt"));
            assert_eq!(w.settle(&lease, Outcome::RobotsMoved { to: to.clone() }).await, Settled::Kept);
            assert_eq!(w.claim().await, None, "each hop waits its interval");
            w.pass(1_000);
            lease = w.take().await;
            assert_eq!(path_of(&lease), "robots.txt", "before the more urgent page");
            assert_eq!(lease.robots.as_ref().map(|errand| &errand.fetch), Some(&to));
            assert_eq!((lease.hops, lease.priority.value()), (hop, 0));
        }
        assert_eq!(w.downloads("a").await.created, 2, "one task all the way");
        w.settle(&lease, Outcome::RobotsMoved { to: url("a", "robots-6.txt") }).await;
        let known = w.frontier.robots("https://a.example").await.expect("answers").expect("a record");
        assert!(
            matches!(&known.record.access, RobotsAccess::Unreachable(why) if why.contains("robots-6.txt")),
            "{known:?}"
        );
    });
}

#[test]
fn a_request_that_met_a_redirected_robots_txt_is_served_by_the_next_hop() {
    on_every_backend(async |w| {
        site(w).await;
        w.put("a", "p").await;
        let errand = w.take().await;
        assert_eq!(w.put("a", "robots.txt").await, PutReply::Deferred);
        w.settle(&errand, Outcome::RobotsMoved { to: url("a", "r.txt") }).await;
        w.pass(1_000);
        let errand = w.take().await;
        assert_eq!((errand.hops, errand.robots.is_some()), (1, true));
        w.robots(&errand, RobotsAccess::Absent, HOUR).await;
        assert_eq!(w.place("a", "robots.txt").await, "absent", "no third run (M4)");
    });
}

#[test]
fn its_crawl_delay_is_a_floor_under_file_and_tuning_and_for_outsiders() {
    on_every_backend(async |w| {
        site(w).await;
        w.tune("a", Tuning::Interval(Some(100))).await;
        w.put_many("a", 3).await;
        let errand = w.start().await;
        let slow = RobotsRecord {
            crawl_delay: Some(Duration::from_secs(10)),
            holds_for: ms(25_000),
            ..record(RobotsAccess::Rules("Crawl-delay: 10".to_owned()))
        };
        w.settle(&errand, Outcome::Robots(slow)).await;
        assert_eq!(w.view("a").await.interval, 10_000);
        assert_eq!(w.view("a").await.says.robots, Some((10_000, "https://a.example".to_owned())));
        assert_eq!(w.mutex_left("a").await, Some(10_000));
        w.next_start_in(10_000).await;
        w.pass(16_000);
        let errand = w.start().await;
        assert!(is_errand(&errand));
        w.robots(&errand, RobotsAccess::Unreachable("503".to_owned()), 1_000).await;
        assert_eq!(
            w.view("a").await.interval,
            10_000,
            "what was asked for holds until something else is known"
        );
        w.pass(10_000);
        let errand = w.take().await;
        w.robots(&errand, RobotsAccess::Absent, HOUR).await;
        assert_eq!(w.view("a").await.interval, 100);
        w.tune("a", Tuning::Interval(Some(20_000))).await;
        assert_eq!(w.view("a").await.interval, 20_000);
    });
}

#[test]
fn a_crawl_delay_without_end_breaks_nothing() {
    on_every_backend(async |w| {
        site(w).await;
        w.put_many("a", 2).await;
        let errand = w.take().await;
        let endless = RobotsRecord {
            crawl_delay: Some(Duration::MAX),
            ..record(RobotsAccess::Rules("Crawl-delay: 1e18".to_owned()))
        };
        w.settle(&errand, Outcome::Robots(endless)).await;
        let view = w.view("a").await;
        assert_eq!((view.download.leased, view.download.waiting, view.in_flight), (0, 2, 0));
        assert!(
            view.interval > 50 * 365 * 24 * HOUR && view.due > view.last_start.expect("a start"),
            "{view:?}"
        );
        w.pass(HOUR);
        assert_eq!(w.claim().await, None);
    });
}

#[test]
fn under_new_rules_and_after_it_was_forgotten_a_site_reads_it_anew_and_its_crawl_delay_holds() {
    on_every_backend(async |w| {
        let slow = || RobotsRecord {
            crawl_delay: Some(Duration::from_secs(10)),
            ..record(RobotsAccess::Rules("Crawl-delay: 10".to_owned()))
        };
        site(w).await;
        w.put("a", "p").await;
        let errand = w.start().await;
        w.settle(&errand, Outcome::Robots(slow())).await;
        while w.frontier.give_up("a").await.expect("answers") {}
        w.pass(10_000);
        assert_eq!(w.frontier.forget("a").await.expect("answers"), Forgotten::Wholly);

        site(w).await;
        w.put("a", "p").await;
        w.pass(1_000);
        let errand = w.start().await;
        assert!(is_errand(&errand), "what it asks of the pace went with the site: {errand:?}");
        w.settle(&errand, Outcome::Robots(slow())).await;
        assert_eq!(w.view("a").await.interval, 10_000);

        site(w).await;
        w.pass(10_000);
        let page = w.start().await;
        assert_eq!(path_of(&page), "p", "the same file read again changes nothing");
        w.done(&page).await;
        w.put("a", "q").await;
        w.site_with("a", |shop| {
            obeying(shop);
            "another file".clone_into(&mut shop.text);
        })
        .await;
        w.pass(10_000);
        assert!(is_errand(&w.take().await), "another file may name another agent");
    });
}

#[test]
fn its_crawl_delay_holds_for_each_site_of_a_group_that_has_the_host() {
    on_every_backend(async |w| {
        let shared = |shop: &mut Registration| {
            obeying(shop);
            shop.hosts = vec!["shared.example".to_owned()];
            shop.group = Some(("group:g".to_owned(), 0));
        };
        let page = |path: &str| paced::internals::task::Put {
            url: format!("https://shared.example/{path}").parse().expect("a URL"),
            ..request("a", "p")
        };
        w.site_with("a", shared).await;
        w.put_with("a", page("p")).await;
        let errand = w.take().await;
        let slow = RobotsRecord {
            crawl_delay: Some(Duration::from_secs(10)),
            ..record(RobotsAccess::Rules("Crawl-delay: 10".to_owned()))
        };
        w.settle(&errand, Outcome::Robots(slow.clone())).await;
        w.pass(10_000);
        w.done(&w.take().await).await;
        w.site_with("b", shared).await;
        for path in ["q", "r"] {
            w.put_with("b", page(path)).await;
        }
        // Under the rules of b robots.txt is read anew, by whichever site of the two comes first.
        w.put_with("a", page("s")).await;
        w.tune("b", Tuning::pause("a comes first")).await;
        w.pass(10_000);
        let errand = w.take().await;
        assert_eq!((errand.site.as_str(), is_errand(&errand)), ("a", true));
        w.settle(&errand, Outcome::Robots(slow)).await;
        w.pass(10_000);
        w.done(&w.take().await).await;
        w.tune("b", Tuning::Paused(None)).await;
        w.pass(10_000);
        assert_eq!(w.start().await.site, "b");
        assert_eq!(w.view("b").await.says.robots, Some((10_000, "https://shared.example".to_owned())));
        assert_eq!(w.next_start_in(10_000).await.site, "b");
    });
}

#[test]
fn i11_where_it_asks_for_more_than_the_file_allows_the_unit_is_blocked() {
    on_every_backend(async |w| {
        site(w).await;
        w.put("a", "p").await;
        let errand = w.take().await;
        let refuses = Some("robots asks for 600 s".to_owned());
        let refusing = RobotsRecord { refuses, ..record(RobotsAccess::Rules("Crawl-delay: 600".to_owned())) };
        w.settle(&errand, Outcome::Robots(refusing)).await;
        let view = w.view("a").await;
        assert_eq!(view.blocked_why.as_deref(), Some("robots asks for 600 s"));
        assert_eq!(view.blocked_until, Some(at(HOUR)));
        assert!(is_errand(&w.next_start_in(HOUR).await), "asked again when the record ends");
    });
}

#[test]
fn paused_while_it_grew_late_it_goes_back_and_the_site_is_free_of_it() {
    on_every_backend(async |w| {
        site(w).await;
        w.put("a", "p").await;
        let errand = w.take().await;
        w.tune("a", Tuning::pause("lunch")).await;
        assert_eq!(w.rearm(&errand).await, crate::world::Rearmed::WentBack);
        w.tune("a", Tuning::Paused(None)).await;
        assert!(is_errand(&w.take().await));
    });
}

#[test]
fn turned_off_in_the_file_pages_go_without_it() {
    on_every_backend(async |w| {
        site(w).await;
        w.put("a", "p").await;
        let errand = w.take().await;
        w.back(&errand).await;
        w.site_with("a", |shop| shop.hosts.push("other.example".to_owned())).await;
        w.pass(1_000);
        let paths = w.order(1_000).await;
        assert_eq!(paths, ["robots.txt", "p"], "an ordinary page now");
        assert_eq!(w.frontier.robots("https://a.example").await.expect("answers"), None);
    });
}

#[test]
fn v12_a_robots_txt_under_way_holds_up_no_parse() {
    on_every_backend(async |w| {
        site(w).await;
        w.put("a", "p").await;
        let errand = w.take().await;
        w.robots(&errand, RobotsAccess::Absent, 6_000).await;
        w.pass(1_000);
        let page = w.take().await;
        w.fetched(&page).await;
        w.put("a", "q").await;
        w.pass(6_000);
        assert!(is_errand(&w.take().await));
        assert_eq!(w.parse().await.map(|parse| path_of(&parse)), Some("p".to_owned()));
    });
}
