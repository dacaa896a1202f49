//! A permit that grew late takes a new start.

use paced::internals::frontier::{LockReply, Tuning};
use paced::internals::task::{Lease, Outcome, Settlement};

use crate::world::{AHEAD, LEAD, OWNER, Rearmed, World, at, ms, on_every_backend, path_of};

/// The first start of a site that has so many pages.
async fn first_start(w: &World, pages: usize) -> Lease {
    w.site("a").await;
    w.put_many("a", pages).await;
    w.start().await
}

/// The first start and, an interval later, the second one, which is now.
async fn two_starts(w: &World, pages: usize) -> (Lease, Lease) {
    let first = first_start(w, pages).await;
    w.pass(1_000 - AHEAD);
    (first, w.start().await)
}

/// A new start for a late one comes in so many ms, and the outsiders' mutex lasts so long.
async fn assert_rearmed(w: &World, late: &Lease, start_in: i64, mutex: i64) {
    assert_eq!(w.rearm(late).await, Rearmed::StartIn(start_in));
    assert_eq!(w.view("a").await.last_start, Some(at(w.now() + start_in)));
    assert_eq!(w.mutex_left("a").await, Some(mutex));
}

#[test]
fn i1_the_last_start_re_armed_moves_to_now_and_the_next_one_waits_for_it() {
    on_every_backend(async |w| {
        let late = first_start(w, 2).await;
        w.pass(700);
        assert_rearmed(w, &late, LEAD, LEAD + 1_000).await;
        w.next_start_in(LEAD + 1_000).await;
    });
}

#[test]
fn i1_where_a_later_start_was_granted_the_new_one_comes_an_interval_after_that() {
    on_every_backend(async |w| {
        let (late, _) = two_starts(w, 3).await;
        w.pass(300);
        assert_rearmed(w, &late, 700, 1_700).await;
        w.next_start_in(1_700).await;
    });
}

#[test]
fn a_start_re_armed_twice_keeps_its_own_time_while_that_is_to_come() {
    on_every_backend(async |w| {
        let (late, _) = two_starts(w, 2).await;
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(1_000));
        w.pass(400);
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(600));
        w.pass(900);
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(LEAD));
        assert_eq!(w.view("a").await.last_start, Some(at(2_320)));
    });
}

#[test]
fn two_late_starts_re_arm_behind_each_other() {
    on_every_backend(async |w| {
        let (one, two) = two_starts(w, 3).await;
        w.pass(500);
        assert_eq!(w.rearm(&one).await, Rearmed::StartIn(500));
        assert_eq!(w.rearm(&two).await, Rearmed::StartIn(1_500));
        assert_eq!(w.rearm(&one).await, Rearmed::StartIn(2_500), "behind the other one again");
        w.back(&one).await;
        assert_eq!(w.view("a").await.last_start, Some(at(3_010)), "the other one's start stands");
    });
}

#[test]
fn the_lease_lasts_thirty_seconds_from_the_new_start_on() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 20_000).await;
        w.put_many("a", 2).await;
        let late = w.start().await;
        w.next_start_in(20_000).await;
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(20_000));
        w.pass(49_999);
        assert_eq!(w.frontier.extend(vec![late.key()]).await.expect("answers"), [true]);
        w.pass(30_000);
        assert_eq!(w.frontier.extend(vec![late.key()]).await.expect("answers"), [false]);
    });
}

#[test]
fn a_re_arm_never_overwrites_somebody_else_s_lock() {
    on_every_backend(async |w| {
        let late = first_start(w, 1).await;
        w.pass(1_000);
        assert!(matches!(w.outsider_locks("a", 3_000).await, LockReply::Taken(_)));
        w.pass(200);
        assert_eq!(w.rearm(&late).await, Rearmed::Held(2_800));
        assert_eq!(w.mutex_left("a").await, Some(2_800));
        assert_eq!(w.view("a").await.last_start, Some(at(10)));
        w.pass(2_800);
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(LEAD));
        assert_eq!(w.mutex_left("a").await, Some(LEAD + 1_000));
    });
}

#[test]
fn i11_while_the_site_is_paused_or_blocked_the_task_goes_back_and_its_start_is_unused() {
    on_every_backend(async |w| {
        for (site, blocked, alone) in [("a", false, false), ("b", true, false), ("c", true, true)] {
            w.site(site).await;
            w.put(site, "late").await;
            let late = w.start().await;
            w.pass(1_000 - AHEAD);
            let mut stands = None;
            if blocked {
                w.put(site, "other").await;
                let other = w.start().await;
                stands = Some(other.departure.at());
                let block = Some((ms(60_000), "429".to_owned()));
                let (block, away) = if alone { (None, block) } else { (block, None) };
                let outcome = Outcome::Done { stored: None, recrawl: None };
                let settlement = Settlement { block, away, ..Settlement::of(other, outcome) };
                w.frontier.settle(OWNER, w.token(), vec![settlement]).await.expect("answers");
            } else {
                w.tune(site, Tuning::pause("lunch")).await;
            }
            assert_eq!(w.rearm(&late).await, Rearmed::WentBack);
            assert_eq!(w.place(site, "late").await, "waiting");
            assert_eq!(w.rearm(&late).await, Rearmed::Stale);
            let view = w.view(site).await;
            assert_eq!((view.in_flight, view.last_start), (0, stands));
            w.tune(site, Tuning::Paused(None)).await;
            w.pass(if blocked { 60_000 } else { 0 });
            let again = w.take().await;
            assert_eq!((path_of(&again), again.attempts), ("late".to_owned(), 0));
            w.done(&again).await;
        }
    });
}

#[test]
fn i1_a_re_arm_keeps_to_an_interval_that_was_raised_since_the_start_before() {
    on_every_backend(async |w| {
        let (_, late) = two_starts(w, 2).await;
        w.tune("a", Tuning::Interval(Some(60_000))).await;
        w.pass(500);
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(58_500), "60 s after the first");
    });
}

#[test]
fn a_re_armed_start_that_is_given_back_leaves_the_later_one_standing() {
    on_every_backend(async |w| {
        let (late, _) = two_starts(w, 3).await;
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(1_000));
        w.back(&late).await;
        let view = w.view("a").await;
        assert_eq!((view.last_start, view.due), (Some(at(1_010)), at(2_010)));
        assert_eq!(w.mutex_left("a").await, Some(1_000), "outsiders wait for it as well");
        w.next_start_in(1_000).await;
    });
}

#[test]
fn a_site_without_pace_waits_its_group_s_and_re_arms_over_the_group_s_own_lock() {
    on_every_backend(async |w| {
        for (site, interval) in [("free", 0), ("paced", 1_000)] {
            w.site_with(site, |shop| {
                shop.group = Some(("g".to_owned(), 0));
                shop.settings.interval = interval;
            })
            .await;
            w.put(site, "p").await;
        }
        let (free, paced) = (w.start().await, w.next_start_in(1_000).await);
        assert_eq!((free.site.as_str(), paced.site.as_str()), ("free", "paced"));
        assert_eq!(w.rearm(&free).await, Rearmed::StartIn(1_000));
        assert_eq!(w.mutex_left("g").await, Some(2_000));
        assert_eq!(w.rearm(&paced).await, Rearmed::StartIn(2_000), "the lock is the group's own");
    });
}
