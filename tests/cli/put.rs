//! `paced put`: what it answers for each page, and what a crawl makes of it.

use std::io::{Write, pipe};
use std::path::Path;

use crate::expected::*;
use crate::support::*;

fn put(data: &TempData, words: &[&str]) -> Paced {
    Paced::new(["put", "shop"].iter().chain(words)).data(data)
}

fn crawl(data: &TempData, file: &Path) {
    Paced::new(["crawl", "--workers", "1"]).arg(file).data(data).run().expect_code(0);
}

#[test]
fn pages_are_answered_one_a_line_and_fetched_by_the_next_crawl() {
    let (data, site, file) = crawled();
    let (nine, one) = (site.url("/p/9"), site.url("/p/1?utm_source=x"));
    let plain = site.url("/p/1");
    let run = put(&data, &[&nine, &one, &nine]).run().expect_code(0);
    assert_eq!(run.stdout, format!("created\t{nine}\ncreated\t{plain}\ncoalesced\t{nine}\n"));
    crawl(&data, &file);
    assert_eq!((site.count("/p/9"), site.count("/p/1"), site.count("/p/2")), (1, 2, 1));
    assert!(data.read("items/shop.jsonl").contains("Thing 9"));
    let run = Paced::new(["put"]).arg(&file).arg(&nine).data(&data).run().expect_code(0);
    assert_eq!(run.stdout, format!("created\t{nine}\n"), "a site can be named by its file");
}

#[test]
fn what_cannot_be_put_is_said_and_the_rest_is_put() {
    let (data, site, _) = crawled();
    let (nine, other) = (site.url("/p/9"), site.url("/other"));
    let words = [nine.as_str(), &other, "http://elsewhere.example/", "garbage"];
    let run = put(&data, &words).run().expect_code(1);
    assert_eq!(run.stdout, format!("created\t{nine}\n"));
    for told in [
        format!("paced: {other}: no page rule of site `shop` takes it; add one to its file"),
        "paced: http://elsewhere.example/: elsewhere.example is no host of site `shop`; add it to scope.hosts".to_owned(),
        "paced: `garbage` is not a URL".to_owned(),
    ] {
        assert!(run.stderr.contains(&told), "no `{told}` in\n{}", run.stderr);
    }
    let run = put(&data, &words).arg("--json").run().expect_code(1);
    let lines = json_lines_of(&run.stdout);
    let mut replies: Vec<_> = lines.iter().map(|line| line["reply"].as_str().expect("a word")).collect();
    replies.sort_unstable();
    assert_eq!(replies, ["coalesced", "refused", "refused", "refused"]);
    assert!(
        lines.iter().filter(|line| line["reply"] == "refused").all(|line| line["why"].is_string()),
        "{lines:?}"
    );
    assert_eq!(run.stderr, "");
}

#[test]
fn a_site_that_the_frontier_does_not_know_is_wrong_usage() {
    let (data, site, _) = crawled();
    let run = Paced::new(["put", "books", &site.url("/p/9")]).data(&data).run().expect_code(2);
    assert!(run.stderr.contains("there is no site `books` in sqlite:"), "{}", run.stderr);
    assert!(run.stderr.contains("it knows shop"), "{}", run.stderr);
}

#[test]
fn a_feed_writes_its_pages_to_stdin() {
    let (data, site, _) = crawled();
    let mut lines: String =
        (0..1200).flat_map(|n| [site.url(&format!("/p/n{n}")), "\r\n".to_owned()]).collect();
    lines += "\n  \nnot a page\n";
    lines += &site.url("/p/n0");
    let run = put(&data, &["-"]).stdin(&lines).run().expect_code(1);
    let count = |word: &str| run.stdout.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!((count("created\t"), count("coalesced\t"), run.stdout.lines().count()), (1200, 1, 1201));
    let full =
        "paced: `now` holds 100 pages of a site: further ones may wait in other lanes; --lane now takes all";
    let told: Vec<&str> = run.stderr.lines().collect();
    assert!(told.len() == 2 && told.contains(&full), "it is said once, beside what is no page: {told:?}");
    assert_eq!(status(&data)["download"]["lanes"]["now"], 100);
    assert_eq!(status(&data)["waiting"], 1200);
}

#[test]
fn a_feed_s_whole_lines_are_put_while_it_still_writes_the_next_one() {
    let (data, site, _) = crawled();
    let (reader, mut feed) = pipe().expect("a pipe");
    let running = put(&data, &["-"]).fed_by(reader).start();
    let (one, nine) = (site.url("/p/1"), site.url("/p/9"));
    write!(feed, "{nine}\n{}", &one[..one.len() - 3]).expect("it reads");
    let told = format!("created\t{nine}\n");
    eventually("the whole line's answer", || (running.stdout() == told).then_some(()));
    writeln!(feed, "{}", &one[one.len() - 3..]).expect("it reads");
    drop(feed);
    assert_eq!(running.finish().expect_code(0).stdout, format!("{told}created\t{one}\n"));
}

#[test]
fn lines_of_a_feed_that_are_no_text_or_too_long_are_told_and_put_nothing() {
    let (data, site, _) = crawled();
    let (nine, latin) = (site.url("/p/9"), site.url("/p/caf"));
    let mut feed = b"\xef\xbb\xbf".to_vec();
    feed.extend(format!("{nine}\n{latin}").bytes());
    feed.extend(b"\xe9\n");
    feed.extend(site.url("/p/").bytes().chain(b"x".repeat(1 << 20)).chain(*b"\n"));
    feed.extend(format!("\u{feff}{nine}\n{nine}").bytes());
    let run = put(&data, &["-"]).stdin_bytes(&feed).run().expect_code(1);
    assert_eq!(run.stdout, format!("created\t{nine}\ncoalesced\t{nine}\n"));
    for told in [
        format!("paced: `{latin}\u{fffd}` is not UTF-8 text; percent-encode it"),
        "…` is longer than 8192 bytes, and a URL may have no more; leave out what isn't needed".to_owned(),
        format!("paced: `\\u{{feff}}{nine}` is not a URL"),
    ] {
        assert!(run.stderr.contains(&told), "no `{told}` in\n{}", run.stderr);
    }
    assert_eq!((run.stderr.lines().count(), &status(&data)["waiting"]), (3, &1.into()), "{}", run.stderr);
    let run = put(&data, &["-", "--json"]).stdin_bytes(&feed).run().expect_code(1);
    let refused = json_lines_of(&run.stdout).iter().filter(|line| line["why"].is_string()).count();
    assert_eq!(refused, 3, "{}", run.stdout);
}

#[test]
fn the_more_urgent_pages_go_first() {
    let (data, site, file) = crawled();
    for (path, priority) in
        [("/p/1", "system:low"), ("/p/2", "user"), ("/p/3", "operator:high-1"), ("/p/9", "operator:high")]
    {
        put(&data, &[&site.url(path), "--priority", priority]).run().expect_code(0);
    }
    let before = site.requests().len();
    crawl(&data, &file);
    let asked: Vec<String> =
        site.requests().split_off(before).into_iter().map(|request| request.path).collect();
    assert_eq!(asked, ["/p/3", "/p/9", "/p/2", "/p/1"]);
}

#[test]
fn a_page_put_for_later_waits_until_it_is_wanted_again_now() {
    let (data, site, file) = crawled();
    let nine = site.url("/p/9");
    let run = put(&data, &[&nine, "--at", "2999-01-01T00:00:00+09:00"]).run().expect_code(0);
    assert_eq!(run.stdout, format!("created\t{nine}\n"));
    assert_eq!((&status(&data)["scheduled"], &status(&data)["state"]), (&1.into(), &"finished".into()));
    crawl(&data, &file);
    assert_eq!(site.count("/p/9"), 0, "a crawl neither waits for it nor fetches it early");
    let run = put(&data, &[&nine, "--again"]).run().expect_code(0);
    assert_eq!(run.stdout, format!("coalesced\t{nine}\n"));
    crawl(&data, &file);
    assert_eq!(site.count("/p/9"), 1);
}

#[test]
fn n6_a_page_that_expires_before_its_turn_costs_no_start() {
    let (data, site, file) = crawled();
    let nine = site.url("/p/9");
    let run = put(&data, &[&nine, "--at", "2h", "--expires", "1h"]).run().expect_code(2);
    assert!(run.stderr.contains("nothing was put"), "{run:?}");
    put(&data, &[&nine, "--expires", "1s"]).run().expect_code(0);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    crawl(&data, &file);
    assert_eq!(site.count("/p/9"), 0);
    assert_eq!(status(&data)["download"]["excluded"]["expired"], 1);
    put(&data, &[&nine, "--expires", "1h"]).run().expect_code(0);
    crawl(&data, &file);
    assert_eq!(site.count("/p/9"), 1);
}

#[test]
fn a_page_that_is_as_new_as_a_feed_needs_costs_no_start() {
    let (data, site, _) = crawled();
    let one = site.url("/p/1");
    let run = put(&data, &[&one, "--unless-newer", "1h"]).run().expect_code(0);
    assert_eq!(run.stdout, format!("known\t{one}\n"));
    assert_eq!(status(&data)["waiting"], 0);
    std::thread::sleep(std::time::Duration::from_millis(50));
    let run = put(&data, &[&one, "--unless-newer", "10ms"]).run().expect_code(0);
    assert_eq!(run.stdout, format!("created\t{one}\n"));
    assert_eq!(status(&data)["waiting"], 1);
    let run = put(&data, &[&one, "--unless-newer", "2999-01-01T00:00:00Z"]).run().expect_code(2);
    assert!(run.stderr.contains("still to come"), "{run:?}");
}
