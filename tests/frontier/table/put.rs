//! Puts: what a request and a link do to a page in each place.

use paced::internals::task::{Origin, Priority, Put, PutReply, Stage};

use crate::world::{at, on_every_backend, request, urgent, url};

#[test]
fn m1_a_request_for_a_page_nobody_knows_waits() {
    on_every_backend(async |w| {
        w.site("a").await;
        assert_eq!(w.put("a", "p").await, PutReply::Created);
        assert_eq!(w.place("a", "p").await, "waiting");
        assert_eq!(w.downloads("a").await.created, 1);
    });
}

#[test]
fn c9_i12_a_put_for_later_is_no_candidate_before_its_time() {
    on_every_backend(async |w| {
        w.site("a").await;
        assert_eq!(
            w.put_with("a", Put { at: Some(at(5_000)), ..request("a", "p") }).await,
            PutReply::Created
        );
        assert_eq!(w.place("a", "p").await, "scheduled");
        w.pass(4_999);
        assert_eq!(w.claim().await, None);
        w.pass(1);
        assert_eq!(w.take().await.url, url("a", "p"));
    });
}

#[test]
fn m2_i4_m7_further_requests_of_a_waiting_page_coalesce() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        for _ in 0..5 {
            assert_eq!(w.put("a", "p").await, PutReply::Coalesced);
        }
        let books = w.downloads("a").await;
        assert_eq!((books.waiting, books.created, books.coalesced), (1, 1, 5));
        w.take().await;
        w.pass(1_000);
        assert_eq!(w.claim().await, None, "one instance only");
    });
}

#[test]
fn m11_a_coalesced_request_brings_the_most_urgent_priority_and_keeps_the_position() {
    on_every_backend(async |w| {
        w.site("a").await;
        for path in ["1", "2", "3"] {
            w.put("a", path).await;
        }
        assert_eq!(w.put_with("a", urgent("a", "3", 140)).await, PutReply::Coalesced);
        assert_eq!(w.put_with("a", urgent("a", "3", 340)).await, PutReply::Coalesced, "never less urgent");
        w.put("a", "1").await;
        assert_eq!(w.order(1_000).await, ["3", "1", "2"]);
    });
}

#[test]
fn a_coalesced_request_brings_the_later_expiry_and_none_is_for_ever() {
    on_every_backend(async |w| {
        w.site("a").await;
        let until = |path, ms| Put { expires: Some(at(ms)), ..request("a", path) };
        for (path, then) in [("early", Some(500)), ("late", Some(90_000)), ("ever", None)] {
            w.put_with("a", until(path, 1_000)).await;
            w.put_with("a", Put { expires: then.map(at), ..request("a", path) }).await;
        }
        w.pass(2_000);
        assert_eq!(w.order(1_000).await, ["late", "ever"]);
        assert_eq!(w.place("a", "early").await, "absent");
    });
}

#[test]
fn a_link_changes_only_the_priority_and_the_depth_of_a_waiting_page() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_with("a", Put { depth: 3, hops: 2, expires: Some(at(60_000)), ..urgent("a", "p", 260) }).await;
        let link = Put { priority: Priority::from_value(160), hops: 7, ..Put::link(url("a", "p"), 5) };
        assert_eq!(w.put_with("a", link.clone()).await, PutReply::Coalesced);
        assert_eq!(w.put_with("a", Put { depth: 1, ..link }).await, PutReply::Coalesced);
        let lease = w.take().await;
        assert_eq!(
            (lease.priority.value(), lease.depth, lease.hops, lease.origin),
            (160, 1, 2, Origin::Request)
        );
        w.pass(20_000);
        w.frontier.extend(vec![lease.key()]).await.expect("answers");
        w.pass(29_000);
        w.retry(&lease, 20_000).await;
        w.pass(20_000);
        assert_eq!(w.claim().await, None, "a link without expiry makes no page live for ever");
        assert_eq!(w.downloads("a").await.done, 1);
    });
}

#[test]
fn a_request_takes_a_waiting_link_over_with_its_own_count_of_redirects() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_with("a", Put { hops: 9, ..Put::link(url("a", "p"), 4) }).await;
        assert_eq!(w.put("a", "p").await, PutReply::Coalesced);
        let lease = w.take().await;
        assert_eq!((lease.origin, lease.hops, lease.depth), (Origin::Request, 0, 0));
    });
}

#[test]
fn again_pulls_a_put_for_later_to_now_but_never_a_back_off() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_with("a", Put { at: Some(at(60_000)), ..request("a", "later") }).await;
        w.put("a", "failed").await;
        let lease = w.take().await;
        w.retry(&lease, 60_000).await;
        w.pass(1_000);
        for path in ["later", "failed"] {
            assert_eq!(w.put("a", path).await, PutReply::Coalesced);
        }
        assert_eq!(w.place("a", "later").await, "scheduled", "without --again it keeps its time");
        for path in ["later", "failed"] {
            w.put_with("a", Put { again: true, ..request("a", path) }).await;
        }
        assert_eq!(w.place("a", "later").await, "waiting");
        assert_eq!(w.place("a", "failed").await, "delayed");
    });
}

#[test]
fn a_link_to_a_running_page_is_known_and_asks_nothing() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        assert_eq!(w.link("a", "p").await, PutReply::Known);
        w.done(&lease).await;
        assert_eq!(w.place("a", "p").await, "absent");
        assert_eq!(w.downloads("a").await.known, 1);
    });
}

#[test]
fn m3_m4_m6_a_request_during_a_run_is_not_dropped_and_further_ones_add_nothing() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        assert_eq!(w.put("a", "p").await, PutReply::Deferred);
        assert_eq!(w.put("a", "p").await, PutReply::Coalesced);
        w.pass(5_000);
        assert_eq!(w.claim().await, None, "m5: one worker at a time");
        w.done(&lease).await;
        assert_eq!(w.place("a", "p").await, "waiting");
        let second = w.take().await;
        assert!(second.granted_at > lease.granted_at);
        w.done(&second).await;
        assert_eq!(w.place("a", "p").await, "absent");
        let books = w.downloads("a").await;
        assert_eq!((books.created, books.reruns, books.done, books.deferred), (1, 1, 2, 1));
    });
}

#[test]
fn m8_the_golden_vector_of_the_two_locks() {
    on_every_backend(async |w| {
        w.site("a").await;
        let mut said = Vec::new();
        w.pass(1_000);
        said.push((w.now(), format!("{:?}", w.put("a", "p").await)));
        let first = w.take().await;
        said.push((w.now(), "start".to_owned()));
        w.pass(1_000);
        said.push((w.now(), format!("{:?}", w.put("a", "p").await)));
        w.pass(1_000);
        said.push((w.now(), format!("{:?}", w.put("a", "p").await)));
        w.done(&first).await;
        said.push((w.now(), "end".to_owned()));
        let second = w.take().await;
        said.push((w.now(), "start".to_owned()));
        w.pass(2_000);
        w.done(&second).await;
        said.push((w.now(), "end".to_owned()));
        assert_eq!(w.claim().await, None, "the third request asked for no third run");
        let expected = [
            (1_000, "Created"),
            (1_000, "start"),
            (2_000, "Deferred"),
            (3_000, "Coalesced"),
            (3_000, "end"),
            (3_000, "start"),
            (5_000, "end"),
        ];
        assert_eq!(said, expected.map(|(time, word)| (time, word.to_owned())));
    });
}

#[test]
fn m11_a_further_run_has_the_most_urgent_priority_the_fewest_links_and_the_latest_payload() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_with("a", Put { hops: 9, ..Put::link(url("a", "p"), 4) }).await;
        let lease = w.take().await;
        w.put_with("a", Put { depth: 3, hops: 8, ..urgent("a", "p", 320) }).await;
        w.put_with("a", Put { depth: 2, hops: 1, ..urgent("a", "p", 160) }).await;
        w.put_with("a", Put { depth: 7, hops: 2, ..urgent("a", "p", 260) }).await;
        w.done(&lease).await;
        w.pass(1_000);
        let lease = w.take().await;
        assert_eq!(
            (lease.priority.value(), lease.depth, lease.hops, lease.origin),
            (160, 2, 2, Origin::Request)
        );
    });
}

#[test]
fn i12_a_request_for_later_that_meets_a_running_page_keeps_its_time() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        w.put_with("a", Put { at: Some(at(60_000)), ..request("a", "p") }).await;
        w.put_with("a", Put { at: Some(at(50_000)), ..request("a", "p") }).await;
        w.done(&lease).await;
        assert_eq!(w.place("a", "p").await, "scheduled");
        w.pass(49_999);
        assert_eq!(w.claim().await, None);
        w.pass(1);
        w.take().await;
    });
}

#[test]
fn a_request_for_later_is_not_served_by_the_retry_of_an_earlier_run() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        w.put_with("a", Put { at: Some(at(60_000)), ..request("a", "p") }).await;
        w.retry(&lease, 2_000).await;
        w.pass(2_000);
        let retry = w.take().await;
        assert_eq!(retry.attempts, 1, "the first request's own run goes on");
        w.done(&retry).await;
        assert_eq!(w.place("a", "p").await, "scheduled");
        w.pass(58_000);
        assert_eq!(w.take().await.attempts, 0);
    });
}

#[test]
fn v13_a_known_page_is_fetched_again_on_request_and_not_for_a_link() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.frontier.begin_run("a", vec![Put::seed(url("a", "p"))]).await.expect("begun");
        let lease = w.take().await;
        w.done(&lease).await;
        assert_eq!(w.link("a", "p").await, PutReply::Known);
        assert_eq!(w.place("a", "p").await, "absent");
        assert_eq!(w.put("a", "p").await, PutReply::Created);
        assert_eq!(w.place("a", "p").await, "waiting");
    });
}

#[test]
fn i13_a_dead_page_is_revived_by_a_request_and_by_a_link_of_a_later_run() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.frontier.begin_run("a", vec![]).await.expect("begun");
        for path in ["p", "q"] {
            w.put("a", path).await;
        }
        for _ in 0..2 {
            let lease = w.take().await;
            w.retry(&lease, 0).await;
            w.pass(1_000);
            let lease = w.take().await;
            w.die(&lease).await;
            w.pass(1_000);
        }
        assert_eq!(w.link("a", "p").await, PutReply::Known, "not for a link of the same run");
        assert_eq!(w.put("a", "p").await, PutReply::Revived);
        let lease = w.take().await;
        assert_eq!(lease.attempts, 0, "as if new");
        w.done(&lease).await;
        assert!(w.frontier.begin_run("a", vec![]).await.expect("begun").begun);
        assert_eq!(w.link("a", "q").await, PutReply::Revived);
        let books = w.downloads("a").await;
        assert_eq!((books.letters, books.revived, books.dead), (0, 2, 2));
    });
}

#[test]
fn links_over_a_budget_change_nothing_and_requests_are_not_bound_by_it() {
    on_every_backend(async |w| {
        w.site_with("a", |a| {
            a.settings.budgets.insert(String::new(), 4);
            a.settings.budgets.insert("offer".to_owned(), 2);
        })
        .await;
        let offer = |path: &str| Put { rule: Some("offer".to_owned()), ..Put::link(url("a", path), 1) };
        let mut replies = Vec::new();
        for path in ["1", "2", "3"] {
            replies.push(w.put_with("a", offer(path)).await);
        }
        for path in ["4", "5", "6"] {
            replies.push(w.link("a", path).await);
        }
        let (created, over) = (PutReply::Created, PutReply::OverBudget);
        assert_eq!(replies, [created, created, over, created, created, over]);
        assert_eq!(w.place("a", "3").await, "absent");
        assert_eq!(w.put("a", "3").await, PutReply::Created, "a request goes through");
        assert_eq!(w.link("a", "1").await, PutReply::Coalesced, "a page that waits costs nothing more");
        let books = w.downloads("a").await;
        assert_eq!((books.created, books.over_budget), (5, 2));
        w.order(1_000).await;
        w.frontier.begin_run("a", vec![]).await.expect("begun");
        assert_eq!(w.put_with("a", offer("3")).await, PutReply::Created, "a run has its own budget");
    });
}

#[test]
fn i12_an_expired_page_spends_no_start_and_is_counted() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_with("a", Put { expires: Some(at(1_000)), ..request("a", "old") }).await;
        w.put("a", "new").await;
        w.pass(1_000);
        assert_eq!(w.take().await.url, url("a", "new"), "in the same claim");
        let books = w.downloads("a").await;
        assert_eq!(books.excluded.into_values().sum::<u64>(), 1);
        assert_eq!((books.done, books.leased), (1, 1));
        assert_eq!(w.place("a", "old").await, "absent");
    });
}

#[test]
fn a_redirect_is_done_here_and_put_there_with_one_hop_more() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_with("a", Put { hops: 3, depth: 2, ..urgent("a", "from", 160) }).await;
        let lease = w.take().await;
        let target = Put {
            origin: lease.origin,
            priority: lease.priority,
            depth: lease.depth,
            hops: lease.hops + 1,
            ..request("a", "to")
        };
        for expected in [PutReply::Created, PutReply::Coalesced] {
            assert_eq!(w.put_with("a", target.clone()).await, expected, "repeated after a crash: harmless");
        }
        w.settle(&lease, paced::internals::task::Outcome::Redirected { to: url("a", "to") }).await;
        let books = w.downloads("a").await;
        assert_eq!((books.redirected, books.done, books.waiting), (1, 1, 1));
        w.pass(1_000);
        let lease = w.take().await;
        assert_eq!((lease.hops, lease.depth, lease.priority.value()), (4, 2, 160));
    });
}

#[test]
fn a_page_redirected_onto_itself_counts_every_hop() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        for hops in 0..3 {
            let lease = w.take().await;
            assert_eq!(lease.hops, hops, "else it would go round for ever");
            w.put_with("a", Put { hops: hops + 1, ..request("a", "p") }).await;
            w.settle(&lease, paced::internals::task::Outcome::Redirected { to: url("a", "p") }).await;
            w.pass(1_000);
        }
    });
}

#[test]
fn a_put_into_a_site_that_is_not_there_says_so() {
    on_every_backend(async |w| {
        let error = w.frontier.put("nowhere", vec![request("nowhere", "p")]).await.expect_err("no such site");
        assert!(error.to_string().contains("no site `nowhere`"), "{error}");
        assert!(!error.is_transient());
    });
}

#[test]
fn m10_the_oldest_waiting_page_is_told_also_after_a_further_run() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        w.put("a", "p").await;
        w.pass(5_000);
        w.put("a", "q").await;
        w.pass(1_000);
        w.done(&lease).await;
        assert_eq!(w.view("a").await.oldest, Some(at(5_000)), "the further run waits since 6 s");
        assert_eq!(w.place_in("a", Stage::Parse, "p").await, "absent");
    });
}

#[test]
fn the_oldest_waiting_page_of_a_burst_is_never_told_to_be_put_later_than_now() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.put_many("a", 10).await;
        for _ in 0..9 {
            let lease = w.take().await;
            w.done(&lease).await;
        }
        assert_eq!(w.view("a").await.oldest, Some(at(0)), "its turn is 9 ms ahead of the clock");
        w.pass(20);
        w.put("a", "later").await;
        assert_eq!(w.view("a").await.oldest, Some(at(9)), "within the length of the burst");
    });
}

#[test]
fn a_request_that_wants_nothing_newer_asks_nothing_of_a_page_that_is_new_enough() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        w.fetched(&lease).await;
        w.pass(10_000);
        let newer_than = |ms| Put { unless_newer: Some(at(ms)), ..request("a", "p") };
        let known = w.downloads("a").await.known;
        assert_eq!(w.put_with("a", newer_than(0)).await, PutReply::Known);
        assert_eq!(w.downloads("a").await.known, known + 1);
        assert_eq!(w.put_with("a", newer_than(5_000)).await, PutReply::Created);
        assert_eq!(w.put_with("a", newer_than(0)).await, PutReply::Coalesced, "it waits");
        let lease = w.take().await;
        assert_eq!(w.put_with("a", newer_than(5_000)).await, PutReply::Known, "it is fetched just now");
        assert_eq!(w.put_with("a", newer_than(10_001)).await, PutReply::Deferred);
        w.die(&lease).await;
        w.pass(1_000);
        let letter = w.take().await;
        w.die(&letter).await;
        assert_eq!(w.put_with("a", newer_than(0)).await, PutReply::Revived, "it died since");
    });
}
