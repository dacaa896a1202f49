//! `dead`: letters listed, shown, revived and dropped.

use std::time::Duration;

use regex::Regex;

use crate::expected::*;
use crate::support::*;

/// A shop of which three pages died: two are gone, and one has no title.
fn with_letters() -> (TempData, TestSite) {
    let links = "<a href=\"/p/1\">1</a><a href=\"/p/2\">2</a><a href=\"/p/3\">3</a><a href=\"/p/4\">4</a>";
    let site = TestSite::builder()
        .page("/", links)
        .page("/p/1", "<h1>One</h1>")
        .page("/p/2", "no title here")
        .serve();
    let data = TempData::new();
    let rules = RULES.replace("title = \"h1\"", "title = { css = \"h1\", required = true }");
    let file = data.write("shop.toml", &(site.toml("shop", Duration::from_millis(10)) + &rules));
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(3);
    (data, site)
}

fn dead(data: &TempData, words: &str) -> Run {
    Paced::new(["dead"].into_iter().chain(words.split(' '))).data(data).run()
}

fn plain(text: &str, site: &TestSite) -> String {
    let text = text.replace(&site.addr().to_string(), "HOST");
    let text =
        Regex::new(r"\d{4}-\d\d-\d\dT[\d:.]+Z").expect("a pattern").replace_all(&text, "TIME").into_owned();
    Regex::new(r"\b\d+(\.\d+)? ?(ms|s) ago|\S+\.warc\.gz:\d+:\d+")
        .expect("a pattern")
        .replace_all(&text, "SOME")
        .into_owned()
}

/// Each line's URL path, of those that fit.
fn paths(data: &TempData, words: &str) -> Vec<String> {
    let run = dead(data, &format!("list {words} --json")).expect_code(0);
    let mut paths: Vec<String> = json_lines_of(&run.stdout)
        .iter()
        .map(|letter| {
            letter["url"]
                .as_str()
                .and_then(|url| url.rsplit_once("/p/"))
                .map_or(String::new(), |(_, n)| n.to_owned())
        })
        .collect();
    paths.sort();
    paths
}

#[test]
fn i13_dead_letters_are_listed_with_their_reason_and_filtered() {
    let (data, site) = with_letters();
    let run = dead(&data, "list").expect_code(0);
    let mut lines: Vec<String> = plain(&run.stdout, &site).lines().map(str::to_owned).collect();
    lines.sort();
    assert_text("dead_list.txt", &(lines.join("\n") + "\n"));
    assert_eq!(paths(&data, "shop"), ["2", "3", "4"]);
    assert_eq!(paths(&data, "--status 404"), ["3", "4"]);
    assert_eq!(paths(&data, "--stage parse"), ["2"]);
    assert_eq!(paths(&data, "--url /p/[34]"), Vec::<String>::new(), "no such glob");
    assert_eq!(paths(&data, "--url re:/p/[34]$"), ["3", "4"]);
    assert_eq!(paths(&data, "--url /p/* --status 404 --stage download"), ["3", "4"]);
    let run = dead(&data, "list --status 500").expect_code(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", "no dead letters\n"));
}

#[test]
fn i13_a_dead_letter_is_shown_with_all_its_failures() {
    let (data, site) = with_letters();
    let run = dead(&data, &format!("show http://{}/p/2", site.addr())).expect_code(0);
    assert_text("dead_show.txt", &plain(&run.stdout, &site));
    let with_query = dead(&data, &format!("show http://{}/p/2?utm_source=mail", site.addr())).expect_code(0);
    assert_eq!(with_query.stdout.lines().count(), run.stdout.lines().count(), "{with_query:?}");
    let run = dead(&data, &format!("show http://{}/p/1", site.addr())).expect_code(1);
    assert!(run.stderr.contains("is no dead letter of site `shop`"), "{run:?}");
}

#[test]
fn i13_letters_are_revived_and_dropped_by_what_they_are() {
    let (data, _site) = with_letters();
    for verb in ["revive", "drop"] {
        let run = dead(&data, verb).expect_code(2);
        assert!(
            run.stderr.contains("name sites, or --stage, --status or --url; --all for every letter"),
            "{run:?}"
        );
    }
    assert_eq!(dead(&data, "revive shop --stage parse").expect_code(0).stdout, "shop: 1 revived\n");
    assert_eq!(paths(&data, "shop"), ["3", "4"]);
    assert_eq!(dead(&data, "revive --url /p/3").expect_code(0).stdout, "shop: 1 revived\n");
    assert_eq!(dead(&data, "drop --status 404").expect_code(0).stdout, "shop: 1 dropped\n");
    assert_eq!(paths(&data, "shop"), Vec::<String>::new());
    let shop = status(&data);
    assert_eq!(
        (&shop["dead"], &shop["waiting"], &shop["state"]),
        (&0.into(), &1.into(), &"stopped".into()),
        "{shop}"
    );
    Paced::new(["crawl", "shop.toml"]).dir(data.path()).data(&data).run().expect_code(0);
    assert_eq!(paths(&data, "shop"), ["2", "3"], "they died again, of the same");
    let letters = json_lines_of(&dead(&data, "list --json").expect_code(0).stdout);
    assert!(
        letters.iter().all(|letter| letter["depth"] == 1),
        "as far from the seed as they were: {letters:?}"
    );
}

#[test]
fn f8_i13_a_dead_letter_tells_its_tenant_and_is_revived_for_it() {
    let (data, site) = with_letters();
    let url = site.url("/p/3");
    assert_eq!(dead(&data, "drop --url /p/3").expect_code(0).stdout, "shop: 1 dropped\n");
    let put = Paced::new(["put", "shop", "--tenant", "acme"]).arg(&url).data(&data);
    put.run().expect_code(0);
    Paced::new(["crawl", "shop.toml"]).dir(data.path()).data(&data).run().expect_code(0);
    let shown = dead(&data, &format!("show {url}")).expect_code(0).stdout;
    assert!(shown.contains("; it was for tenant acme\n"), "{shown}");
    let letters = json_lines_of(&dead(&data, "list --status 404 --url /p/3 --json").expect_code(0).stdout);
    assert_eq!(letters[0]["tenant"], "acme", "{letters:?}");
    assert_eq!(dead(&data, "revive --url /p/3").expect_code(0).stdout, "shop: 1 revived\n");
    let told = Paced::new(["explain"]).arg(&url).data(&data).run().expect_code(0).stdout;
    assert!(told.contains(", tenant acme\n"), "{told}");
}
