//! A departure that grew late, is far away, goes back, or follows one that may be late.

use paced::internals::frontier::{LockReply, Rearm, Tuning};
use paced::internals::task::{Departure, Lease};

use super::{ask_again, block, paced_site, start_of};
use crate::world::{AHEAD, Rearmed, START, World, at, on_every_backend, path_of, starts_at};

#[test]
fn g4_a_re_arm_waits_as_long_as_is_in_force_and_in_a_block_goes_back() {
    on_every_backend(async |w| {
        paced_site(w, "a", 1_000, None, 3).await;
        w.done(&w.start().await).await;
        let late = w.next_start_in(1_000).await;
        w.pass(10);
        w.tune("a", Tuning::Interval(Some(10_000))).await;
        w.pass(180);
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(10_010 - 1_200));
        assert_eq!(w.mutex_left("a").await, Some(20_010 - 1_200));
        block(w, "a", 60_000).await;
        assert_eq!(w.rearm(&late).await, Rearmed::WentBack);
        assert_eq!(w.view("a").await.last_start, Some(at(10)));
        assert_eq!(path_of(&w.next_start_in(60_000).await), path_of(&late));
    });
}

#[test]
fn g4_in_a_group_a_re_arm_waits_for_the_unit_and_for_its_own_site() {
    on_every_backend(async |w| {
        paced_site(w, "x", 5_000, Some(500), 3).await;
        paced_site(w, "y", 500, Some(500), 30).await;
        w.done(&start_of(w, "x").await).await;
        w.pass(5_000 - AHEAD);
        let late = start_of(w, "x").await;
        assert_eq!(starts_at(&late), 5_010);
        let y = w.next_start_in(500 + 250 - 50).await;
        assert_eq!((y.site.as_str(), starts_at(&y)), ("y", 5_710));
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(500), "after the unit's last start");
        w.tune("x", Tuning::Interval(Some(20_000))).await;
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(20_010 - 5_710), "20 s after its own");
    });
}

/// Three starts of a site a second apart, each late and re-armed behind the others.
async fn three_late(w: &World, site: &str) -> [Lease; 3] {
    paced_site(w, site, 1_000, None, 5).await;
    let first = w.start().await;
    let late = [first, w.next_start_in(1_000).await, w.next_start_in(1_000).await];
    assert_eq!(w.rearm(&late[0]).await, Rearmed::StartIn(1_000));
    late
}

#[test]
fn g5_a_far_start_asked_about_once_more_stands_where_nothing_changed() {
    on_every_backend(async |w| {
        let [one, two, _] = three_late(w, "a").await;
        assert_eq!(w.rearm(&two).await, Rearmed::StartIn(2_000));
        w.pass(1_000 - AHEAD);
        let stands = Rearm::Departs(Departure { at: START + 3_010, unit: 1_000, site: 1_000 });
        for _ in 0..2 {
            assert_eq!(ask_again(w, &one, 3_010).await, stands, "also with a later one behind it");
        }
        w.tune("a", Tuning::Interval(Some(200))).await;
        assert_eq!(ask_again(w, &one, 3_010).await, stands, "tuned down it may come as granted");
        w.tune("a", Tuning::Interval(None)).await;
        assert_eq!(w.view("a").await.last_start, Some(at(4_010)));
        assert_eq!(
            ask_again(w, &two, 4_010).await,
            Rearm::Departs(Departure { at: START + 4_010, unit: 1_000, site: 1_000 })
        );
    });
}

#[test]
fn g5_a_far_start_asked_about_once_more_goes_back_where_it_has_to_wait_longer() {
    for change in ["block", "pause", "raise"] {
        on_every_backend(async |w| {
            let [one, ..] = three_late(w, "a").await;
            w.pass(1_000 - AHEAD);
            match change {
                "block" => block(w, "a", 60_000).await,
                "pause" => w.tune("a", Tuning::pause("lunch")).await,
                _ => w.tune("a", Tuning::Interval(Some(9_000))).await,
            }
            assert_eq!(ask_again(w, &one, 3_010).await, Rearm::WentBack, "{change}");
            assert_eq!(w.place("a", &path_of(&one)).await, "waiting", "no attempt, no delay");
            assert_eq!(w.view("a").await.last_start, Some(at(2_010)), "its start is unused");
            assert_eq!(ask_again(w, &one, 3_010).await, Rearm::Stale);
        });
    }
}

/// Each that moved behind the others would make those move in turn, for ever.
#[test]
fn g5_l1_however_many_starts_were_re_armed_after_it_a_far_one_stands() {
    on_every_backend(async |w| {
        let late = three_late(w, "a").await;
        assert_eq!(w.rearm(&late[1]).await, Rearmed::StartIn(2_000));
        assert_eq!(w.rearm(&late[2]).await, Rearmed::StartIn(3_000));
        w.pass(1_000 - AHEAD);
        for (lease, starts) in late.iter().zip([3_010, 4_010, 5_010]) {
            let stands = Departure { at: START + starts, unit: 1_000, site: 1_000 };
            assert_eq!(ask_again(w, lease, starts).await, Rearm::Departs(stands));
            w.pass(1_000);
        }
        assert_eq!(w.view("a").await.last_start, Some(at(5_010)));
    });
}

#[test]
fn g6_a_start_can_be_given_back_unused_until_it_is_sent() {
    on_every_backend(async |w| {
        paced_site(w, "a", 1_000, None, 2).await;
        let granted = w.start().await;
        w.pass(90);
        block(w, "a", 5_000).await;
        assert!(w.back(&granted).await);
        let view = w.view("a").await;
        assert_eq!((view.in_flight, view.starts, view.last_start), (0, 0, None));
        assert_eq!(w.mutex_left("a").await, None);
    });
}

#[test]
fn g7_a_start_given_back_leaves_the_key_and_the_due_time_of_the_one_before() {
    on_every_backend(async |w| {
        paced_site(w, "a", 1_000, None, 3).await;
        w.done(&w.start().await).await;
        w.pass(960);
        let ahead = w.take().await;
        assert_eq!((starts_at(&ahead), w.mutex_left("a").await), (1_010, Some(2_010 - 970)));
        w.pass(5);
        assert!(w.back(&ahead).await);
        let view = w.view("a").await;
        assert_eq!((view.last_start, view.due, view.starts), (Some(at(10)), at(1_010), 1));
        assert_eq!(w.mutex_left("a").await, Some(35));
        w.pass(1);
        assert_eq!(w.outsider_locks("a", 1_000).await, LockReply::Held(34), "no start is an interval ago");
    });
}

#[test]
fn g7_in_a_group_a_start_is_given_back_to_its_site_though_the_unit_s_went_on() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            paced_site(w, site, 1_000, Some(1_000), 3).await;
        }
        let unused = start_of(w, "a").await;
        w.pass(1_000 - AHEAD);
        w.done(&start_of(w, "b").await).await;
        assert!(w.back(&unused).await);
        w.tune("a", Tuning::Interval(Some(30_000))).await;
        let view = w.view("a").await;
        assert_eq!((view.last_start, view.due), (Some(at(1_010)), at(2_010)), "only the unit's wait is left");
        assert_eq!(w.mutex_left("g").await, Some(1_000));
        w.pass(1_000 - AHEAD);
        assert_eq!(starts_at(&start_of(w, "a").await), 2_010);
    });
}

#[test]
fn g10_tuned_down_the_next_start_reckons_with_a_late_one() {
    on_every_backend(async |w| {
        paced_site(w, "a", 5_000, None, 3).await;
        w.done(&w.start().await).await;
        w.pass(90);
        w.tune("a", Tuning::Interval(Some(200))).await;
        let sent_late = 10 + 250;
        assert_eq!(w.view("a").await.due, at(sent_late + 200 - 20));
        let next = w.next_start_in(sent_late + 180 - 100).await;
        w.done(&next).await;
        w.next_start_in(200).await;
    });
}

#[test]
fn i1_a_start_re_armed_after_the_later_one_was_given_back_keeps_to_the_one_before() {
    on_every_backend(async |w| {
        paced_site(w, "a", 1_000, None, 4).await;
        w.done(&w.start().await).await;
        let late = w.next_start_in(1_000).await;
        let unused = w.next_start_in(1_000).await;
        assert!(w.back(&unused).await);
        w.tune("a", Tuning::Interval(Some(60_000))).await;
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(60_010 - w.now()), "60 s after the first");
    });
}
