//! How a task ends, and what becomes of a request that met it.

use paced::internals::task::{Exclusion, Failure, Outcome, Put, PutReply, Settled, Settlement, Stage};

use crate::world::{AHEAD, World, at, on_every_backend, page, path_of, urgent, url};

/// A running page `p` of site `a` that a request has met.
async fn met(w: &World) -> paced::internals::task::Lease {
    w.site("a").await;
    w.put("a", "p").await;
    w.put("a", "q").await;
    let lease = w.take().await;
    assert_eq!(w.put("a", "p").await, PutReply::Deferred);
    w.pass(1_000);
    lease
}

#[test]
fn done_is_gone_and_known() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        assert_eq!(w.done(&lease).await, Settled::Kept);
        assert_eq!(w.place("a", "p").await, "absent");
        assert_eq!(w.frontier.inspect().await.expect("answers").known, 1);
    });
}

#[test]
fn i8_done_with_a_request_waits_once_more_at_a_new_position() {
    on_every_backend(async |w| {
        let lease = met(w).await;
        w.done(&lease).await;
        assert_eq!(w.order(1_000).await, ["q", "p"]);
        let books = w.downloads("a").await;
        assert_eq!((books.reruns, books.done), (1, 3));
    });
}

#[test]
fn i8_retry_keeps_the_position_and_not_before_its_time() {
    on_every_backend(async |w| {
        w.site("a").await;
        for path in ["p", "q", "r"] {
            w.put("a", path).await;
        }
        let lease = w.start().await;
        assert_eq!(w.retry(&lease, 1_000 - AHEAD).await, Settled::Kept);
        assert_eq!(w.place("a", "p").await, "delayed");
        let lease = w.next_start_in(1_000).await;
        assert_eq!(path_of(&lease), "p", "its old position");
        w.retry(&lease, 1_000 - AHEAD + 1).await;
        let lease = w.next_start_in(1_000).await;
        assert_eq!(path_of(&lease), "q", "its time hadn't come");
        w.done(&lease).await;
        w.pass(1_000);
        assert_eq!(w.order(1_000).await, ["p", "r"]);
    });
}

#[test]
fn retry_with_a_request_is_that_request_s_run() {
    on_every_backend(async |w| {
        let lease = met(w).await;
        w.retry(&lease, 4_000).await;
        assert_eq!(w.place("a", "p").await, "delayed");
        w.pass(4_000);
        let retry = w.take().await;
        assert_eq!((retry.url.clone(), retry.attempts), (url("a", "p"), 0), "old position, new attempts");
        w.done(&retry).await;
        assert_eq!(w.place("a", "p").await, "absent");
        let books = w.downloads("a").await;
        assert_eq!((books.absorbed, books.reruns), (1, 0));
    });
}

#[test]
fn m11_a_page_that_runs_again_for_a_request_too_has_the_more_urgent_priority_and_the_later_expiry() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_with("a", urgent("a", "p", 160)).await;
        let lease = w.take().await;
        w.put_with("a", Put { expires: Some(at(1_000)), ..urgent("a", "p", 320) }).await;
        w.retry(&lease, 4_000).await;
        w.pass(4_000);
        let retry = w.take().await;
        assert_eq!((retry.url.clone(), retry.priority.value()), (url("a", "p"), 160), "it never expires");
        w.put_with("a", Put { expires: Some(at(9_000)), ..urgent("a", "p", 140) }).await;
        w.retry(&retry, 1_000).await;
        w.pass(1_000);
        assert_eq!(w.take().await.priority.value(), 140);
    });
}

#[test]
fn i13_m9_five_attempts_then_dead_with_reason_and_history() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        for attempt in 0..5 {
            let lease = w.take().await;
            assert_eq!(lease.attempts, attempt);
            let why = Failure::status(500 + u16::try_from(attempt).expect("small"), format!("{attempt}"));
            let settled = w.settle(&lease, Outcome::Retry { after: crate::world::ms(0), why }).await;
            assert_eq!(settled, if attempt < 4 { Settled::Kept } else { Settled::Died });
            w.pass(1_000);
        }
        assert_eq!(w.place("a", "p").await, "dead");
        let letters = w.frontier.dead_letters("a", 10).await.expect("answers");
        assert_eq!(letters.len(), 1);
        assert_eq!((letters[0].attempts, letters[0].why.status), (5, Some(504)));
        assert_eq!(letters[0].died_at.as_millis(), crate::world::START + 4_000);
        let history: Vec<_> = letters[0].history.iter().map(|why| why.reason.as_str()).collect();
        assert_eq!(history, ["0", "1", "2", "3", "4"]);
    });
}

#[test]
fn dead_keeps_a_letter_and_a_parse_can_die_as_well() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        w.fetched(&lease).await;
        let parse = w.parse().await.expect("a parse");
        assert_eq!(w.die(&parse).await, Settled::Died);
        assert_eq!(w.place_in("a", Stage::Parse, "p").await, "dead");
        let letters = w.frontier.dead_letters("a", 10).await.expect("answers");
        assert_eq!((letters[0].stage, letters[0].attempts), (Stage::Parse, 1));
        assert_eq!(w.parses("a").await.letters, 1);
    });
}

#[test]
fn m9_dead_with_a_request_waits_once_more_and_keeps_no_letter() {
    on_every_backend(async |w| {
        let lease = met(w).await;
        assert_eq!(w.die(&lease).await, Settled::Died);
        assert_eq!(w.order(1_000).await, ["q", "p"]);
        let books = w.downloads("a").await;
        assert_eq!((books.dead, books.letters, books.reruns), (1, 0, 1));
    });
}

#[test]
fn a_retry_at_the_last_attempt_is_dead_also_with_a_request() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.attempts = 1).await;
        w.put("a", "p").await;
        let lease = w.take().await;
        w.put("a", "p").await;
        assert_eq!(w.retry(&lease, 60_000).await, Settled::Died);
        assert_eq!(w.place("a", "p").await, "waiting");
        w.pass(1_000);
        assert_eq!(w.take().await.attempts, 0);
    });
}

#[test]
fn exclusions_are_kinds_of_done_counted_apart() {
    on_every_backend(async |w| {
        w.site("a").await;
        let whys =
            [Exclusion::Robots, Exclusion::Scope, Exclusion::Type, Exclusion::Expired, Exclusion::NoRule];
        for (i, why) in whys.into_iter().enumerate() {
            w.put("a", &i.to_string()).await;
            let lease = w.take().await;
            assert_eq!(w.settle(&lease, Outcome::Excluded { why, unused: false }).await, Settled::Kept);
            w.pass(1_000);
        }
        let books = w.downloads("a").await;
        assert_eq!(books.done, 5);
        assert_eq!(books.excluded, whys.into_iter().map(|why| (why, 1)).collect());
        assert_eq!(w.link("a", "0").await, PutReply::Known);
    });
}

#[test]
fn an_excluded_page_that_sent_nothing_gives_its_start_back() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        w.put("a", "q").await;
        let first = w.start().await;
        w.done(&first).await;
        w.pass(5_000);
        w.put("a", "r").await;
        let unused = w.take().await;
        assert_eq!(w.view("a").await.due, crate::world::at(6_020));
        w.settle(&unused, Outcome::Excluded { why: Exclusion::Robots, unused: true }).await;
        let view = w.view("a").await;
        assert_eq!((view.last_start, view.due), (Some(crate::world::at(10)), crate::world::at(1_010)));
        assert_eq!(w.mutex_left("a").await, None);
        w.take().await;
    });
}

#[test]
fn a_start_that_was_used_stays_whatever_the_page_was() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        w.put("a", "q").await;
        let used = w.start().await;
        w.settle(&used, Outcome::Excluded { why: Exclusion::Type, unused: false }).await;
        assert_eq!(w.claim().await, None);
        w.next_start_in(1_000).await;
    });
}

#[test]
fn an_unused_start_is_not_given_back_over_a_later_one() {
    on_every_backend(async |w| {
        w.site("a").await;
        for path in ["p", "q", "r"] {
            w.put("a", path).await;
        }
        let unused = w.start().await;
        w.next_start_in(1_000).await;
        w.settle(&unused, Outcome::Excluded { why: Exclusion::Robots, unused: true }).await;
        assert_eq!(w.view("a").await.due, crate::world::at(2_010));
        assert_eq!(w.claim().await, None);
    });
}

#[test]
fn i1_two_starts_given_back_in_a_row_keep_the_interval_raised_meanwhile() {
    on_every_backend(async |w| {
        w.site("a").await;
        for path in ["o", "p", "q", "r"] {
            w.put("a", path).await;
        }
        let used = w.start().await;
        w.done(&used).await;
        let mut unused = Vec::new();
        for _ in 0..2 {
            unused.push(w.next_start_in(1_000).await);
        }
        for lease in unused.iter().rev() {
            w.settle(lease, Outcome::Excluded { why: Exclusion::Robots, unused: true }).await;
        }
        w.tune("a", paced::internals::frontier::Tuning::Interval(Some(60_000))).await;
        w.pass(57_000);
        assert_eq!(w.claim().await, None, "59 s after the start that stands");
        w.pass(1_000);
        assert!(w.mutex_left("a").await.is_none_or(|left| left <= 1_000));
    });
}

#[test]
fn i5_a_settle_sent_again_gets_the_same_answer_and_changes_nothing() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let lease = w.take().await;
        let settlement = Settlement::of(lease, Outcome::Dead { why: Failure::new("no") });
        let token = w.token();
        let first = w.frontier.settle("one", token, vec![settlement.clone()]).await.expect("answers");
        let before = w.view("a").await;
        w.put("a", "p").await;
        let after_put = w.view("a").await;
        assert_ne!(before, after_put);
        let again = w.frontier.settle("one", token, vec![settlement.clone()]).await.expect("answers");
        assert_eq!((first.as_slice(), again), ([Settled::Died].as_slice(), vec![Settled::Died]));
        assert_eq!(w.view("a").await, after_put);
        let other = w.frontier.settle("one", w.token(), vec![settlement]).await.expect("answers");
        assert_eq!(other, [Settled::Stale], "under a new token it is a new call");
        assert_eq!(w.view("a").await, after_put);
    });
}

#[test]
fn what_of_a_page_was_too_much_is_counted_once() {
    on_every_backend(async |w| {
        w.site("a").await;
        let counts = async || {
            let books = w.view("a").await.download;
            (books.dropped_links, books.left_out, books.too_dear)
        };
        for (path, links, left_out, too_dear) in
            [("p", 3, true, false), ("q", 0, false, true), ("r", 7, true, false)]
        {
            w.put("a", path).await;
            let outcome = Outcome::Done { stored: None, recrawl: None };
            let settlement = Settlement {
                too_much: paced::internals::task::TooMuch { links, left_out, too_dear },
                ..Settlement::of(w.take().await, outcome)
            };
            let token = w.token();
            for _ in 0..2 {
                w.frontier.settle("one", token, vec![settlement.clone()]).await.expect("answers");
            }
            w.pass(1_000);
        }
        assert_eq!(counts().await, (10, 2, 1));
    });
}

#[test]
fn response_times_are_averaged_and_a_block_keeps_the_unit_away() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        w.put("a", "q").await;
        let lease = w.take().await;
        let settlement = Settlement {
            block: Some((crate::world::ms(9_000), "429".to_owned())),
            response: Some(crate::world::ms(800)),
            ..Settlement::of(lease, Outcome::Done { stored: None, recrawl: None })
        };
        w.frontier.settle("one", w.token(), vec![settlement]).await.expect("answers");
        let view = w.view("a").await;
        assert_eq!((view.response, view.blocked_why.as_deref()), (Some(800), Some("429")));
        assert_eq!((view.blocked_until, view.due), (Some(crate::world::at(9_000)), crate::world::at(9_000)));
        w.next_start_in(9_000).await;
        assert_eq!(w.view("a").await.blocked_why, None);
    });
}

#[test]
fn a_shorter_block_never_shortens_a_longer_one() {
    on_every_backend(async |w| {
        w.site("a").await;
        for (path, wait) in [("p", 9_000), ("q", 1)] {
            w.put("a", path).await;
            if path == "q" {
                continue;
            }
            let lease = w.take().await;
            let block = Some((crate::world::ms(wait), "long".to_owned()));
            w.settle_with(&lease, Outcome::Done { stored: None, recrawl: None }, block).await;
        }
        w.site_with("b", |b| b.settings.parallel = 2).await;
        w.put("b", "1").await;
        w.put("b", "2").await;
        let one = w.take().await;
        w.pass(1_000);
        let two = w.take().await;
        for (lease, wait) in [(&one, 9_000), (&two, 10)] {
            let block = Some((crate::world::ms(wait), wait.to_string()));
            w.settle_with(lease, Outcome::Done { stored: None, recrawl: None }, block).await;
        }
        let view = w.view("b").await;
        assert_eq!(view.blocked_until, Some(crate::world::at(10_000)));
        assert_eq!(view.blocked_why.as_deref(), Some("9000"));
    });
}

#[test]
fn i6_the_newest_page_of_a_site_is_told_with_its_place() {
    on_every_backend(async |w| {
        w.site("a").await;
        for round in 0..3 {
            w.put("a", "p").await;
            let lease = w.take().await;
            assert_eq!(lease.stored.is_some(), round > 0, "validators of the last fetch go along");
            let stored = page(&format!("warc/{round}"), lease.granted_at);
            let outcome = Outcome::Done { stored: Some(stored.clone()), recrawl: None };
            w.settle(&lease, outcome).await;
            assert_eq!(w.frontier.stored("a", &url("a", "p")).await.expect("answers"), Some(stored));
            w.pass(1_000);
        }
    });
}
