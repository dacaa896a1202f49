//! Expected texts beside this file, and the small site that many tests crawl.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::support::*;

/// Fails unless `text` is that of `tests/cli/NAME`; where `PACED_TEST_WRITE` is set it is written there, to be looked at.
#[track_caller]
pub fn assert_text(name: &str, text: &str) {
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli")).join(name);
    if std::env::var_os("PACED_TEST_WRITE").is_some() {
        std::fs::write(&file, text).expect("a file beside this one");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    assert!(text == expected, "{} differs\n--- expected\n{expected}\n--- found\n{text}", file.display());
}

/// Every line as JSON.
#[track_caller]
pub fn json_lines_of(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect()
}

/// The rules of `small_site`.
pub const RULES: &str = "[[page]]\nname = \"front\"\nmatch = \"/\"\nfollow = [\"a\"]\n\n\
                         [[page]]\nname = \"thing\"\nmatch = \"/p/*\"\nitem = true\n  \
                         [page.fields]\n  title = \"h1\"\n";

/// A site whose front page links to three things; `/p/9` is there and not linked.
pub fn small_site() -> TestSite {
    let links = "<a href=\"/p/1\">1</a><a href=\"/p/2\">2</a><a href=\"/p/3\">3</a>";
    let mut site = TestSite::builder().page("/", links);
    for n in [1, 2, 3, 9] {
        site = site.page(&format!("/p/{n}"), format!("<h1>Thing {n}</h1>"));
    }
    site.serve()
}

/// The site's file `shop.toml` in the data folder.
pub fn site_file(data: &TempData, site: &TestSite) -> PathBuf {
    data.write("shop.toml", &(site.toml("shop", Duration::from_millis(10)) + RULES))
}

/// A small site that was crawled to its end.
pub fn crawled() -> (TempData, TestSite, PathBuf) {
    let (data, site) = (TempData::new(), small_site());
    let file = site_file(&data, &site);
    Paced::new(["crawl"]).arg(&file).data(&data).run().expect_code(0);
    (data, site, file)
}

/// The only site of `paced status --json`.
#[track_caller]
pub fn status(data: &TempData) -> Value {
    let run = Paced::new(["status", "--json"]).data(data).run().expect_code(0);
    json_lines_of(&run.stdout).pop().unwrap_or_else(|| panic!("no site: {run:?}"))
}
