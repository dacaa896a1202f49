//! Two waits hold at once, the unit's and each site's own, also where a site changes its unit or its name.

use paced::internals::frontier::{LockReply, Renamed, Tuning};
use paced::internals::task::{Outcome, Put, RobotsAccess, RobotsRecord};

use super::{paced_site, start_of, starts, to_group};
use crate::world::{AHEAD, LEAD, Rearmed, START, World, at, ms, on_every_backend, request, starts_at};

#[test]
fn g2_ahead_goes_by_the_unit_s_wait_and_lead_by_the_longer_of_both() {
    on_every_backend(async |w| {
        paced_site(w, "quick", 40, Some(40), 4).await;
        paced_site(w, "slow", 1_000, Some(40), 4).await;
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
            paced_site(w, site, interval, Some(100), 60).await;
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
            paced_site(w, site, 1_000, Some(1_000), 4).await;
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
fn g9_a_group_that_a_site_joins_waits_for_the_site_s_old_unit_even_where_the_site_is_tuned_down() {
    on_every_backend(async |w| {
        paced_site(w, "x", 60_000, None, 3).await;
        for site in ["y", "z"] {
            paced_site(w, site, 1_000, Some(1_000), 3).await;
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
        paced_site(w, "x", 1_000, None, 3).await;
        paced_site(w, "y", 1_000, Some(1_000), 3).await;
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
            paced_site(w, site, 1_000, Some(8_000), 3).await;
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
        paced_site(w, "x", 60_000, None, 3).await;
        paced_site(w, "y", 1_000, Some(1_000), 3).await;
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
fn g12_starts_that_re_arm_in_a_group_keep_both_waits() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            paced_site(w, site, 1_000, Some(1_000), 4).await;
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
    paced_site(w, "a", 1_000, None, 3).await;
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
        paced_site(w, "quick", 100, Some(500), 0).await;
        paced_site(w, "slow", 1_200, Some(500), 3).await;
        w.start().await;
        let due = w.view("quick").await.due.as_millis() - START - w.now();
        assert_eq!((due, w.mutex_left("g").await), (570, Some(570)));
    });
}
