//! Batches: pages that somebody wants to hear of together, counted until their parse is settled (N4, C11).

use paced::internals::frontier::{BatchCounts, QueueChange};
use paced::internals::task::{BatchNames, Exclusion, HighWater, Origin, Outcome, Put, PutReply, Stage};

use crate::world::{World, on_every_backend, request, url};

fn of(names: &[&str], path: &str) -> Put {
    let batches = names.iter().map(|name| (*name).to_owned()).collect();
    Put { batches, ..request("a", path) }
}

/// What is counted: pages joined, open, done, dead, excluded, dropped.
type Counted = [u64; 6];

impl World {
    async fn site_of_batches(&self) {
        self.site_with("a", |a| {
            a.settings.interval = 0;
            a.settings.attempts = 2;
        })
        .await;
    }

    async fn books(&self, name: &str) -> BatchCounts {
        self.frontier.batch_on("a", name).await.expect("answers").expect("it is there")
    }

    async fn pages_of(&self, name: &str) -> Counted {
        let books = self.books(name).await;
        let joined = books.created + books.coalesced + books.deferred + books.revived - books.merged;
        [joined, books.open(), books.done - books.targets, books.dead, books.excluded, books.dropped]
    }

    async fn take_parse(&self) -> paced::internals::task::Lease {
        self.parse().await.expect("a parse is there")
    }
}

#[test]
fn n4_a_page_is_open_until_its_parse_is_settled_and_counted_once() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        assert_eq!(w.frontier.batch_on("a", "b").await.expect("answers"), None);
        assert_eq!(w.put_with("a", of(&["b"], "1")).await, PutReply::Created);
        assert_eq!(w.put_with("a", of(&["b"], "2")).await, PutReply::Created);
        assert_eq!(w.pages_of("b").await, [2, 2, 0, 0, 0, 0]);
        for _ in 0..2 {
            let lease = w.take().await;
            assert!(lease.batches.contains("b"));
            w.fetched(&lease).await;
        }
        assert_eq!(w.pages_of("b").await, [2, 2, 0, 0, 0, 0], "the parses are the same pages");
        assert_eq!(w.books("b").await.ended_at, None);
        w.done(&w.take_parse().await).await;
        assert_eq!(w.pages_of("b").await, [2, 1, 1, 0, 0, 0]);
        w.pass(5);
        w.done(&w.take_parse().await).await;
        assert_eq!(w.pages_of("b").await, [2, 0, 2, 0, 0, 0]);
        let books = w.books("b").await;
        assert_eq!(books.ended_at, Some(books.began_at + 5));
    });
}

#[test]
fn n4_a_page_without_a_parse_is_done_with_its_download() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        w.put_with("a", of(&["b"], "1")).await;
        w.done(&w.take().await).await;
        assert_eq!(w.pages_of("b").await, [1, 0, 1, 0, 0, 0]);
    });
}

#[test]
fn n4_links_of_a_page_are_of_no_batch() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        w.put_with("a", of(&["b"], "1")).await;
        w.link("a", "linked").await;
        w.fetched(&w.take().await).await;
        assert!(w.take().await.batches.is_empty());
        assert!(w.take_parse().await.batches.contains("b"));
    });
}

#[test]
fn n4_what_is_created_coalesced_deferred_or_revived_joins() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        w.put("a", "waits").await;
        assert_eq!(w.put_with("a", of(&["b"], "waits")).await, PutReply::Coalesced);
        assert_eq!(w.put_with("a", of(&["b"], "waits")).await, PutReply::Coalesced, "is of it already");
        let books = w.books("b").await;
        assert_eq!((books.coalesced, books.open()), (1, 1));
        let runs = w.take().await;
        assert_eq!(w.put_with("a", of(&["b"], "waits")).await, PutReply::Deferred);
        let books = w.books("b").await;
        assert_eq!((books.coalesced, books.deferred, books.open()), (1, 1, 2));
        w.done(&runs).await;
        assert_eq!(w.pages_of("b").await, [2, 1, 1, 0, 0, 0]);
        w.die(&w.take().await).await;
        assert_eq!(w.pages_of("b").await, [2, 0, 1, 1, 0, 0]);
        assert_eq!(w.put_with("a", of(&["c"], "waits")).await, PutReply::Revived);
        assert_eq!(w.books("c").await.revived, 1);
        assert_eq!(w.pages_of("b").await, [2, 1, 1, 0, 0, 0], "a page that comes back is open again");
        w.done(&w.take().await).await;
        assert_eq!(w.pages_of("b").await, [2, 0, 2, 0, 0, 0]);
        assert_eq!(w.pages_of("c").await, [1, 0, 1, 0, 0, 0]);
    });
}

#[test]
fn n4_what_is_known_does_not_join() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        w.put("a", "1").await;
        w.fetched(&w.take().await).await;
        let seen = w.clock.now();
        let put = Put { unless_newer: Some(seen), ..of(&["b"], "1") };
        assert_eq!(w.put_with("a", put).await, PutReply::Known);
        let books = w.books("b").await;
        assert_eq!((books.known, books.open(), books.ended_at.is_some()), (1, 0, true), "it is told");
        let linked = Put { origin: Origin::Link, hops: 1, ..of(&["c"], "1") };
        assert_eq!(w.put_with("a", linked).await, PutReply::Known);
        assert_eq!(w.frontier.batch_on("a", "c").await.expect("answers"), None);
    });
}

#[test]
fn n4_a_dead_page_is_put_away_or_comes_back_at_either_stage() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        for path in ["1", "2"] {
            w.put_with("a", of(&["b"], path)).await;
            w.fetched(&w.take().await).await;
            w.die(&w.take_parse().await).await;
        }
        assert_eq!(w.pages_of("b").await, [2, 0, 0, 2, 0, 0]);
        assert!(w.frontier.parse_again("a", &url("a", "1")).await.expect("answers"));
        assert_eq!(w.pages_of("b").await, [2, 1, 0, 1, 0, 0]);
        w.done(&w.take_parse().await).await;
        w.frontier.drop_letters("a", vec![(Stage::Parse, url("a", "2"))]).await.expect("answers");
        assert_eq!(w.pages_of("b").await, [2, 0, 1, 0, 0, 1]);
    });
}

#[test]
fn n4_a_page_that_dies_while_it_is_asked_for_again_is_open_still() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        w.put_with("a", of(&["b"], "1")).await;
        let lease = w.take().await;
        w.put("a", "1").await;
        w.die(&lease).await;
        assert_eq!(w.pages_of("b").await, [1, 1, 0, 0, 0, 0], "the further run is its page");
        w.done(&w.take().await).await;
        assert_eq!(w.pages_of("b").await, [1, 0, 1, 0, 0, 0]);
    });
}

#[test]
fn n4_two_runs_of_a_page_that_come_to_one_parse_are_one_page() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        for _ in 0..2 {
            w.put_with("a", of(&["b"], "1")).await;
            w.fetched(&w.take().await).await;
        }
        assert_eq!(w.pages_of("b").await, [1, 1, 0, 0, 0, 0]);
        let parse = w.take_parse().await;
        w.put_with("a", of(&["b"], "1")).await;
        w.fetched(&w.take().await).await;
        assert_eq!(w.pages_of("b").await, [2, 2, 0, 0, 0, 0], "the parse that runs is another one");
        w.done(&parse).await;
        w.done(&w.take_parse().await).await;
        assert_eq!(w.pages_of("b").await, [2, 0, 2, 0, 0, 0]);
    });
}

#[test]
fn n4_a_further_run_that_a_retry_takes_up_is_one_page_with_it() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        w.put_with("a", of(&["b", "c"], "1")).await;
        let lease = w.take().await;
        w.put_with("a", of(&["b", "d"], "1")).await;
        assert_eq!(w.pages_of("b").await, [2, 2, 0, 0, 0, 0]);
        w.retry(&lease, 1_000).await;
        w.pass(1_000);
        let lease = w.take().await;
        assert!(["b", "c", "d"].into_iter().all(|name| lease.batches.contains(name)));
        for name in ["b", "c", "d"] {
            assert_eq!(w.pages_of(name).await, [1, 1, 0, 0, 0, 0], "{name}");
        }
    });
}

#[test]
fn n4_where_a_redirect_leads_stands_in_place_of_where_it_began() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        w.put_with("a", of(&["b"], "from")).await;
        let lease = w.take().await;
        let target = |path: &str| Put { hops: 1, batches: lease.batches.clone(), ..request("a", path) };
        assert_eq!(w.put_with("a", target("to")).await, PutReply::Created);
        w.settle(&lease, Outcome::Redirected { to: url("a", "to") }).await;
        assert_eq!(w.pages_of("b").await, [1, 1, 0, 0, 0, 0]);
        w.die(&w.take().await).await;
        assert_eq!(w.pages_of("b").await, [1, 0, 0, 1, 0, 0]);
    });
}

#[test]
fn n4_what_is_excluded_or_dropped_has_ended() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        for path in ["1", "2", "3"] {
            w.put_with("a", of(&["b"], path)).await;
        }
        let lease = w.take().await;
        w.settle(&lease, Outcome::Excluded { why: Exclusion::Robots, unused: false }).await;
        w.frontier.requeue("a", vec![url("a", "2")], QueueChange::Drop).await.expect("answers");
        assert_eq!(w.pages_of("b").await, [3, 1, 0, 0, 1, 1]);
        while w.frontier.give_up("a").await.expect("answers") {}
        assert_eq!(w.pages_of("b").await, [3, 0, 0, 0, 1, 2]);
    });
}

#[test]
fn n4_a_page_that_is_lost_delayed_or_handed_back_is_open() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        w.put_with("a", of(&["b"], "1")).await;
        w.back(&w.take().await).await;
        assert_eq!(w.pages_of("b").await, [1, 1, 0, 0, 0, 0]);
        w.pass(1_000);
        w.take().await;
        w.pass(30_000);
        let lease = w.take().await;
        assert!(lease.batches.contains("b"));
        w.retry(&lease, 60_000).await;
        assert_eq!(w.pages_of("b").await, [1, 1, 0, 0, 0, 0]);
    });
}

#[test]
fn n4_a_ninth_batch_of_a_page_is_refused_and_nothing_changes() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        let names: Vec<String> = (0..8).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(w.put_with("a", of(&names, "1")).await, PutReply::Created);
        assert_eq!(w.put_with("a", of(&["ninth"], "1")).await, PutReply::Refused(HighWater::Batches));
        assert_eq!(w.put_with("a", of(&names[3..], "1")).await, PutReply::Coalesced);
        assert_eq!(w.frontier.batch_on("a", "ninth").await.expect("answers"), None);
        let campaign = BatchNames::of_campaign("shoes");
        assert_eq!(
            w.put_with("a", of(&[&campaign], "1")).await,
            PutReply::Coalesced,
            "it counts for nothing"
        );
        let lease = w.take().await;
        assert_eq!(
            w.put_with("a", of(&["ninth"], "1")).await,
            PutReply::Refused(HighWater::Batches),
            "nor beside its further run"
        );
        w.die(&lease).await;
        assert_eq!(
            w.put_with("a", of(&["ninth"], "1")).await,
            PutReply::Refused(HighWater::Batches),
            "nor when it is dead"
        );
        assert_eq!(w.pages_of("0").await, [1, 0, 0, 1, 0, 0]);
        assert_eq!(w.put_with("a", of(&["0", "ninth"], "2")).await, PutReply::Created);
        assert_eq!(w.pages_of("ninth").await, [1, 1, 0, 0, 0, 0]);
        assert_eq!(w.pages_of(&campaign).await, [1, 0, 0, 1, 0, 0]);
    });
}

/// Its origin is done then, for all that is known.
#[test]
fn n4_where_a_redirect_leads_goes_without_a_ninth_batch() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        let names: Vec<String> = (0..8).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        w.put_with("a", of(&["b"], "from")).await;
        let lease = w.take().await;
        w.put_with("a", of(&names, "to")).await;
        let target = Put { hops: 1, batches: lease.batches.clone(), ..request("a", "to") };
        assert_eq!(w.put_with("a", target).await, PutReply::Coalesced);
        w.settle(&lease, Outcome::Redirected { to: url("a", "to") }).await;
        assert_eq!(w.pages_of("b").await, [1, 0, 1, 0, 0, 0]);
    });
}

#[test]
fn n4_a_batch_is_remembered_for_a_week_after_its_end() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        w.put_with("a", of(&["b", "c"], "1")).await;
        w.put_with("a", of(&["c"], "2")).await;
        for _ in 0..2 {
            w.done(&w.take().await).await;
            w.pass(1_000);
        }
        w.pass(7 * 86_400_000 - 2_000);
        assert_eq!(w.frontier.batch_on("a", "b").await.expect("answers"), None);
        assert_eq!(w.pages_of("c").await, [2, 0, 2, 0, 0, 0]);
        w.put_with("a", of(&["b"], "1")).await;
        assert_eq!(w.pages_of("b").await, [1, 1, 0, 0, 0, 0], "it begins anew");
        w.pass(1_000);
        w.frontier.begin_run("a", Vec::new()).await.expect("begun");
        assert_eq!(w.batches_kept().unwrap_or(1), 1);
        w.done(&w.take().await).await;
    });
}

#[test]
fn n4_a_page_that_died_in_an_earlier_batch_of_the_name_joins_as_any_other_dead_page() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        for path in ["1", "2"] {
            w.put_with("a", of(&["b"], path)).await;
            w.die(&w.take().await).await;
        }
        w.pass(7 * 86_400_000);
        w.put_with("a", of(&["b"], "3")).await;
        w.die(&w.take().await).await;
        assert_eq!(w.pages_of("b").await, [1, 0, 0, 1, 0, 0], "it begins anew");
        w.pass(1);
        assert_eq!(w.put_with("a", of(&["b"], "1")).await, PutReply::Revived);
        assert_eq!(w.pages_of("b").await, [2, 1, 0, 1, 0, 0]);
        w.drop_letter("2").await;
        assert_eq!(w.pages_of("b").await, [2, 1, 0, 1, 0, 0], "it was another batch's");
        w.drop_letter("3").await;
        assert_eq!(w.pages_of("b").await, [2, 1, 0, 0, 0, 1]);
    });
}

#[test]
fn n4_a_renamed_site_keeps_its_batches_and_a_forgotten_one_none() {
    on_every_backend(async |w| {
        w.site_of_batches().await;
        w.put_with("a", of(&["b"], "1")).await;
        w.frontier.rename("a", "z").await.expect("renamed");
        let books = w.frontier.batch_on("z", "b").await.expect("answers").expect("it is there");
        assert_eq!(books.open(), 1);
        assert_eq!(w.frontier.batch_on("a", "b").await.expect("answers"), None);
        w.done(&w.take().await).await;
        let books = w.frontier.batch_on("z", "b").await.expect("answers").expect("it is there");
        assert_eq!((books.open(), books.done), (0, 1));
        w.pass(60_000);
        w.frontier.forget("z").await.expect("forgotten");
        assert_eq!(w.frontier.batch_on("z", "b").await.expect("answers"), None);
        assert_eq!(w.batches_kept().unwrap_or(0), 0);
    });
}
