//! Workers that serve some lanes alone: they are given what is in these, and nothing else (N7).

use futures_util::future::{join, join_all};
use paced::internals::frontier::{Claim, QueueChange, Registration, Renamed, WorkScope};
use paced::internals::task::{
    FleetRules, LaneRule, LaneWish, Lease, Outcome, Put, Settled, Settlement, Stage,
};

use crate::world::{AHEAD, LEAD, World, ms, on_every_backend, page, path_of, request, shop, url};

/// Who serves some lanes alone.
const SOME: &str = "some";
const HOUR: i64 = 3_600_000;

fn into(lane: &str, site: &str, path: &str) -> Put {
    let wish = LaneWish { lane: Some(lane.to_owned()), ..LaneWish::default() };
    Put { wish, ..request(site, path) }
}

fn of_lanes(lanes: &[&str]) -> WorkScope {
    WorkScope::of_lanes(lanes.iter().map(|lane| (*lane).to_owned()))
}

fn at_once(shop: &mut Registration) {
    shop.settings.interval = 0;
}

impl World {
    async fn put_into(&self, lane: &str, site: &str, paths: &[&str]) {
        for path in paths {
            self.put_with(site, into(lane, site, path)).await;
        }
    }

    /// What who serves these lanes alone is granted.
    async fn grant_in(&self, lanes: &[&str], download: u32, parse: u32) -> Vec<Lease> {
        self.work_on(SOME, of_lanes(lanes)).await;
        self.grant_again(download, parse).await
    }

    async fn grant_again(&self, download: u32, parse: u32) -> Vec<Lease> {
        self.grant(Claim { owner: SOME.to_owned(), ..self.want(download, parse) }).await.leases
    }
}

fn paths(leases: &[Lease]) -> Vec<String> {
    let mut paths: Vec<String> = leases.iter().map(path_of).collect();
    paths.sort();
    paths
}

#[test]
fn n7_who_serves_some_lanes_is_given_what_is_in_them_and_nothing_else() {
    on_every_backend(async |w| {
        w.site_with("a", |a| (a.settings.interval, a.settings.parallel) = (0, 99)).await;
        w.put_into("general", "a", &["g1", "g2"]).await;
        w.put_into("slow", "a", &["s1", "s2"]).await;
        w.put_into("now", "a", &["n1"]).await;
        assert_eq!(paths(&w.grant_in(&["slow"], 9, 9).await), ["s1", "s2"]);
        assert!(w.grant_again(9, 9).await.is_empty());
        let first = w.grant_in(&["general", "now"], 1, 0).await;
        assert_eq!(paths(&first), ["n1"], "`now` goes before the others here too");
        assert_eq!(paths(&w.grant_again(9, 9).await), ["g1", "g2"]);
    });
}

#[test]
fn n7_what_is_put_later_is_found_whichever_site_it_is_of_and_whenever_that_is_registered() {
    on_every_backend(async |w| {
        w.site_with("a", at_once).await;
        w.put("a", "g1").await;
        assert!(w.grant_in(&["now"], 9, 9).await.is_empty());
        w.site_with("b", at_once).await;
        w.put("b", "g2").await;
        for site in ["a", "b"] {
            w.put_into("now", site, &[site]).await;
        }
        assert_eq!(paths(&w.grant_again(9, 9).await), ["a", "b"]);
        w.put_with("a", Put { wish: LaneWish::default(), ..into("now", "a", "g3") }).await;
        assert!(w.grant_again(9, 9).await.is_empty());
    });
}

#[test]
fn n7_i16_a_flood_of_other_sites_that_are_due_longer_keeps_no_page_from_who_serves_its_lane() {
    on_every_backend(async |w| {
        for n in 0..150 {
            let site = format!("s{n:03}");
            w.site_with(&site, at_once).await;
            w.put(&site, "flood").await;
        }
        w.work_on(SOME, of_lanes(&["slow"])).await;
        w.pass(60_000);
        w.work_on(SOME, of_lanes(&["slow"])).await;
        w.site_with("z", at_once).await;
        w.put_into("slow", "z", &["it"]).await;
        assert_eq!(paths(&w.grant_again(1, 0).await), ["it"]);
    });
}

#[test]
fn n7_l1_who_serves_some_lanes_comes_when_something_in_them_can_be_claimed() {
    on_every_backend(async |w| {
        w.site_with("a", at_once).await;
        w.put_into("general", "a", &["g1", "g2"]).await;
        w.fetched(&w.take().await).await;
        w.site_with("b", |b| b.settings.interval = 20_000).await;
        w.put_into("slow", "b", &["s1", "s2"]).await;
        assert_eq!(w.grant_in(&["slow"], 1, 0).await.len(), 1);
        let grant = w.grant(Claim { owner: SOME.to_owned(), ..w.want(1, 1) }).await;
        let then = LEAD + 20_000 - AHEAD / 2;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(then)), "a page and a parse of `a` wait");
    });
}

#[test]
fn n7_l1_nobody_comes_for_a_lane_whose_last_page_went_into_another_one_or_was_dropped() {
    on_every_backend(async |w| {
        w.site_with("a", at_once).await;
        w.put_into("general", "a", &["g"]).await;
        w.work_on(SOME, of_lanes(&["slow"])).await;
        let moved = QueueChange::Lane { from: "slow".to_owned(), to: "general".to_owned() };
        for (path, change) in [("s1", moved), ("s2", QueueChange::Drop)] {
            w.put_into("slow", "a", &[path]).await;
            w.frontier.requeue("a", vec![url("a", path)], change).await.expect("answers");
            let grant = w.grant(Claim { owner: SOME.to_owned(), ..w.want(1, 0) }).await;
            assert_eq!((grant.leases.len(), grant.next_in), (0, None), "{path}");
        }
    });
}

#[test]
fn n7_of_a_group_the_site_is_chosen_that_has_something_in_the_lane() {
    on_every_backend(async |w| {
        for (site, lane) in [("a", "general"), ("b", "slow"), ("c", "general"), ("d", "slow")] {
            let group = |shop: &mut Registration| shop.group = Some(("g".to_owned(), 1_000));
            w.site_with(site, group).await;
            w.put_into(lane, site, &[site]).await;
        }
        w.work_on(SOME, of_lanes(&["slow"])).await;
        let mut got = Vec::new();
        for _ in 0..4 {
            got.extend(paths(&w.grant_again(9, 0).await));
            w.pass(1_000);
            w.work_on(SOME, of_lanes(&["slow"])).await;
        }
        got.sort();
        assert_eq!(got, ["b", "d"], "each at the group's pace");
    });
}

#[test]
fn n7_i1_a_start_in_one_lane_moves_the_turn_of_its_group_in_the_others() {
    on_every_backend(async |w| {
        for (site, lane) in [("a", "general"), ("b", "slow")] {
            w.site_with(site, |shop| shop.group = Some(("g".to_owned(), 20_000))).await;
            w.put_into(lane, site, &["p"]).await;
        }
        w.work_on(SOME, of_lanes(&["slow"])).await;
        assert_eq!(w.take().await.site, "a");
        let grant = w.grant(Claim { owner: SOME.to_owned(), ..w.want(1, 0) }).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(LEAD + 20_000 - AHEAD / 2)));
    });
}

#[test]
fn n7_i11_a_block_moves_the_turn_of_a_site_in_each_of_its_lanes() {
    on_every_backend(async |w| {
        w.site_with("a", at_once).await;
        w.put_into("slow", "a", &["s"]).await;
        w.work_on(SOME, of_lanes(&["slow"])).await;
        w.frontier.block("a", ms(20_000), "HTTP 429").await.expect("answers");
        let grant = w.grant(Claim { owner: SOME.to_owned(), ..w.want(1, 0) }).await;
        assert_eq!((grant.leases.len(), grant.next_in), (0, Some(20_000)));
    });
}

#[test]
fn n7_of_a_group_a_site_that_waits_longer_itself_keeps_none_from_who_serves_their_lane() {
    on_every_backend(async |w| {
        for (site, interval) in [("a", 20_000), ("b", 1_000)] {
            w.site_with(site, |shop| {
                (shop.settings.interval, shop.settings.parallel) = (interval, 9);
                shop.group = Some(("g".to_owned(), 1_000));
            })
            .await;
            w.put_into("slow", site, &["1", "2"]).await;
        }
        w.work_on(SOME, of_lanes(&["slow"])).await;
        for site in ["a", "b", "b"] {
            let lease = w.grant_again(1, 0).await.pop().expect("one of them is due");
            assert_eq!(lease.site, site);
            w.pass(2_000);
        }
    });
}

#[test]
fn n7_i16_parses_of_other_lanes_keep_none_of_their_group_from_who_serves_its_lane() {
    on_every_backend(async |w| {
        for n in 0..71 {
            let (site, lane) = (format!("s{n:02}"), if n == 70 { "now" } else { "general" });
            let grouped = |shop: &mut Registration| {
                shop.settings.interval = 0;
                shop.group = Some(("g".to_owned(), 0));
            };
            w.site_with(&site, grouped).await;
            w.put_into(lane, &site, &["p"]).await;
            w.fetched(&w.take().await).await;
        }
        let parse = w.grant_in(&["now"], 0, 1).await.pop().expect("it waits");
        assert_eq!(parse.site, "s70");
    });
}

#[test]
fn n7_a_site_that_changes_its_group_or_its_name_is_found_where_it_is() {
    on_every_backend(async |w| {
        w.site_with("a", at_once).await;
        w.put_into("slow", "a", &["s1", "s2", "s3"]).await;
        w.work_on(SOME, of_lanes(&["slow"])).await;
        let lease = w.grant_again(1, 0).await.pop().expect("it waits");
        w.done(&lease).await;
        let grouped = Registration { group: Some(("g".to_owned(), 0)), ..shop("a") };
        w.frontier.register(grouped).await.expect("registered");
        w.pass(60_000);
        w.work_on(SOME, of_lanes(&["slow"])).await;
        let lease = w.grant_again(1, 0).await.pop().expect("it waits");
        w.done(&lease).await;
        w.frontier.rename("a", "b").await.expect("renamed");
        w.pass(60_000);
        w.work_on(SOME, of_lanes(&["slow"])).await;
        assert_eq!(w.grant_again(1, 0).await.pop().map(|lease| lease.site).as_deref(), Some("b"));
    });
}

#[test]
fn n7_sites_that_are_renamed_while_others_are_listed_are_found_too() {
    on_every_backend(async |w| {
        for n in 0..700 {
            w.site_with(&format!("s{n:03}"), at_once).await;
        }
        let last = 640..700;
        for n in last.clone() {
            w.put_into("slow", &format!("s{n}"), &["it"]).await;
        }
        // They are posted between the portions of those that are listed.
        let renames = last.map(async |n| w.frontier.rename(&format!("s{n}"), &format!("a{n}")).await);
        let ((), renamed) = join(w.work_on(SOME, of_lanes(&["slow"])), join_all(renames)).await;
        assert!(renamed.into_iter().all(|reply| reply.expect("answers") == Renamed::Done));
        assert_eq!(w.grant_again(60, 0).await.len(), 60);
    });
}

#[test]
fn n7_parses_are_served_by_lane_too() {
    on_every_backend(async |w| {
        w.site_with("a", at_once).await;
        w.put_into("general", "a", &["g"]).await;
        w.fetched(&w.take().await).await;
        w.put_into("now", "a", &["n"]).await;
        w.fetched(&w.take().await).await;
        let parses = w.grant_in(&["now"], 0, 9).await;
        assert_eq!(
            parses.iter().map(|lease| (lease.stage, path_of(lease))).collect::<Vec<_>>(),
            [(Stage::Parse, "n".to_owned())]
        );
        assert_eq!(paths(&w.grant_in(&["general"], 0, 9).await), ["g"]);
    });
}

#[test]
fn n7_the_parse_of_a_download_is_not_taken_along_into_a_lane_that_is_not_served() {
    on_every_backend(async |w| {
        w.site_with("a", |a| (a.settings.interval, a.settings.tenant) = (0, Some("acme".to_owned()))).await;
        let rule = |stage| LaneRule { lane: "slow".to_owned(), threshold: 1, per: HOUR, stage: Some(stage) };
        let rules = FleetRules {
            lanes: [("slow".to_owned(), 1)].into(),
            fairness: vec![rule(Stage::Parse)],
            ..FleetRules::default()
        };
        w.frontier.agree(rules, 1).await.expect("agreed");
        let mut settled = Vec::new();
        for path in ["p1", "p2"] {
            w.put("a", path).await;
            let lease = w.grant_in(&["general"], 1, 0).await.pop().expect("it waits");
            let stored = Some(page(&format!("warc/{}", lease.fence), lease.granted_at));
            let outcome = Outcome::Done { stored, recrawl: None };
            let settlement = Settlement { parse: Some(w.token()), ..Settlement::of(lease, outcome) };
            settled
                .push(w.frontier.settle(SOME, w.token(), vec![settlement]).await.expect("settled").remove(0));
        }
        assert!(matches!(settled[0], Settled::Leased(_)), "{settled:?}");
        assert_eq!(settled[1], Settled::Kept, "the second one is of the lane `slow`");
        assert_eq!(w.place_in("a", Stage::Parse, "p2").await, "waiting");
        assert_eq!(paths(&w.grant_in(&["slow"], 0, 9).await), ["p2"]);
    });
}

#[test]
fn n7_who_serves_some_lanes_says_so_and_shares_no_slots_with_those_who_serve_all() {
    on_every_backend(async |w| {
        w.site("a").await;
        let member = w.frontier.join(of_lanes(&["now"])).await.expect("joined");
        assert_eq!(w.frontier.beat(&member, true).await.expect("heard"), 0);
        let owners = w.frontier.owners().await.expect("answers");
        let own = owners.iter().find(|owner| owner.name == member.name).expect("it is there");
        assert_eq!(own.scope, of_lanes(&["now"]));
        w.work_on(&member.name, WorkScope::All).await;
        w.put_into("slow", "a", &["s"]).await;
        let claim = Claim { owner: member.name.clone(), ..w.want(1, 0) };
        assert_eq!(paths(&w.grant(claim).await.leases), ["s"], "whoever serves all again is given all");
    });
}
