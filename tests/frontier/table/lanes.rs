//! Lanes and fair tenants: where a task waits, and which lane the next start is of.

use std::collections::BTreeMap;

use fastrand::Rng;
use paced::internals::frontier::{Agreed, Claim};
use paced::internals::task::{FleetRules, LaneRule, LaneWish, Put, PutReply, Stage};

use crate::world::{Backend, World, on_every_backend, path_of, request, urgent, url, wait_for};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

fn rule(lane: &str, threshold: u32, per: i64) -> LaneRule {
    LaneRule { lane: lane.to_owned(), threshold, per, stage: None }
}

fn fleet(lanes: &[(&str, u32)], fairness: &[LaneRule]) -> FleetRules {
    let lanes = lanes.iter().map(|(lane, weight)| ((*lane).to_owned(), *weight)).collect();
    FleetRules { lanes, fairness: fairness.to_vec(), ..FleetRules::default() }
}

/// Two lanes, and the rule that a hundred tasks an hour are as usual.
fn hundred() -> FleetRules {
    fleet(&[("slow", 1), ("superslow", 1)], &[rule("slow", 100, HOUR)])
}

fn of(tenant: &str) -> LaneWish {
    LaneWish { tenant: Some(tenant.to_owned()), ..LaneWish::default() }
}

fn into(lane: &str) -> LaneWish {
    LaneWish { lane: Some(lane.to_owned()), ..LaneWish::default() }
}

fn now() -> LaneWish {
    LaneWish { urgent: true, ..LaneWish::default() }
}

fn wished(path: &str, wish: LaneWish) -> Put {
    Put { wish, ..request("a", path) }
}

impl World {
    async fn agreed(&self, rules: FleetRules, mark: u64) {
        assert_eq!(self.frontier.agree(rules, mark).await.expect("answers"), Agreed::Replaced);
    }

    /// The lane in which a page waits.
    async fn lane(&self, path: &str) -> String {
        self.lane_at(Stage::Download, path).await
    }

    async fn lane_at(&self, stage: Stage, path: &str) -> String {
        let found = self.frontier.whereabouts("a", &url("a", path)).await.expect("answers");
        let task = found.tasks.into_iter().find(|task| task.stage == stage).expect("it is there");
        task.lane.unwrap_or_else(|| "general".to_owned())
    }

    async fn put_for(&self, tenant: &str, paths: std::ops::Range<u32>) {
        for path in paths {
            self.put_with("a", wished(&format!("{tenant}-{path:03}"), of(tenant))).await;
        }
    }
}

#[test]
fn f1_f2_f5_the_first_hundred_of_a_tenant_go_where_they_would_the_next_ones_to_the_rules_lane_and_nobody_elses()
 {
    on_every_backend(async |w| {
        w.site("a").await;
        w.agreed(hundred(), 1).await;
        w.put_for("acme", 0..101).await;
        assert_eq!(w.lane("acme-099").await, "general");
        assert_eq!(w.lane("acme-100").await, "slow");
        w.put_for("bolt", 0..1).await;
        assert_eq!(w.lane("bolt-000").await, "general");
        assert_eq!(w.downloads("a").await.lanes, [("slow".to_owned(), 1)].into());
    });
}

#[test]
fn f3_f4_f6_the_last_rule_that_matches_decides_and_after_its_window_the_one_before() {
    on_every_backend(async |w| {
        w.site("a").await;
        let rules = [rule("semislow", 1, DAY), rule("supaslow", 1, HOUR)];
        w.agreed(fleet(&[("semislow", 1), ("supaslow", 1)], &rules), 1).await;
        w.put_for("foo", 0..2).await;
        w.put_for("bar", 0..1).await;
        w.pass(HOUR + 1_000);
        w.put_for("foo", 2..3).await;
        w.pass(DAY + 1_000);
        w.put_for("foo", 3..4).await;
        let mut lanes = Vec::new();
        for path in ["foo-000", "foo-001", "bar-000", "foo-002", "foo-003"] {
            lanes.push(w.lane(path).await);
        }
        assert_eq!(lanes, ["general", "supaslow", "general", "semislow", "general"]);
    });
}

#[test]
fn f2_a_task_counts_for_exactly_as_long_as_the_rule_says() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.agreed(fleet(&[("slow", 1)], &[rule("slow", 1, HOUR)]), 1).await;
        w.put_for("acme", 0..1).await;
        w.pass(HOUR);
        w.put_for("acme", 1..2).await;
        assert_eq!(w.lane("acme-001").await, "slow");
        w.pass(HOUR + 1);
        w.put_for("acme", 2..3).await;
        assert_eq!(w.lane("acme-002").await, "general");
    });
}

#[test]
fn f5_a_flood_in_one_lane_takes_pages_to_be_fetched_again_no_room() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.agreed(fleet(&[("slow", 1)], &[]), 1).await;
        w.put("a", "again").await;
        let lease = w.take().await;
        w.fetched_for(&lease, HOUR).await;
        w.done(&w.parse().await.expect("it waits")).await;
        let flood = (0..1_000).map(|n| wished(&n.to_string(), into("slow")));
        w.frontier.put("a", flood.collect()).await.expect("answers");
        w.pass(2 * HOUR);
        assert_eq!(w.feed(9).await.put, 1);
        assert_eq!(w.lane("again").await, "general");
    });
}

#[test]
fn f7_a_lane_that_was_asked_for_is_kept_to_and_such_a_task_is_not_counted() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.agreed(fleet(&[("slow", 1), ("superslow", 1)], &[rule("slow", 1, HOUR)]), 1).await;
        for path in 0..5 {
            let wish = LaneWish { lane: Some("superslow".to_owned()), ..of("acme") };
            w.put_with("a", wished(&path.to_string(), wish)).await;
            assert_eq!(w.lane(&path.to_string()).await, "superslow");
        }
        w.put_for("acme", 0..1).await;
        assert_eq!(w.lane("acme-000").await, "general");
        let wish = LaneWish { lane: Some("general".to_owned()), ..of("acme") };
        w.put_with("a", wished("asked", wish)).await;
        assert_eq!(w.lane("asked").await, "general");
    });
}

#[test]
fn f8_without_a_tenant_a_task_goes_to_its_sites_lane_and_the_sites_tenant_counts_where_none_is_named() {
    on_every_backend(async |w| {
        w.agreed(fleet(&[("slow", 1), ("superslow", 1)], &[rule("superslow", 1, HOUR)]), 1).await;
        w.site_with("a", |a| a.settings.lane = Some("slow".to_owned())).await;
        for path in ["1", "2", "3"] {
            w.put("a", path).await;
            assert_eq!(w.lane(path).await, "slow");
        }
        w.site_with("a", |a| a.settings.tenant = Some("acme".to_owned())).await;
        for (path, lane) in [("4", "general"), ("5", "superslow")] {
            w.put("a", path).await;
            assert_eq!(w.lane(path).await, lane);
        }
        w.put_for("bolt", 0..1).await;
        assert_eq!(w.lane("bolt-000").await, "general", "a tenant that is named wins");
        w.put_for("acme", 6..7).await;
        let found = w.frontier.whereabouts("a", &url("a", "acme-006")).await.expect("answers");
        assert_eq!(found.tasks[0].tenant, None, "it is the site's own");
    });
}

#[test]
fn f9_what_is_tried_again_keeps_its_lane_and_is_not_counted_again() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.agreed(fleet(&[("slow", 1)], &[rule("slow", 2, HOUR)]), 1).await;
        w.put_for("acme", 0..1).await;
        for _ in 0..3 {
            let lease = w.take().await;
            assert_eq!(lease.tenant.as_deref(), Some("acme"));
            w.retry(&lease, 1_000).await;
            w.pass(1_000);
        }
        w.put_for("acme", 1..3).await;
        assert_eq!(w.lane("acme-000").await, "general");
        assert_eq!(w.lane("acme-001").await, "general");
        assert_eq!(w.lane("acme-002").await, "slow");
        // In the slow lane it stays through a retry and a lost lease.
        let mut lease = w.take().await;
        while path_of(&lease) != "acme-002" {
            w.done(&lease).await;
            lease = w.take().await;
        }
        w.retry(&lease, 1_000).await;
        assert_eq!(w.lane("acme-002").await, "slow");
        w.pass(1_000);
        let lease = w.take().await;
        w.pass(31_000);
        assert_eq!(w.claim().await.map(|again| path_of(&again)), Some(path_of(&lease)));
        w.pass(31_000);
        w.grant(w.want(0, 0)).await;
        assert_eq!(w.lane("acme-002").await, "slow");
    });
}

#[test]
fn f9_a_further_run_is_counted_as_a_task_of_its_own() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.agreed(fleet(&[("slow", 1)], &[rule("slow", 1, HOUR)]), 1).await;
        w.put_for("acme", 0..1).await;
        let lease = w.take().await;
        assert_eq!(w.put_with("a", wished("acme-000", of("acme"))).await, PutReply::Deferred);
        w.done(&lease).await;
        assert_eq!(w.lane("acme-000").await, "slow");
    });
}

#[test]
fn f10_a_parse_is_counted_apart_from_the_downloads_and_is_for_the_same_tenant() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        let only = LaneRule { stage: Some(Stage::Parse), ..rule("slow", 1, HOUR) };
        w.agreed(fleet(&[("slow", 1)], &[rule("slow", 2, HOUR), only]), 1).await;
        w.put_for("acme", 0..2).await;
        for _ in 0..2 {
            let lease = w.take().await;
            w.fetched(&lease).await;
        }
        assert_eq!(w.lane_at(Stage::Parse, "acme-000").await, "general");
        assert_eq!(w.lane_at(Stage::Parse, "acme-001").await, "slow");
        assert_eq!(w.parses("a").await.lanes, [("slow".to_owned(), 1)].into());
        assert_eq!(w.parse().await.expect("it waits").tenant.as_deref(), Some("acme"));
    });
}

#[test]
fn f12_empty_fast_lanes_leave_every_start_to_the_slow_one() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.agreed(fleet(&[("general", 100), ("slow", 1)], &[]), 1).await;
        for path in 0..5 {
            w.put_with("a", wished(&path.to_string(), into("slow"))).await;
        }
        assert_eq!(w.order(1_000).await, ["0", "1", "2", "3", "4"], "one each interval");
    });
}

#[test]
fn f13_f18_l3_lanes_get_their_shares_of_ten_thousand_starts_within_two_points() {
    on_every_backend(async |w| {
        w.site_with("a", |a| {
            a.settings.interval = 0;
            a.settings.parallel = 100_000;
            a.settings.max_parallel = 100_000;
        })
        .await;
        let lanes = [("general", 6_u32), ("throttled", 3), ("superslow", 1)];
        w.agreed(fleet(&lanes, &[]), 1).await;
        // As many as each is to get, and some more: no lane runs dry.
        let starts = if w.is_model() { 1_000 } else { 10_000 };
        for (lane, weight) in lanes {
            let count = starts * weight / 10 + starts / 20;
            let puts: Vec<Put> = (0..count).map(|n| wished(&format!("{lane}-{n:05}"), into(lane))).collect();
            for some in puts.chunks(1_000) {
                w.frontier.put("a", some.to_vec()).await.expect("answers");
            }
        }
        let mut dice = Rng::with_seed(7);
        let mut shares: BTreeMap<String, u32> = BTreeMap::new();
        let mut left = starts;
        while left > 0 {
            let download = left.min(50);
            let dice = (0..64).map(|_| dice.u32(..)).collect();
            let grant = w.grant(Claim { dice, ..w.want(download, 0) }).await;
            assert_eq!(grant.leases.len(), download as usize);
            for lease in &grant.leases {
                let path = path_of(lease);
                let lane = path.split('-').next().unwrap_or_default().to_owned();
                *shares.entry(lane).or_default() += 1;
            }
            left -= download;
        }
        // Of a tenth as many starts chance makes up more.
        let tolerated = if w.is_model() { 60 } else { 20 };
        for (lane, weight) in lanes {
            let thousandths = shares[lane] * 1_000 / starts;
            assert!(thousandths.abs_diff(weight * 100) <= tolerated, "{shares:?}");
        }
    });
}

#[test]
fn f16_now_goes_before_all_lanes_while_a_hundred_have_room_there() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.agreed(fleet(&[("slow", 100)], &[]), 1).await;
        for path in 0..3 {
            w.put_with("a", Put { wish: into("slow"), ..urgent("a", &format!("slow-{path}"), 120) }).await;
        }
        for path in 0..102 {
            w.put_with("a", wished(&format!("now-{path:03}"), now())).await;
        }
        assert_eq!(
            (w.lane("now-099").await, w.lane("now-100").await),
            ("now".to_owned(), "general".to_owned())
        );
        w.put_with("a", wished("asked", into("now"))).await;
        assert_eq!(w.lane("asked").await, "now", "who names it gets it");
        let order = w.order(0).await;
        assert!(order[..100].iter().all(|path| path.starts_with("now-0")), "{order:?}");
        assert_eq!(order[100], "asked");
    });
}

#[test]
fn f16_a_put_that_goes_now_takes_the_waiting_task_along_and_any_other_leaves_it_in_its_lane() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.agreed(fleet(&[("slow", 1), ("superslow", 1)], &[]), 1).await;
        w.put_with("a", wished("x", into("slow"))).await;
        assert_eq!(w.put_with("a", wished("x", into("superslow"))).await, PutReply::Coalesced);
        assert_eq!(w.lane("x").await, "slow");
        assert_eq!(w.put_with("a", wished("x", now())).await, PutReply::Coalesced);
        assert_eq!(w.lane("x").await, "now");
        assert_eq!(w.downloads("a").await.lanes, [("now".to_owned(), 1)].into());
        let later = Put { at: Some(crate::world::at(5_000)), ..wished("y", into("slow")) };
        w.put_with("a", later).await;
        w.put_with("a", wished("y", into("now"))).await;
        w.pass(5_000);
        w.grant(w.want(0, 0)).await;
        assert_eq!(w.downloads("a").await.lanes, [("now".to_owned(), 2)].into());
    });
}

#[test]
fn f16_what_is_put_for_later_never_fills_now() {
    on_every_backend(async |w| {
        w.site("a").await;
        let later = |path: &str| Put { at: Some(crate::world::at(5_000)), ..wished(path, now()) };
        w.put_with("a", later("x")).await;
        w.put_with("a", wished("x", now())).await;
        w.pass(5_000);
        w.grant(w.want(0, 0)).await;
        assert_eq!(
            (w.lane("x").await, w.downloads("a").await.lanes),
            ("general".to_owned(), BTreeMap::new())
        );
        let running = w.take().await;
        w.put_with("a", wished("x", now())).await;
        w.put_with("a", wished("x", LaneWish::default())).await;
        w.done(&running).await;
        assert_eq!(w.lane("x").await, "now", "one of two that met a run asked for it");
    });
}

#[test]
fn f16_a_retry_that_stands_for_an_operators_put_goes_before_all_others() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.agreed(fleet(&[("slow", 1)], &[]), 1).await;
        w.put_with("a", wished("x", into("slow"))).await;
        let lease = w.take().await;
        assert!(!lease.urgent);
        w.put_with("a", wished("x", now())).await;
        w.retry(&lease, 1_000).await;
        w.pass(1_000);
        w.grant(w.want(0, 0)).await;
        assert_eq!(w.lane("x").await, "now");
        assert!(w.take().await.urgent);
    });
}

#[test]
fn l1_a_lane_that_somebody_emptied_by_hand_stops_nothing() {
    if !matches!(Backend::all().last(), Some(Backend::Redis)) {
        return;
    }
    wait_for(async {
        let w = World::new(Backend::Redis);
        let db = w.redis().expect("it is one");
        w.site("a").await;
        w.put_with("a", wished("gone", into("now"))).await;
        w.put("a", "x").await;
        db.cli(&["DEL", "{paced:0}:q:d:a:now"]);
        assert_eq!(path_of(&w.take().await), "x");
    });
}

#[test]
fn f17_a_tenant_of_its_own_rules_goes_by_these_alone_and_from_the_very_next_put_on() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.agreed(fleet(&[("slow", 1), ("superslow", 1)], &[rule("slow", 1, HOUR)]), 1).await;
        w.put_for("acme", 0..2).await;
        assert_eq!(w.lane("acme-001").await, "slow");
        let mut bigger = fleet(&[("slow", 1), ("superslow", 1)], &[rule("slow", 1, HOUR)]);
        bigger.tenants.insert("acme".to_owned(), vec![rule("superslow", 3, HOUR)]);
        bigger.tenants.insert("free".to_owned(), Vec::new());
        w.agreed(bigger.clone(), 2).await;
        assert_eq!(w.frontier.fleet_rules().await.expect("answers"), bigger);
        w.put_for("acme", 2..3).await;
        assert_eq!(w.lane("acme-002").await, "general");
        w.put_for("acme", 3..4).await;
        w.put_for("free", 0..9).await;
        w.put_for("bolt", 0..2).await;
        assert_eq!(w.lane("free-008").await, "general");
        assert_eq!(w.lane("bolt-001").await, "slow");
    });
}

#[test]
fn c4_an_operators_page_overtakes_a_long_backlog_of_every_lane() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.agreed(fleet(&[("general", 50), ("slow", 50)], &[]), 1).await;
        let backlog = if w.is_model() { 1_000 } else { 100_000 };
        for from in (0..backlog).step_by(1_000) {
            let puts = (from..from + 1_000).map(|n| {
                let wish = if n % 2 == 0 { into("slow") } else { LaneWish::default() };
                Put { wish, ..urgent("a", &format!("{n:06}"), 120) }
            });
            w.frontier.put("a", puts.collect()).await.expect("answers");
        }
        let first = w.take().await;
        w.put_with("a", wished("sale", now())).await;
        w.pass(1_000);
        let next = w.take().await;
        assert_eq!(path_of(&next), "sale");
        assert_eq!(next.departure.at - first.departure.at, 1_000, "the next free start");
    });
}

#[test]
fn i15_a_site_given_up_renamed_and_gone_on_with_keeps_its_books_of_lanes() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.agreed(fleet(&[("slow", 1)], &[]), 1).await;
        for path in 0..3 {
            w.put_with("a", wished(&path.to_string(), into("slow"))).await;
        }
        while w.frontier.rename("a", "b").await.expect("answers") != paced::internals::frontier::Renamed::Done
        {
        }
        assert_eq!(w.downloads("b").await.lanes, [("slow".to_owned(), 3)].into());
        assert_eq!(path_of(&w.take().await), "0");
        while w.frontier.give_up("b").await.expect("answers") {}
        assert_eq!(w.downloads("b").await.lanes, BTreeMap::new());
        w.check_books().await;
    });
}

#[test]
fn f11_i17_a_tenants_window_goes_once_it_is_over() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.agreed(hundred(), 1).await;
        w.put_for("acme", 0..3).await;
        w.put_for("bolt", 0..3).await;
        w.pass(HOUR + 1);
        w.put_for("corp", 0..2).await;
        assert_eq!(w.windows_kept().unwrap_or(1), 1);
    });
}

#[test]
fn f17_a_tenant_gets_rules_while_it_runs_for_the_very_next_task_over_those_of_every_text() {
    on_every_backend(async |w| {
        let tune = async |rules| w.frontier.tune_tenant("acme", rules).await.expect("answers");
        w.site("a").await;
        w.agreed(fleet(&[("slow", 1), ("slower", 1)], &[rule("slow", 1, DAY)]), 1).await;
        w.put_for("acme", 0..2).await;
        assert_eq!(w.lane("acme-001").await, "slow");
        assert!(tune(Some(vec![rule("slower", 1, DAY)])).await);
        w.put_for("acme", 2..3).await;
        w.put_for("bolt", 0..2).await;
        assert_eq!([w.lane("acme-002").await, w.lane("bolt-001").await], ["slower", "slow"]);
        assert!(tune(Some(Vec::new())).await);
        w.put_for("acme", 3..4).await;
        assert_eq!(w.lane("acme-003").await, "general", "it is free of all rules");
        w.agreed(fleet(&[("slow", 2)], &[rule("slow", 1, DAY)]), 2).await;
        w.put_for("acme", 4..5).await;
        assert_eq!(w.lane("acme-004").await, "general", "a text leaves it as it is");
        let tuned = w.frontier.tuned_tenants().await.expect("answers");
        assert_eq!(tuned.tenants, [("acme".to_owned(), Vec::new())].into());
        assert!(tune(None).await);
        w.put_for("acme", 5..6).await;
        assert_eq!(w.lane("acme-005").await, "slow", "the file's again");
        assert_eq!(w.frontier.tuned_tenants().await.expect("answers").tenants, BTreeMap::new());
    });
}

#[test]
fn f17_so_many_tenants_have_rules_of_their_own_while_it_runs_and_no_more() {
    on_every_backend(async |w| {
        let tune = async |tenant: &str, rules| w.frontier.tune_tenant(tenant, rules).await.expect("answers");
        for tenant in 0..100 {
            assert!(tune(&format!("t{tenant}"), Some(Vec::new())).await);
        }
        assert!(!tune("more", Some(Vec::new())).await);
        assert!(tune("t7", Some(vec![rule("general", 1, HOUR)])).await, "one that has some");
        assert!(tune("t7", None).await && tune("more", Some(Vec::new())).await);
        assert_eq!(w.frontier.tuned_tenants().await.expect("answers").tenants.len(), 100);
    });
}

#[test]
fn f8_i13_a_page_that_is_revived_passes_the_gate_of_its_own_tenant_unless_the_put_names_another() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.agreed(fleet(&[("slow", 1)], &[rule("slow", 1, HOUR)]), 1).await;
        let whose = async |stage: Stage| {
            let found = w.frontier.whereabouts("a", &url("a", "p")).await.expect("answers");
            let task = found.tasks.into_iter().find(|task| task.stage == stage).expect("it is there");
            (task.tenant.unwrap_or_default(), task.lane.unwrap_or_default())
        };
        let is = |tenant: &str, lane: &str| (tenant.to_owned(), lane.to_owned());
        w.put_with("a", wished("p", of("acme"))).await;
        w.die(&w.take().await).await;
        let letters = w.frontier.dead_letters("a", 1).await.expect("answers");
        assert_eq!(letters[0].tenant.as_deref(), Some("acme"));
        assert_eq!(w.put("a", "p").await, PutReply::Revived);
        assert_eq!(whose(Stage::Download).await, is("acme", "slow"), "its second task within the hour");
        w.die(&w.take().await).await;
        assert_eq!(w.put_with("a", wished("p", of("bolt"))).await, PutReply::Revived);
        assert_eq!(whose(Stage::Download).await, is("bolt", ""), "the first one of another tenant");
        w.die(&w.take().await).await;
        w.frontier.begin_run("a", Vec::new()).await.expect("answers");
        assert_eq!(w.link("a", "p").await, PutReply::Revived, "a link of a later run");
        assert_eq!(whose(Stage::Download).await, is("bolt", "slow"));
        w.fetched(&w.take().await).await;
        w.die(&w.parse().await.expect("it waits")).await;
        assert!(w.frontier.parse_again("a", &url("a", "p")).await.expect("answers"));
        assert_eq!(whose(Stage::Parse).await, is("bolt", "slow"), "each stage has its own window");
    });
}

#[test]
fn f8_i13_a_letter_of_the_sites_own_tenant_names_none_and_is_for_whom_the_site_is_once_it_is_revived() {
    on_every_backend(async |w| {
        w.site_with("a", |a| (a.settings.interval, a.settings.tenant) = (0, Some("acme".to_owned()))).await;
        w.agreed(fleet(&[("slow", 1)], &[rule("slow", 1, HOUR)]), 1).await;
        w.put("a", "p").await;
        w.die(&w.take().await).await;
        let letters = w.frontier.dead_letters("a", 1).await.expect("answers");
        assert_eq!(letters[0].tenant, None);
        assert_eq!(w.put("a", "p").await, PutReply::Revived);
        assert_eq!(w.lane("p").await, "slow");
    });
}

/// On Redis the two often travel in one batch, whose answers are written at its end.
#[test]
fn f1_a_look_beside_a_claim_tells_the_lanes_as_they_were_before_it() {
    on_every_backend(async |w| {
        w.site("a").await;
        for n in 0..20 {
            w.put_with("a", wished(&n.to_string(), now())).await;
            w.pass(1_000);
            let (seen, lease) = tokio::join!(w.view("a"), w.take());
            let lanes: u64 = seen.download.lanes.values().sum();
            assert_eq!(lanes, seen.download.waiting, "{seen:?}");
            w.done(&lease).await;
        }
    });
}
