//! Groups: several sites, one pace. Hosts: one site each.

use paced::internals::frontier::{Forgotten, LockReply, Registered, Registration, Renamed, Tuning};
use paced::internals::task::{Failure, Lease, Outcome, Put, RobotsAccess, RobotsRecord, Settlement};

use crate::world::{World, at, ms, on_every_backend, request, starts_at};

fn in_group(name: &str, interval: i64) -> impl FnOnce(&mut Registration) {
    let group = Some((name.to_owned(), interval));
    move |shop| shop.group = group
}

#[test]
fn i1_sites_of_a_group_share_one_pace() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, in_group("g", 0)).await;
            w.put_many(site, 2).await;
        }
        let mut starts = Vec::new();
        for _ in 0..2_960 {
            if let Some(lease) = w.claim().await {
                starts.push((w.now(), starts_at(&lease)));
            }
            w.pass(1);
        }
        assert_eq!(starts, [(0, 10), (960, 1_010), (1_960, 2_010)]);
        assert_eq!(w.view("a").await.unit, "g");
    });
}

#[test]
fn i1_a_group_waits_its_own_interval_and_each_of_its_sites_its_own() {
    on_every_backend(async |w| {
        for (site, interval) in [("quick", 100), ("slow", 1_200)] {
            w.site_with(site, |shop| {
                shop.group = Some(("g".to_owned(), 500));
                shop.settings.interval = interval;
            })
            .await;
            w.put_many(site, 5).await;
        }
        let mut starts = Vec::new();
        for _ in 0..2_500 {
            if let Some(lease) = w.claim().await {
                let waits = (lease.departure.unit, lease.departure.site);
                assert_eq!(waits, (500, if lease.site == "slow" { 1_200 } else { 100 }));
                starts.push((lease.site.clone(), starts_at(&lease)));
                w.done(&lease).await;
            }
            w.pass(1);
        }
        // A start of the slow one may be late on the wire by a tenth of its own wait: the next one reckons with it.
        let late = 120 - 50;
        let expected = [
            ("quick", 10),
            ("slow", 510),
            ("quick", 1_010 + late),
            ("quick", 1_510 + late),
            ("slow", 2_010 + late),
        ];
        assert_eq!(starts.iter().map(|(site, at)| (&**site, *at)).collect::<Vec<_>>(), expected);
    });
}

#[test]
fn a_group_without_an_interval_waits_the_longest_that_its_sites_files_name() {
    on_every_backend(async |w| {
        for (site, interval) in [("a", 1_000), ("b", 6_000)] {
            w.site_with(site, |shop| {
                shop.group = Some(("g".to_owned(), 0));
                shop.settings.interval = interval;
            })
            .await;
        }
        w.put_many("a", 4).await;
        let is_set = w.frontier.tune("b", Tuning::Interval(Some(500))).await.expect("answers");
        assert!(!is_set, "its group waits for longer");
        w.start().await;
        w.tune("b", Tuning::Interval(Some(60_000))).await;
        w.next_start_in(6_000).await;
        w.site_with("b", in_group("g", 0)).await;
        w.next_start_in(1_000 + 250 - 100).await;
    });
}

#[test]
fn l6_a_group_s_interval_set_while_it_runs_is_in_force_at_once_and_for_outsiders() {
    on_every_backend(async |w| {
        w.site_with("a", in_group("g", 0)).await;
        w.put_many("a", 3).await;
        w.start().await;
        w.site_with("a", in_group("g", 9_000)).await;
        assert_eq!((w.view("a").await.due, w.mutex_left("g").await), (at(9_010), Some(9_000)));
        w.pass(8_949);
        assert_eq!(w.claim().await, None);
        w.site_with("a", in_group("g", 0)).await;
        w.take().await;
    });
}

#[test]
fn l6_tuning_a_site_of_a_group_moves_that_site_alone() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, in_group("g", 0)).await;
            w.put_many(site, 2).await;
        }
        let first = w.start().await;
        assert_eq!(first.site, "a");
        w.done(&first).await;
        w.tune("a", Tuning::Interval(Some(4_000))).await;
        assert_eq!(w.mutex_left("g").await, Some(1_000));
        assert_eq!(w.next_start_in(1_000).await.site, "b");
        w.tune("b", Tuning::Interval(Some(60_000))).await;
        let again = w.next_start_in(3_000).await;
        assert_eq!((again.site.as_str(), starts_at(&again)), ("a", 4_010));
        w.done(&again).await;
        assert_eq!(w.next_start_in(57_000).await.site, "b", "60 s after its own");
    });
}

#[test]
fn parallel_and_pause_are_the_site_s_and_a_block_is_the_group_s() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, |shop| {
                shop.group = Some(("g".to_owned(), 0));
                shop.settings.parallel = 1;
            })
            .await;
            w.put_many(site, 3).await;
        }
        let a = w.take().await;
        w.pass(1_000);
        let b = w.take().await;
        assert_eq!((a.site.as_str(), b.site.as_str()), ("a", "b"));
        w.done(&b).await;
        w.pass(1_000);
        w.tune("b", Tuning::pause("lunch")).await;
        assert_eq!(w.claim().await, None, "one is full, the other paused");
        w.tune("b", Tuning::Paused(None)).await;
        let block = Some((ms(9_000), "429".to_owned()));
        w.settle_with(&a, Outcome::Done { stored: None, recrawl: None }, block).await;
        assert_eq!(w.claim().await, None);
        assert_eq!(w.view("b").await.blocked_until, Some(at(11_000)));
        w.pass(9_000);
        w.take().await;
    });
}

#[test]
fn w6_a_site_where_nobody_answers_is_held_back_alone_and_asked_slowly_after_it() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, in_group("g", 0)).await;
            w.put_many(site, 9).await;
        }
        let away = async |lease: &Lease, wait: i64| {
            let outcome = Outcome::Retry { after: ms(0), why: Failure::new("nobody there") };
            let away = Some((ms(wait), "nobody there".to_owned()));
            let settlement = Settlement { away, ..Settlement::of(lease.clone(), outcome) };
            w.frontier.settle("one", w.token(), vec![settlement]).await.expect("answers");
        };
        let take_of = async |site: &str| {
            let mut lease = w.take().await;
            while lease.site != site {
                w.done(&lease).await;
                w.pass(1_000);
                lease = w.take().await;
            }
            lease
        };
        let one = take_of("a").await;
        let since = w.view("a").await.at;
        away(&one, 60_000).await;
        let until = Some(since.plus(ms(60_000)));
        let view = w.view("a").await;
        assert_eq!((view.blocked_until, view.blocked_why.as_deref()), (until, Some("nobody there")));
        assert_eq!((w.view("b").await.blocked_until, w.view("b").await.interval), (None, 1_000));
        for _ in 0..4 {
            w.pass(1_000);
            let other = w.take().await;
            assert_eq!(other.site, "b", "its neighbour goes on");
            w.done(&other).await;
        }
        w.pass(60_000);
        let again = take_of("a").await;
        assert_eq!(w.view("a").await.blocked_until, None);
        assert_eq!((again.departure.unit, again.departure.site), (1_000, 4_000), "slowly at first");
    });
}

#[test]
fn a_changed_group_is_taken_only_with_nothing_in_flight() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2).await;
        let lease = w.take().await;
        let refused = w.register("a", in_group("g", 0)).await;
        assert!(matches!(refused, Registered::Refused(why) if why.contains("in flight")));
        assert_eq!(w.view("a").await.unit, "a", "the old rules stay in force");
        w.done(&lease).await;
        assert_eq!(version(&w.register("a", in_group("g", 0)).await), w.view("a").await.version);
        assert_eq!(w.view("a").await.unit, "g");
    });
}

#[test]
fn i1_a_site_brings_its_last_start_to_a_new_group_which_waits_for_its_old_unit_and_takes_the_later_block() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.site_with("b", in_group("g", 0)).await;
        w.put_many("a", 2).await;
        w.put_many("b", 2).await;
        let both = w.grant(w.want(2, 0)).await.leases;
        w.pass(960);
        let mut last = w.take().await;
        while last.site != "a" {
            w.done(&last).await;
            last = w.take().await;
        }
        w.depart(&last);
        for lease in both.iter().filter(|lease| lease.site == "a").chain([&last]) {
            let block = Some((ms(5_000), "429".to_owned()));
            w.settle_with(lease, Outcome::Done { stored: None, recrawl: None }, block).await;
        }
        w.site_with("a", in_group("g", 0)).await;
        let view = w.view("b").await;
        assert_eq!((view.last_start, view.blocked_until), (Some(at(10)), Some(at(6_010))));
        assert_eq!(w.outsider_locks("g", 500).await, LockReply::Held(1_000), "outsiders wait as well");
        assert_eq!(w.claim().await, None);
        w.next_start_in(5_000).await;
    });
}

#[test]
fn a_host_belongs_to_one_site_unless_both_are_of_one_group() {
    on_every_backend(async |w| {
        let shared = |name: &str, group: Option<&str>| {
            let name = name.to_owned();
            let group = group.map(|group| (group.to_owned(), 0));
            move |shop: &mut Registration| {
                shop.hosts = vec!["shared.example".to_owned(), format!("{name}.example")];
                shop.group = group;
            }
        };
        w.site_with("a", shared("a", None)).await;
        let refused = w.register("b", shared("b", None)).await;
        assert!(
            matches!(&refused, Registered::Refused(why) if why.contains("shared.example") && why.contains("`a`")),
            "{refused:?}"
        );
        assert!(!w.frontier.sites().await.expect("answers").contains(&"b".to_owned()));
        w.site_with("a", shared("a", Some("g"))).await;
        w.site_with("b", shared("b", Some("g"))).await;
        let host = paced::internals::canonical_url::Host::parse("shared.example").expect("a host");
        assert_eq!(w.frontier.site_of(&host).await.expect("answers").as_deref(), Some("a"));
        let alone = w.register("a", shared("a", None)).await;
        assert!(matches!(alone, Registered::Refused(_)), "b would go on at a pace of its own: {alone:?}");
        w.site_with("a", |shop| shop.group = Some(("g".to_owned(), 0))).await;
        assert_eq!(w.frontier.site_of(&host).await.expect("answers").as_deref(), Some("b"), "a let it go");
        let refused = w.register("c", shared("c", None)).await;
        assert!(matches!(refused, Registered::Refused(why) if why.contains("`b`")));
    });
}

/// A site with hosts of its choice.
fn with_hosts(hosts: &[&str], group: Option<&str>) -> impl FnOnce(&mut Registration) {
    let hosts = hosts.iter().map(|host| format!("{host}.example")).collect();
    let group = group.map(|group| (group.to_owned(), 0));
    move |site| (site.hosts, site.group) = (hosts, group)
}

async fn site_of(w: &World, host: &str) -> Option<String> {
    let host = paced::internals::canonical_url::Host::parse(&format!("{host}.example")).expect("a host");
    w.frontier.site_of(&host).await.expect("answers")
}

fn refuses(answer: &Registered, because: &str) -> bool {
    matches!(answer, Registered::Refused(why) if why.contains(because))
}

#[test]
fn i1_a_site_whose_move_to_a_group_was_refused_shares_its_hosts_with_nobody_of_that_group() {
    on_every_backend(async |w| {
        w.site_with("a", with_hosts(&["shop"], None)).await;
        w.put("a", "p").await;
        let lease = w.take().await;
        let moved = w.register("a", with_hosts(&["shop"], Some("g"))).await;
        assert!(refuses(&moved, "in flight"), "{moved:?}");
        let other = w.register("b", with_hosts(&["shop"], Some("g"))).await;
        assert!(refuses(&other, "`a`"), "shop.example would have two paces: {other:?}");
        assert_eq!(w.frontier.sites().await.expect("answers"), ["a"]);
        w.done(&lease).await;
        w.site_with("a", with_hosts(&["shop"], Some("g"))).await;
        w.site_with("b", with_hosts(&["shop"], Some("g"))).await;
    });
}

#[test]
fn i1_a_site_whose_move_out_of_its_group_was_refused_still_shares_its_hosts_with_the_group() {
    on_every_backend(async |w| {
        w.site_with("a", with_hosts(&["shop"], Some("g"))).await;
        w.put("a", "p").await;
        w.take().await;
        let moved = w.register("a", with_hosts(&["shop"], Some("h"))).await;
        assert!(refuses(&moved, "in flight"), "{moved:?}");
        let other = w.register("b", with_hosts(&["shop"], Some("h"))).await;
        assert!(refuses(&other, "`a`"), "{other:?}");
        w.site_with("b", with_hosts(&["shop"], Some("g"))).await;
    });
}

#[test]
fn a_refused_file_neither_frees_a_host_nor_takes_one() {
    on_every_backend(async |w| {
        w.site_with("a", with_hosts(&["kept", "dropped"], None)).await;
        w.put("a", "p").await;
        let lease = w.take().await;
        let moved = w.register("a", with_hosts(&["kept", "new"], Some("g"))).await;
        assert!(refuses(&moved, "in flight"), "{moved:?}");
        assert_eq!(site_of(w, "dropped").await.as_deref(), Some("a"), "it is crawled still");
        assert_eq!(site_of(w, "new").await, None);
        let other = w.register("b", with_hosts(&["dropped"], None)).await;
        assert!(refuses(&other, "`a`"), "{other:?}");
        w.site_with("c", with_hosts(&["new"], None)).await;
        w.done(&lease).await;
        w.site_with("a", with_hosts(&["kept"], Some("g"))).await;
        w.site_with("b", with_hosts(&["dropped"], None)).await;
    });
}

fn version(answer: &Registered) -> i64 {
    let Registered::Version(version) = answer else { panic!("{answer:?}") };
    *version
}

#[test]
fn a_version_rises_with_each_change_of_a_site_s_file() {
    on_every_backend(async |w| {
        let first = version(&w.register("a", |_| {}).await);
        assert_eq!(version(&w.register("a", |_| {}).await), first);
        let second = version(&w.register("a", |a| a.text = "new".to_owned()).await);
        assert_eq!(second, first + 1, "in the same ms");
        w.pass(1_000);
        assert_eq!(version(&w.register("a", |a| a.text = "new".to_owned()).await), second);
        let third = version(&w.register("a", |a| a.settings.parallel = 3).await);
        assert!(third > second, "{third} after {second}");
        w.put("a", "p").await;
        assert_eq!(w.take().await.version, third);
    });
}

#[test]
fn a_site_that_is_forgotten_and_registered_again_gets_a_version_above_all_that_it_had() {
    on_every_backend(async |w| {
        let before = version(&w.register("a", |_| {}).await);
        let before = before.max(version(&w.register("a", |a| a.text = "new".to_owned()).await));
        w.pass(60_000);
        assert_eq!(w.frontier.forget("a").await.expect("answers"), Forgotten::Wholly);
        let after = version(&w.register("a", |a| a.text = "another".to_owned()).await);
        assert!(after > before, "{after} after {before}");
        w.put("a", "p").await;
        assert_eq!(w.take().await.version, after);
    });
}

#[test]
fn versions_of_a_name_rise_even_where_all_of_it_happens_within_one_ms() {
    on_every_backend(async |w| {
        let mut last = 0;
        let mut rises = |version: i64| {
            assert!(version > last, "{version} after {last}");
            last = version;
        };
        for text in ["first", "second", "third"] {
            rises(version(&w.register("a", |a| a.text = format!("{text}, never changed")).await));
            assert_eq!(w.frontier.forget("a").await.expect("answers"), Forgotten::Wholly);
            rises(version(&w.register("a", |a| a.text = text.to_owned()).await));
            rises(version(&w.register("a", |a| a.text = format!("{text}, changed")).await));
            assert_eq!(w.frontier.forget("a").await.expect("answers"), Forgotten::Wholly);
        }
        w.site("b").await;
        assert_eq!(w.frontier.rename("b", "a").await.expect("answers"), Renamed::Done);
        rises(w.view("a").await.version);
        assert_eq!(w.frontier.rename("a", "c").await.expect("answers"), Renamed::Done);
        rises(version(&w.register("a", |_| {}).await));
    });
}

#[test]
fn a_site_gets_a_version_with_its_name_above_all_that_another_of_that_name_had() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.pass(60_000);
        w.site("b").await;
        let before = version(&w.register("b", |b| b.text = "new".to_owned()).await);
        w.pass(60_000);
        assert_eq!(w.frontier.rename("b", "c").await.expect("answers"), Renamed::Done);
        assert_eq!(w.frontier.rename("a", "b").await.expect("answers"), Renamed::Done);
        let after = w.view("b").await.version;
        assert!(after > before, "{after} after {before}");
    });
}

#[test]
fn i17_a_unit_that_has_no_site_any_more_is_kept_for_a_day_and_then_goes() {
    const DAY: i64 = 86_400_000;
    on_every_backend(async |w| {
        let join = async |group: Option<&str>| {
            w.site_with("a", |shop| shop.group = group.map(|name| (format!("group:{name}"), 1_000))).await;
        };
        w.site("z").await;
        for day in 0..5 {
            join(Some(&day.to_string())).await;
            w.site("b").await;
            assert_eq!(w.frontier.rename("b", "c").await.expect("answers"), Renamed::Done);
            assert_eq!(w.frontier.forget("c").await.expect("answers"), Forgotten::Wholly);
            w.pass(DAY / 2);
            join(None).await;
            w.pass(DAY / 2 + 1);
        }
        // Whatever became idle in the last day and that of `z`, and the site's own.
        if let Some(units) = w.units_kept() {
            assert!(units <= 6, "{units}");
        }
    });
}

#[test]
fn i17_a_host_that_no_site_of_a_group_has_any_more_asks_nothing_of_its_pace() {
    on_every_backend(async |w| {
        let member = async |name: &str, shares: bool, group: &str| {
            w.site_with(name, |shop| {
                shop.settings.robots = true;
                shop.group = Some((group.to_owned(), 1_000));
                shop.hosts.extend(shares.then(|| "shared.example".to_owned()));
            })
            .await;
        };
        let page = |path: &str| Put {
            url: format!("https://shared.example/{path}").parse().expect("a URL"),
            ..request("a", "")
        };
        for leaves in [false, true] {
            for name in ["a", "b"] {
                member(name, true, "group:g").await;
                w.put_with(name, page(name)).await;
            }
            let errand = w.take().await;
            let record =
                RobotsRecord { crawl_delay: Some(ms(7_000)), ..RobotsRecord::unreachable("", ms(3_600_000)) };
            let record = RobotsRecord { access: RobotsAccess::Absent, ..record };
            w.settle(&errand, Outcome::Robots(record)).await;
            for _ in 0..2 {
                w.pass(7_000);
                let lease = w.take().await;
                w.done(&lease).await;
            }
            assert_eq!(w.view("b").await.interval, 7_000);
            // Both have it no more: its file says so, or it left the group.
            member("a", false, if leaves { "group:h" } else { "group:g" }).await;
            member("b", false, "group:g").await;
            assert_eq!(w.view("b").await.interval, 1_000);
            w.pass(7_000);
        }
    });
}

#[test]
fn i16_a_start_of_a_huge_group_is_random_among_the_64_sites_that_are_ready_longest() {
    on_every_backend(async |w| {
        for site in 0..70 {
            let name = format!("s{site:02}");
            w.site_with(&name, |shop| {
                shop.group = Some(("g".to_owned(), 0));
                shop.settings.interval = 0;
            })
            .await;
            w.put_many(&name, 2).await;
        }
        for (nth, site) in [(63, "s63"), (64, "s00"), (0, "s01"), (63, "s66")] {
            let claim = paced::internals::frontier::Claim { dice: vec![64 * nth], ..w.want(1, 0) };
            assert_eq!(w.grant(claim).await.leases[0].site, site);
            w.pass(1);
        }
    });
}
