//! Whether every id of a behaviour or invariant that tests and comments cite is defined, once, in `docs/guarantees.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::markdown::{Page, root};

#[test]
fn every_id_that_is_cited_is_defined_once() {
    let page = Page::of("docs/guarantees.md");
    let row = Regex::new(r"(?m)^\| ([A-Z]\d+) \|").expect("a pattern");
    let mut defined: BTreeMap<String, usize> = BTreeMap::new();
    for found in row.captures_iter(&page.text) {
        *defined.entry(found[1].to_owned()).or_default() += 1;
    }
    assert!(defined.values().all(|times| *times == 1), "{defined:?}");
    let unknown: Vec<String> = cited().into_iter().filter(|id| !defined.contains_key(id)).collect();
    assert!(unknown.is_empty(), "define {unknown:?} in docs/guarantees.md");
}

/// Ids in the names of tests, and in brackets in comments: `(I14)`, `(V4-V9, R1)`.
fn cited() -> BTreeSet<String> {
    let name = Regex::new(r"fn ((?:[mvcrilfwn]\d{1,2}_)+)").expect("a pattern");
    let brackets = Regex::new(r"\(((?:[MVCRILFWN]\d{1,2}(?:-|, )?)+)\)").expect("a pattern");
    let one = Regex::new(r"[A-Z]\d+").expect("a pattern");
    let mut files = Vec::new();
    for folder in ["src", "tests", "benches"] {
        files_below(&root().join(folder), &mut files);
    }
    assert!(files.len() > 100, "only {} files", files.len());
    let mut ids = BTreeSet::new();
    for text in files.iter().filter_map(|file| fs::read_to_string(file).ok()) {
        let of_tests = name.captures_iter(&text).map(|found| found[1].to_uppercase());
        let of_comments = brackets.captures_iter(&text).map(|found| found[1].to_owned());
        for cited in of_tests.chain(of_comments) {
            ids.extend(one.find_iter(&cited).map(|id| id.as_str().to_owned()));
        }
    }
    ids
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository").flatten() {
        if entry.path().is_dir() {
            files_below(&entry.path(), files);
        } else if entry.path().extension().is_some_and(|end| end == "rs" || end == "lua") {
            files.push(entry.path());
        }
    }
}
