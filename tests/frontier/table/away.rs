//! Hosts that can't be reached, beside others: one that is dropped, one with a huge backlog, one that several sites share.

use paced::internals::frontier::Registration;
use paced::internals::task::{Exclusion, Put, RobotsAccess};

use crate::world::{World, on_every_backend, path_of, request};

const HOUR: i64 = 3_600_000;

fn unreachable() -> RobotsAccess {
    RobotsAccess::Unreachable("503".to_owned())
}

fn obeying(shop: &mut Registration) {
    shop.settings.robots = true;
}

/// The same by another text.
fn renewed(shop: &mut Registration) {
    obeying(shop);
    "renewed".clone_into(&mut shop.text);
}

/// The same with a second host.
fn of_two_hosts(shop: &mut Registration) {
    obeying(shop);
    shop.hosts.push("other.example".to_owned());
}

/// Pages of the second host.
async fn put_at_other(w: &World, site: &str, count: usize) {
    let url = |i| format!("https://other.example/{i:05}").parse().expect("a URL");
    let puts = (0..count).map(|i| Put { url: url(i), ..request(site, "") }).collect();
    w.frontier.put(site, puts).await.expect("the site is there");
}

/// The next start is that of a host's `robots.txt`, which answers so.
async fn errand(w: &World, origin: &str, access: RobotsAccess) {
    let lease = w.take().await;
    assert!(lease.robots.is_some() && lease.url.origin() == origin, "{lease:?}");
    w.robots(&lease, access, HOUR).await;
    w.pass(1_000);
}

#[test]
fn pages_that_wait_for_a_host_which_its_file_names_no_more_are_excluded_and_the_run_ends() {
    on_every_backend(async |w| {
        w.site_with("a", of_two_hosts).await;
        w.frontier.begin_run("a", vec![]).await.expect("begun");
        put_at_other(w, "a", 250).await;
        errand(w, "https://other.example", unreachable()).await;
        while w.grant(w.want(1, 0)).await.next_in == Some(0) {}
        assert_eq!(w.downloads("a").await.parked, 250);
        put_at_other(w, "a", 260).await;
        w.site_with("a", renewed).await;
        for parked in [150, 50, 0] {
            let grant = w.grant(w.want(1, 0)).await;
            assert_eq!(grant.leases, [], "no robots.txt of a host that is nobody's");
            assert_eq!(w.downloads("a").await.parked, parked, "a hundred a step");
        }
        let books = w.downloads("a").await;
        assert_eq!(books.excluded.get(&Exclusion::Scope), Some(&260));
        assert_eq!((books.waiting, w.view("a").await.finished), (0, true), "{books:?}");
        assert_eq!(w.grant(w.want(1, 1)).await.next_in, None, "nothing is left to look at");
    });
}

#[test]
fn a_robots_txt_of_a_host_that_its_file_names_no_more_is_not_asked_for() {
    on_every_backend(async |w| {
        w.site_with("a", of_two_hosts).await;
        put_at_other(w, "a", 1).await;
        let lease = w.take().await;
        assert!(w.back(&lease).await);
        w.site_with("a", renewed).await;
        w.pass(HOUR);
        assert_eq!(w.claim().await, None);
        let books = w.downloads("a").await;
        assert_eq!((books.waiting + books.delayed, books.excluded.get(&Exclusion::Scope)), (0, Some(&2)));
    });
}

#[test]
fn i16_a_backlog_of_unreachable_hosts_keeps_no_start_from_others() {
    on_every_backend(async |w| {
        let backlogs = ["a", "b", "c"];
        for name in ["a", "b", "c", "x", "y"] {
            w.site_with(name, obeying).await;
            w.put_many(name, if backlogs.contains(&name) { 400 } else { 9 }).await;
        }
        for lease in w.grant(w.want(5, 0)).await.leases {
            let access =
                if backlogs.contains(&lease.site.as_str()) { unreachable() } else { RobotsAccess::Absent };
            w.robots(&lease, access, HOUR).await;
        }
        let mut parked = 0;
        for _ in 0..6 {
            w.pass(1_000);
            let grant = w.grant(w.want(9, 0)).await;
            let mut sites: Vec<&str> = grant.leases.iter().map(|lease| lease.site.as_str()).collect();
            sites.sort_unstable();
            assert_eq!((sites, grant.next_in), (vec!["x", "y"], Some(0)));
            for lease in &grant.leases {
                w.done(lease).await;
            }
            let mut now = 0;
            for name in backlogs {
                now += w.downloads(name).await.parked;
            }
            assert_eq!(now - parked, 100, "a hundred a step");
            parked = now;
        }
    });
}

#[test]
fn pages_of_a_host_that_several_sites_share_return_for_all_of_them_once_it_answers() {
    on_every_backend(async |w| {
        let names = ["a", "b", "c"];
        let member = async |name: &str, text: &str| {
            w.site_with(name, |shop| {
                of_two_hosts(shop);
                text.clone_into(&mut shop.text);
                shop.group = Some(("group:g".to_owned(), 100));
                shop.settings.interval = 100;
            })
            .await;
        };
        for name in names {
            member(name, "").await;
        }
        put_at_other(w, "a", 120).await;
        errand(w, "https://other.example", unreachable()).await;
        for name in ["b", "c"] {
            put_at_other(w, name, 3).await;
        }
        while w.grant(w.want(1, 0)).await.next_in == Some(0) {}
        let parked = async |name: &str| w.downloads(name).await.parked;
        assert_eq!((parked("a").await, parked("b").await, parked("c").await), (120, 3, 3));
        // By new rules one of them asks again, long before the others would.
        member("a", "new").await;
        errand(w, "https://other.example", RobotsAccess::Absent).await;
        for _ in 0..3 {
            w.grant(w.want(0, 0)).await;
        }
        assert_eq!((parked("a").await, parked("b").await, parked("c").await), (0, 0, 0));
        assert!(path_of(&w.take().await).starts_with("0000"));
    });
}
