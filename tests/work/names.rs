//! A worker's name: who has it gets back what an earlier one of that name held, and writes files that are its own.

use std::fs::OpenOptions;
use std::io::Write;

use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{Claim, Frontier, Registration, SiteSettings, WorkScope};
use paced::internals::task::Put;

use crate::fleet::{items_of, paths_by, seed, to_the_end, worker};
use crate::ground::*;
use crate::support::*;

#[test]
fn c10_a_worker_that_comes_back_under_its_name_gets_its_leases_back_at_the_same_moment() {
    let data = TempData::new();
    let now = Timestamp::from_millis(1_795_165_200_000);
    let frontier = Frontier::sqlite(&data.file("frontier.db"), Some(Clock::fake(now))).expect("a frontier");
    let settings = SiteSettings {
        interval: 0,
        parallel: 8,
        attempts: 5,
        robots: false,
        budgets: std::collections::BTreeMap::new(),
        ..SiteSettings::default()
    };
    let registration = Registration {
        name: "shop".to_owned(),
        text: String::new(),
        group: None,
        hosts: vec!["shop.example".to_owned()],
        settings,
    };
    let claim = |owner: &str, token| Claim {
        owner: owner.to_owned(),
        token,
        download: 1,
        parse: 0,
        dice: vec![0],
        lead: 0,
    };
    wait(async {
        frontier.register(registration).await.expect("registered");
        let url =
            paced::internals::canonical_url::CanonicalUrl::parse("http://shop.example/").expect("a URL");
        frontier.begin_run("shop", vec![Put::seed(url)]).await.expect("begun");
        let gone = frontier.join_as("w", WorkScope::All).await.expect("joined");
        assert!(gone.name.starts_with("w~"), "{}", gone.name);
        let lost = frontier.claim(claim(&gone.name, 1)).await.expect("granted").leases.remove(0);
        drop(gone);
        let back = frontier.join_as("w", WorkScope::All).await.expect("joined");
        let again = frontier.claim(claim(&back.name, 100)).await.expect("granted").leases.remove(0);
        assert_eq!((&again.url, again.attempts, again.granted_at), (&lost.url, 0, lost.granted_at));
        assert_eq!(frontier.extend(vec![lost.key()]).await.expect("answers"), [false]);
    });
}

#[test]
fn c10_a_killed_worker_that_starts_again_goes_on_in_its_own_files_behind_their_last_whole_line() {
    on_each_frontier(|shared| {
        let site = star(12).latency(Latency::fixed(ms(150))).serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &site).interval(ms(40))]);
        seed(&ground);
        let killed = worker(&ground, "w-1").start();
        eventually("some items", || (items_of(&ground, "shop", "w-1").len() > 2).then_some(()));
        killed.kill();
        assert_eq!(killed.finish().code, None);
        let in_flight = usize::try_from(ground.view("shop").download.leased).expect("few");
        let file = ground.data.file("data/items/shop-w-1.jsonl");
        OpenOptions::new()
            .append(true)
            .open(&file)
            .and_then(|mut file| file.write_all(b"{\"torn"))
            .expect("torn");
        let run = to_the_end(&ground, "w-1").run().expect_code(0);
        assert!(run.stderr.contains("cut 6 bytes off the end"), "{}", run.stderr);
        let paths: std::collections::BTreeSet<String> =
            items_of(&ground, "shop", "w-1").iter().map(|item| path_of(&text(&item["url"]))).collect();
        assert_eq!(paths.len(), 13);
        ground.assert_paced_but(in_flight, "shop", &site, ms(40));
    });
}

#[test]
fn a_name_that_a_running_worker_has_is_refused() {
    let site = star(1).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    let mut first = worker(&ground, "w").start();
    first.wait_for_stderr("at work");
    let second = worker(&ground, "w").run().expect_code(1);
    let told = "paced: a worker named `w` writes items into";
    assert!(second.stderr.contains(told) && second.stderr.contains("choose another --name"), "{second:?}");
    first.terminate();
    first.finish().expect_code(0);
    seed(&ground);
    to_the_end(&ground, "w").run().expect_code(0);
    assert_eq!(paths_by(&ground, "shop", &["w"]).len(), 2);
    let left: Vec<_> = std::fs::read_dir(ground.data.file("data/items")).expect("a folder").collect();
    assert_eq!(left.len(), 1, "nothing but items: {left:?}");
}

#[test]
fn without_a_name_it_is_called_by_host_and_process() {
    let site = star(1).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    seed(&ground);
    let running = ground.verb("work").arg("--until-empty").start();
    let pid = running.pid();
    running.finish().expect_code(0);
    let mut files = std::fs::read_dir(ground.data.file("data/items")).expect("a folder");
    let file = files.next().expect("a file").expect("an entry").file_name().into_string().expect("text");
    assert!(file.starts_with("shop-") && file.ends_with(&format!("-{pid}.jsonl")), "{file}");
}

#[test]
fn l4_a_worker_that_was_buried_by_mistake_goes_on_under_its_name() {
    on_each_frontier(|shared| {
        let site = star(3).latency(Latency::fixed(ms(700))).serve();
        let ground = Ground::on(shared, [SiteFile::of("shop", &site)]);
        let mut running = worker(&ground, "w").start();
        running.wait_for_stderr("at work");
        seed(&ground);
        eventually("a request in flight", || site.requests().first().cloned());
        let owners = || wait(ground.frontier().owners()).expect("answers");
        let buried = owners().remove(0).name;
        wait(ground.frontier().bury(&buried)).expect("buried");
        running.wait_for_stderr("taken for dead");
        eventually("all items", || (items_of(&ground, "shop", "w").len() == 4).then_some(()));
        let living: Vec<String> = owners().into_iter().filter(|o| !o.dead).map(|o| o.name).collect();
        assert!(living.len() == 1 && living[0].starts_with("w~") && living[0] != buried, "{living:?}");
        running.terminate();
        running.finish().expect_code(0);
    });
}
