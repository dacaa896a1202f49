//! `try`: one page by a site's rules, fetched at the site's pace, stored before, or from a file.

use std::time::Duration;

use regex::Regex;
use serde_json::{Value, json};

use crate::expected::*;
use crate::support::*;

const INTERVAL: Duration = Duration::from_millis(300);

const THINGS: &str = "[scope]\ndeny = [\"/cart\"]\n\n[[page]]\nname = \"front\"\nmatch = \"/\"\nfollow = \"*\"\n\n\
                      [[page]]\nname = \"thing\"\nmatch = \"/p/*\"\nitem = true\nproduct = true\n  [page.fields]\n  \
                      title = { css = \"h1\", required = true }\n  upc = { css = \".upc\", required = true }\n  \
                      stock = { css = \".stock\", as = \"integer\", default = 0 }\n";

/// A shop with a front page, a whole thing, one without its `upc`, redirects, and a `robots.txt`.
fn shop() -> TestSite {
    let links = "<a href=\"/p/1\">1</a><a href=\"/p/2?utm_source=a\">2</a><a href=\"/p/secret\">3</a>\
                 <a href=\"/cart/1\">4</a><a href=\"/about\">5</a><a href=\"http://other.example/\">6</a>";
    let product = "<h1>Thing 1</h1><b class=upc>42</b><script type=\"application/ld+json\">\
                   {\"@type\":\"Product\",\"name\":\"Thing\",\"offers\":{\"price\":\"3\",\"priceCurrency\":\"EUR\"}}</script>";
    TestSite::builder()
        .robots("User-agent: *\nDisallow: /p/secret\n")
        .page("/", links)
        .page("/p/1", product)
        .page("/p/2", "<h1>Thing 2</h1>")
        .redirect("/p/moved", 301, "/p/1")
        .redirect("/p/away", 302, "http://other.example/")
        .serve()
}

fn file(data: &TempData, site: &TestSite) -> std::path::PathBuf {
    data.write("shop.toml", &(site.toml("shop", INTERVAL) + THINGS))
}

fn tried(data: &TempData, site: &TestSite, path: &str, words: &[&str]) -> Run {
    Paced::new(["try", &site.url(path)].iter().chain(&words.to_vec())).data(data).dir(data.path()).run()
}

/// What differs from run to run: ports, times.
fn plain(text: &str, site: &TestSite) -> String {
    let text = text.replace(&site.addr().to_string(), "shop.test");
    let text = Regex::new(r"\d{4}-\d\d-\d\dT[\d:.]+Z").expect("a pattern").replace_all(&text, "TIME");
    Regex::new(r"answered in [\d.]+ m?s")
        .expect("a pattern")
        .replace_all(&text, "answered in N ms")
        .into_owned()
}

#[track_caller]
fn object(run: &Run) -> Value {
    json_lines_of(&run.stdout).pop().unwrap_or_else(|| panic!("no object: {run:?}"))
}

#[test]
fn a_page_is_fetched_and_shown_with_links_or_fields() {
    let (data, site) = (TempData::new(), shop());
    file(&data, &site);
    let mut shown = String::new();
    for (path, code) in
        [("/", 0), ("/p/1", 0), ("/p/2", 1), ("/p/secret", 1), ("/cart/1", 1), ("/about", 1), ("/p/none", 1)]
    {
        let run = tried(&data, &site, path, &["--site", "shop.toml", "-q"]).expect_code(code);
        shown += &plain(&run.stdout, &site);
    }
    assert_text("try.txt", &shown);
    for path in ["/p/secret", "/cart/1", "/about"] {
        assert_eq!(site.count(path), 0, "{path} is not for this crawl");
    }
}

#[test]
fn l7_every_request_pays_the_pace_and_is_kept_for_the_audit() {
    let (data, site) = (TempData::new(), shop());
    let file = file(&data, &site);
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    let before = site.requests().len();
    for path in ["/p/1", "/p/2"] {
        tried(&data, &site, path, &["--site", "shop.toml"]);
    }
    assert_eq!(site.requests().len(), before + 2, "the robots.txt of the crawl holds");
    let gaps = site.gaps(INTERVAL);
    assert_eq!(gaps.early.len(), 0, "{gaps:?}");
    let audit = Paced::new(["audit", "shop", "--json"]).data(&data).run().expect_code(0);
    let unit = json_lines_of(&audit.stdout).remove(0);
    assert_eq!((&unit["starts"], &unit["early"]), (&json!(before + 2), &json!(0)), "{unit}");
    assert_eq!(unit["interval_ms"], json!({ "min": 300, "max": 300 }));
    let late = unit["lateness_ms"]["p99"].as_u64().expect("those of `try` are on record as well");
    assert!(late <= 30, "within the grace: {unit}");
}

#[test]
fn a_site_that_is_not_registered_is_paced_as_well_and_nothing_is_put_or_written() {
    let (data, site) = (TempData::new(), shop());
    file(&data, &site);
    tried(&data, &site, "/", &["--site", "shop.toml"]).expect_code(0);
    tried(&data, &site, "/p/1", &["--site", "shop.toml"]).expect_code(0);
    let paths: Vec<String> = site.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/robots.txt", "/", "/robots.txt", "/p/1"]);
    let gaps = site.gaps(INTERVAL);
    assert_eq!(gaps.early.len(), 0, "{gaps:?}");
    let status = Paced::new(["status", "--json"]).data(&data).run().expect_code(0);
    assert_eq!(status.stdout, "", "no site came into the frontier");
    assert!(!data.file("items").exists());
}

#[test]
fn a_crawl_delay_read_just_now_holds_for_the_page() {
    let (data, site) = (TempData::new(), shop());
    file(&data, &site);
    site.put("/robots.txt", Reply::text("User-agent: *\nCrawl-delay: 1\n".to_owned()));
    tried(&data, &site, "/p/1", &["--site", "shop.toml"]).expect_code(0);
    let gaps = site.gaps(Duration::from_secs(1));
    assert_eq!(gaps.early.len(), 0, "{gaps:?}");
    site.put("/robots.txt", Reply::text("User-agent: *\nCrawl-delay: 100\n".to_owned()));
    let run = tried(&data, &site, "/p/1", &["--site", "shop.toml"]).expect_code(1);
    assert!(run.stdout.contains("more than max_crawl_delay = 30 s"), "{}", run.stdout);
    assert_eq!(site.count("/p/1"), 1);
}

#[test]
fn i1_in_a_group_a_try_waits_for_its_own_site_as_well_and_owes_the_others_their_group_s_interval() {
    let (data, slow, quick) = (TempData::new(), shop(), shop());
    data.write("paced.toml", "[group.pair]\ninterval = \"300ms\"\n");
    for (name, site, interval) in [("slow", &slow, 4 * INTERVAL), ("quick", &quick, INTERVAL)] {
        let text = format!("group = \"pair\"\n{}{THINGS}", site.toml(name, interval));
        data.write(&format!("{name}.toml"), &text);
    }
    Paced::new(["crawl", "quick.toml", "slow.toml", "--config", "paced.toml"])
        .data(&data)
        .dir(data.path())
        .run()
        .expect_code(0);
    tried(&data, &slow, "/p/1", &["--site", "slow.toml", "--config", "paced.toml"]).expect_code(0);
    tried(&data, &quick, "/p/1", &["--site", "quick.toml", "--config", "paced.toml"]).expect_code(0);
    let gaps = slow.gaps(4 * INTERVAL);
    assert_eq!(gaps.early.len(), 0, "{gaps:?}");
    let audit = Paced::new(["audit", "--json"]).data(&data).run().expect_code(0);
    let unit = json_lines_of(&audit.stdout).remove(0);
    assert_eq!(
        (&unit["unit"], &unit["starts"], &unit["early"]),
        (&json!("group:pair"), &json!(10), &json!(0)),
        "{unit}"
    );
}

#[test]
fn i1_a_try_of_hosts_of_two_sites_is_on_record_under_the_site_whose_pace_it_kept() {
    let (data, one, two) = (TempData::new(), shop(), shop());
    for (name, site) in [("one", &one), ("two", &two)] {
        data.write(&format!("{name}.toml"), &(site.toml(name, 3 * INTERVAL) + THINGS));
    }
    Paced::new(["crawl", "one.toml", "two.toml"]).data(&data).dir(data.path()).run().expect_code(0);
    one.put("/p/far", Reply::redirect(302, two.url("/p/1")));
    let hosts = format!("[scope]\nhosts = [\"{}\", \"{}\"]\n", one.addr(), two.addr());
    let both = one.toml("both", 3 * INTERVAL) + &THINGS.replacen("[scope]\n", &hosts, 1);
    data.write("both.toml", &both);
    tried(&data, &one, "/p/far", &["--site", "both.toml"]).expect_code(0);
    assert_eq!((one.count("/p/far"), two.count("/p/1")), (1, 2));
    let audit = Paced::new(["audit", "--json"]).data(&data).run().expect_code(0);
    for unit in json_lines_of(&audit.stdout) {
        assert_eq!((&unit["early"], unit["sites"].as_array().map(Vec::len)), (&json!(0), Some(1)), "{unit}");
    }
}

#[test]
fn redirects_are_shown_and_followed_only_where_a_crawl_would() {
    let (data, site) = (TempData::new(), shop());
    file(&data, &site);
    let run = tried(&data, &site, "/p/moved", &["--site", "shop.toml", "--json"]).expect_code(0);
    let shown = object(&run);
    assert_eq!(shown["hops"].as_array().map(Vec::len), Some(2));
    assert!(
        shown["hops"][0]["answer"].as_str().is_some_and(|text| text.starts_with("HTTP 301, redirected to"))
    );
    assert_eq!(shown["page"]["url"], site.url("/p/1"));
    assert_eq!(site.gaps(INTERVAL).early.len(), 0, "each hop pays");
    let run = tried(&data, &site, "/p/away", &["--site", "shop.toml", "--json"]).expect_code(1);
    let away = &object(&run)["hops"][1];
    assert_eq!((&away["url"], &away["refused"]["reason"]), (&json!("http://other.example/"), &json!("host")));
}

#[test]
fn as_json_it_has_what_scripts_rely_on() {
    let (data, site) = (TempData::new(), shop());
    file(&data, &site);
    let front = object(&tried(&data, &site, "/", &["--site", "shop.toml", "--json"]).expect_code(0));
    assert_eq!(front["look"]["links"]["followed"].as_array().map(Vec::len), Some(2), "{front}");
    assert_eq!(
        front["look"]["links"]["refused_counts"],
        json!({"deny": 1, "host": 1, "no-rule": 1, "robots": 1})
    );
    let thing = object(&tried(&data, &site, "/p/1", &["--site", "shop.toml", "--json"]).expect_code(0));
    assert_eq!(thing["hops"][0]["robots"]["allowed"], true);
    assert_eq!((&thing["source"], &thing["taken"]), (&json!("fetched"), &json!(true)));
    assert_eq!(thing["page"]["rule"], "thing");
    let fields: Vec<Value> = thing["look"]["fields"].as_array().expect("a list").clone();
    assert_eq!(fields[1], json!({"name": "upc", "value": "42", "from": "css", "required": true}));
    assert_eq!(fields[2]["from"], "default");
    assert_eq!(fields[3], json!({"name": "name", "value": "Thing", "from": "json-ld", "required": false}));
    assert_eq!(thing["requests"].as_array().map(Vec::len), Some(2));
    let part = object(&tried(&data, &site, "/p/2", &["--site", "shop.toml", "--json"]).expect_code(1));
    assert_eq!((&part["look"]["missing"], &part["look"]["item"]), (&json!(["upc"]), &Value::Null));
    assert_eq!(part["look"]["fields"][0]["value"], "Thing 2", "what was found is shown all the same");
}

#[test]
fn a_page_can_be_read_from_a_file_without_any_frontier() {
    let (data, site) = (TempData::new(), shop());
    file(&data, &site);
    let page = data.write("saved.html", "<meta charset=utf-8><h1>Saved é</h1><b class=upc>1</b>");
    let page = page.to_str().expect("a path");
    let run = tried(&data, &site, "/p/7", &["--site", "shop.toml", "--from", page]).expect_code(0);
    assert!(run.stdout.contains("title  css      \"Saved é\""), "{}", run.stdout);
    assert!(run.stdout.contains("not known here: the host's robots.txt was not asked for"), "{}", run.stdout);
    let piped = Paced::new(["try", &site.url("/p/7"), "--site", "shop.toml", "--from", "-"]).dir(data.path());
    let piped = piped.data(&data).stdin("<h1>Piped</h1>").run().expect_code(1);
    assert!(
        piped.stdout.contains("\"Piped\"") && piped.stdout.contains("not found, and required"),
        "{piped:?}"
    );
    let deep =
        tried(&data, &site, "/p/7", &["--site", "shop.toml", "--from", page, "--depth", "51"]).expect_code(1);
    assert!(deep.stdout.contains("deeper than scope.max_depth = 50"), "{}", deep.stdout);
    assert_eq!(site.requests().len(), 0);
    assert!(!data.file("frontier.db").exists() && !data.file("pages").exists());
    let run = tried(&data, &site, "/p/7", &["--site", "shop.toml", "--from", "none.html"]).expect_code(2);
    assert!(run.stderr.contains("--from none.html: No such file"), "{}", run.stderr);
}

#[test]
fn a_stored_page_is_read_without_a_request_and_by_todays_rules() {
    let (data, site) = (TempData::new(), shop());
    let file = file(&data, &site);
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    let before = site.requests().len();
    let run = tried(&data, &site, "/p/2", &["--stored"]).expect_code(1);
    assert!(run.stdout.contains("site     shop, as registered in the frontier"), "{}", run.stdout);
    assert!(run.stdout.contains("none: required field not found: upc"), "{}", run.stdout);
    data.write("shop.toml", &(site.toml("shop", INTERVAL) + &THINGS.replace("\".upc\"", "\"h1\"")));
    let run = tried(&data, &site, "/p/2", &["--stored", "--site", "shop.toml"]).expect_code(0);
    assert!(run.stdout.contains("upc    css      \"Thing 2\""), "{}", run.stdout);
    let run = tried(&data, &site, "/p/9", &["--stored", "--site", "shop"]).expect_code(1);
    assert!(run.stderr.contains("/p/9: no page of it is stored for site `shop`; fetch it"), "{}", run.stderr);
    std::fs::remove_dir_all(data.file("pages")).expect("the pages go");
    let run = tried(&data, &site, "/p/1", &["--stored"]).expect_code(1);
    assert!(run.stderr.contains("no pages are kept there"), "{}", run.stderr);
    assert_eq!(site.requests().len(), before, "nothing was asked for");
}

#[test]
fn what_cannot_be_tried_is_said() {
    let (data, site) = (TempData::new(), shop());
    for (words, code, told) in [
        (&["try", "/p/1"][..], 2, "`/p/1` is not a URL"),
        (
            &["try", "http://127.0.0.1:1/"],
            2,
            "no site of the frontier has the host 127.0.0.1:1; name its file",
        ),
        (&["try", "http://127.0.0.1:1/", "--site", "books"], 2, "there is no site `books`"),
        (&["try", "http://127.0.0.1:1/", "--stored"], 1, "there is no frontier yet"),
        (&["try", "http://127.0.0.1:1/", "--stored", "--from", "x"], 2, "cannot be used with"),
    ] {
        let data = TempData::new();
        let run = Paced::new(words).data(&data).dir(data.path()).run().expect_code(code);
        assert!(run.stderr.contains(told), "{words:?}: no `{told}` in\n{}", run.stderr);
    }
    file(&data, &site);
    let there = site.addr();
    drop(site);
    let url = format!("http://{there}/p/1");
    let run =
        Paced::new(["try", &url, "--site", "shop.toml"]).data(&data).dir(data.path()).run().expect_code(1);
    assert!(run.stdout.contains("unknown: robots.txt can't be had (not sent: no connection to"), "{run:?}");
}

/// A site is tried and answers once with `Retry-After: 2`; how long after that it was asked for anything.
fn waited_after_a_refusal(path: &str, is_registered: bool, redis: Option<&str>) -> Duration {
    let (data, site) = (TempData::new(), shop());
    let file = file(&data, &site);
    let elsewhere: Vec<&str> = redis.iter().flat_map(|url| ["--frontier", *url]).collect();
    let crawl =
        || Paced::new(["crawl", "--fresh"]).arg(&file).args(&elsewhere).data(&data).run().expect_code(0);
    if is_registered {
        crawl();
    }
    site.put(path, Reply::status(429).header("retry-after", "2"));
    tried(&data, &site, "/p/1", &[&["--site", "shop.toml"], &elsewhere[..]].concat()).expect_code(1);
    site.put(path, Reply::html("<h1>Thing</h1><b class=upc>1</b>"));
    crawl();
    let arrivals = site.arrivals();
    let refused = arrivals.iter().position(|arrival| arrival.status == 429).expect("it was refused");
    let next = arrivals.get(refused + 1).unwrap_or_else(|| panic!("nothing followed: {arrivals:?}"));
    next.at.saturating_sub(arrivals[refused].at)
}

#[test]
fn i11_a_retry_after_that_a_try_meets_holds_a_crawl_of_that_site_back() {
    let redis = redis_or_skip();
    let db = redis.as_ref().map(|redis| redis.url(0));
    for (path, is_registered, db) in [
        ("/p/1", true, None),
        ("/p/1", false, None),
        ("/robots.txt", false, None),
        ("/p/1", true, db.as_deref()),
    ] {
        let waited = waited_after_a_refusal(path, is_registered, db);
        assert!(waited >= Duration::from_secs(2), "{path}, {is_registered}, {db:?}: after {waited:?}");
    }
}

#[test]
fn i11_a_second_try_of_a_site_that_asked_to_be_left_alone_is_refused_at_once() {
    for interval in [INTERVAL, Duration::ZERO] {
        let (data, site) = (TempData::new(), shop());
        data.write("shop.toml", &(site.toml("shop", interval) + THINGS));
        site.put("/p/1", Reply::status(429).header("retry-after", "3600"));
        tried(&data, &site, "/p/1", &["--site", "shop.toml"]).expect_code(1);
        site.put("/p/1", Reply::html("<h1>Thing</h1><b class=upc>1</b>"));
        let asked = site.arrivals().len();
        let run = tried(&data, &site, "/p/1", &["--site", "shop.toml"]).expect_code(1);
        assert!(run.stderr.contains("left alone: its pace is held for"), "{run:?}");
        assert_eq!(site.arrivals().len(), asked, "{run:?}");
    }
}

#[test]
fn v1_a_try_takes_its_turn_on_redis_too() {
    let Some(redis) = redis_or_skip() else { return };
    let (data, site) = (TempData::new(), shop());
    file(&data, &site);
    let db = redis.url(0);
    for path in ["/p/1", "/p/2"] {
        tried(&data, &site, path, &["--site", "shop.toml", "--frontier", &db]);
    }
    let gaps = site.gaps(INTERVAL);
    assert_eq!((site.requests().len(), gaps.early.len()), (4, 0), "{gaps:?}");
    assert!(!data.file("frontier.db").exists());
}
