//! A site is registered in one partition and booked in another: whatever comes between, no host that is crawled is free.

use std::collections::BTreeSet;
use std::time::Duration;

use paced::internals::canonical_url::Host;
use paced::internals::frontier::{Forgotten, Frontier, MutexKey, Registered, Registration};
use paced::internals::task::{Exclusion, Priority, Put};

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;

/// A site with these hosts; they are all that its file says.
fn site(name: &str, hosts: &[&str], group: Option<&str>) -> Registration {
    Registration {
        text: hosts.join(" "),
        group: group.map(|group| (group.to_owned(), 0)),
        hosts: hosts.iter().map(|host| format!("{host}.example")).collect(),
        ..registration(name, 1_000)
    }
}

async fn register(frontier: &Frontier, new: Registration) -> Result<(), String> {
    match frontier.register(new).await.expect("a frontier that answers") {
        Registered::Version(_) => Ok(()),
        Registered::Refused(why) => Err(why),
    }
}

async fn site_of(frontier: &Frontier, host: &str) -> Option<String> {
    let host = Host::parse(&format!("{host}.example")).expect("a host");
    frontier.site_of(&host).await.expect("answers")
}

/// A group in the partition of a site that has a request in flight.
async fn group_beside(frontier: &Frontier, name: &str, hosts: &[&str]) -> String {
    for number in 0..1_000 {
        let group = format!("group{number}");
        let why = register(frontier, site(name, hosts, Some(&group))).await.expect_err("it may not move");
        if why.contains("in flight") {
            return group;
        }
        assert!(why.contains("another partition"), "{why}");
    }
    panic!("there are sixteen partitions");
}

#[test]
fn i1_a_refused_move_to_a_group_books_nothing_and_frees_nothing() {
    let Some(cluster) = RedisCluster::start() else { return };
    let frontier = Frontier::open(&cluster.url()).expect("a URL");
    wait(async {
        let both = ["shop", "dropped"];
        register(&frontier, site("shop", &both, None)).await.expect("nobody has them");
        put(&frontier, 0..1).await.expect("answers");
        let lease = next(&frontier, "one").await;
        let group = group_beside(&frontier, "shop", &["shop", "new"]).await;
        let group = Some(group.as_str());
        for (name, host) in [("b", "shop"), ("c", "dropped")] {
            let why = register(&frontier, site(name, &[host], group)).await.expect_err("it is crawled");
            assert!(why.contains("`shop`"), "{why}");
        }
        assert_eq!(site_of(&frontier, "new").await, None);
        settle(&frontier, "one", &lease, done()).await;
        register(&frontier, site("shop", &["shop"], group)).await.expect("nothing is in flight");
        register(&frontier, site("b", &["shop"], group)).await.expect("both are of the group");
        register(&frontier, site("c", &["dropped"], None)).await.expect("it is free");
    });
}

#[test]
fn i1_a_site_stays_where_it_is_when_its_file_names_a_group_of_another_partition_and_that_is_said() {
    let Some(cluster) = RedisCluster::start() else { return };
    let frontier = Frontier::open(&cluster.url()).expect("a URL");
    wait(async {
        register(&frontier, site("shop", &["shop"], None)).await.expect("nobody has it");
        put(&frontier, 0..3).await.expect("answers");
        let lease = next(&frontier, "one").await;
        settle(&frontier, "one", &lease, done()).await;
        let before = frontier.view("shop").await.expect("answers").expect("it is there");
        let mut refused = 0;
        for number in 0..16 {
            let group = format!("far{number}");
            let moved = register(&frontier, site("shop", &["shop", "new"], Some(&group))).await;
            let Err(why) = moved else {
                // A group beside it: from there on it is another one's site.
                break;
            };
            refused += 1;
            let said = format!(
                "site `shop` can't move to the group `{group}`, which lies in another partition; give it another name"
            );
            assert_eq!(why, said);
            let now = frontier.view("shop").await.expect("answers").expect("it is there");
            assert_eq!((&now.unit, now.last_start, now.due), (&before.unit, before.last_start, before.due));
            assert_eq!((now.download.waiting, now.version), (2, before.version));
            assert_eq!(site_of(&frontier, "new").await, None);
            assert_eq!(site_of(&frontier, "shop").await.as_deref(), Some("shop"));
            let left = frontier.lock_left(&MutexKey::unit("shop")).await.expect("answers");
            assert!(left.is_some(), "its start holds its pace");
        }
        assert!(refused > 0, "sixteen groups in one partition of sixteen");
    });
}

/// Some of the hosts, at least one.
fn some_of<'a>(hosts: &[&'a str]) -> Vec<&'a str> {
    let chosen: Vec<&str> = hosts.iter().copied().filter(|_| fastrand::bool()).collect();
    if chosen.is_empty() { vec![hosts[0]] } else { chosen }
}

async fn booked<'a>(frontier: &Frontier, hosts: &[&'a str]) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for host in hosts {
        if site_of(frontier, host).await.as_deref() == Some("shop") {
            found.insert(*host);
        }
    }
    found
}

#[test]
fn hosts_in_force_stay_booked_though_several_register_the_site_at_once_and_die_on_the_way() {
    const HOSTS: [&str; 5] = ["one", "two", "three", "four", "five"];
    let Some(cluster) = RedisCluster::start() else { return };
    wait(async {
        let frontiers: Vec<Frontier> =
            (0..3).map(|_| Frontier::open(&cluster.url()).expect("a URL")).collect();
        register(&frontiers[0], site("shop", &HOSTS, None)).await.expect("nobody has them");
        let mut died = 0;
        for round in 0..80 {
            let attempt = |frontier| async move {
                let patience = Duration::from_micros(fastrand::u64(100..40_000));
                let new = site("shop", &some_of(&HOSTS), None);
                tokio::time::timeout(patience, register(frontier, new)).await.is_err()
            };
            let (one, two, three) =
                tokio::join!(attempt(&frontiers[0]), attempt(&frontiers[1]), attempt(&frontiers[2]));
            died += [one, two, three].into_iter().filter(|died| *died).count();
            sleep(40).await;
            let in_force = frontiers[0].text("shop").await.expect("answers").expect("it is there");
            let in_force: BTreeSet<&str> = in_force.split(' ').collect();
            let all = booked(&frontiers[0], &HOSTS).await;
            assert!(in_force.is_subset(&all), "round {round}: {in_force:?} in force, {all:?} booked");
            if round % 8 == 0 {
                let last = some_of(&HOSTS);
                register(&frontiers[1], site("shop", &last, None)).await.expect("they are its own");
                assert_eq!(booked(&frontiers[0], &HOSTS).await, last.into_iter().collect());
            }
        }
        assert!(died > 0, "none died on the way");
    });
}

#[test]
fn pages_of_a_host_that_is_dropped_are_excluded_in_every_partition() {
    let Some(cluster) = RedisCluster::start() else { return };
    let frontier = Frontier::open(&cluster.url()).expect("a URL");
    let of = |name: &str, hosts: &[&str]| {
        let mut new = site(name, hosts, None);
        new.settings.robots = true;
        new
    };
    wait(async {
        let names: Vec<String> = (0..6).map(|number| format!("shop{number}")).collect();
        for name in &names {
            let other = format!("other-{name}");
            register(&frontier, of(name, &[name, &other])).await.expect("nobody has them");
            let url = format!("https://{other}.example/").parse().expect("a URL");
            frontier.put(name, vec![Put::request(url, Priority::SEED)]).await.expect("put");
            register(&frontier, of(name, &[name])).await.expect("it is its own");
        }
        for _ in 0..2 * names.len() {
            assert_eq!(claim(&frontier, "one", 8).await.leases, []);
        }
        for name in &names {
            let books = frontier.view(name).await.expect("answers").expect("the site is there").download;
            assert_eq!(books.excluded.get(&Exclusion::Scope), Some(&1), "{name}: {books:?}");
            assert!(matches!(frontier.forget(name).await, Ok(Forgotten::Wholly)), "{name}");
        }
        for node in cluster.nodes() {
            assert_eq!(node.cli(&["KEYS", "*}:hosts:*"]), "");
        }
    });
}
