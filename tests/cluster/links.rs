//! Links that lead from one partition to another, whose server dies on the way: each is put again, and none is put twice.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ground::{Ground, SiteFile, ms, page, paths, star, wait};
use crate::steps::{open, register_as};
use crate::support::*;

const INTERVAL: Duration = ms(100);
const PAGES: usize = 60;

/// The server that has what lies of a site, by its place among the masters.
fn key_of(cluster: &RedisCluster, site: &str) -> String {
    let pattern = format!("*:state:{site}");
    let key = eventually("the site is registered", || {
        cluster.nodes().map(|node| node.cli(&["KEYS", &pattern])).find(|key| !key.is_empty())
    });
    key.lines().next().expect("a key").to_owned()
}

/// Names of two sites that lie on different servers, the second one on another than the directory too.
fn apart(cluster: &RedisCluster) -> [String; 2] {
    let names: Vec<String> = (0..40).map(|number| format!("try{number}")).collect();
    wait(async {
        let frontier = open(&cluster.url());
        for name in &names {
            let _ = register_as(&frontier, name, 1_000).await;
        }
    });
    let server = |name: &String| cluster.master_of(&key_of(cluster, name)).port();
    let directory = cluster.master_of("{paced:0}:").port();
    let to = names.iter().find(|name| server(name) != directory).expect("sites are spread");
    let from = names.iter().find(|name| server(name) != server(to)).expect("sites are spread");
    [from.clone(), to.clone()]
}

#[test]
fn l4_i14_links_into_a_partition_that_fails_over_are_put_again_none_is_lost_and_none_twice() {
    let Some(mut cluster) = RedisCluster::start() else { return };
    let [from, to] = apart(&cluster);
    wait(async {
        let frontier = open(&cluster.url());
        for site in frontier.sites().await.expect("answers") {
            frontier.forget(&site).await.expect("answers");
        }
    });
    // Each page of the one leads to a page of the other, which has no links of its own.
    let other = paths(PAGES).fold(TestSite::builder().page("/", page("front", [""; 0])), |site, path| {
        site.page(&path, page(&path, [""; 0]))
    });
    let other = other.latency(Latency::fixed(ms(20))).serve();
    let one = paths(PAGES).fold(star(PAGES), |site, path| {
        let led = other.url(&path);
        site.page(&path, page(&path, [led]))
    });
    let one = one.latency(Latency::fixed(ms(20))).serve();
    let files =
        [(&from, &one), (&to, &other)].map(|(name, site)| SiteFile::of(name, site).interval(INTERVAL));
    let ground = Ground::new(files);
    let mut crawl = ground.crawl().env("PACED_FRONTIER", cluster.url()).start();
    eventually("links are put", || {
        assert!(!crawl.ended(), "it ended:\n{}", crawl.stderr());
        (other.arrivals().len() > 10).then_some(())
    });
    // What is put from now on isn't done, and its server is gone before it answers.
    let key = key_of(&cluster, &to);
    cluster.fail_over_after(&key, || {
        let before = one.arrivals().len();
        eventually("pages that lead there", || (one.arrivals().len() > before + 3).then_some(()));
    });
    let run = crawl.finish().expect_code(0);
    for (name, site) in [(&from, &one), (&to, &other)] {
        assert!(
            site.counts().values().all(|count| *count == 1),
            "{name}: {:?}\n{}",
            site.counts(),
            run.stderr
        );
        assert_eq!(ground.items(name).len(), PAGES + 1, "{name}: {}", run.stderr);
        ground.assert_paced(name, site, INTERVAL);
        let view = wait(async { open(&cluster.url()).view(name).await });
        let view = view.expect("answers").expect("the site is there");
        let done = PAGES as u64 + 2;
        let books = BTreeMap::from([("download", &view.download), ("parse", &view.parse)]);
        assert!(books.values().all(|books| books.imbalance() == 0 && books.lost == 0), "{name}: {books:?}");
        assert_eq!((view.download.created, view.download.done), (done, done), "{name}: {books:?}");
    }
}
