//! A settlement that takes the parse of its page along: as a claim would, but only where no other parse may go.

use paced::internals::frontier::{GroupPaused, Pause};
use paced::internals::task::{Failure, Lease, Outcome, Settled, Settlement, Stage};

use crate::world::{OWNER, START, World, ms, on_every_backend, page, path_of};

/// The download of `lease`, settled with a page whose parse is wanted.
fn with_parse(w: &World, lease: &Lease) -> Settlement {
    let stored = Some(page(&format!("warc/{}", lease.fence), lease.granted_at));
    let outcome = Outcome::Done { stored, recrawl: None };
    Settlement { response: Some(ms(9)), parse: Some(w.token()), ..Settlement::of(lease.clone(), outcome) }
}

async fn settle(w: &World, owner: &str, settlement: &Settlement) -> Settled {
    let settled = w.frontier.settle(owner, w.token(), vec![settlement.clone()]).await;
    settled.expect("answers").remove(0)
}

async fn leased(w: &World, owner: &str, settlement: &Settlement) -> Lease {
    match settle(w, owner, settlement).await {
        Settled::Leased(lease) => *lease,
        other => panic!("{other:?} where no other parse may go"),
    }
}

#[test]
fn the_parse_is_leased_with_the_settlement_as_if_it_had_been_claimed() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site(site).await;
            w.put(site, "p").await;
        }
        let (one, other) = (w.take().await, w.take().await);
        let claimed = w.fetched(&one).await;
        assert_eq!(claimed, Settled::Kept, "nobody asked for it");
        let claimed = w.parse().await.expect("it waits");
        let settlement = with_parse(w, &other);
        let taken = leased(w, OWNER, &settlement).await;
        assert_eq!(Some(taken.token), settlement.parse);
        let same = Lease {
            token: claimed.token,
            site: claimed.site.clone(),
            url: claimed.url.clone(),
            fence: claimed.fence,
            stored: claimed.stored.clone(),
            response: claimed.response,
            ..taken.clone()
        };
        assert_eq!(same, claimed);
        assert!(taken.fence > other.fence, "I6");
        assert_eq!(w.parses("a").await.leased + w.parses("b").await.leased, 2);
        w.check_books().await;
        assert_eq!(w.parse().await, None, "nothing waits");
        assert_eq!((w.done(&taken).await, w.done(&claimed).await), (Settled::Kept, Settled::Kept));
        w.check_books().await;
    });
}

#[test]
fn a_parse_that_waits_goes_first() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.site("b").await;
        for (site, path) in [("a", "p"), ("b", "q")] {
            w.put(site, path).await;
        }
        let (one, other) = (w.take().await, w.take().await);
        w.fetched(&one).await;
        assert_eq!(settle(w, OWNER, &with_parse(w, &other)).await, Settled::Kept);
        let parses = [w.parse().await.expect("it waits"), w.parse().await.expect("it waits")];
        assert_eq!(parses.map(|lease| path_of(&lease)), [path_of(&one), path_of(&other)]);
    });
}

#[test]
fn a_parse_whose_group_is_paused_keeps_no_other_page_waiting() {
    on_every_backend(async |w| {
        w.site_with("a", |new| new.group = Some(("g".to_owned(), 0))).await;
        w.site("b").await;
        w.put("a", "p").await;
        w.fetched(&w.take().await).await;
        let pause = Some(Pause { why: "a mail".to_owned(), until: Some(START + w.now() + 60_000) });
        let paused = w.frontier.pause_group("g", Stage::Parse, pause).await;
        assert_eq!(paused.expect("an answer"), GroupPaused::Was(false));
        w.put("b", "q").await;
        let settlement = with_parse(w, &w.take().await);
        assert_eq!(leased(w, OWNER, &settlement).await.site, "b");
        w.pass(1_000);
        w.put("a", "r").await;
        let settlement = with_parse(w, &w.take().await);
        assert_eq!(settle(w, OWNER, &settlement).await, Settled::Kept, "its parses are paused");
        w.check_books().await;
    });
}

#[test]
fn i5_sent_again_it_gets_the_same_lease_until_that_is_settled() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let settlement = with_parse(w, &w.take().await);
        let token = w.token();
        let ask = async || w.frontier.settle(OWNER, token, vec![settlement.clone()]).await.expect("answers");
        let first = ask().await;
        let before = w.view("a").await;
        assert_eq!(ask().await, first);
        assert_eq!(w.view("a").await, before);
        let [Settled::Leased(lease)] = first.as_slice() else { panic!("{first:?}") };
        let outcome = Outcome::Done { stored: None, recrawl: None };
        let ended = Settlement::of(*lease.clone(), outcome);
        assert_eq!(settle(w, "two", &ended).await, Settled::Kept);
        assert_eq!(ask().await, [Settled::Kept], "it runs no more");
        assert_eq!(settle(w, OWNER, &settlement).await, Settled::Stale, "under a new token it is a new call");
        w.check_books().await;
    });
}

#[test]
fn a_lost_lease_and_an_outcome_without_a_page_take_nothing() {
    on_every_backend(async |w| {
        w.site("a").await;
        for path in ["p", "q", "r"] {
            w.put("a", path).await;
        }
        for outcome in [
            Outcome::Done { stored: None, recrawl: None },
            Outcome::Retry { after: ms(5_000), why: Failure::status(503, "503") },
        ] {
            let settlement = Settlement { outcome, ..with_parse(w, &w.take().await) };
            assert_eq!(settle(w, OWNER, &settlement).await, Settled::Kept);
            w.pass(1_000);
        }
        let late = with_parse(w, &w.take().await);
        w.pass(30_000);
        assert_eq!(settle(w, OWNER, &late).await, Settled::Stale);
        assert_eq!(w.parses("a").await.created, 0);
    });
}

#[test]
fn l4_the_parse_returns_when_its_lease_ends() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put("a", "p").await;
        let taken = leased(w, OWNER, &with_parse(w, &w.take().await)).await;
        assert_eq!(w.place_in("a", Stage::Parse, "p").await, "running");
        w.pass(30_000);
        let again = w.parse().await.expect("it returned");
        assert_eq!((&again.url, again.stored.clone()), (&taken.url, taken.stored.clone()));
        assert_eq!(w.done(&taken).await, Settled::Stale);
        assert_eq!(w.done(&again).await, Settled::Kept);
        w.check_books().await;
    });
}
