//! One server of the cluster is silent: what lies on the others goes on, and nothing of its own is lost.

use std::time::Duration;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::task::Put;
use paced::internals::{frontier::Frontier, run, settings::Settings, site};

use crate::ground::{Ground, SiteFile, ms, star, wait};
use crate::support::*;

const INTERVAL: Duration = ms(100);
const SILENT: Duration = Duration::from_secs(12);

/// The server that has a site's record.
pub fn server_of<'a>(cluster: &'a RedisCluster, site: &str) -> &'a RedisServer {
    let pattern = format!("*:state:{site}");
    let key = eventually("the site is registered", || {
        cluster.nodes().map(|node| node.cli(&["KEYS", &pattern])).find(|key| !key.is_empty())
    });
    cluster.master_of(key.lines().next().expect("a key"))
}

#[test]
fn l4_while_one_partition_is_silent_the_others_keep_their_pace_and_no_lease_is_lost() {
    let names: Vec<String> = (0..6).map(|number| format!("shop{number}")).collect();
    in_three_tries(|| {
        let Some(cluster) = RedisCluster::start() else { return Ok(()) };
        for node in cluster.nodes() {
            node.cli(&["CONFIG", "SET", "cluster-node-timeout", "60000"]);
        }
        let sites: Vec<TestSite> =
            names.iter().map(|_| star(250).latency(Latency::fixed(ms(300))).serve()).collect();
        let files = names.iter().zip(&sites).map(|(name, site)| SiteFile::of(name, site).interval(INTERVAL));
        let ground = Ground::new(files);
        let mut crawl = ground.crawl().env("PACED_FRONTIER", cluster.url()).start();
        eventually("all are under way", || {
            assert!(!crawl.ended(), "it ended:\n{}", crawl.stderr());
            sites.iter().all(|site| site.arrivals().len() > 5).then_some(())
        });
        // Not the one that has the directory: sites of all hosts are looked up there.
        let directory = cluster.master_of("{paced:0}:").port();
        let silent =
            names.iter().map(|name| server_of(&cluster, name)).find(|server| server.port() != directory);
        let silent = silent.expect("sites are spread");
        let is_away: Vec<bool> =
            names.iter().map(|name| server_of(&cluster, name).port() == silent.port()).collect();
        silent.pause();
        std::thread::sleep(Duration::from_secs(1));
        let before: Vec<usize> = sites.iter().map(|site| site.arrivals().len()).collect();
        std::thread::sleep(SILENT);
        let during: Vec<usize> =
            sites.iter().zip(&before).map(|(site, before)| site.arrivals().len() - before).collect();
        silent.resume();
        let run = crawl.finish().expect_code(0);
        println!("{during:?}, silent: {is_away:?}");
        for (site, name) in sites.iter().zip(&names) {
            assert!(
                site.counts().values().all(|count| *count == 1),
                "{name}: {:?}\n{}",
                site.counts(),
                run.stderr
            );
            assert_eq!(ground.items(name).len(), 251, "{name}: {}", run.stderr);
            ground.assert_paced(name, site, INTERVAL);
        }
        assert!(!run.stderr.contains("lease lost") && !run.stderr.contains("panicked"), "{}", run.stderr);
        assert_eq!(run.stderr.matches("the frontier is away").count(), 1, "{}", run.stderr);
        assert!(is_away.contains(&false), "sites are spread");
        let most = usize::try_from(SILENT.as_millis() / INTERVAL.as_millis()).expect("a few");
        let others = during.iter().zip(&is_away).filter(|(_, is_away)| !**is_away);
        others.into_iter().try_for_each(|(starts, _)| {
            bound(*starts >= most * 4 / 5, format_args!("{starts} starts of {most}: {during:?} {is_away:?}"))
        })
    });
}

#[test]
fn l4_a_worker_that_leaves_a_site_to_others_while_a_partition_is_silent_keeps_the_pace_of_the_rest() {
    in_three_tries(|| {
        let Some(cluster) = RedisCluster::start() else { return Ok(()) };
        for node in cluster.nodes() {
            node.cli(&["CONFIG", "SET", "cluster-node-timeout", "60000"]);
        }
        let (open, locked): (Vec<TestSite>, Vec<TestSite>) =
            (0..6).map(|_| (star(400).serve(), star(1).serve())).unzip();
        let files = |kind: &str, sites: &[TestSite]| -> Vec<SiteFile> {
            let named = sites.iter().enumerate().map(|(n, site)| (format!("{kind}{n}"), site));
            named.map(|(name, site)| SiteFile::of(&name, site).interval(INTERVAL)).collect()
        };
        let lacking = files("locked", &locked).into_iter();
        let named =
            |(n, file): (usize, SiteFile)| file.fetch(&format!("auth_env = \"PACED_SECRET_LOCKED{n}\""));
        let lacking = lacking.enumerate().map(named);
        let ground = Ground::new(files("open", &open).into_iter().chain(lacking));
        let verb = |verb: &str| ground.verb(verb).env("PACED_FRONTIER", cluster.url());
        (0..6).fold(verb("seed"), |seed, n| seed.arg(ground.file(&format!("open{n}")))).run().expect_code(0);
        let names: Vec<String> = (0..6).map(|n| format!("locked{n}")).collect();
        let sites: Vec<_> = names.iter().map(|name| site::load(&ground.file(name)).expect("good")).collect();
        let frontier = Frontier::open(&cluster.url()).expect("an address");
        wait(run::register(&frontier, &Settings::default(), &sites)).expect("registered");
        let mut running = verb("work").start();
        eventually("all are under way", || open.iter().all(|site| site.arrivals().len() > 5).then_some(()));

        let port = |site: String| server_of(&cluster, &site).port();
        let directory = cluster.master_of("{paced:0}:").port();
        let silent = (0..6).map(|n| server_of(&cluster, &format!("open{n}")));
        let silent = silent.into_iter().find(|server| server.port() != directory).expect("sites are spread");
        let others: Vec<usize> = (0..6).filter(|n| port(format!("open{n}")) != silent.port()).collect();
        let there = (0..6).find(|n| port(format!("locked{n}")) != silent.port()).expect("sites are spread");
        silent.pause();
        let page = CanonicalUrl::parse(&locked[there].url("/p/1")).expect("a URL");
        wait(frontier.put(&names[there], vec![Put::seed(page)])).expect("put");
        running.wait_for_stderr("its pages go back to the others");
        let arrived = || others.iter().map(|n| open[*n].arrivals().len()).collect::<Vec<_>>();
        let before = arrived();
        std::thread::sleep(SILENT);
        let after = arrived();
        silent.resume();
        running.terminate();
        running.finish().expect_code(0);
        assert!(!others.is_empty(), "sites are spread");
        let most = usize::try_from(SILENT.as_millis() / INTERVAL.as_millis()).expect("a few");
        let mut pairs = before.iter().zip(&after);
        let is_kept = pairs.all(|(before, after)| after - before >= most * 4 / 5);
        bound(is_kept, format_args!("starts before and after {most} intervals: {before:?} {after:?}"))
    });
}
