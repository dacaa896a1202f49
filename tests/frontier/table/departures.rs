//! Starts are granted ahead, each for a time of its own: two waits hold at once, and nobody else's lock is overrun.

use paced::internals::frontier::{LockReply, MutexKey, Rearm, Registration, Renamed, Tuning};
use paced::internals::task::{Departure, Lease, Outcome, Put, RobotsAccess, RobotsRecord};

use crate::world::{
    AHEAD, LEAD, Rearmed, START, World, at, ms, on_every_backend, path_of, request, starts_at,
};

/// A site with an interval, of group `g` where one of its own is given, with so many pages.
async fn paced(w: &World, name: &str, interval: i64, group: Option<i64>, pages: usize) {
    w.site_with(name, |site| {
        site.settings.interval = interval;
        site.group = group.map(|wait| ("g".to_owned(), wait));
    })
    .await;
    w.put_many(name, pages).await;
}

/// Moves a site to group `g`.
fn to_group(interval: i64, group: i64) -> impl FnOnce(&mut Registration) {
    move |site| {
        site.settings.interval = interval;
        site.group = Some(("g".to_owned(), group));
    }
}

/// A download of that site, by a process that works on it alone; its request starts now.
async fn start_of(w: &World, site: &str) -> Lease {
    let lease = w.grant_of(&[site], w.want(1, 0)).await.leases.pop().expect("a download is due");
    w.depart(&lease);
    lease
}

/// One start after the other, each granted as soon as can be, and where it came from: settled at once.
async fn starts(w: &World, many: usize) -> Vec<(String, i64)> {
    let mut starts = Vec::new();
    while starts.len() < many {
        let grant = w.grant(w.want(1, 0)).await;
        for lease in &grant.leases {
            starts.push((lease.site.clone(), starts_at(lease)));
            w.done(lease).await;
        }
        w.pass(grant.next_in.expect("something is due some day"));
    }
    starts
}

async fn block(w: &World, site: &str, wait: i64) {
    assert!(w.frontier.block(site, ms(wait), "429").await.expect("answers"));
}

/// Asks about a start that is far away once more.
async fn ask_again(w: &World, lease: &Lease, start: i64) -> Rearm {
    w.frontier.rearm_asking(&lease.key(), Some(START + start), 0).await.expect("answers")
}

#[test]
fn a_unit_is_claimable_a_quarter_of_its_wait_ahead_at_most_50_ms_and_departs_when_due() {
    on_every_backend(async |w| {
        for (site, wait, ahead, lead) in
            [("a", 40, 10, 4), ("b", 100, 25, 10), ("c", 200, 50, 10), ("d", 60_000, 50, 10), ("e", 3, 0, 0)]
        {
            paced(w, site, wait, None, 4).await;
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
            w.tune(site, Tuning::Paused(Some("the next one's turn".to_owned()))).await;
        }
    });
}

#[test]
fn one_whose_answers_are_slow_is_granted_starts_further_ahead() {
    on_every_backend(async |w| {
        paced(w, "a", 1_000, None, 3).await;
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
        paced(w, "a", 1_000, None, 3).await;
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
            paced(w, site, 200, None, 3).await;
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
            w.tune(site, Tuning::Paused(Some("the next one's turn".to_owned()))).await;
        }
    });
}

#[test]
fn g1_while_somebody_else_waits_for_the_mutex_nothing_is_claimable_ahead() {
    on_every_backend(async |w| {
        paced(w, "a", 1_000, None, 3).await;
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
        paced(w, "a", 200, None, 40).await;
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
fn g2_ahead_goes_by_the_unit_s_wait_and_lead_by_the_longer_of_both() {
    on_every_backend(async |w| {
        paced(w, "quick", 40, Some(40), 4).await;
        paced(w, "slow", 1_000, Some(40), 4).await;
        let slow = start_of(w, "slow").await;
        assert_eq!((slow.departure.unit, slow.departure.site, starts_at(&slow)), (40, 1_000, LEAD));
        let wait = 40 + 100 - 10; // The slow one may go out late by a tenth of its own wait.
        w.pass(wait - 11);
        assert_eq!(w.claim().await, None);
        w.pass(1);
        let quick = w.start().await;
        assert_eq!((quick.site.as_str(), starts_at(&quick)), ("quick", LEAD + wait));
        w.pass(40 - 3);
        let quick = w.start().await;
        assert_eq!(starts_at(&quick), LEAD + wait + 37 + 4, "its lead is 4 ms");
    });
}

#[test]
fn g2_each_site_of_a_group_gets_its_starts_from_one_that_comes_when_told() {
    on_every_backend(async |w| {
        for (site, interval) in [("a", 100), ("b", 1_000), ("c", 1_000)] {
            paced(w, site, interval, Some(100), 60).await;
        }
        let starts = starts(w, 40).await;
        for pair in starts.windows(2) {
            let late = if pair[0].0 == "a" { 0 } else { 100 - 10 };
            assert_eq!(pair[1].1 - pair[0].1, 100 + late, "no start is left unused: {starts:?}");
        }
        for (site, wait) in [("a", 100), ("b", 1_000), ("c", 1_000)] {
            let of_it: Vec<i64> = starts.iter().filter(|(of, _)| of == site).map(|(_, at)| *at).collect();
            assert!(of_it.len() > 3, "{site}: {of_it:?}");
            assert!(of_it.windows(2).all(|pair| pair[1] - pair[0] >= wait), "{site}: {of_it:?}");
        }
    });
}

#[test]
fn g3_a_site_that_waits_itself_is_left_out_and_one_who_works_on_it_alone_is_told_when() {
    on_every_backend(async |w| {
        for site in ["x", "y"] {
            paced(w, site, 1_000, Some(1_000), 4).await;
        }
        w.done(&start_of(w, "x").await).await;
        w.pass(1_000 - AHEAD);
        w.done(&start_of(w, "y").await).await;
        assert_eq!(w.now(), 1_010);
        w.tune("x", Tuning::Interval(Some(30_000))).await;
        w.pass(1_090);
        let alone = w.grant_of(&["x"], w.want(1, 0)).await;
        assert_eq!((alone.leases.len(), alone.next_in), (0, Some(30_010 - AHEAD / 2 - 2_100)));
        w.done(&start_of(w, "y").await).await;
        assert_eq!(w.now(), 2_110);
        w.pass(30_010 - AHEAD - 2_110 - 1);
        assert!(w.grant_of(&["x"], w.want(1, 0)).await.leases.is_empty());
        w.pass(1);
        assert_eq!(starts_at(&start_of(w, "x").await), 30_010);
    });
}

#[test]
fn g4_a_re_arm_waits_as_long_as_is_in_force_and_in_a_block_goes_back() {
    on_every_backend(async |w| {
        paced(w, "a", 1_000, None, 3).await;
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
        paced(w, "x", 5_000, Some(500), 3).await;
        paced(w, "y", 500, Some(500), 30).await;
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
    paced(w, site, 1_000, None, 5).await;
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
                "pause" => w.tune("a", Tuning::Paused(Some("lunch".to_owned()))).await,
                _ => w.tune("a", Tuning::Interval(Some(9_000))).await,
            }
            assert_eq!(ask_again(w, &one, 3_010).await, Rearm::WentBack, "{change}");
            assert_eq!(w.place("a", &path_of(&one)).await, "waiting", "no attempt, no delay");
            assert_eq!(w.view("a").await.last_start, Some(at(2_010)), "its start is unused");
            assert_eq!(ask_again(w, &one, 3_010).await, Rearm::Stale);
        });
    }
}

#[test]
fn g5_a_far_start_no_longer_on_record_moves_behind_the_last() {
    on_every_backend(async |w| {
        let [one, two, three] = three_late(w, "a").await;
        assert_eq!(w.rearm(&two).await, Rearmed::StartIn(2_000));
        assert_eq!(w.rearm(&three).await, Rearmed::StartIn(3_000));
        w.pass(1_000 - AHEAD);
        let moved = Departure { at: START + 6_010, unit: 1_000, site: 1_000 };
        assert_eq!(ask_again(w, &one, 3_010).await, Rearm::Departs(moved));
        assert_eq!(w.view("a").await.last_start, Some(at(6_010)));
    });
}

#[test]
fn g6_a_start_can_be_given_back_unused_until_it_is_sent() {
    on_every_backend(async |w| {
        paced(w, "a", 1_000, None, 2).await;
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
        paced(w, "a", 1_000, None, 3).await;
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
            paced(w, site, 1_000, Some(1_000), 3).await;
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
fn g9_a_group_that_a_site_joins_waits_for_the_site_s_old_unit_even_where_the_site_is_tuned_down() {
    on_every_backend(async |w| {
        paced(w, "x", 60_000, None, 3).await;
        for site in ["y", "z"] {
            paced(w, site, 1_000, Some(1_000), 3).await;
        }
        w.done(&start_of(w, "x").await).await;
        w.pass(10_990);
        let y = start_of(w, "y").await;
        assert_eq!(starts_at(&y), 11_010);
        w.site_with("x", to_group(60_000, 1_000)).await;
        w.tune("x", Tuning::Interval(Some(1_000))).await;
        assert_eq!(w.view("z").await.last_start, Some(at(11_010)), "the unit keeps its own last start");
        w.done(&y).await;
        let grant = w.grant_of(&["z"], w.want(1, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(60_010 - AHEAD / 2 - 11_010)));
        w.pass(1_000);
        assert_eq!(w.outsider_locks("g", 500).await, LockReply::Held(60_010 - 12_010));
        w.pass(60_010 - 12_010 - AHEAD);
        assert_eq!(starts_at(&w.take().await), 60_010);
    });
}

#[test]
fn g9_a_group_that_a_site_joins_waits_for_somebody_else_s_hold_on_the_site() {
    on_every_backend(async |w| {
        paced(w, "x", 1_000, None, 3).await;
        paced(w, "y", 1_000, Some(1_000), 3).await;
        assert_eq!(w.outsider_locks("x", 5_000).await, LockReply::Taken(START));
        w.pass(10);
        w.site_with("x", to_group(1_000, 1_000)).await;
        for site in ["x", "y"] {
            let grant = w.grant_of(&[site], w.want(1, 0)).await;
            assert_eq!((grant.leases.len(), grant.next_in), (0, Some(4_990)), "{site}");
        }
        w.pass(4_990);
        assert_eq!(starts_at(&start_of(w, "x").await), 5_000 + LEAD);
    });
}

#[test]
fn g9_a_site_that_leaves_its_group_waits_for_it_and_the_group_for_its_own() {
    on_every_backend(async |w| {
        for site in ["x", "y"] {
            paced(w, site, 1_000, Some(8_000), 3).await;
        }
        w.done(&start_of(w, "x").await).await;
        w.site_with("x", |_| {}).await;
        assert_eq!(w.view("x").await.unit, "x");
        w.pass(7_949);
        assert_eq!(w.claim().await, None);
        w.pass(1);
        assert_eq!(starts_at(&start_of(w, "y").await), 8_010);
        assert_eq!(starts_at(&start_of(w, "x").await), 8_010 + LEAD);
    });
}

#[test]
fn g9_a_site_that_joins_a_group_keeps_its_own_wait_after_the_group_started_on() {
    on_every_backend(async |w| {
        paced(w, "x", 60_000, None, 3).await;
        paced(w, "y", 1_000, Some(1_000), 3).await;
        w.done(&start_of(w, "x").await).await;
        w.pass(9_990);
        w.done(&start_of(w, "y").await).await;
        w.pass(490);
        w.site_with("x", to_group(60_000, 1_000)).await;
        w.pass(500);
        assert_eq!(w.claim().await, None);
        w.pass(60_010 - AHEAD - w.now() - 1);
        assert_eq!(w.claim().await, None);
        w.pass(1);
        assert_eq!(starts_at(&start_of(w, "x").await), 60_010);
    });
}

#[test]
fn g10_tuned_down_the_next_start_reckons_with_a_late_one() {
    on_every_backend(async |w| {
        paced(w, "a", 5_000, None, 3).await;
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
fn g12_starts_that_re_arm_in_a_group_keep_both_waits() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            paced(w, site, 1_000, Some(1_000), 4).await;
        }
        w.done(&start_of(w, "b").await).await;
        w.pass(1_000 - AHEAD);
        let late = start_of(w, "a").await;
        w.tune("b", Tuning::Interval(Some(3_000))).await;
        w.pass(1_000 - AHEAD);
        let next = start_of(w, "a").await;
        assert_eq!((starts_at(&late), starts_at(&next)), (1_010, 2_010));
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(1_000));
        let b = w.grant_of(&["b"], w.want(1, 0)).await;
        assert_eq!((b.leases.len(), b.next_in), (0, Some(2_000 - AHEAD / 2)), "after the re-armed one");
        w.pass(2_000 - AHEAD);
        assert_eq!(starts_at(&start_of(w, "b").await), 4_010);
    });
}

#[test]
fn g13_one_claim_half_of_ahead_before_the_first_due_time_finds_what_is_due_on_many_units() {
    on_every_backend(async |w| {
        let sites = ["a", "b", "c", "d", "e", "f", "g", "h"];
        for site in sites {
            paced(w, site, 1_000, None, 3).await;
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
fn a_crawl_delay_learnt_after_others_of_the_group_started_counts_from_the_site_s_own_start() {
    on_every_backend(async |w| {
        for (site, robots) in [("x", true), ("y", false)] {
            w.site_with(site, |site| {
                site.settings.robots = robots;
                site.group = Some(("g".to_owned(), 0));
            })
            .await;
            w.put_many(site, 3).await;
        }
        let errand = start_of(w, "x").await;
        assert!(errand.robots.is_some());
        w.pass(1_000 - AHEAD);
        w.done(&start_of(w, "y").await).await;
        w.pass(490);
        let slow = RobotsRecord {
            access: RobotsAccess::Rules("Crawl-delay: 30".to_owned()),
            holds_for: ms(3_600_000),
            crawl_delay: Some(ms(30_000)),
            refuses: None,
        };
        w.settle(&errand, Outcome::Robots(slow)).await;
        w.pass(2_010 - AHEAD - w.now());
        assert_eq!(starts_at(&start_of(w, "y").await), 2_010);
        let grant = w.grant_of(&["x"], w.want(1, 0)).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(30_010 - AHEAD / 2 - w.now())));
        w.pass(30_010 - AHEAD - w.now());
        let page = start_of(w, "x").await;
        assert_eq!((starts_at(&page), page.departure.site), (30_010, 30_000));
        assert_eq!(page.departure.unit, 1_000, "the group goes on at its own");
    });
}

#[test]
fn i12_a_task_that_expires_before_it_would_start_spends_no_start() {
    on_every_backend(async |w| {
        paced(w, "a", 1_000, None, 1).await;
        w.done(&w.start().await).await;
        let brief = Put { expires: Some(at(1_000)), ..request("a", "brief") };
        w.put_with("a", brief).await;
        w.put("a", "q").await;
        w.pass(1_000 - AHEAD);
        let next = w.start().await;
        assert_eq!((path_of(&next).as_str(), starts_at(&next)), ("q", 1_010));
    });
}

#[test]
fn i1_a_start_re_armed_after_the_later_one_was_given_back_keeps_to_the_one_before() {
    on_every_backend(async |w| {
        paced(w, "a", 1_000, None, 4).await;
        w.done(&w.start().await).await;
        let late = w.next_start_in(1_000).await;
        let unused = w.next_start_in(1_000).await;
        assert!(w.back(&unused).await);
        w.tune("a", Tuning::Interval(Some(60_000))).await;
        assert_eq!(w.rearm(&late).await, Rearmed::StartIn(60_010 - w.now()), "60 s after the first");
    });
}

#[test]
fn i1_two_sites_of_a_group_that_share_a_host_keep_its_crawl_delay_together() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, |shop| {
                shop.settings.robots = true;
                shop.hosts = vec!["shared.example".to_owned()];
                shop.group = Some(("g".to_owned(), 0));
            })
            .await;
            let page = |path| Put {
                url: format!("https://shared.example/{path}").parse().expect("a URL"),
                ..request("a", "")
            };
            for i in 0..3 {
                w.put_with(site, page(format!("{site}{i}"))).await;
            }
        }
        let errand = w.start().await;
        let slow = RobotsRecord {
            access: RobotsAccess::Rules("Crawl-delay: 10".to_owned()),
            holds_for: ms(3_600_000),
            crawl_delay: Some(ms(10_000)),
            refuses: None,
        };
        w.settle(&errand, Outcome::Robots(slow)).await;
        let of_both = starts(w, 4).await;
        assert!(of_both.windows(2).all(|pair| pair[1].1 - pair[0].1 >= 10_000), "{of_both:?}");
    });
}

/// A site that started at 10 ms, changed its name to `b` and is tuned from one second to a minute.
async fn renamed_and_raised(w: &World) {
    paced(w, "a", 1_000, None, 3).await;
    w.done(&w.start().await).await;
    assert_eq!(w.frontier.rename("a", "b").await.expect("answers"), Renamed::Done);
    w.tune("b", Tuning::Interval(Some(60_000))).await;
}

#[test]
fn a_renamed_site_still_shows_its_last_start() {
    on_every_backend(async |w| {
        renamed_and_raised(w).await;
        let view = w.view("b").await;
        assert_eq!((view.last_start, view.due), (Some(at(10)), at(60_010)));
    });
}

#[test]
fn an_interval_raised_after_a_site_was_renamed_holds_for_outsiders_too() {
    on_every_backend(async |w| {
        renamed_and_raised(w).await;
        w.pass(5_000);
        assert_eq!(w.claim().await, None);
        assert_eq!(w.outsider_locks("b", 1_000).await, LockReply::Held(55_000));
    });
}

#[test]
fn the_mutex_of_a_group_ends_when_the_group_is_due() {
    on_every_backend(async |w| {
        paced(w, "quick", 100, Some(500), 0).await;
        paced(w, "slow", 1_200, Some(500), 3).await;
        w.start().await;
        let due = w.view("quick").await.due.as_millis() - START - w.now();
        assert_eq!((due, w.mutex_left("g").await), (570, Some(570)));
    });
}
