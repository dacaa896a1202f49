//! `reparse`: today's rules over stored pages, without a request; what would change, and what did.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::expected::*;
use crate::support::*;

const BEFORE: &str = "[[page]]\nname = \"front\"\nmatch = \"/\"\nfollow = \"*\"\n\n[[page]]\nname = \"thing\"\nmatch = \"/p/*\"\n\
                      item = true\n  [page.fields]\n  title = \"h1\"\n  code = { css = \".code\", required = true }\n";

/// A field more, one no longer required, one page taken by no rule any more, and a rule for pages that had none.
const TODAY: &str = "[[page]]\nname = \"front\"\nmatch = \"/\"\nfollow = \"*\"\n\n[[page]]\nname = \"thing\"\n\
                     match = [\"/p/1\", \"/p/2\", \"/p/4\"]\nitem = true\n  [page.fields]\n  title = \"h1\"\n  bold = \"b\"\n  \
                     code = \".code\"\n\n[[page]]\nname = \"other\"\nmatch = \"/new/*\"\n";

fn shop() -> TestSite {
    let links: String =
        ["/p/1", "/p/2", "/p/3", "/p/4", "/new/5"].map(|path| format!("<a href=\"{path}\">x</a>")).concat();
    TestSite::builder()
        .page("/", links)
        .page("/p/1", "<h1>Thing 1</h1><b>B</b><i class=code>1</i>")
        .page("/p/2", "<h1>Thing 2</h1><i class=code>2</i>")
        .page("/p/3", "<h1>Thing 3</h1><i class=code>3</i>")
        .page("/p/4", "<h1>Thing 4</h1>")
        .page("/new/5", "new")
        .serve()
}

/// Each page leads to the next one.
fn chain() -> TestSite {
    let link = |n: u32| format!("<a href=\"/{n}\">on</a>");
    (1..5)
        .fold(TestSite::builder().page("/", link(1)), |site, n| site.page(&format!("/{n}"), link(n + 1)))
        .serve()
}

fn write(data: &TempData, site: &TestSite, rules: &str) -> PathBuf {
    data.write("shop.toml", &(site.toml("shop", Duration::from_millis(10)) + rules))
}

/// Crawled by the rules of before; the file has those of today.
fn mended(words: &[&str]) -> (TempData, TestSite, PathBuf) {
    let (data, site) = (TempData::new(), shop());
    let file = write(&data, &site, BEFORE);
    Paced::new(["crawl"].iter().chain(words)).arg(file).data(&data).dir(data.path()).run().expect_code(0);
    let file = write(&data, &site, TODAY);
    (data, site, file)
}

fn reparse(data: &TempData, words: &[&str]) -> Run {
    Paced::new(["reparse", "shop.toml", "-q"].iter().chain(words)).data(data).dir(data.path()).run()
}

/// The blocks of a text that begin with a finding, in order of their URLs: pages come in the order of fetching.
fn sorted(text: &str, site: &TestSite) -> String {
    let text = text.replace(&site.addr().to_string(), "shop.test");
    let (summary, findings): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("shop: "));
    let mut blocks: Vec<String> = Vec::new();
    for line in findings {
        match blocks.last_mut() {
            Some(block) if line.starts_with("  ") => block.extend([line, "\n"]),
            _ => blocks.push(format!("{line}\n")),
        }
    }
    blocks.sort_by_key(|block| {
        block.lines().next().and_then(|line| line.split_whitespace().nth(1).map(str::to_owned))
    });
    blocks.concat() + &summary.join("\n") + "\n"
}

fn titles(data: &TempData, file: &str) -> Vec<Value> {
    json_lines_of(&data.read(file)).into_iter().map(|item| item["fields"]["title"].clone()).collect()
}

#[test]
fn the_difference_is_shown_and_nothing_is_written() {
    let (data, site, _) = mended(&[]);
    let (requests, items) = (site.requests().len(), data.read("items/shop.jsonl"));
    let run = reparse(&data, &["--diff"]).expect_code(0);
    assert_text("reparse_diff.txt", &sorted(&run.stdout, &site));
    let run = reparse(&data, &["--diff", "--json"]).expect_code(0);
    let objects = json_lines_of(&run.stdout);
    let of = |path: &str| {
        let url = site.url(path);
        objects.iter().find(|object| object["url"] == url.as_str()).unwrap_or_else(|| panic!("no {url}"))
    };
    assert_eq!(of("/p/1")["changes"], json!([{"field": "bold", "old": null, "new": "B"}]));
    assert_eq!((&of("/p/3")["finding"], &of("/p/4")["finding"]), (&json!("gone"), &json!("new")));
    let counts = objects.last().expect("the counts");
    for (name, count) in [("pages", 5), ("same", 1), ("changed", 1), ("new", 1), ("gone", 1), ("no_item", 1)]
    {
        assert_eq!(counts[name], count, "{name} in {counts}");
    }
    assert_eq!(data.read("items/shop.jsonl"), items);
    assert_eq!(status(&data)["waiting"], 0, "no link was put");
    assert_eq!(site.requests().len(), requests, "nothing was asked for");
}

#[test]
fn items_that_changed_are_written_and_new_links_put_without_a_request() {
    let (data, site, file) = mended(&[]);
    let requests = site.requests().len();
    let run = reparse(&data, &[]).expect_code(0);
    assert_eq!(
        run.stdout,
        "shop: 5 pages: 1 same, 1 changed, 1 new, 1 gone, 1 no item; 1 new link put; 1 dead letter waits for a worker again\n"
    );
    assert_eq!(titles(&data, "items/shop.jsonl").len(), 3 + 2);
    let items = paced::internals::sink::latest(&data.file("items/shop.jsonl")).expect("items");
    assert_eq!(items[&site.url("/p/1")].fields["bold"], "B", "the last line of a key wins");
    assert_eq!(items[&site.url("/p/4")].fields["title"], "Thing 4");
    assert_eq!(site.requests().len(), requests, "nothing was asked for");
    let again = reparse(&data, &[]).expect_code(0);
    assert_eq!(again.stdout, "shop: 5 pages: 3 same, 0 changed, 0 new, 1 gone, 1 no item\n");
    assert_eq!(titles(&data, "items/shop.jsonl").len(), 3 + 2);
    Paced::new(["crawl"]).arg(file).data(&data).run().expect_code(0);
    assert_eq!((site.count("/new/5"), site.count("/p/1")), (1, 1), "the link waited for the next start");
    let after = status(&data);
    assert_eq!(
        (&after["dead"], &after["parse"]["revived"], &after["finished"]),
        (&json!(0), &json!(1), &json!(true))
    );
}

#[test]
fn a_page_fetched_again_counts_by_its_latest_body() {
    let (data, site, file) = mended(&[]);
    write(&data, &site, BEFORE);
    site.put("/p/2", Reply::html("<h1>Thing 2, mended</h1><i class=code>2</i>".to_owned()));
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    write(&data, &site, &BEFORE.replace("\"h1\"", "{ css = \"h1\", regex = 'mended' }"));
    let run = reparse(&data, &["--diff", "--json"]).expect_code(0);
    let objects = json_lines_of(&run.stdout);
    let url = site.url("/p/2");
    let of: Vec<_> = objects.iter().filter(|object| object["url"] == url.as_str()).collect();
    assert_eq!(of.len(), 1, "each page once: {objects:?}");
    assert_eq!(of[0]["changes"], json!([{"field": "title", "old": "Thing 2, mended", "new": "mended"}]));
}

#[test]
fn new_links_are_no_further_from_a_seed_than_the_file_allows() {
    let (data, site) = (TempData::new(), chain());
    let rules = |follow: &str, deep: u32| {
        let front = "[[page]]\nname = \"front\"\nmatch = \"/\"\nfollow = \"*\"\n";
        format!("[scope]\nmax_depth = {deep}\n\n{front}\n[[page]]\nname = \"rest\"\nmatch = \"/*\"\n{follow}")
    };
    let file = write(&data, &site, &rules("", 50));
    Paced::new(["crawl"]).arg(file).data(&data).run().expect_code(0);
    for (deep, put) in [(1, ""), (2, "; 1 new link put")] {
        write(&data, &site, &rules("follow = \"*\"\n", deep));
        let run = reparse(&data, &[]).expect_code(0);
        assert_eq!(
            run.stdout,
            format!("shop: 2 pages: 0 same, 0 changed, 0 new, 2 no item{put}\n"),
            "{deep}"
        );
    }
}

#[test]
fn items_in_one_file_are_compared_and_written_there() {
    let (data, site, _) = mended(&["--items", "all.jsonl"]);
    let run = reparse(&data, &["--items", "all.jsonl"]).expect_code(0);
    assert!(run.stdout.contains("1 same, 1 changed, 1 new, 1 gone"), "{}", run.stdout);
    assert_eq!(titles(&data, "all.jsonl").len(), 5);
    assert!(!data.file("items").exists());
    drop(site);
}

#[test]
fn a_name_alone_takes_the_registered_rules_unless_there_is_a_file() {
    let (data, site, _) = mended(&[]);
    let by_name =
        || Paced::new(["reparse", "shop", "--diff"]).data(&data).dir(data.path()).run().expect_code(0);
    let run = by_name();
    assert!(
        run.stdout.ends_with("shop: 5 pages: 3 same, 0 changed, 0 new, 1 no item, 1 dead\n"),
        "{}",
        run.stdout
    );
    assert!(run.stderr.contains("as registered in the frontier"), "{}", run.stderr);
    data.write("sites/shop.toml", &(site.toml("shop", Duration::from_millis(10)) + TODAY));
    assert!(by_name().stdout.contains("1 same, 1 changed, 1 new, 1 gone"));
}

#[test]
fn what_cannot_be_parsed_again_is_said() {
    let (data, site, _) = mended(&[]);
    let run = Paced::new(["reparse", "books"]).data(&data).dir(data.path()).run().expect_code(2);
    assert!(
        run.stderr.contains("there is no site `books`") && run.stderr.contains("it knows shop"),
        "{}",
        run.stderr
    );
    let run = Paced::new(["reparse", "shop"]).data(&TempData::new()).run().expect_code(1);
    assert!(run.stderr.contains("there is no frontier yet"), "{}", run.stderr);
    let elsewhere = data.file("none");
    let run = reparse(&data, &["--pages", elsewhere.to_str().expect("a path")]).expect_code(1);
    assert!(
        run.stderr.contains("none: no pages are kept there; name the data folder with --data"),
        "{}",
        run.stderr
    );
    std::fs::create_dir(&elsewhere).expect("a folder");
    let run = reparse(&data, &["--diff", "--pages", elsewhere.to_str().expect("a path")]).expect_code(1);
    assert!(run.stderr.contains("no stored page of site `shop` is in"), "{}", run.stderr);
    data.write("items/shop.jsonl", "{\"site\":1}\n");
    let run = reparse(&data, &["--diff"]).expect_code(1);
    assert!(run.stderr.contains("shop.jsonl:1: not an item"), "{}", run.stderr);
    drop(site);
}

#[test]
fn a_frontier_on_redis_knows_the_latest_bodies_too() {
    let Some(redis) = redis_or_skip() else { return };
    let url = redis.url(0);
    let (data, site, _) = mended(&["--frontier", &url]);
    let requests = site.requests().len();
    let run = reparse(&data, &["--frontier", &url]).expect_code(0);
    assert_eq!(
        run.stdout,
        "shop: 5 pages: 1 same, 1 changed, 1 new, 1 gone, 1 no item; 1 new link put; 1 dead letter waits for a worker again\n"
    );
    assert_eq!(site.requests().len(), requests);
}
