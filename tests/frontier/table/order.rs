//! Which task goes first.

use paced::internals::frontier::Claim;
use paced::internals::task::{FleetRules, Priority, Put, UnitPick};

use crate::world::{at, on_every_backend, request, urgent};

const CELLS: [(&str, u16); 9] = [
    ("operator:high", 120),
    ("user:high", 140),
    ("system:high", 160),
    ("operator", 220),
    ("user", 240),
    ("system", 260),
    ("operator:low", 320),
    ("user:low", 340),
    ("system:low", 360),
];

#[test]
fn c1_c2_c19_twenty_seven_tasks_of_nine_cells_come_in_table_order_and_fifo_within_a_cell() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        let mut expected = Vec::new();
        for (name, _) in CELLS {
            expected.extend((0..3).map(|i| format!("{}-{i}", name.replace(':', "-"))));
        }
        for i in 0..3 {
            for (name, value) in CELLS.iter().rev() {
                let path = format!("{}-{i}", name.replace(':', "-"));
                w.put_with("a", urgent("a", &path, *value)).await;
            }
        }
        assert_eq!(w.order(0).await, expected);
    });
}

#[test]
fn c1_i8_equal_priorities_go_in_the_order_of_their_puts_not_of_their_names() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        let names = ["z", "m", "10", "9", "a", "~"];
        for name in names {
            w.put("a", name).await;
        }
        assert_eq!(w.order(0).await, names);
    });
}

#[test]
fn c1_a_priority_outside_the_table_is_the_nearest_in_it_and_keeps_the_order_of_puts() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        for (path, priority) in [("z", u16::MAX), ("y", 40_000), ("x", u16::MAX), ("b", 362), ("a", 361)] {
            w.put_with("a", urgent("a", path, priority)).await;
        }
        for (path, priority) in [("n", 118), ("m", 1)] {
            w.put_with("a", urgent("a", path, priority)).await;
        }
        assert_eq!(w.order(0).await, ["n", "m", "a", "z", "y", "x", "b"]);
    });
}

#[test]
fn c3_a_fine_step_never_crosses_into_the_next_cell() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        let texts = ["user+2", "user-2", "user", "system-2", "operator+2", "user+1"];
        for text in texts {
            let priority: Priority = text.parse().expect("a priority");
            w.put_with("a", Put { priority, ..request("a", text) }).await;
        }
        let expected = ["operator+2", "user-2", "user", "user+1", "user+2", "system-2"];
        assert_eq!(w.order(0).await, expected);
    });
}

#[test]
fn c4_l6_an_operator_s_page_overtakes_a_backlog_at_the_next_start() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2_000).await;
        let lease = w.take().await;
        w.done(&lease).await;
        w.put_with("a", Put { priority: Priority::OPERATOR, ..request("a", "now") }).await;
        w.pass(1_000);
        assert_eq!(w.take().await.url.url().path(), "/now");
    });
}

#[test]
fn c9_a_page_put_for_later_has_its_turn_by_its_put_once_its_time_has_come() {
    on_every_backend(async |w| {
        w.site_with("a", |a| a.settings.interval = 0).await;
        w.put_with("a", Put { at: Some(at(1_000)), ..request("a", "first") }).await;
        w.put("a", "second").await;
        w.pass(1_000);
        assert_eq!(w.order(0).await, ["first", "second"]);
    });
}

#[test]
fn v14_which_unit_is_served_follows_the_dice_among_the_quarter_that_is_due_longest() {
    on_every_backend(async |w| {
        for site in 0..16 {
            let site = format!("s{site:02}");
            w.site(&site).await;
            w.put(&site, "1").await;
        }
        let mut served = Vec::new();
        for dice in [2, 4, 1, 7] {
            let grant = w.grant(Claim { dice: vec![dice], ..w.want(1, 0) }).await;
            served.push(grant.leases[0].site.clone());
        }
        assert_eq!(served, ["s02", "s01", "s03", "s04"], "of 16, 15, 14 and 13: among 4, 3, 3 and 3");
        let more = w.grant(Claim { dice: vec![3, 2, 1, 0], ..w.want(5, 0) }).await;
        let sites: Vec<_> = more.leases.iter().map(|lease| lease.site.as_str()).collect();
        assert_eq!(sites, ["s00", "s05", "s07", "s06", "s09"], "of 12 among 3, then among 2 of 11 to 8");
    });
}

#[test]
fn v14_of_fewer_than_eight_due_units_the_one_due_longest_is_served() {
    on_every_backend(async |w| {
        for site in 0..7 {
            let site = format!("s{}", 6 - site);
            w.site(&site).await;
            w.put(&site, "1").await;
            w.put(&site, "2").await;
        }
        let first = w.grant(Claim { dice: vec![5, 3, 6], ..w.want(2, 0) }).await;
        let sites: Vec<_> = first.leases.iter().map(|lease| lease.site.as_str()).collect();
        assert_eq!(sites, ["s0", "s1"], "all due since the same time: by name");
        w.pass(1_000);
        let second = w.grant(Claim { dice: vec![5, 3, 6], ..w.want(7, 0) }).await;
        let sites: Vec<_> = second.leases.iter().map(|lease| lease.site.as_str()).collect();
        assert_eq!(sites, ["s2", "s3", "s4", "s5", "s6", "s0", "s1"]);
    });
}

#[test]
fn v14_l2_where_the_earliest_is_picked_the_one_due_longest_is_served_whatever_the_dice() {
    on_every_backend(async |w| {
        for site in 0..16 {
            let site = format!("s{site:02}");
            w.site(&site).await;
            w.put(&site, "1").await;
        }
        let random = w.grant(Claim { dice: vec![3], ..w.want(1, 0) }).await;
        assert_eq!(random.leases[0].site, "s03");
        let rules = FleetRules { pick: UnitPick::Earliest, ..FleetRules::default() };
        w.frontier.agree(rules, 1).await.expect("agreed");
        let more = w.grant(Claim { dice: vec![3, 2, 1, 7], ..w.want(4, 0) }).await;
        let sites: Vec<_> = more.leases.iter().map(|lease| lease.site.as_str()).collect();
        assert_eq!(sites, ["s00", "s01", "s02", "s04"], "in force at the next claim");
        w.frontier.agree(FleetRules::default(), 2).await.expect("agreed");
        let random = w.grant(Claim { dice: vec![1], ..w.want(1, 0) }).await;
        assert_eq!(random.leases[0].site, "s06", "of 11 among 2");
    });
}

#[test]
fn v14_parses_are_picked_in_the_same_way() {
    on_every_backend(async |w| {
        for site in 0..9 {
            let site = format!("s{site}");
            w.site(&site).await;
            w.put(&site, "1").await;
        }
        for lease in w.grant(w.want(9, 0)).await.leases {
            w.fetched(&lease).await;
        }
        let third = Claim { dice: vec![1], ..w.want(0, 1) };
        assert_eq!(w.grant(third).await.leases[0].site, "s1");
        let rules = FleetRules { pick: UnitPick::Earliest, ..FleetRules::default() };
        w.frontier.agree(rules, 1).await.expect("agreed");
        let third = Claim { dice: vec![1], ..w.want(0, 1) };
        assert_eq!(w.grant(third).await.leases[0].site, "s0");
    });
}

#[test]
fn v19_a_site_that_is_slow_or_full_keeps_no_other_site_waiting() {
    on_every_backend(async |w| {
        w.site_with("slow", |slow| slow.settings.parallel = 1).await;
        w.site("fast").await;
        w.put_many("slow", 5).await;
        w.put_many("fast", 5).await;
        let both = w.grant(w.want(2, 0)).await;
        assert_eq!(both.leases.len(), 2);
        for _ in 0..4 {
            w.pass(1_000);
            let lease = w.take().await;
            assert_eq!(lease.site, "fast");
            w.done(&lease).await;
        }
    });
}
