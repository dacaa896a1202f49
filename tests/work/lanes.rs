//! Lanes and tenants from end to end: what `paced put` asks for, and what a page's links and redirects are.

use std::time::Instant;

use crate::ground::*;
use crate::support::*;

const RULES: &str = "[lanes]\ngeneral = 6\nslow = 1\n\
    [[fairness]]\nlane = \"slow\"\nthreshold = 2\nper = \"1h\"\n";

/// A site whose second start is a while off, registered under these rules.
fn registered(shared: &Shared, site: &TestSite, rules: &str) -> Ground {
    let file = SiteFile::of("shop", site).interval(ms(1_000)).pace("robots = \"ignore\"");
    let ground = Ground::on(shared, [file]);
    ground.data.write("paced.toml", rules);
    with_rules(&ground, ground.verb_on_all("seed")).run().expect_code(0);
    ground
}

fn with_rules(ground: &Ground, verb: Paced) -> Paced {
    verb.args(["--config", &ground.data.file("paced.toml").display().to_string()])
}

fn put(ground: &Ground, site: &TestSite, path: &str, options: &[&str]) -> Run {
    ground.verb("put").args(["shop", &site.url(path)]).args(options).run()
}

/// Where a page's download stands: its place, lane and tenant.
fn stands(ground: &Ground, site: &TestSite, path: &str) -> Option<(String, Option<String>, Option<String>)> {
    let url = paced::internals::canonical_url::CanonicalUrl::parse(&site.url(path)).expect("a URL");
    let found = wait(ground.frontier().whereabouts("shop", &url)).expect("answers");
    let task = found.tasks.into_iter().next()?;
    Some((task.place, task.lane, task.tenant))
}

fn lane(ground: &Ground, site: &TestSite, path: &str) -> Option<String> {
    stands(ground, site, path).expect("it waits").1
}

#[test]
fn f2_f7_f8_what_a_team_puts_goes_to_the_slow_lane_beyond_its_share_and_where_a_lane_is_named_there() {
    on_each_frontier(|shared| {
        let site = star(3).serve();
        let ground = registered(shared, &site, RULES);
        for path in ["/a1", "/a2", "/a3"] {
            put(&ground, &site, path, &["--priority", "user", "--tenant", "acme"]).expect_code(0);
        }
        put(&ground, &site, "/b1", &["--priority", "user", "--tenant", "bolt"]).expect_code(0);
        put(&ground, &site, "/c1", &["--priority", "user", "--lane", "slow"]).expect_code(0);
        put(&ground, &site, "/d1", &["--priority", "user"]).expect_code(0);
        put(&ground, &site, "/e1", &[]).expect_code(0);
        let slow = Some("slow".to_owned());
        let lanes = ["/a1", "/a2", "/a3", "/b1", "/c1", "/d1", "/e1"].map(|path| lane(&ground, &site, path));
        assert_eq!(lanes, [None, None, slow.clone(), None, slow, None, Some("now".to_owned())]);
        assert_eq!(stands(&ground, &site, "/a3").and_then(|(_, _, tenant)| tenant), Some("acme".to_owned()));
        let status = &ground.status()["shop"];
        assert_eq!(status["download"]["lanes"], serde_json::json!({ "now": 1, "slow": 2 }), "{status}");
        let told = ground.verb("explain").arg(site.url("/a3")).run().expect_code(0).stdout;
        assert!(told.contains("slow") && told.contains("acme"), "{told}");
    });
}

#[test]
fn f15_a_lane_that_does_not_exist_is_refused_with_those_that_do() {
    let site = star(1).serve();
    let ground = registered(&Shared::default(), &site, RULES);
    let told = put(&ground, &site, "/x", &["--lane", "fast"]).expect_code(2).stderr;
    for word in ["fast", "general", "now", "slow"] {
        assert!(told.contains(word), "{told}");
    }
    assert_eq!(stands(&ground, &site, "/x"), None);
    let file = SiteFile::of("other", &site).top("lane = \"fast\"");
    let lone = Ground::new([file]);
    lone.data.write("paced.toml", RULES);
    let told = with_rules(&lone, lone.verb_on_all("crawl")).run().expect_code(2).stderr;
    assert!(told.contains("fast") && told.contains("slow"), "{told}");
}

#[test]
fn f14_links_and_redirects_of_a_tenants_page_are_that_tenants_and_pass_the_gate_anew() {
    on_each_frontier(|shared| {
        let links = (0..4).map(|n| format!("/link{n}"));
        let site = star(0)
            .page("/list", page("list", links))
            .redirect("/moved", 302, "/here")
            .page("/here", page("here", [""; 0]))
            .serve();
        let ground = registered(shared, &site, RULES);
        let as_acme = ["--tenant", "acme", "--lane", "now"];
        put(&ground, &site, "/list", &as_acme).expect_code(0);
        put(&ground, &site, "/moved", &as_acme).expect_code(0);
        let worker = with_rules(&ground, ground.verb("work")).start();
        let wait_for = |path: &str| eventually(path, || stands(&ground, &site, path));
        for path in ["/link3", "/here"] {
            assert_eq!(wait_for(path).2, Some("acme".to_owned()), "{path}");
        }
        let slow = (0..4).filter(|n| {
            stands(&ground, &site, &format!("/link{n}"))
                .is_some_and(|(_, lane, _)| lane.as_deref() == Some("slow"))
        });
        assert!(slow.count() >= 1, "more than two of a tenant's are slow");
        eventually("all pages", || (site.count("/here") > 0 && site.count("/link3") > 0).then_some(()));
        worker.terminate();
        worker.finish().expect_code(0);
    });
}

#[test]
fn n8_a_machine_that_starts_with_an_old_paced_toml_turns_no_fleet_back_and_says_so() {
    on_each_frontier(|shared| {
        let site = star(1).serve();
        let ground = registered(shared, &site, RULES);
        let newer = RULES.replace("threshold = 2", "threshold = 5");
        ground.data.write("paced.toml", &newer);
        let told = with_rules(&ground, ground.verb_on_all("seed")).run().expect_code(0).stderr;
        assert!(told.contains("in force for all machines"), "{told}");
        ground.data.write("paced.toml", RULES);
        let told = with_rules(&ground, ground.verb_on_all("seed")).run().expect_code(0).stderr;
        assert!(told.contains("older than the one in force"), "{told}");
        let rules = wait(ground.frontier().fleet_rules()).expect("answers");
        assert_eq!(rules.fairness[0].threshold, 5);
        ground.data.write("paced.toml", &format!("# back on purpose\n{RULES}"));
        with_rules(&ground, ground.verb_on_all("seed")).run().expect_code(0);
        let rules = wait(ground.frontier().fleet_rules()).expect("answers");
        assert_eq!(rules.fairness[0].threshold, 2);
    });
}

#[test]
fn m10_links_past_the_mark_wait_with_their_page_and_each_page_is_fetched_once() {
    let (other, began) = (star(3).serve(), Instant::now());
    let links = ["/p/1", "/p/2", "/p/3", "/p/4"].map(str::to_owned);
    let links = ["/p/1", "/p/2", "/p/3"].map(|path| other.url(path)).into_iter().chain(links);
    let site = star(4).page("/", page("front", links)).serve();
    // The one that is full comes first.
    let full = SiteFile::of("another", &other).interval(ms(50)).pace("robots = \"ignore\"");
    let shop = SiteFile::of("shop", &site).interval(ms(50)).pace("robots = \"ignore\"");
    let ground = Ground::new([full, shop]);
    ground.data.write("paced.toml", "[high_water]\nsite = 2\n");
    let run = with_rules(&ground, ground.verb_on_all("crawl")).run().expect_code(0);
    for path in ["/", "/p/1", "/p/2", "/p/3", "/p/4"] {
        assert_eq!(site.count(path), 1, "{path}\n{}", run.stderr);
    }
    assert_eq!(["/p/1", "/p/2", "/p/3"].map(|path| other.count(path)), [1; 3]);
    let shop = &ground.status()["shop"];
    assert_eq!((&shop["parse"]["done"], &shop["parse"]["retried"]), (&5.into(), &0.into()), "{shop}");
    assert!(began.elapsed() > ms(30_000), "nothing was refused");
    assert!(run.stderr.contains("links wait with their pages and items"), "{}", run.stderr);
}
