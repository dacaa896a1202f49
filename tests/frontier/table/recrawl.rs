//! Pages that are fetched again and again.

use paced::internals::frontier::{Feeding, Freshness, Tuning};
use paced::internals::task::{Exclusion, Origin, Outcome, Priority, Put, Stage};

use crate::world::{START, World, at, on_every_backend, path_of, request, urgent, url};

/// Puts and fetches a page of a site without a pace that is to be fetched again `recrawl` ms later.
async fn fetch(w: &World, site: &str, path: &str, recrawl: i64) {
    w.put(site, path).await;
    let lease = w.grant_of(&[site], w.want(1, 0)).await.leases.pop().expect("it is due");
    assert_eq!(path_of(&lease), path);
    w.fetched_for(&lease, recrawl).await;
}

async fn fast_site(w: &World, name: &str) {
    w.site_with(name, |site| {
        site.settings.interval = 0;
        site.settings.parallel = 5_000;
    })
    .await;
}

fn fed(put: u64, next_in: Option<i64>) -> Feeding {
    Feeding { put, next_in }
}

#[test]
fn v13_a_page_is_asked_for_again_each_time_its_recrawl_is_over() {
    on_every_backend(async |w| {
        fast_site(w, "a").await;
        assert_eq!(w.feed(10).await, fed(0, None), "nothing was fetched yet");
        fetch(w, "a", "p", 5_000).await;
        for _ in 0..2 {
            w.pass(4_000);
            assert_eq!(w.feed(10).await, fed(0, Some(1_000)));
            w.pass(1_000);
            assert_eq!(w.feed(10).await, fed(1, Some(5_000)));
            assert_eq!(w.feed(10).await, fed(0, Some(5_000)), "it waits, and is due a period later");
            let lease = w.take().await;
            assert_eq!((path_of(&lease).as_str(), lease.depth), ("p", 0));
            assert_eq!((lease.priority, lease.origin), (Priority::RECRAWL, Origin::Request));
            assert!(lease.stored.is_some(), "with what is needed to ask whether it changed");
            w.fetched_for(&lease, 5_000).await;
        }
    });
}

#[test]
fn v13_a_page_that_is_asked_for_again_is_as_far_from_a_seed_as_it_was() {
    on_every_backend(async |w| {
        fast_site(w, "a").await;
        w.frontier.put("a", vec![Put::link(url("a", "p"), 7)]).await.expect("answers");
        for ago in 0..3 {
            let lease = w.take().await;
            assert_eq!(lease.depth, 7, "asked for again {ago} times");
            w.fetched_for(&lease, 5_000).await;
            let latest = w.frontier.latest("a", &url("a", "p")).await.expect("answers").expect("it is kept");
            assert_eq!(latest.depth, 7);
            w.pass(5_000);
            assert_eq!(w.feed(10).await, fed(1, Some(5_000)));
        }
        let found = w.frontier.whereabouts("a", &url("a", "p")).await.expect("answers");
        assert_eq!(found.depth(), Some(7));
        // A request of a person's is a seed of its own.
        w.put("a", "p").await;
        let lease = w.take().await;
        assert_eq!(lease.depth, 0);
    });
}

#[test]
fn v13_i16_the_longest_due_go_first_and_no_more_than_asked_for() {
    on_every_backend(async |w| {
        for site in ["b", "a"] {
            fast_site(w, site).await;
        }
        for (site, path, recrawl) in
            [("b", "4", 4_000), ("a", "2", 2_000), ("a", "3", 3_000), ("a", "1", 1_000), ("b", "1", 1_000)]
        {
            fetch(w, site, path, recrawl).await;
        }
        w.pass(10_000);
        assert_eq!(w.feed(0).await, fed(0, Some(0)));
        assert_eq!(w.feed(1).await, fed(1, Some(0)));
        assert_eq!(w.place("a", "1").await, "waiting", "of two due since the same time by the site's name");
        assert_eq!(w.place("b", "1").await, "absent");
        assert_eq!(w.feed(3).await, fed(3, Some(0)));
        assert_eq!(
            (w.place("a", "3").await.as_str(), w.place("b", "4").await.as_str()),
            ("waiting", "absent")
        );
        assert_eq!(w.feed(3).await, fed(1, Some(1_000)));
    });
}

#[test]
fn v13_i16_a_thousand_pages_are_put_in_one_step() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            fast_site(w, site).await;
            w.put_many(site, 600).await;
        }
        while let Some(lease) = w.claim().await {
            w.fetched_for(&lease, 1_000).await;
        }
        // Fetched in one millisecond, a site's pages are asked for again one by one, a millisecond apart.
        w.pass(999);
        assert_eq!(w.feed(5_000).await, fed(0, Some(1)));
        w.pass(601);
        assert_eq!(w.feed(5_000).await, fed(1_000, Some(0)));
        assert_eq!((w.downloads("a").await.waiting, w.downloads("b").await.waiting), (500, 500));
        assert_eq!(w.feed(5_000).await, fed(200, Some(1_000)));
    });
}

#[test]
fn v13_a_site_with_a_thousand_waiting_pages_is_passed_over_until_it_has_room() {
    on_every_backend(async |w| {
        for site in ["full", "other"] {
            fast_site(w, site).await;
        }
        fetch(w, "full", "p", 1_000).await;
        fetch(w, "full", "q", 1_500).await;
        fetch(w, "other", "p", 3_000).await;
        w.put_many("full", 1_000).await;
        w.pass(2_000);
        assert_eq!(w.feed(10).await, fed(0, Some(1_000)), "only the other site's page counts");
        let lease = w.grant_of(&["full"], w.want(1, 0)).await.leases.pop().expect("it is due");
        assert_eq!(w.feed(10).await, fed(1, Some(1_000)), "there is room for one");
        assert_eq!(w.downloads("full").await.waiting, 1_000);
        w.done(&lease).await;
        w.pass(1_000);
        assert_eq!(w.feed(10).await, fed(1, Some(3_000)));
        assert_eq!(w.place("other", "p").await, "waiting");
        assert_eq!(w.place("full", "q").await, "absent");
    });
}

#[test]
fn v13_a_page_that_dies_is_asked_for_again_at_its_next_time() {
    on_every_backend(async |w| {
        fast_site(w, "a").await;
        fetch(w, "a", "p", 1_000).await;
        w.pass(1_000);
        assert_eq!(w.feed(10).await, fed(1, Some(1_000)));
        w.die(&w.take().await).await;
        assert_eq!(w.place("a", "p").await, "dead");
        w.pass(1_000);
        assert_eq!(w.feed(10).await, fed(1, Some(1_000)));
        let downloads = w.downloads("a").await;
        assert_eq!((downloads.revived, downloads.letters, downloads.waiting), (1, 0, 1));
    });
}

#[test]
fn v13_pages_of_a_paused_site_are_put_and_not_granted() {
    on_every_backend(async |w| {
        fast_site(w, "a").await;
        fetch(w, "a", "p", 1_000).await;
        w.tune("a", Tuning::pause("lunch")).await;
        w.pass(1_000);
        assert_eq!(w.feed(10).await, fed(1, Some(1_000)));
        assert_eq!(w.claim().await, None);
        w.tune("a", Tuning::Paused(None)).await;
        w.take().await;
    });
}

#[test]
fn v13_a_page_that_has_no_recrawl_any_more_is_not_asked_for_again() {
    on_every_backend(async |w| {
        fast_site(w, "a").await;
        let no_rule = Outcome::Excluded { why: Exclusion::NoRule, unused: true };
        let out_of_scope = Outcome::Excluded { why: Exclusion::Scope, unused: true };
        let forbidden = Outcome::Excluded { why: Exclusion::Robots, unused: true };
        let ends = [(None, 0), (Some(no_rule), 0), (Some(out_of_scope), 0), (Some(forbidden), 1)];
        for (path, (outcome, again)) in ["p", "q", "r", "s"].into_iter().zip(ends) {
            fetch(w, "a", path, 1_000).await;
            w.pass(1_000);
            assert_eq!(w.feed(10).await.put, 1, "{path}");
            let lease = w.take().await;
            match outcome {
                Some(outcome) => w.settle(&lease, outcome).await,
                None => w.fetched(&lease).await,
            };
            let next_in = (again > 0).then_some(1_000);
            assert_eq!(w.feed(10).await, fed(0, next_in), "{path}");
            assert_eq!(w.frontier.freshness("a").await.expect("answers").all, again, "{path}");
        }
    });
}

#[test]
fn v13_a_page_that_waits_already_is_put_as_any_request() {
    on_every_backend(async |w| {
        fast_site(w, "a").await;
        fetch(w, "a", "p", 1_000).await;
        w.put_with("a", urgent("a", "p", 360)).await;
        w.pass(1_000);
        assert_eq!(w.feed(10).await, fed(1, Some(1_000)));
        assert_eq!((w.downloads("a").await.waiting, w.downloads("a").await.coalesced), (1, 1));
        assert_eq!(w.take().await.priority, Priority::RECRAWL, "the more urgent of the two");
    });
}

#[test]
fn v13_a_page_that_is_being_fetched_is_not_asked_for_once_more() {
    on_every_backend(async |w| {
        fast_site(w, "a").await;
        fetch(w, "a", "p", 1_000).await;
        fetch(w, "a", "q", 1_000).await;
        w.pass(1_000);
        assert_eq!(w.feed(1).await.put, 1);
        w.pass(900);
        let running = w.take().await;
        w.pass(100);
        assert_eq!(w.feed(10).await, fed(1, Some(1_000)), "the other page alone");
        w.fetched_for(&running, 1_000).await;
        assert_eq!(w.place("a", &path_of(&running)).await, "absent");
        w.pass(999);
        assert_eq!(w.feed(10).await, fed(0, Some(1)), "its recrawl counts from this fetch");
    });
}

#[test]
fn v13_a_page_that_was_due_while_its_fetch_got_lost_is_fetched_by_the_next_worker() {
    on_every_backend(async |w| {
        fast_site(w, "a").await;
        fetch(w, "a", "p", 1_000).await;
        w.pass(1_000);
        w.feed(10).await;
        w.take().await;
        w.pass(1_000);
        assert_eq!(w.feed(10).await, fed(0, Some(1_000)));
        w.pass(100_000);
        assert_eq!(path_of(&w.take().await), "p");
    });
}

#[test]
fn v13_fresh_is_what_was_fetched_within_its_recrawl_whether_it_was_asked_for_again_or_not() {
    on_every_backend(async |w| {
        fast_site(w, "a").await;
        assert_eq!(w.frontier.freshness("a").await.expect("answers"), Freshness::default());
        w.put("a", "once").await;
        w.fetched(&w.take().await).await;
        w.pass(500);
        fetch(w, "a", "p", 1_000).await;
        fetch(w, "a", "q", 3_000).await;
        let fresh = async || w.frontier.freshness("a").await.expect("answers");
        // Its age is told in 128ths of its period.
        let slot = |time: i64, period: i64| time - (START + time) % (period / 128);
        let both = |fresh, oldest| Freshness { fresh, all: 2, oldest: Some(at(oldest)) };
        let first = slot(500, 1_000).min(slot(500, 3_000));
        assert_eq!(fresh().await, both(2, first));
        w.pass(1_000);
        assert_eq!(fresh().await, both(1, first));
        w.feed(10).await;
        assert_eq!(fresh().await, both(1, first), "asked for is not fetched");
        w.fetched_for(&w.take().await, 5_000).await;
        assert_eq!(fresh().await, both(2, slot(500, 3_000)));
        w.pass(2_000);
        assert_eq!(fresh().await, both(1, slot(500, 3_000)));
        w.feed(10).await;
        w.fetched_for(&w.take().await, 3_000).await;
        assert_eq!(fresh().await, both(2, slot(1_500, 5_000)));
    });
}

#[test]
fn v13_a_run_is_over_though_pages_are_to_be_fetched_again_and_a_fed_page_is_an_ordinary_one() {
    on_every_backend(async |w| {
        fast_site(w, "a").await;
        let seeds = || vec![Put::seed(url("a", "p"))];
        w.frontier.begin_run("a", seeds()).await.expect("begun");
        w.fetched_for(&w.take().await, 1_000).await;
        let parse = w.parse().await.expect("a parse");
        w.done(&parse).await;
        assert!(w.view("a").await.finished);
        w.pass(5_000);
        assert!(w.view("a").await.finished, "nobody fed it");
        w.feed(10).await;
        assert!(!w.view("a").await.finished);
        let run = w.frontier.begin_run("a", seeds()).await.expect("answers");
        assert_eq!((run.number, run.begun), (1, false), "it goes on with what waits");
        assert_eq!(w.place_in("a", Stage::Download, "p").await, "waiting");
        let other = w.put_with("a", Put { at: None, ..request("a", "p") }).await;
        assert_eq!(other, paced::internals::task::PutReply::Coalesced);
    });
}

#[test]
fn v13_i16_no_more_pages_are_looked_at_than_asked_for_though_none_is_put() {
    on_every_backend(async |w| {
        fast_site(w, "a").await;
        for path in ["p", "q", "r"] {
            fetch(w, "a", path, 1_000).await;
        }
        w.pass(1_010);
        assert_eq!(w.feed(10).await.put, 3);
        for _ in 0..3 {
            w.take().await;
        }
        w.pass(1_010);
        assert_eq!(w.feed(2).await, fed(0, Some(0)), "the third is left over");
        let Feeding { put, next_in } = w.feed(2).await;
        assert!(put == 0 && next_in.is_some_and(|wait| wait > 900), "{next_in:?}");
    });
}
