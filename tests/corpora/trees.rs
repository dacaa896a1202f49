//! The tree of a page is the one that html5ever makes with a tokenizer of its own.

use std::fs;
use std::path::{Path, PathBuf};

use html5ever::driver::{ParseOpts, parse_document};
use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use paced::internals::budget::Budget;
use paced::internals::extract::html::Tree;
use scraper::{Html, HtmlTreeSink};

use super::table::{Share, corpus, unpacked};

fn by_html5ever(text: &str) -> Html {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let opts = ParseOpts { tree_builder, ..ParseOpts::default() };
    parse_document(HtmlTreeSink::new(Html::new_document()), opts).one(text)
}

fn count(share: &mut Share, text: &str, name: impl std::fmt::Display) {
    let (ours, theirs) = (Tree::parse(text, &Budget::without_end()).html, by_html5ever(text));
    share.count(ours.tree == theirs.tree && ours.quirks_mode == theirs.quirks_mode, name);
}

/// Files of a folder and those below it whose names end so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files_here): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_wanted = |path: &PathBuf| path.to_string_lossy().ends_with(end);
    let mut found: Vec<PathBuf> = files_here.into_iter().filter(is_wanted).collect();
    for folder in folders {
        found.extend(files(&folder, end));
    }
    found
}

fn count_pages(share: &mut Share, folder: &Path) {
    for path in files(folder, ".html") {
        let page = fs::read(&path).expect("a page");
        count(share, &String::from_utf8_lossy(&page), path.display());
    }
}

#[test]
fn cases_of_html5lib_make_the_tree_that_html5ever_makes() {
    let Some(folder) = corpus("html/html5lib-tests/tree-construction") else { return };
    let mut share = Share::of("trees of html5lib's cases");
    for path in files(&folder, ".dat") {
        let text = fs::read(&path).expect("cases");
        let text = String::from_utf8_lossy(&text);
        for case in text.split("#data\n").skip(1) {
            let page = case.split_once("\n#errors").map_or(case, |(page, _)| page);
            count(&mut share, page, format!("{}: {page:?}", path.display()));
        }
    }
    share.reaches(1_000, 1_000);
}

#[test]
fn pages_of_real_shops_make_the_tree_that_html5ever_makes() {
    let (Some(pages), Some(shop)) = (corpus("html"), corpus("shops/books-toscrape")) else { return };
    let mut share = Share::of("trees of real pages");
    count_pages(&mut share, &pages);
    count_pages(&mut share, unpacked(&shop).path());
    share.reaches(1_000, 1_000);
}
