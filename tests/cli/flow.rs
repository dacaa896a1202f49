//! What flows through queues: rates, waits and coalesced puts, as `status` and `explain` tell them.

use regex::Regex;
use serde_json::Value;

use crate::expected::*;
use crate::support::*;

/// A crawled site with room for four pages, where one was put three times and another one for a tenant.
fn filling() -> (TempData, TestSite) {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    let config = data.write("paced.toml", "[high_water]\nsite = 4\n");
    let paced = |words: &[&str]| Paced::new(words).arg("--config").arg(&config).data(&data);
    paced(&["crawl"]).arg(&file).run().expect_code(0);
    for reply in ["created", "coalesced", "coalesced"] {
        let run = paced(&["put", "shop"]).arg(site.url("/p/9")).run().expect_code(0);
        assert!(run.stdout.contains(reply), "{run:?}");
    }
    paced(&["put", "shop", "--priority", "user", "--tenant", "acme"])
        .arg(site.url("/p/1"))
        .run()
        .expect_code(0);
    (data, site)
}

/// The lines behind the table, without the site's name.
fn told(data: &TempData) -> Vec<String> {
    let run = Paced::new(["status", "shop"]).data(data).run().expect_code(0);
    run.stdout.lines().filter_map(|line| line.strip_prefix("shop: ")).map(str::to_owned).collect()
}

#[test]
fn n1_status_tells_what_comes_in_and_leaves_and_when_the_queue_is_full() {
    let (data, _site) = filling();
    let told = told(&data);
    let is_told = |line: &str| Regex::new(line).expect("a pattern").is_match(&told.join("\n"));
    // Two more than left in five minutes, and room for two more.
    let rate = r"\d\.?\d*/min";
    assert!(
        is_told(&format!(r"(?m)^5 min: {rate} in, {rate} out; full in 5(\.\d)? min at this rate$")),
        "{told:?}"
    );
    assert!(is_told("(?m)^1 h: 7/h in, 5/h out; full in 1 h at this rate$"), "{told:?}");
    let flow = &status(&data)["flow"];
    let full = |window: &str| flow[window]["full_in_s"].as_u64().expect("it fills");
    assert!(
        (299..310).contains(&full("last_5_min")) && (3_590..3_700).contains(&full("last_hour")),
        "{flow}"
    );
    let rate = |name: &str| flow["last_hour"][name].as_f64().expect("a rate") * 3_600.0;
    assert!((rate("in_per_s") - 7.0).abs() < 0.1 && (rate("out_per_s") - 5.0).abs() < 0.1, "{flow}");
    let table = Paced::new(["status"]).data(&data).run().expect_code(0).stdout;
    let row: Vec<&str> = table.lines().nth(1).expect("the site").split_whitespace().collect();
    let full = row[row.len() - 3];
    assert!(full.starts_with("5m") || full.starts_with("4m59"), "{table}");
}

#[test]
fn n2_status_and_explain_tell_how_long_pages_waited_by_lane_level_and_tenant() {
    let (data, site) = filling();
    let lines = told(&data);
    let waits: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("waits: ")).collect();
    let is_told =
        |begin: &str, end: &str| waits.iter().any(|line| line.starts_with(begin) && line.contains(end));
    assert!(is_told("half of them within ", "; the oldest has waited for "), "{lines:?}");
    assert!(is_told("in now: the oldest has waited for ", ""), "{lines:?}");
    assert!(is_told("in general: half of them within ", "; the oldest has waited for "), "{lines:?}");
    assert!(
        is_told("of operator:middle: the oldest", "") && is_told("of user:middle: half", ""),
        "{lines:?}"
    );
    let config = data.file("paced.toml");
    Paced::new(["crawl"])
        .arg("--config")
        .arg(&config)
        .arg(data.file("shop.toml"))
        .data(&data)
        .run()
        .expect_code(0);
    let tenant =
        told(&data).into_iter().find(|line| line.starts_with("waits: for acme: half of them within "));
    assert!(tenant.is_some_and(|line| !line.contains("oldest")), "its oldest isn't known");
    let flow = status(&data)["flow"].clone();
    for part in [
        &flow["wait"],
        &flow["wait_by_lane"]["now"],
        &flow["wait_by_level"]["operator:middle"],
        &flow["wait_by_tenant"]["acme"],
    ] {
        assert!(part["p50_s"].is_u64() && part["p95_s"].is_u64() && part["oldest"] == Value::Null, "{flow}");
    }
    let all = Paced::new(["status"]).data(&data).run().expect_code(0).stdout;
    assert!(
        all.contains("\nwaits of operator:middle: half") && all.contains("\nwaits for acme: half"),
        "{all}"
    );
    let explained = Paced::new(["explain", "shop"]).data(&data).run().expect_code(0).stdout;
    assert!(explained.contains("\n  waits       for acme: half of them within "), "{explained}");
    drop(site);
}

#[test]
fn n3_status_tells_the_share_of_puts_that_were_coalesced() {
    let (data, _site) = filling();
    // Those of five pages, three more of one, and one of another one.
    let told = told(&data);
    assert!(
        told.contains(&"coalesced: 22% of the puts in the last hour, 22% of the puts in the run".to_owned()),
        "{told:?}"
    );
    let run = Paced::new(["explain", "shop", "--json"]).data(&data).run().expect_code(0);
    for object in [status(&data), json_lines_of(&run.stdout).remove(0)] {
        let share = |of: &str| object["flow"]["coalesced_share"][of].as_f64().expect("a share");
        assert!(
            [share("last_hour"), share("run")].iter().all(|share| (share - 2.0 / 9.0).abs() < 1e-9),
            "{object}"
        );
    }
}
