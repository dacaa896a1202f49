//! Whether what the pages name is there: files, rooms, lines of examples.

use std::collections::BTreeSet;
use std::fs;

use regex::Regex;

use crate::markdown::{Page, all, root};

/// Folders whose files are named in running text.
const NAMED: &[&str] = &["src/", "tests/", "fuzz/", "benches/", "examples/", "docs/"];

#[test]
fn every_file_that_is_named_is_there() {
    let quoted = Regex::new(r"`([a-z]+/[A-Za-z0-9_./-]*)`").expect("a pattern");
    let mut wrong = Vec::new();
    for page in all() {
        for found in quoted.captures_iter(&page.text) {
            let path = &found[1];
            if NAMED.iter().any(|folder| path.starts_with(folder)) && !root().join(path).exists() {
                wrong.push(format!("{}: {path}", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_path_of_one_url_has_twenty_files_at_most_and_none_twice() {
    let architecture = Page::of("ARCHITECTURE.md");
    let stop = Regex::new(r"(?m)^\d+\. `(src/[a-z_/]+\.rs)`").expect("a pattern");
    let stops: Vec<&str> =
        stop.captures_iter(&architecture.text).filter_map(|found| Some(found.get(1)?.as_str())).collect();
    assert!((10..=20).contains(&stops.len()), "{stops:?}");
    assert_eq!(stops.iter().collect::<BTreeSet<_>>().len(), stops.len(), "{stops:?}");
}

#[test]
fn every_module_of_the_crate_stands_in_the_map() {
    let architecture = Page::of("ARCHITECTURE.md");
    let lib = fs::read_to_string(root().join("src/lib.rs")).expect("the crate's root");
    let module = Regex::new(r"(?m)^\s*(?:pub(?:\([a-z]+\))? )?mod (\w+);").expect("a pattern");
    let modules: Vec<&str> =
        module.captures_iter(&lib).filter_map(|found| Some(found.get(1)?.as_str())).collect();
    assert!(modules.len() > 10, "{modules:?}");
    let stands = |module: &&&str| {
        [format!("`{module}`"), format!("`{module}/`")].iter().any(|name| architecture.text.contains(name))
    };
    let missing: Vec<&&str> = modules.iter().filter(|module| !stands(module)).collect();
    assert!(missing.is_empty(), "give {missing:?} a row in ARCHITECTURE.md");
}

#[test]
fn every_line_of_rust_stands_in_an_example_that_is_compiled() {
    let mut examples = String::new();
    for entry in fs::read_dir(root().join("examples")).expect("the examples").flatten() {
        examples += &fs::read_to_string(entry.path()).unwrap_or_default();
    }
    let lines: BTreeSet<&str> = examples.lines().map(str::trim).collect();
    for page in all() {
        for (_, block) in page.fences().filter(|(info, _)| info.starts_with("rust")) {
            for line in &block.lines {
                assert!(lines.contains(line.trim()), "{}: no example has `{line}`", page.at(block.line));
            }
        }
    }
}
