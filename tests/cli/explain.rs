//! `explain`: a site that stands still, whose each value is, and what became of a URL.

use std::time::Duration;

use regex::Regex;

use crate::expected::*;
use crate::support::*;

/// What differs from run to run: times, ports, measured numbers, places.
fn plain(text: &str, site: &TestSite) -> String {
    let mut text = text.replace(&site.addr().to_string(), "HOST");
    for (pattern, name) in [
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"\b\d+(\.\d+)? ?(ms|s)\b", "SPAN"),
        (r"\b\d+(\.\d+)?/(s|min|h)\b", "RATE"),
        (r"\S+\.warc\.gz:\d+:\d+", "PLACE"),
        (r"\bversion \d+", "version N"),
    ] {
        text = Regex::new(pattern).expect("a pattern").replace_all(&text, name).into_owned();
    }
    text
}

fn explain(data: &TempData, words: &[&str]) -> Run {
    Paced::new(["explain"].iter().chain(words)).data(data).run()
}

#[test]
fn explain_tells_why_a_site_stands_still_and_whose_each_value_is() {
    let (data, site, _) = crawled();
    let run = explain(&data, &["shop"]).expect_code(0);
    assert_text("explain_site.txt", &plain(&run.stdout, &site));
    let run = explain(&data, &["shop", "--json"]).expect_code(0);
    let object = &json_lines_of(&run.stdout)[0];
    assert_eq!(
        (&object["why"], &object["parallel_of"]),
        (&"run 1 is finished".into(), &"the site's file".into())
    );
}

#[test]
fn explain_tells_what_became_of_a_url() {
    let (data, site, _) = crawled();
    let url = |path: &str| format!("http://{}{path}", site.addr());
    let told: String = ["/p/1", "/", "/p/9", "/elsewhere"]
        .iter()
        .map(|path| plain(&explain(&data, &[&url(path)]).expect_code(0).stdout, &site))
        .collect();
    assert_text("explain_url.txt", &told);
    let run = explain(&data, &[&url("/p/2"), "--json"]).expect_code(0);
    let object = &json_lines_of(&run.stdout)[0];
    assert_eq!(
        (&object["state"], &object["status"], &object["rule"]),
        (&"done".into(), &200.into(), &"thing".into())
    );
    assert_eq!(object["item"]["fields"]["title"], "Thing 2", "{object}");
}

#[test]
fn explain_tells_that_a_304_confirmed_an_older_page() {
    let thing = Reply::html("<h1>Thing 1</h1>".to_owned()).header("etag", "\"v1\"");
    let site = TestSite::builder().page("/", "<a href=\"/p/1\">1</a>").reply("/p/1", thing);
    let site = site
        .faults(|request| (request.header("if-none-match") == Some("\"v1\"")).then(|| Reply::status(304)));
    let (site, data) = (site.serve(), TempData::new());
    let file = site_file(&data, &site);
    let url = format!("http://{}/p/1", site.addr());
    let explained = || {
        Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
        let run = explain(&data, &[&url, "--json"]).expect_code(0);
        json_lines_of(&run.stdout).remove(0)
    };
    let [first, second] = [explained(), explained()];
    for (object, status) in [(&first, 200), (&second, 304)] {
        assert_eq!(
            (&object["status"], &object["stored_status"], &object["stored_at"]),
            (&status.into(), &200.into(), &first["fetched_at"]),
            "{object}"
        );
    }
    assert!(second["fetched_at"].as_str() > first["fetched_at"].as_str(), "{first}\n{second}");
    let told = explain(&data, &[&url]).expect_code(0).stdout;
    let stands = format!(
        " ago), 304: the page of {} stands, status 200\n",
        first["fetched_at"].as_str().expect("a time")
    );
    assert!(told.contains(&stands), "no `{stands}` in\n{told}");
}

#[test]
fn explain_tells_of_dead_letters_and_of_what_robots_forbids() {
    let links = "<a href=\"/p/1\">1</a><a href=\"/p/2\">2</a>";
    let site = TestSite::builder()
        .page("/", links)
        .page("/robots.txt", "User-agent: *\nDisallow: /p/2\n")
        .page("/p/1", "no title here")
        .serve();
    let data = TempData::new();
    let rules = RULES.replace("title = \"h1\"", "title = { css = \"h1\", required = true }");
    let file = data.write("shop.toml", &(site.toml("shop", Duration::from_millis(10)) + &rules));
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    let told: String = ["/p/1", "/p/2"]
        .iter()
        .map(|path| {
            let url = format!("http://{}{path}", site.addr());
            plain(&explain(&data, &[&url]).expect_code(0).stdout, &site)
        })
        .collect();
    assert_text("explain_dead.txt", &told);
}

#[test]
fn explain_of_what_nobody_knows_says_so() {
    let (data, ..) = crawled();
    let run = explain(&data, &["books"]).expect_code(2);
    assert!(run.stderr.contains("there is no site `books`"), "{run:?}");
    let run = explain(&data, &["https://else.example/"]).expect_code(2);
    assert!(run.stderr.contains("has the host else.example; name one with --site"), "{run:?}");
    let run = Paced::new(["explain", "shop"]).data(&TempData::new()).run().expect_code(1);
    assert!(run.stderr.contains("there is no frontier yet"), "{run:?}");
}

#[test]
fn a_crawl_that_was_killed_is_stopped_and_says_what_starts_it_again() {
    let site = TestSite::builder()
        .page("/", "<a href=\"/p/1\">1</a>")
        .latency(Latency::fixed(Duration::from_mins(1)))
        .serve();
    let data = TempData::new();
    let running = Paced::new(["crawl"]).arg(site_file(&data, &site)).data(&data).start();
    eventually("a request", || (!site.arrivals().is_empty()).then_some(()));
    let seen = || status(&data)["state"].clone();
    assert_eq!(seen(), "running");
    running.kill();
    running.finish();
    assert_eq!(seen(), "stopped");
    let run = explain(&data, &["shop"]).expect_code(0);
    let said = "shop: no process works on it: start `paced crawl` or `paced work`";
    assert_eq!(run.stdout.lines().next(), Some(said), "{}", run.stdout);
}
