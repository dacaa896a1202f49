//! Groups: several sites, one pace. Hosts: one site each.

use paced::internals::frontier::{Registered, Registration, Tuning};
use paced::internals::task::Outcome;

use crate::world::{World, at, ms, on_every_backend};

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
        for _ in 0..3_000 {
            if w.claim().await.is_some() {
                starts.push(w.now());
            }
            w.pass(1);
        }
        assert_eq!(starts, [0, 1_000, 2_000]);
        assert_eq!(w.view("a").await.unit, "g");
    });
}

#[test]
fn a_group_waits_the_larger_of_its_own_interval_and_that_of_the_start_s_site() {
    on_every_backend(async |w| {
        w.site_with("quick", |shop| {
            shop.group = Some(("g".to_owned(), 500));
            shop.settings.interval = 100;
        })
        .await;
        w.site_with("slow", |shop| {
            shop.group = Some(("g".to_owned(), 500));
            shop.settings.interval = 3_000;
        })
        .await;
        for (site, wait) in [("quick", 500), ("slow", 3_000), ("quick", 500)] {
            w.put(site, "p").await;
            let lease = w.take().await;
            assert_eq!((lease.site.as_str(), lease.departure.wait()), (site, ms(wait)));
            assert_eq!(w.view("quick").await.due, at(w.now() + wait));
            w.done(&lease).await;
            w.pass(wait);
        }
    });
}

#[test]
fn l6_a_group_s_interval_set_while_it_runs_is_in_force_at_once_and_for_outsiders() {
    on_every_backend(async |w| {
        w.site_with("a", in_group("g", 0)).await;
        w.put_many("a", 3).await;
        w.take().await;
        w.site_with("a", in_group("g", 9_000)).await;
        assert_eq!((w.view("a").await.due, w.mutex_left("g").await), (at(9_000), Some(9_000)));
        w.pass(8_999);
        assert_eq!(w.claim().await, None);
        w.site_with("a", in_group("g", 0)).await;
        w.take().await;
    });
}

#[test]
fn l6_tuning_the_site_of_the_last_start_moves_the_whole_group() {
    on_every_backend(async |w| {
        for site in ["a", "b"] {
            w.site_with(site, in_group("g", 0)).await;
            w.put_many(site, 2).await;
        }
        let lease = w.take().await;
        assert_eq!(lease.site, "a");
        w.tune("a", Tuning::Interval(Some(4_000))).await;
        w.pass(3_999);
        assert_eq!(w.claim().await, None);
        w.tune("b", Tuning::Interval(Some(60_000))).await;
        w.pass(1);
        w.take().await;
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
        w.tune("b", Tuning::Paused(Some("lunch".to_owned()))).await;
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
fn a_changed_group_is_taken_only_with_nothing_in_flight() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.put_many("a", 2).await;
        let lease = w.take().await;
        let refused = w.register("a", in_group("g", 0)).await;
        assert!(matches!(refused, Registered::Refused(why) if why.contains("in flight")));
        assert_eq!(w.view("a").await.unit, "a", "the old rules stay in force");
        w.done(&lease).await;
        assert_eq!(w.register("a", in_group("g", 0)).await, Registered::Version(1), "the text is the same");
        assert_eq!(w.view("a").await.unit, "g");
    });
}

#[test]
fn i1_a_changed_group_inherits_the_later_last_start_and_block() {
    on_every_backend(async |w| {
        w.site("a").await;
        w.site_with("b", in_group("g", 0)).await;
        w.put_many("a", 2).await;
        w.put_many("b", 2).await;
        let both = w.grant(w.want(2, 0)).await.leases;
        w.pass(1_000);
        let mut last = w.take().await;
        while last.site != "a" {
            w.done(&last).await;
            last = w.take().await;
        }
        for lease in both.iter().filter(|lease| lease.site == "a").chain([&last]) {
            let block = Some((ms(5_000), "429".to_owned()));
            w.settle_with(lease, Outcome::Done { stored: None, recrawl: None }, block).await;
        }
        w.site_with("a", in_group("g", 0)).await;
        let view = w.view("b").await;
        assert_eq!((view.last_start, view.blocked_until), (Some(at(1_000)), Some(at(6_000))));
        assert_eq!(w.mutex_left("g").await, Some(1_000), "outsiders of the new unit wait as well");
        assert_eq!(w.claim().await, None);
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

#[test]
fn a_version_counts_the_changes_of_a_site_s_file() {
    on_every_backend(async |w| {
        assert_eq!(w.register("a", |_| {}).await, Registered::Version(1));
        assert_eq!(w.register("a", |_| {}).await, Registered::Version(1));
        assert_eq!(w.register("a", |a| a.text = "new".to_owned()).await, Registered::Version(2));
        assert_eq!(w.frontier.text("a").await.expect("answers").as_deref(), Some("new"));
        w.put("a", "p").await;
        assert_eq!(w.take().await.version, 2);
    });
}
