//! Starts are granted ahead, each for a time of its own, but never over somebody else's lock.

use paced::internals::frontier::{LockReply, MutexKey, Rearm, Tuning};
use paced::internals::task::{Departure, Put};

use super::paced_site;
use crate::world::{AHEAD, LEAD, START, at, ms, on_every_backend, path_of, request, starts_at};

#[test]
fn a_unit_is_claimable_a_quarter_of_its_wait_ahead_at_most_50_ms_and_departs_when_due() {
    on_every_backend(async |w| {
        for (site, wait, ahead, lead) in
            [("a", 40, 10, 4), ("b", 100, 25, 10), ("c", 200, 50, 10), ("d", 60_000, 50, 10), ("e", 3, 0, 0)]
        {
            paced_site(w, site, wait, None, 4).await;
            let asked = w.now();
            let first = w.start().await;
            assert_eq!((starts_at(&first), first.departure.wait()), (asked + lead, ms(wait)), "{wait} ms");
            if ahead > 0 {
                w.pass(wait - ahead - 1);
                assert_eq!(w.claim().await, None, "{wait} ms");
                w.pass(1);
            } else {
                w.pass(wait);
            }
            let early = w.start().await;
            assert_eq!(starts_at(&early), starts_at(&first) + wait, "{wait} ms");
            assert_eq!(w.mutex_left(site).await, Some(wait));
            w.pass(wait - lead / 2);
            let late = w.start().await;
            assert_eq!(starts_at(&late), starts_at(&early) + wait + lead - lead / 2, "now + LEAD");
            w.tune(site, Tuning::pause("the next one's turn")).await;
        }
    });
}

#[test]
fn one_whose_answers_are_slow_is_granted_starts_further_ahead() {
    on_every_backend(async |w| {
        paced_site(w, "a", 1_000, None, 3).await;
        let claim = paced::internals::frontier::Claim { lead: 80, ..w.want(1, 0) };
        let slow = w.grant(claim).await.leases.remove(0);
        assert_eq!(starts_at(&slow), 80);
        w.pass(300);
        let moved = w.frontier.rearm_asking(&slow.key(), None, 80).await.expect("answers");
        assert_eq!(moved, Rearm::Departs(Departure { at: START + 380, unit: 1_000, site: 1_000 }));
    });
}

#[test]
fn i5_the_same_claim_again_gets_the_same_departure() {
    on_every_backend(async |w| {
        paced_site(w, "a", 1_000, None, 3).await;
        let claim = w.want(1, 0);
        let first = w.grant(claim.clone()).await.leases;
        w.pass(7);
        assert_eq!(w.grant(claim).await.leases, first);
    });
}

#[test]
fn g1_while_somebody_else_holds_the_mutex_nothing_is_claimable_ahead() {
    on_every_backend(async |w| {
        for (site, extended) in [("a", false), ("b", true)] {
            paced_site(w, site, 200, None, 3).await;
            w.done(&w.start().await).await;
            w.pass(200);
            let began = w.now();
            assert_eq!(w.outsider_locks(site, 200).await, LockReply::Taken(START + began));
            w.pass(200 - AHEAD + 10);
            let grant = w.grant_of(&[site], w.want(1, 0)).await;
            assert_eq!((grant.leases.len(), grant.next_in), (0, Some(AHEAD - 10)), "as long as it is held");
            w.pass(10);
            if extended {
                let mutex = MutexKey::unit(site);
                assert!(w.frontier.extend_lock(&mutex, "outsider", 300).await.expect("answers"));
                w.pass(299);
                assert_eq!(w.claim().await, None);
                w.pass(1);
            } else {
                assert!(w.outsider_unlocks(site).await, "it is still the outsider's");
            }
            let now = w.now();
            assert_eq!(starts_at(&w.start().await), now + LEAD);
            w.tune(site, Tuning::pause("the next one's turn")).await;
        }
    });
}

#[test]
fn g1_while_somebody_else_waits_for_the_mutex_nothing_is_claimable_ahead() {
    on_every_backend(async |w| {
        paced_site(w, "a", 1_000, None, 3).await;
        w.done(&w.start().await).await;
        w.pass(20);
        assert_eq!(w.outsider_locks("a", 1_000).await, LockReply::Held(980));
        w.pass(979);
        assert_eq!(w.claim().await, None);
        w.pass(1);
        assert_eq!(w.claim().await, None, "its turn");
        assert_eq!(w.outsider_locks("a", 1_000).await, LockReply::Taken(at(1_010).as_millis()));
        w.pass(1_000);
        w.done(&w.start().await).await;
        assert_eq!(w.now(), 2_020);
        w.pass(20);
        assert_eq!(w.outsider_locks("a", 1_000).await, LockReply::Held(980));
        w.pass(980 + 99);
        assert_eq!(w.claim().await, None, "the outsider may be a little late");
        w.pass(1);
        assert_eq!(starts_at(&w.take().await), 3_130, "it didn't come");
    });
}

#[test]
fn g1_an_outsider_that_waits_gets_every_other_turn() {
    on_every_backend(async |w| {
        paced_site(w, "a", 200, None, 40).await;
        let (mut turns, mut asks_at) = (Vec::new(), 1);
        while w.now() < 2_000 {
            if let Some(lease) = w.claim().await {
                turns.push(("claim", starts_at(&lease)));
                w.done(&lease).await;
            }
            if w.now() == asks_at {
                match w.outsider_locks("a", 200).await {
                    LockReply::Taken(from) => {
                        turns.push(("outsider", from - START));
                        asks_at += 200;
                    }
                    LockReply::Held(left) => asks_at += left,
                }
            }
            w.pass(1);
        }
        let both = (0..5).flat_map(|i| [("claim", 10 + i * 410), ("outsider", 210 + i * 410)]);
        assert_eq!(turns, both.collect::<Vec<_>>());
    });
}

#[test]
fn g13_one_claim_half_of_ahead_before_the_first_due_time_finds_what_is_due_on_many_units() {
    on_every_backend(async |w| {
        let sites = ["a", "b", "c", "d", "e", "f", "g", "h"];
        for site in sites {
            paced_site(w, site, 1_000, None, 3).await;
            assert_eq!(w.take().await.site, site);
            w.pass(5);
        }
        assert_eq!(w.now(), 40);
        let grant = w.grant(w.want(20, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(1_010 - AHEAD / 2 - 40)));
        w.pass(1_010 - AHEAD / 2 - 40);
        let grant = w.grant(w.want(20, 0)).await;
        let mut found: Vec<i64> = grant.leases.iter().map(starts_at).collect();
        found.sort_unstable();
        assert_eq!(found, [1_010, 1_015, 1_020, 1_025, 1_030, 1_035]);
        assert_eq!(grant.next_in, Some(1_040 - AHEAD / 2 - 985));
        w.pass(1_040 - AHEAD / 2 - 985);
        let grant = w.grant(w.want(20, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (2, Some(2_010 - AHEAD / 2 - 1_015)));
    });
}

#[test]
fn i12_a_task_that_expires_before_it_would_start_spends_no_start() {
    on_every_backend(async |w| {
        paced_site(w, "a", 1_000, None, 1).await;
        w.done(&w.start().await).await;
        let brief = Put { expires: Some(at(1_000)), ..request("a", "brief") };
        w.put_with("a", brief).await;
        w.put("a", "q").await;
        w.pass(1_000 - AHEAD);
        let next = w.start().await;
        assert_eq!((path_of(&next).as_str(), starts_at(&next)), ("q", 1_010));
    });
}
