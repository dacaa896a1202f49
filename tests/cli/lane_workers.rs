//! Workers that serve some lanes alone (N7).

use std::time::Duration;

use crate::expected::*;
use crate::support::*;

const FLOOD: usize = 60;

/// A shop of many pages, registered, where a flood waits.
fn flooded() -> (TempData, TestSite) {
    let pages = (0..FLOOD).map(|n| (format!("/p/{n}"), format!("<h1>Thing {n}</h1>")));
    let site =
        pages.fold(TestSite::builder().page("/", "empty"), |site, (path, page)| site.page(&path, page));
    let (data, site) = (TempData::new(), site.page("/p/now", "<h1>Now</h1>").serve());
    let file = data.write("shop.toml", &(site.toml("shop", Duration::from_millis(100)) + RULES));
    Paced::new(["seed"]).arg(&file).data(&data).run().expect_code(0);
    let flood: Vec<String> = (0..FLOOD).map(|n| site.url(&format!("/p/{n}"))).collect();
    let put = Paced::new(["put", "shop", "-", "--priority", "user"]).data(&data).stdin(&flood.join("\n"));
    put.run().expect_code(0);
    (data, site)
}

fn worker(data: &TempData, name: &str, lanes: &str) -> Running {
    let mut worker = Paced::new(["work", "--name", name, "--lanes", lanes]).data(data).start();
    worker.wait_for_stderr("at work on");
    worker
}

fn explain(data: &TempData) -> String {
    Paced::new(["explain", "shop"]).data(data).run().expect_code(0).stdout
}

fn with_role(data: &TempData, role: &str) -> Running {
    let mut worker = Paced::new(["work", "--role", role]).data(data).start();
    worker.wait_for_stderr("at work on");
    worker
}

/// What a worker did in all, as its last line says.
fn pages_of(worker: Running) -> u64 {
    worker.terminate();
    let log = worker.finish().expect_code(0).stderr;
    let last = log.lines().rfind(|line| line.contains("this worker did")).expect("it tells");
    let pages = last.split_whitespace().find_map(|word| word.strip_prefix("pages="));
    pages.and_then(|pages| pages.parse().ok()).expect("a number")
}

#[test]
fn n7_an_urgent_page_goes_to_the_worker_that_is_kept_for_it_while_another_one_is_in_a_flood() {
    let (data, site) = flooded();
    let flood = worker(&data, "flood", "general");
    let urgent = worker(&data, "urgent", "now");
    let fleet = Paced::new(["status", "--fleet"]).data(&data).run().expect_code(0).stdout;
    assert!(fleet.contains("lane general") && fleet.contains("lane now"), "{fleet}");
    eventually("the flood", || (site.requests().len() > 4).then_some(()));
    Paced::new(["put", "shop"]).arg(site.url("/p/now")).data(&data).run().expect_code(0);
    eventually("the urgent page", || {
        site.requests().iter().any(|asked| asked.path == "/p/now").then_some(())
    });
    let met = site.requests().len();
    assert!(met < FLOOD, "it went before the rest of the flood: {met}");
    eventually("its item", || {
        let shop = status(&data);
        (shop["download"]["lanes"] == serde_json::json!({})
            && shop["parse"]["lanes"] == serde_json::json!({}))
        .then_some(())
    });
    assert_eq!(pages_of(urgent), 1, "it did that one and nothing of the flood");
    Paced::new(["put", "shop", "--again"]).arg(site.url("/p/now")).data(&data).run().expect_code(0);
    let told = Paced::new(["status"]).data(&data).run().expect_code(0).stdout;
    assert!(told.contains("shop: no worker serves the lane now: 1 download in it\n"), "{told}");
    assert_eq!(
        status(&data)["unserved_lanes"],
        serde_json::json!([{ "lane": "now", "downloads": 1, "parses": 0 }])
    );
    assert!(explain(&data).contains("unserved    no worker serves the lane now: 1 download in it\n"));
    assert!(pages_of(flood) > 0);
    let told = Paced::new(["status"]).data(&data).run().expect_code(0).stdout;
    assert!(!told.contains("no worker serves"), "nobody works at all: {told}");
}

#[test]
fn n7_a_site_whose_pages_nobody_takes_is_said_to_wait_for_a_worker() {
    let (data, _site) = flooded();
    // The front page waits as well.
    let all = FLOOD + 1;
    let begins = |how: &str| explain(&data).starts_with(&format!("shop: {how}\n")).then_some(());
    let state = || status(&data)["state"].clone();
    let urgent = worker(&data, "urgent", "now");
    let unserved = format!("no worker serves the lane general: {all} downloads in it");
    eventually("nobody serves the lane", || begins(&unserved));
    assert_eq!(state(), "stopped");
    urgent.terminate();
    urgent.finish().expect_code(0);
    eventually("nobody works at all", || {
        begins("no process works on it: start `paced crawl` or `paced work`")
    });

    let parses = with_role(&data, "parse");
    eventually("nobody downloads", || {
        begins(&format!("no worker takes downloads: {all} wait (`paced work --role download`)"))
    });
    assert_eq!(status(&data)["unserved_stages"], serde_json::json!([{ "stage": "download", "ready": all }]));
    assert_eq!(status(&data)["unserved_lanes"], serde_json::json!([]), "the lane isn't what lacks");
    Paced::new(["pause", "shop", "--why", "a sale"]).data(&data).run().expect_code(0);
    assert!(!explain(&data).starts_with("shop: no worker"), "a pause is the reason: {}", explain(&data));
    Paced::new(["resume", "shop"]).data(&data).run().expect_code(0);
    parses.terminate();
    parses.finish().expect_code(0);

    let downloads = with_role(&data, "download");
    eventually("nobody parses", || {
        begins(&format!("no worker takes parses: {all} wait (`paced work --role parse`)"))
    });
    downloads.terminate();
    downloads.finish().expect_code(0);
}

#[test]
fn n7_f15_a_lane_that_is_nowhere_is_refused_with_those_that_there_are_and_so_is_what_does_not_go_with_lanes()
{
    let (data, _site) = flooded();
    let refused = |words: &[&str], why: &str| {
        let run = Paced::new(["work"]).args(words).data(&data).run().expect_code(2);
        assert!(run.stderr.contains(why), "no `{why}` in\n{}", run.stderr);
    };
    refused(&["--lanes", "now,slo"], "there is no lane `slo`; name now, or one of general");
    refused(&["--lanes", "now,"], "write names of lanes, with commas between them");
    refused(&["--lanes", "now", "--only-sites", "shop"], "cannot be used with");
    refused(&["--lanes", "now", "--until-empty"], "cannot be used with");
}
