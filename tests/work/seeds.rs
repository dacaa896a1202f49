//! `paced seed`: what it says of each site, and what it refuses.

use crate::fleet::seed;
use crate::ground::*;
use crate::support::*;

#[test]
fn seed_says_of_each_site_what_it_did_and_puts_seeds_when_a_run_begins() {
    let (one, two) = (star(1).serve(), star(1).serve());
    let files = [SiteFile::of("one", &one), SiteFile::of("two", &two).seed(two.url("/p/1"))];
    let ground = Ground::new(files);
    assert_eq!(seed(&ground).stdout, "one: run 1 begun, 1 seed put\ntwo: run 1 begun, 2 seeds put\n");
    let again = "one: run 1 goes on where it was, 1 waiting\ntwo: run 1 goes on where it was, 2 waiting\n";
    assert_eq!(seed(&ground).stdout, again);
    let fresh = ground.verb("seed").arg(ground.file("two")).arg("--fresh").run().expect_code(0);
    assert_eq!(fresh.stdout, "two: run 2 begun, 2 seeds put\n");
    let told = ground.verb_on_all("seed").arg("--json").run().expect_code(0);
    let first = told.stdout.lines().next().expect("a line");
    assert_eq!(first, r#"{"site":"one","run":1,"begun":false,"replaced":false,"seeds":0,"waiting":1}"#);
    assert!(one.requests().is_empty() && two.requests().is_empty(), "it asks nobody");
}

#[test]
fn seed_refuses_what_crawl_refuses() {
    let site = star(1).latency(Latency::fixed(ms(400))).serve();
    let ground = Ground::new([SiteFile::of("one", &site)]);
    let double = ground.data.write("double.toml", &SiteFile::of("double", &site).text());
    let both = ground.verb_on_all("seed").arg(&double).run().expect_code(2);
    assert!(both.stderr.contains("double.toml:"), "{}", both.stderr);
    assert!(!ground.data.file("data/frontier.db").exists(), "nothing was begun");
    seed(&ground);
    let taken = ground.verb("seed").arg(&double).run().expect_code(1);
    assert!(taken.stderr.contains("belongs to site `one` already"), "{}", taken.stderr);
    let wrong = ground.data.write("wrong.toml", "seeds = 1\n");
    ground.verb("seed").arg(wrong).run().expect_code(2);

    let crawl = ground.crawl().start();
    eventually("a request", || site.requests().first().cloned());
    let fresh = ground.verb_on_all("seed").arg("--fresh").run().expect_code(1);
    assert!(fresh.stderr.contains(&format!("process {} crawls one right now", crawl.pid())), "{fresh:?}");
    crawl.finish().expect_code(0);
}

#[test]
fn seeding_beside_workers_is_how_the_next_run_begins() {
    let site = star(2).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    let mut worker = crate::fleet::worker(&ground, "w").start();
    worker.wait_for_stderr("at work");
    for run in 1..=3 {
        let fresh = if run == 3 { "--fresh" } else { "--json" };
        ground.verb_on_all("seed").arg(fresh).run().expect_code(0);
        eventually("the run's end", || {
            let view = ground.view("shop");
            (view.run == run && view.finished).then_some(())
        });
        assert_eq!(site.count("/p/2"), usize::try_from(run).expect("three"));
    }
    worker.terminate();
    worker.finish().expect_code(0);
}

#[test]
fn a_password_in_the_frontiers_url_is_never_shown() {
    let site = star(1).serve();
    let ground = Ground::new([SiteFile::of("shop", &site)]);
    let file = ground.file("shop").display().to_string();
    let status = vec!["status", "shop"];
    let verbs =
        [vec!["seed", &file], vec!["crawl", &file], vec!["work"], status.clone(), vec!["put", "shop", "/"]];
    let unknown = "redis://paced:secret@127.0.0.1:port/0";
    let runs = verbs.iter().map(|words| (words, unknown, 2));
    for (words, url, code) in runs.chain([
        (&status, "no-redis://paced:secret@127.0.0.1:1/0", 2),
        (&status, "redis://:secret@127.0.0.1:1/0", 1),
        (&status, "unix:/nowhere/redis.sock?pass=secret&db=1", 1),
    ]) {
        let run =
            Paced::new(words).env("PACED_FRONTIER", url).dir(ground.data.path()).run().expect_code(code);
        let log = &run.stderr;
        assert!(log.contains("127.0.0.1") || log.contains("redis.sock"), "{words:?}: {log}");
        assert!(!log.contains("secret"), "{words:?}: {log}");
    }
}
