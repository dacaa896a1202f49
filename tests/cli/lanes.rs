//! Lanes and tenants: which of `paced.toml` are in force, and where a page waits that is put.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::expected::*;
use crate::support::*;

const LANES: &str =
    "[lanes]\ngeneral = 6\nslow = 3\n[[fairness]]\nlane = \"slow\"\nthreshold = 2\nstage = \"download\"\n";

/// A site's file whose first lines are these.
fn site_with(data: &TempData, site: &TestSite, name: &str, lines: &str) -> PathBuf {
    let text = format!("{lines}{}{RULES}", site.toml(name, Duration::from_millis(10)));
    data.write(&format!("{name}.toml"), &text)
}

#[test]
fn f2_f5_f16_a_tenant_s_flood_waits_in_its_lane_and_pages_put_by_hand_go_first() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_with(&data, &site, "shop", "tenant = \"acme\"\n");
    let config = data.write("paced.toml", LANES);
    let paced = |words: &[&str]| Paced::new(words).arg("--config").arg(&config).data(&data);
    paced(&["crawl", "--workers", "1"]).arg(&file).run().expect_code(0);
    let put = |words: &[&str], path: &str| {
        paced(&["put", "shop"]).args(words).arg(site.url(path)).run().expect_code(0);
    };
    // The crawl's own four pages were more than the threshold.
    put(&["--priority", "user"], "/p/9");
    put(&["--priority", "user", "--tenant", "beta"], "/p/2");
    put(&["--priority", "user", "--lane", "slow"], "/p/3");
    put(&[], "/p/1");
    let told = paced(&["status"]).run().expect_code(0).stdout;
    let by_lane = "downloads: 1 in now, 1 in general, 2 in slow\n";
    assert!(told.contains(&format!("\nshop: {by_lane}")), "{told}");
    assert_eq!(status(&data)["download"]["lanes"], serde_json::json!({ "now": 1, "slow": 2 }));
    let explain = |what: &str| paced(&["explain", what]).run().expect_code(0).stdout;
    let told = explain("shop");
    assert!(
        told.contains(&format!("  by lane     {by_lane}")) && told.contains("  tenant      acme\n"),
        "{told}"
    );
    for (path, ends) in [
        ("/p/9", ", lane slow, tenant acme\n"),
        ("/p/2", "0 links from a seed, tenant beta\n"),
        ("/p/1", ", lane now, tenant acme\n"),
    ] {
        let told = explain(&site.url(path));
        assert!(told.contains(ends), "no `{ends}` in\n{told}");
    }
    let before = site.requests().len();
    paced(&["crawl", "--workers", "1"]).arg(&file).run().expect_code(0);
    let asked: Vec<String> = site.requests().split_off(before).into_iter().map(|asked| asked.path).collect();
    assert_eq!((asked[0].as_str(), asked.len()), ("/p/1", 4), "{asked:?}");
}

#[test]
fn f15_a_lane_that_is_nowhere_is_refused_with_those_that_there_are() {
    let (data, site, _) = crawled();
    let file = site_with(&data, &site, "other", "lane = \"slo\"\n");
    let config = data.write("paced.toml", LANES);
    let told = "other.toml:1:8: there is no lane `slo`; \
                write it into [lanes] of paced.toml, or name one that is there: general, slow";
    for verb in ["check", "crawl", "seed"] {
        let run = Paced::new([verb]).arg(&file).arg("--config").arg(&config).data(&data).run().expect_code(2);
        assert!((run.stdout.clone() + &run.stderr).contains(told), "no `{told}` in\n{run:?}");
    }
    let run = Paced::new(["seed"]).arg(&file).data(&data).run().expect_code(1);
    let told = "site `other` waits in the lane `slo`, which isn't there; \
                write it into [lanes] of paced.toml, or name one of general";
    assert!(run.stderr.contains(told), "without a paced.toml the frontier knows the lanes: {run:?}");
    for (words, told) in [
        (["--lane", "slo"], "there is no lane `slo`; name now, or one of general"),
        (["--tenant", "a b"], "`a b` is no tenant; write letters, digits, `-`, `_` and `.`"),
    ] {
        let put = Paced::new(["put", "shop"]).arg(site.url("/p/9")).args(words).data(&data);
        let run = put.run().expect_code(2);
        assert!(run.stderr.contains(told), "no `{told}` in\n{}", run.stderr);
    }
    assert_eq!(status(&data)["waiting"], 0);
}

#[test]
fn n8_rules_that_were_replaced_do_not_come_back_by_a_restart_and_both_machines_are_told() {
    let (data, _site, file) = crawled();
    let seed = |config: &Path| {
        Paced::new(["seed"]).arg(&file).arg("--config").arg(config).data(&data).run().expect_code(0).stderr
    };
    let old = data.write("old.toml", "[lanes]\nslow = 1\n");
    let new = data.write("new.toml", "[lanes]\nslow = 2\n");
    let in_force = "order, pick, lanes and rules of paced.toml are in force for all machines";
    let older = "this paced.toml is older than the one in force: the newer order, pick, lanes and rules stay";
    for (config, first, again) in
        [(&old, Some(in_force), None), (&new, Some(in_force), None), (&old, Some(older), Some(older))]
    {
        for told in [first, again] {
            let log = seed(config);
            for said in [in_force, older] {
                assert_eq!(log.contains(said), told == Some(said), "{}: {log}", config.display());
            }
        }
    }
    data.write("old.toml", "# once more\n[lanes]\nslow = 1\n");
    assert!(seed(&old).contains(in_force), "another text is a newer one");
}

#[test]
fn m10_a_put_past_the_site_s_mark_is_refused_with_the_mark_named_and_nothing_is_changed_by_it() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_with(&data, &site, "shop", "");
    let config = data.write("paced.toml", "[high_water]\nsite = 2\n");
    let paced = |words: &[&str]| Paced::new(words).arg("--config").arg(&config).data(&data);
    paced(&["crawl", "--workers", "1"]).arg(&file).run().expect_code(0);
    let put = |paths: &[&str], words: &[&str]| {
        paced(&["put", "shop", "--at", "2h"]).args(paths.iter().map(|path| site.url(path))).args(words).run()
    };
    let run = put(&["/p/7", "/p/8", "/p/9"], &[]).expect_code(1);
    let replies: Vec<&str> = run.stdout.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(replies, ["created", "created", "refused"]);
    let mark =
        "site `shop` is full: its mark is 2 waiting and delayed pages ([high_water] site of paced.toml)";
    assert!(run.stderr.contains(&format!("paced: {mark}: put what is refused again later\n")), "{run:?}");
    assert_eq!(run.stderr.matches("[high_water]").count(), 1, "it is said once");
    let run = put(&["/p/9", "/p/8"], &["--json"]).expect_code(1);
    let told: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&told[0]["reply"], &told[0]["why"]), (&"refused".into(), &mark.into()));
    assert_eq!((&told[1]["reply"], &told[1]["why"]), (&"coalesced".into(), &serde_json::Value::Null));
    let told = paced(&["explain", "shop"]).run().expect_code(0).stdout;
    assert!(told.contains(&format!("  full        {mark}: puts are refused")), "{told}");
    assert_eq!(status(&data)["download"]["scheduled"], 2);
}

#[test]
fn m10_a_refused_put_names_the_mark_that_it_met_and_status_and_explain_tell_it() {
    for (key, most, told) in [
        ("site_bytes", "\"250B\"", "site `shop` is full: its mark is 250B of waiting and delayed pages"),
        ("frontier", "2", "the frontier is full: its mark is 2 waiting and delayed pages of all sites"),
    ] {
        let (data, site) = (TempData::new(), small_site());
        let file = site_with(&data, &site, "shop", "");
        let config = data.write("paced.toml", &format!("[high_water]\n{key} = {most}\n"));
        let paced = |words: &[&str]| Paced::new(words).arg("--config").arg(&config).data(&data);
        paced(&["crawl", "--workers", "1"]).arg(&file).run().expect_code(0);
        let pages = ["/p/7", "/p/8", "/p/9"].map(|path| site.url(path));
        let run = paced(&["put", "shop", "--at", "2h", "--json"]).args(&pages).run().expect_code(1);
        let last: serde_json::Value =
            serde_json::from_str(run.stdout.lines().last().expect("three")).expect("JSON");
        let told = format!("{told} ([high_water] {key} of paced.toml)");
        assert_eq!((&last["reply"], &last["mark"]), (&"refused".into(), &key.into()), "{run:?}");
        assert_eq!(last["why"], told);
        let shown = paced(&["explain", "shop"]).run().expect_code(0).stdout;
        assert!(shown.contains(&format!("  full        {told}: puts are refused")), "{shown}");
        let shown = paced(&["status"]).run().expect_code(0).stdout;
        assert!(shown.lines().any(|line| line == told), "{shown}");
        let explained = paced(&["explain", "shop", "--json"]).run().expect_code(0).stdout;
        let explained: serde_json::Value = serde_json::from_str(&explained).expect("JSON");
        assert_eq!(explained["marks"], serde_json::json!([key]));
        assert!(explained["waiting_bytes"].as_u64() > Some(200), "{explained}");
    }
}

#[test]
fn c5_a_site_goes_by_deadlines_from_its_next_run_on_and_what_is_in_force_is_told() {
    let (data, site) = (TempData::new(), small_site());
    let file = site_with(&data, &site, "shop", "");
    let config = data.write("fleet.toml", "order = \"deadline\"\npick = \"earliest\"\n");
    let explain = |what: &str| Paced::new(["explain", what]).data(&data).run().expect_code(0).stdout;
    let verb = |verb: &str| Paced::new([verb]).arg(&file).data(&data);
    verb("crawl").run().expect_code(0);
    assert!(!explain("shop").contains("order"), "it goes as ever");
    let put = |path: &str, priority: &str| {
        let words = ["put", "shop", "--priority", priority];
        Paced::new(words).arg(site.url(path)).data(&data).run().expect_code(0);
    };
    // It stays unfinished: another text of rules doesn't change its order.
    put("/p/2", "system:low");
    verb("seed").arg("--config").arg(&config).run().expect_code(0);
    let told = explain("shop");
    let expected = "  order       strict; deadline from its next run on: paced.toml\n  pick        earliest: paced.toml\n";
    assert!(told.contains(expected), "{told}");
    verb("crawl").run().expect_code(0);
    verb("seed").run().expect_code(0);
    let told = explain("shop");
    assert!(told.contains("  order       deadline: paced.toml\n"), "{told}");
    assert_eq!(status(&data)["order"], "deadline");
    put("/p/3", "system:low");
    put("/p/1", "user-2");
    let told = explain(&site.url("/p/3"));
    assert!(told.contains(", priority system:low, 0 links from a seed, to go by "), "{told}");
    let run = Paced::new(["queue", "shop", "list"]).data(&data).run().expect_code(0).stdout;
    let paths: Vec<&str> = run.lines().filter_map(|line| line.rsplit('/').next()).collect();
    assert_eq!(paths, ["", "1", "3"], "the seed was put first: {run}");
}
