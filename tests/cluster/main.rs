//! The frontier on a real Redis Cluster: sites spread over its masters, one of which dies.

mod clocks;
mod drained;
#[path = "../crawl/ground.rs"]
mod ground;
mod lane_workers;
mod links;
mod marks;
mod moves;
mod one_away;
mod one_server;
mod registrations;
#[path = "../redis/steps.rs"]
mod steps;
#[path = "../support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ground::{Ground, SiteFile, ms, star, wait};
use paced::internals::frontier::{
    Forgotten, Frontier, FrontierErrorKind, MutexKey, Registered, Renamed, WorkScope,
};
use paced::internals::mutex::TimedMutex;
use paced::internals::task::{Lease, Settled, Settlement};
use steps::*;
use support::*;

/// Sites of these names, each with so many pages waiting.
async fn sites(frontier: &Frontier, count: u32, interval: i64, pages: u32) -> Vec<String> {
    let names: Vec<String> = (0..count).map(|number| format!("shop{number:02}")).collect();
    for name in &names {
        assert!(matches!(register_as(frontier, name, interval).await, Registered::Version(_)));
        put_in(frontier, name, 0..pages).await.expect("a frontier that answers");
    }
    names
}

/// Every site has done all its pages, and its books balance (I14).
async fn assert_all_done(frontier: &Frontier, names: &[String], pages: u64) {
    for name in names {
        let view = frontier.view(name).await.expect("answers").expect("the site is there");
        let books = view.download;
        assert_eq!(books.imbalance(), 0, "{name}: {books:?}");
        assert_eq!((books.waiting + books.delayed + books.leased, books.dead), (0, 0), "{name}: {books:?}");
        assert_eq!(books.done, pages, "{name}: {books:?}");
    }
}

/// Works until nothing is left of those sites, counting; what was granted, and how it was settled.
async fn work_on(
    frontier: &Frontier,
    owner: &str,
    names: &[String],
    settled: &AtomicU64,
) -> Vec<(Lease, Settled)> {
    let mut granted = Vec::new();
    loop {
        let grant = claim(frontier, owner, 8).await;
        for lease in &grant.leases {
            let how = settle(frontier, owner, lease, done()).await;
            settled.fetch_add(1, Ordering::SeqCst);
            granted.push((lease.clone(), how));
        }
        if grant.leases.is_empty() {
            if is_empty(frontier, names).await {
                return granted;
            }
            sleep(grant.next_in.unwrap_or(200).min(200)).await;
        }
    }
}

async fn is_empty(frontier: &Frontier, names: &[String]) -> bool {
    for name in names {
        let view = frontier.view(name).await.expect("answers").expect("the site is there");
        let books = view.download;
        if books.waiting + books.delayed + books.leased > 0 {
            return false;
        }
    }
    true
}

#[test]
fn sites_are_spread_over_all_masters_by_the_tag_of_their_keys_and_all_are_served() {
    let Some(cluster) = RedisCluster::start() else { return };
    let frontier = Frontier::open(&cluster.url()).expect("a URL");
    wait(async {
        let names = sites(&frontier, 40, 0, 3).await;
        assert_eq!(frontier.sites().await.expect("answers"), names);
        let full = cluster.nodes().filter(|node| node.cli(&["DBSIZE"]) != "0").count();
        assert_eq!(full, 6, "every master has some of it, and its replica the same");
        for node in cluster.nodes() {
            let keys = node.cli(&["KEYS", "*"]);
            assert!(keys.lines().all(|key| key.starts_with("{paced:")), "{keys}");
        }
        let granted = work_on(&frontier, "one", &names, &AtomicU64::new(0)).await;
        assert!(granted.iter().all(|(_, settled)| *settled == Settled::Kept));
        assert_all_done(&frontier, &names, 3).await;
    });
}

#[test]
fn l1_a_partition_without_parses_is_asked_for_downloads_all_the_same() {
    let Some(cluster) = RedisCluster::start() else { return };
    let frontier = Frontier::open(&cluster.url()).expect("a URL");
    wait(async {
        sites(&frontier, 3, 0, 2).await;
        frontier.work_on("one", WorkScope::All).await.expect("answers");
        let granted = async |download, parse| {
            frontier.claim(want("one", download, parse)).await.expect("answers").leases.len()
        };
        assert_eq!(granted(0, 8).await, 0, "nothing has been fetched");
        let mut downloads = 0;
        for _ in 0..3 {
            downloads += granted(8, 0).await;
        }
        assert_eq!(downloads, 6, "they are there");
        assert_eq!(granted(8, 8).await, 0, "nothing is left");
    });
}

#[test]
fn l4_i1_a_master_dies_its_replica_takes_over_nothing_is_lost_and_no_start_comes_early() {
    const INTERVAL: i64 = 300;
    const PAGES: u32 = 25;
    let Some(mut cluster) = RedisCluster::start() else { return };
    let url = cluster.url();
    let settled = AtomicU64::new(0);
    let names = wait(async { sites(&Frontier::open(&url).expect("a URL"), 12, INTERVAL, PAGES).await });
    let granted = std::thread::scope(|scope| {
        let worker = |owner: &'static str| {
            let (url, names, settled) = (&url, &names, &settled);
            scope.spawn(move || {
                let frontier = Frontier::open(url).expect("a URL");
                wait(work_on(&frontier, owner, names, settled))
            })
        };
        let workers = [worker("one"), worker("two")];
        eventually("work under way", || (settled.load(Ordering::SeqCst) > 40).then_some(()));
        cluster.fail_over("{paced:0}:due");
        workers.map(|worker| worker.join().expect("no panic")).concat()
    });
    let mut of_sites: BTreeMap<&str, Vec<Lease>> = BTreeMap::new();
    for (lease, _) in &granted {
        of_sites.entry(&lease.site).or_default().push(lease.clone());
    }
    assert_eq!(of_sites.len(), names.len());
    for (site, leases) in &of_sites {
        println!("{site}: {} starts", leases.len());
        assert_spaced(leases, INTERVAL);
        let pages: BTreeSet<&str> = leases.iter().map(|lease| lease.url.as_str()).collect();
        assert_eq!(pages.len(), PAGES as usize, "{site}: every page was granted");
    }
    wait(async {
        let frontier = Frontier::open(&url).expect("a URL");
        assert_all_done(&frontier, &names, PAGES.into()).await;
    });
}

#[test]
fn l4_a_crawl_goes_on_when_a_master_dies() {
    let Some(mut cluster) = RedisCluster::start() else { return };
    let site = star(80).latency(Latency::fixed(ms(300))).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(100))]);
    let mut crawl = ground.crawl().env("PACED_FRONTIER", cluster.url()).start();
    eventually("a few pages", || {
        assert!(!crawl.ended(), "it ended:\n{}", crawl.stderr());
        (site.arrivals().len() > 10).then_some(())
    });
    // The partition that the site is in.
    let key = eventually("somebody has its mutex", || {
        cluster.nodes().map(|node| node.cli(&["KEYS", "*:mutex:shop"])).find(|key| !key.is_empty())
    });
    cluster.fail_over(key.lines().next().expect("a key"));
    let run = crawl.finish().expect_code(0);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    let items: BTreeSet<String> = ground.item_paths("shop").into_iter().collect();
    assert_eq!(items.len(), 81, "{}", run.stderr);
    ground.assert_paced("shop", &site, ms(100));
}

#[test]
fn v1_an_outsider_shares_a_site_s_pace_wherever_in_the_cluster_the_site_is() {
    let Some(cluster) = RedisCluster::start() else { return };
    let frontier = Frontier::open(&cluster.url()).expect("a URL");
    wait(async {
        for name in sites(&frontier, 8, 60_000, 2).await {
            let mutex = TimedMutex::of_site(&cluster.url(), &name).await.expect("the site");
            assert!(mutex.try_lock().await.expect("the frontier").is_some(), "{name}");
            assert!(mutex.left().await.expect("the frontier") > Some(Duration::from_secs(30)), "{name}");
        }
        assert!(claim(&frontier, "one", 8).await.leases.is_empty(), "outsiders hold all of them");
        let named = TimedMutex::new(&frontier, "report").expire(Duration::from_mins(1));
        let held = named.try_lock().await.expect("the frontier").expect("nobody has it");
        assert!(named.try_lock().await.expect("the frontier").is_none());
        assert!(held.is_owned().await.expect("the frontier"));
    });
}

#[test]
fn a_host_belongs_to_one_site_though_sites_are_apart_until_it_is_forgotten() {
    let Some(cluster) = RedisCluster::start() else { return };
    let frontier = Frontier::open(&cluster.url()).expect("a URL");
    wait(async {
        for name in sites(&frontier, 8, 0, 1).await {
            let host = url_of(&name, 0).host();
            assert_eq!(frontier.site_of(&host).await.expect("answers"), Some(name.clone()));
            assert_eq!(
                frontier.forget(&name).await.expect("answers"),
                Forgotten::Busy { tasks: 1, leased: 0 }
            );
            while frontier.give_up(&name).await.expect("answers") {}
            assert_eq!(frontier.forget(&name).await.expect("answers"), Forgotten::Wholly);
            assert_eq!(frontier.site_of(&host).await.expect("answers"), None);
            assert_eq!(frontier.view(&name).await.expect("answers"), None);
        }
        assert_eq!(frontier.sites().await.expect("answers"), Vec::<String>::new());
    });
}

#[test]
fn a_parse_taken_along_is_renewed_and_settled_in_the_partition_of_its_site() {
    let Some(cluster) = RedisCluster::start() else { return };
    let frontier = Frontier::open(&cluster.url()).expect("a URL");
    wait(async {
        let member = frontier.join(WorkScope::All).await.expect("answers");
        for name in sites(&frontier, 8, 60_000, 1).await {
            let lease = claim(&frontier, &member.name, 1).await.leases.pop().expect("each site has a page");
            let parse = Some(fastrand::u64(1..1 << 60));
            let outcome = fetched(&lease);
            let settlement = Settlement { parse, ..Settlement::of(lease, outcome) };
            let settled = frontier.settle(&member.name, fastrand::u64(..), vec![settlement]).await;
            let Some(Settled::Leased(lease)) = settled.expect("answers").pop() else {
                panic!("{name}: no other parse waits");
            };
            assert_eq!(Some(lease.token), parse);
            assert_eq!(frontier.extend(vec![lease.key()]).await.expect("answers"), [true], "{}", lease.site);
            assert_eq!(settle(&frontier, &member.name, &lease, done()).await, Settled::Kept);
            assert_eq!(frontier.extend(vec![lease.key()]).await.expect("answers"), [false]);
        }
    });
}

#[test]
fn i1_a_site_takes_another_name_within_its_partition_alone_and_keeps_its_pace() {
    let Some(cluster) = RedisCluster::start() else { return };
    let frontier = Frontier::open(&cluster.url()).expect("a URL");
    wait(async {
        let member = frontier.join(WorkScope::All).await.expect("answers");
        for name in sites(&frontier, 4, 60_000, 3).await {
            let granted = claim(&frontier, &member.name, 1).await.leases;
            assert_eq!(granted.len(), 1);
            settle(&frontier, &member.name, &granted[0], done()).await;
            let name_now = &granted[0].site;
            let host = url_of(name_now, 0).host();
            let (mut elsewhere, mut to) = (0, String::new());
            for n in 0..100 {
                to = format!("{name_now}-{n}");
                match frontier.rename(name_now, &to).await.expect("answers") {
                    Renamed::Elsewhere => elsewhere += 1,
                    renamed => {
                        assert_eq!(renamed, Renamed::Done);
                        break;
                    }
                }
            }
            println!("{name}: {elsewhere} names lie elsewhere");
            let again = Frontier::open(&cluster.url()).expect("a URL");
            assert_eq!(again.site_of(&host).await.expect("answers"), Some(to.clone()));
            assert_eq!(again.view(name_now).await.expect("answers"), None);
            let view = again.view(&to).await.expect("answers").expect("the site is there");
            assert_eq!((view.download.waiting, view.download.done), (2, 1));
            let left = again.lock_left(&MutexKey::unit(&to)).await.expect("answers");
            assert!(left.is_some_and(|left| left > 0), "its last start holds the mutex of the new name");
        }
    });
}

#[test]
fn a_server_alone_is_no_cluster_and_a_node_of_one_is_no_server_alone() {
    let (Some(cluster), Some(alone)) = (RedisCluster::start(), redis_or_skip()) else { return };
    let node = cluster.nodes().next().expect("six nodes");
    let wrong = [format!("redis+cluster://127.0.0.1:{}", alone.port()), node.url(0)];
    for url in wrong {
        let error = wait(async { Frontier::open(&url)?.sites().await }).expect_err("the wrong kind");
        assert!(matches!(error.kind, FrontierErrorKind::Unfit(_)), "{url}: {error}");
        assert!(error.to_string().contains("cluster"), "{url}: {error}");
    }
}

#[test]
fn a_user_who_may_not_ask_where_a_slot_moves_to_is_refused_with_the_line_that_gives_it() {
    let Some(cluster) = RedisCluster::start() else { return };
    for node in cluster.nodes() {
        node.cli(&["ACL", "SETUSER", "some", "reset", "on", ">sesame", "~*", "&*", "+@all", "-asking"]);
    }
    let url = cluster.url().replace("://", "://some:sesame@");
    let error = wait(async { Frontier::open(&url)?.sites().await }).expect_err("refused");
    let FrontierErrorKind::Unfit(why) = &error.kind else { panic!("{error}") };
    assert!(why.contains(" +asking +"), "{why}");
    assert_eq!(error.cause.as_deref(), Some("it may not: asking"));
    let line: Vec<&str> = why.rsplit_once(": ").expect("a line").1.split(' ').collect();
    for node in cluster.nodes() {
        node.cli(&["ACL", "SETUSER", "some", "reset", "on", ">sesame"]);
        node.cli(&line);
    }
    assert_eq!(
        wait(async { Frontier::open(&url)?.sites().await }).expect("it may now"),
        Vec::<String>::new()
    );
}

#[test]
fn a_wrong_password_and_none_are_told_of_a_cluster_too() {
    let Some(cluster) = RedisCluster::start() else { return };
    let ports: Vec<u16> = cluster.nodes().map(RedisServer::port).collect();
    let url = |who: &str| format!("redis+cluster://{who}127.0.0.1:{}", ports[0]);
    for node in cluster.nodes() {
        node.cli(&["ACL", "SETUSER", "some", "reset", "on", ">sesame", "~*", "&*", "+@all"]);
        node.cli(&["ACL", "SETUSER", "few", "reset", "on", ">sesame", "~*"]);
    }
    let kind_of = |who: &str| wait(open(&url(who)).sites()).map_err(|error| error.kind);
    assert_eq!(kind_of("some:sesame@"), Ok(Vec::new()));
    for who in ["some:open@", "other:sesame@", ":open@"] {
        assert_eq!(kind_of(who), Err(FrontierErrorKind::Password), "{who}");
    }
    let Err(FrontierErrorKind::Unfit(why)) = kind_of("few:sesame@") else { panic!("it may do nothing") };
    assert!(why.contains("ACL SETUSER few "), "{why}");
    let alone = wait(open(&format!("redis://127.0.0.1:{}/3", ports[0])).sites()).expect_err("a node");
    assert!(
        matches!(&alone.kind, FrontierErrorKind::Unfit(why) if why.contains("redis+cluster://")),
        "{alone}"
    );
}

#[test]
fn c10_what_other_partitions_granted_is_worked_on_when_one_says_that_the_process_is_dead() {
    let Some(cluster) = RedisCluster::start() else { return };
    let site = star(150).latency(Latency::fixed(ms(100))).serve();
    let ground = Ground::new([SiteFile::of("shop", &site).interval(ms(1))]);
    let crawl = ground.crawl().env("PACED_FRONTIER", cluster.url()).arg("--workers").arg("2").start();
    let keys = |pattern: &str| -> Vec<String> {
        let keys = cluster
            .nodes()
            .flat_map(|node| node.cli(&["KEYS", pattern]).lines().map(str::to_owned).collect::<Vec<_>>());
        keys.collect::<BTreeSet<_>>().into_iter().collect()
    };
    let mut dead = BTreeSet::new();
    for _ in 0..2 {
        eventually("a member that claims", || {
            let owners: BTreeSet<String> = keys("*:owner:*").into_iter().collect();
            let living: Vec<&String> = owners.difference(&dead).collect();
            (living.len() == 16 && site.arrivals().len() > 5).then_some(())
        });
        let partition = keys("*:state:shop")[0].split(':').take(2).collect::<Vec<_>>().join(":");
        for key in keys("*:owner:*").into_iter().filter(|key| !dead.contains(key)).collect::<Vec<_>>() {
            if !key.starts_with(&partition) {
                cluster.master_of(&key).cli(&["HSET", &key, "dead", "1"]);
            }
            dead.insert(key);
        }
    }
    let run = crawl.finish().expect_code(0);
    assert_eq!(ground.item_paths("shop").len(), 151, "{}", run.stderr);
    let books = wait(async { books(&open(&cluster.url())).await });
    assert_eq!(books.lost, 0, "{books:?}\n{}", run.stderr);
}
