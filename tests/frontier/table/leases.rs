//! Leases: lost, renewed, repeated, stale; going back; landing; fences.

use std::collections::BTreeMap;

use paced::internals::frontier::{Rearm, Tuning};
use paced::internals::task::{Lease, LeaseKey, Put, PutReply, Settled, Stage};

use crate::world::{START, at, on_every_backend, path_of, request, starts_at, url};

#[test]
fn i5_a_lease_lasts_thirty_seconds_unless_it_is_renewed() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        assert_eq!(lease.ends_at, at(30_000));
        w.pass(15_000);
        let unknown = LeaseKey { token: 77, ..lease.key() };
        assert_eq!(w.frontier.extend(vec![lease.key(), unknown]).await.expect("answers"), [true, false]);
        w.pass(29_999);
        assert_eq!(w.claim().await, None, "never fetched twice at once");
        assert_eq!(w.frontier.extend(vec![lease.key()]).await.expect("answers"), [true]);
        w.pass(30_000);
        assert_eq!(w.frontier.extend(vec![lease.key()]).await.expect("answers"), [false]);
    });
}

#[test]
fn i13_a_lost_lease_is_no_attempt_and_the_sixth_is_dead() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let mut delays = Vec::new();
        for _ in 0..6 {
            let lease = w.take().await;
            assert_eq!(lease.attempts, 0);
            w.pass(30_000);
            let lost = w.now();
            let grant = w.grant(w.want(0, 0)).await;
            if w.place("a", "p").await == "dead" {
                break;
            }
            w.pass(grant.next_in.unwrap_or(0));
            assert!(w.place("a", "p").await != "running");
            delays.push(w.now() - lost);
        }
        assert_eq!(delays, [0, 10_000, 60_000, 600_000, 3_600_000]);
        assert_eq!(w.place("a", "p").await, "dead");
        let letters = w.frontier.dead_letters("a", 1).await.expect("answers");
        assert_eq!(letters[0].why.reason, "its worker died each time");
        assert_eq!(letters[0].attempts, 0);
        assert_eq!(w.downloads("a").await.lost, 6);
    });
}

#[test]
fn i1_i13_a_task_handed_back_is_neither_an_attempt_nor_a_loss_and_its_start_stands() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2).await;
        for round in 0..7 {
            let lease = w.start().await;
            assert_eq!(
                (path_of(&lease), lease.attempts),
                ("00000".to_owned(), 0),
                "its old place, round {round}"
            );
            assert!(w.hand_back(&lease).await);
            assert!(!w.hand_back(&lease).await, "once");
            let view = w.view("a").await;
            assert_eq!((view.last_start, view.due), (Some(at(w.now())), at(w.now() + 1_000)), "it was sent");
            w.pass(1_000);
        }
        let books = w.downloads("a").await;
        assert_eq!((books.lost, books.dead, books.waiting + books.delayed), (0, 0, 2), "{books:?}");
    });
}

#[test]
fn i8_a_lost_lease_keeps_the_position() {
    on_every_backend(async |w| {
        w.site("a").await;
        for path in ["p", "q"] {
            w.put("a", path).await;
        }
        w.take().await;
        w.pass(30_000);
        assert_eq!(w.order(1_000).await, ["p", "q"]);
    });
}

#[test]
fn a_lost_lease_with_a_request_is_that_request_s_run_in_the_old_position() {
    on_every_backend(async |w| {
        w.site("a").await;
        for path in ["p", "q"] {
            w.put("a", path).await;
        }
        w.take().await;
        assert_eq!(w.put("a", "p").await, PutReply::Deferred);
        w.pass(30_000);
        let again = w.take().await;
        assert_eq!(path_of(&again), "p");
        w.done(&again).await;
        assert_eq!(w.place("a", "p").await, "absent");
        let books = w.downloads("a").await;
        assert_eq!((books.absorbed, books.reruns), (1, 0));
    });
}

#[test]
fn i5_a_token_is_good_for_its_own_task_alone() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        w.put("a", "q").await;
        let one = w.take().await;
        w.pass(1_000);
        let other = w.take().await;
        for wrong in [
            LeaseKey { token: other.token, ..one.key() },
            LeaseKey { site: "b".to_owned(), ..one.key() },
            LeaseKey { stage: Stage::Parse, ..one.key() },
            LeaseKey { url: url("a", "r"), ..one.key() },
        ] {
            assert_eq!(w.frontier.rearm(&wrong).await.expect("answers"), Rearm::Stale, "{wrong:?}");
            assert!(!w.frontier.landed(wrong.clone()).await.expect("answers"), "{wrong:?}");
            assert!(!w.frontier.back(wrong.clone()).await.expect("answers"), "{wrong:?}");
            assert_eq!(w.frontier.extend(vec![wrong]).await.expect("answers"), [false]);
        }
        let theirs = Lease { token: other.token, ..one.clone() };
        assert_eq!(w.done(&theirs).await, Settled::Stale);
        assert_eq!(w.done(&one).await, Settled::Kept);
        assert_eq!(w.done(&other).await, Settled::Kept);
    });
}

#[test]
fn i5_a_stale_token_changes_nothing() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let stale = w.take().await;
        w.pass(30_000);
        for freed in [false, true] {
            if freed {
                w.take().await;
            }
            let before = (w.view("a").await, w.frontier.inspect().await.expect("answers"));
            assert_eq!(w.done(&stale).await, Settled::Stale);
            assert_eq!(w.die(&stale).await, Settled::Stale);
            assert_eq!(w.rearm(&stale).await, crate::world::Rearmed::Stale);
            assert!(!w.back(&stale).await);
            assert!(!w.landed(&stale).await);
            assert_eq!(w.frontier.extend(vec![stale.key()]).await.expect("answers"), [false]);
            let after = (w.view("a").await, w.frontier.inspect().await.expect("answers"));
            assert_eq!(before, after, "freed: {freed}");
        }
    });
}

#[test]
fn i5_a_claim_sent_again_gets_the_same_grant() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site(site).await;
            w.put(site, "p").await;
            w.put(site, "q").await;
        }
        let claim = w.want(2, 0);
        let first = w.grant(claim.clone()).await;
        assert_eq!(first.leases.len(), 2);
        w.pass(1_000);
        let again = w.grant(claim.clone()).await;
        assert_eq!(again.leases, first.leases);
        assert_eq!(w.downloads("a").await.leased, 1);
        w.done(&first.leases[0]).await;
        assert_eq!(w.grant(claim).await.leases, first.leases[1..], "those that still run");
    });
}

#[test]
fn a_task_that_went_back_waits_a_second_in_its_old_position_and_its_start_is_unused() {
    on_every_backend(async |w| {
        w.site("a").await;
        for path in ["p", "q"] {
            w.put("a", path).await;
        }
        let lease = w.take().await;
        assert!(w.back(&lease).await);
        assert_eq!(w.place("a", "p").await, "delayed");
        assert_eq!(w.view("a").await.last_start, None);
        assert_eq!(path_of(&w.take().await), "q", "at once: the start was unused");
        w.pass(999);
        assert_eq!(w.claim().await, None);
        w.pass(1);
        let again = w.take().await;
        assert_eq!((path_of(&again), again.attempts), ("p".to_owned(), 0));
    });
}

#[test]
fn going_back_with_a_request_is_that_request_s_run() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        w.put("a", "p").await;
        w.back(&lease).await;
        w.pass(1_000);
        let again = w.take().await;
        w.done(&again).await;
        assert_eq!(w.place("a", "p").await, "absent");
        assert_eq!(w.downloads("a").await.absorbed, 1);
    });
}

#[test]
fn r7_i2_parallel_counts_requests_until_the_body_ended() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.parallel = 2).await;
        w.put_many("a", 6).await;
        let one = w.take().await;
        w.pass(1_000);
        let two = w.take().await;
        w.pass(1_000);
        assert_eq!(w.claim().await, None);
        assert_eq!(w.view("a").await.in_flight, 2);
        assert!(w.landed(&one).await);
        assert!(w.landed(&one).await, "said twice it is the same");
        assert_eq!(w.view("a").await.in_flight, 1);
        let three = w.take().await;
        w.pass(1_000);
        assert_eq!(w.claim().await, None);
        w.done(&one).await;
        assert_eq!(w.claim().await, None, "a landed request is not counted down again");
        w.retry(&two, 60_000).await;
        let four = w.take().await;
        w.pass(1_000);
        w.back(&three).await;
        let five = w.take().await;
        w.pass(1_000);
        for lease in [four, five] {
            w.die(&lease).await;
        }
        assert_eq!(w.view("a").await.in_flight, 0);
    });
}

#[test]
fn i2_a_lost_lease_leaves_room_in_parallel() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.parallel = 1).await;
        w.put_many("a", 2).await;
        w.take().await;
        w.pass(29_999);
        assert_eq!(w.claim().await, None);
        w.pass(1);
        w.take().await;
        assert_eq!(w.view("a").await.in_flight, 1);
    });
}

#[test]
fn i6_fences_of_a_site_strictly_increase_and_start_no_lower_than_the_clock() {
    on_every_backend(async |w| {
        w.site_with("a", |a| {
            a.settings.interval = 0;
            a.settings.parallel = 50;
        })
        .await;
        w.put_many("a", 50).await;
        let grant = w.grant(w.want(20, 0)).await;
        let mut fences: Vec<i64> = grant.leases.iter().map(|lease| lease.fence).collect();
        w.pass(10_000);
        for _ in 0..2 {
            let lease = w.take().await;
            fences.push(lease.fence);
            w.fetched(&lease).await;
            fences.push(w.parse().await.expect("a parse").fence);
        }
        assert!(fences.is_sorted_by(|one, other| one < other), "{fences:?}");
        assert!(fences[0] > START, "{fences:?}");
    });
}

#[test]
fn i16_a_claim_frees_a_hundred_leases_a_step_and_says_that_more_are_left() {
    on_every_backend(async |w| {
        w.site_with("a", |a| {
            a.settings.interval = 0;
            a.settings.parallel = 1_000;
        })
        .await;
        w.put_many("a", 250).await;
        for _ in 0..5 {
            w.grant(w.want(50, 0)).await;
        }
        assert_eq!(w.downloads("a").await.leased, 250);
        w.pass(30_000);
        for left in [150, 50, 0] {
            let grant = w.grant(w.want(0, 0)).await;
            assert_eq!(w.downloads("a").await.leased, left);
            assert_eq!(grant.next_in == Some(0), left > 0, "{grant:?}");
        }
    });
}

#[test]
fn i16_of_tasks_due_at_one_time_those_put_first_are_promoted_first_then_by_site() {
    on_every_backend(async |w| {
        let later = |site: &str, i: usize| Put { at: Some(at(1_000)), ..request(site, &i.to_string()) };
        for site in ["b", "a", "c"] {
            w.site(site).await;
        }
        for site in ["b", "a"] {
            let puts = (0..100).map(|i| later(site, i)).collect();
            w.frontier.put(site, puts).await.expect("put");
        }
        w.pass(200);
        w.put_with("c", later("c", 0)).await;
        w.pass(800);
        w.grant(w.want(0, 0)).await;
        let left = |site| async move { w.downloads(site).await.scheduled };
        assert_eq!(
            (left("a").await, left("b").await, left("c").await),
            (50, 50, 1),
            "each site's first half"
        );
        assert_eq!(w.place("a", "49").await, "waiting");
        assert_eq!(w.place("a", "50").await, "scheduled");
        w.grant(w.want(0, 0)).await;
        assert_eq!((left("a").await, left("b").await, left("c").await), (0, 0, 1));
    });
}

#[test]
fn i16_a_claim_promotes_a_hundred_delayed_tasks_a_step_and_says_that_more_are_left() {
    on_every_backend(async |w| {
        w.site("a").await;
        let puts = (0..250).map(|i| Put { at: Some(at(1_000)), ..request("a", &i.to_string()) }).collect();
        w.frontier.put("a", puts).await.expect("put");
        w.pass(1_000);
        for left in [150, 50, 0] {
            let grant = w.grant(w.want(0, 0)).await;
            assert_eq!(w.downloads("a").await.scheduled, left);
            assert_eq!(grant.next_in, (left > 0).then_some(0));
        }
    });
}

#[test]
fn i16_a_claim_tidies_a_hundred_expired_tasks_a_step_and_says_that_more_are_left() {
    on_every_backend(async |w| {
        w.site("a").await;
        let puts = (0..150).map(|i| Put { expires: Some(at(10)), ..request("a", &i.to_string()) }).collect();
        w.frontier.put("a", puts).await.expect("put");
        w.put("a", "good").await;
        w.pass(10);
        let first = w.grant(w.want(1, 0)).await;
        assert_eq!((first.leases.len(), first.next_in), (0, Some(0)));
        assert_eq!(w.downloads("a").await.waiting, 51);
        assert_eq!(w.take().await.url, url("a", "good"));
    });
}

#[test]
fn a_claim_may_be_limited_to_some_sites() {
    on_every_backend(async |w| {
        for site in ["a", "b", "c"] {
            w.site(site).await;
            w.put(site, "p").await;
        }
        let grant = w.grant_of(&["b", "nowhere"], w.want(9, 9)).await;
        let sites: Vec<_> = grant.leases.iter().map(|lease| lease.site.as_str()).collect();
        assert_eq!(sites, ["b"]);
        assert_eq!(grant.next_in, Some(30_000), "the end of the lease; the other sites are not this claim's");
    });
}

#[test]
fn of_all_processes_the_one_with_the_first_start_of_a_minute_tells_how_a_site_stands() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site(site).await;
            w.put_many(site, 70).await;
        }
        let mut told: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for _ in 0..66 {
            for _ in ["a", "b"] {
                let lease = w.start().await;
                if lease.tells {
                    told.entry(lease.site.clone()).or_default().push(starts_at(&lease).div_euclid(60_000));
                }
                w.fetched(&lease).await;
                let parse = w.parse().await.expect("its page is kept");
                assert!(!parse.tells, "nobody is asked for it");
                w.done(&parse).await;
            }
            w.pass(1_000);
        }
        let first = told["a"][0];
        let minutes = |told: &[i64]| told.iter().map(|minute| minute - first).collect::<Vec<_>>();
        let per_site: Vec<Vec<i64>> = told.values().map(|told| minutes(told)).collect();
        assert!(per_site == [[0, 1], [0, 1]] || per_site == [[0, 1, 2], [0, 1, 2]], "{told:?}");
    });
}

#[test]
fn l1_a_lease_tells_how_many_more_requests_its_site_may_have_in_flight() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 5).await;
        w.tune("a", Tuning::Parallel(Some(3))).await;
        let first = w.start().await;
        assert_eq!(first.places, 2, "by the number in force");
        w.pass(1_000);
        assert_eq!(w.start().await.places, 1);
        w.fetched(&first).await;
        assert_eq!(w.parse().await.expect("its page is kept").places, 2, "its body has ended");
        w.tune("a", Tuning::Parallel(Some(2))).await;
        w.pass(1_000);
        assert_eq!(w.start().await.places, 0);
    });
}

#[test]
fn l1_a_lease_tells_how_long_what_waits_in_its_site_lasts_at_the_least() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 3).await;
        w.put_with("a", Put { at: Some(at(900_000)), ..request("a", "later") }).await;
        let first = w.start().await;
        assert_eq!(first.supply, 2_000, "two wait, and a start takes a second");
        w.tune("a", Tuning::Interval(Some(400))).await;
        w.pass(1_000);
        let second = w.start().await;
        assert_eq!(second.supply, 400, "by the interval in force");
        w.fetched(&second).await;
        assert_eq!(
            w.parse().await.expect("its page is kept").supply,
            400,
            "a parse brings links to its site"
        );
        w.pass(1_000);
        assert_eq!(w.start().await.supply, 0, "nothing waits");
    });
}
