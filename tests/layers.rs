//! Who may import whom, where the big dependencies live, and what each file begins with: the layering that the module map
//! of `src/lib.rs` promises. Unit tests inside `src` are free to use what they need.

#[path = "layers/circles.rs"]
mod circles;
#[path = "layers/monitor.rs"]
mod monitor;
#[path = "layers/names.rs"]
mod names;
#[path = "layers/secrets.rs"]
mod secrets;
#[path = "layers/waits.rs"]
mod waits;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The modules in the order of the data's way: each may use those before it.
const ORDER: &[&str] = &[
    "clock",
    "quantity",
    "plain_text",
    "owner_only",
    "secret",
    "signature",
    "cores",
    "batch",
    "budget",
    "patience",
    "recent",
    "canonical_url",
    "page",
    "item",
    "task",
    "forecast",
    "site",
    "settings",
    "manners",
    "frontier",
    "mutex",
    "robots",
    "content_coding",
    "fetch",
    "archive",
    "audit",
    "extract",
    "sink",
    "monitor",
    "notify",
    "work",
    "run",
    "look",
    "demo",
    "cli",
];

/// What doesn't know each other although the order would let it.
const STRANGERS: &[(&str, &str)] = &[("extract", "frontier")];

/// A dependency, or a path of one, and the files and folders of `src` that may name it.
const HOMES: &[(&str, &[&str])] = &[
    ("rusqlite", &["frontier/sqlite", "sink"]),
    ("reqwest", &["fetch"]),
    ("h2", &["fetch"]),
    ("object_store", &["archive/bucket"]),
    ("scraper", &["extract", "site"]),
    ("cssparser", &["site"]),
    ("html5ever", &["extract", "site"]),
    ("html5gum", &["extract/html"]),
    ("mimalloc", &["main"]),
    ("ego_tree", &["extract", "site"]),
    ("selectors", &["site/css"]),
    ("governor", &["fetch"]),
    ("ring", &["signature"]),
    ("sfv", &["signature"]),
    ("clap", &["cli", "main"]),
    ("clap_complete", &["cli/verbs/completions"]),
    ("clap_mangen", &["cli/verbs/man"]),
    ("indicatif", &["cli", "monitor", "demo"]),
    ("comfy_table", &["cli", "monitor", "demo"]),
    ("SystemTime::now", &["clock"]),
    // Whoever opens a secret may show it.
    ("reveal", &["secret", "fetch/head"]),
    // What is made is its owner's alone, but for items and what a person asked to be written.
    ("File::create", &["sink"]),
    ("OpenOptions::new", &["owner_only", "sink", "archive/recover"]),
    ("fs::create_dir_all", &["owner_only", "sink", "cli/verbs/man"]),
    ("std::fs::create_dir_all", &["cli/verbs/man"]),
    ("std::fs::write", &["cli/verbs/man", "cli/verbs/demo"]),
    // Who prints escapes what steers a terminal.
    ("io::stdout", &["cli/parts/results", "sink/target"]),
    ("io::stderr", &["cli/parts/trouble", "monitor/log"]),
    // These two only ask whether it is a terminal.
    ("std::io::stdout", &["cli/verbs/crawl"]),
    ("std::io::stderr", &["cli/parts/globals"]),
    ("print!", &[]),
    ("println!", &[]),
    ("eprint!", &[]),
    ("eprintln!", &[]),
    ("dbg!", &[]),
];

const LONGEST_FILE: usize = 500;

#[test]
fn each_module_uses_only_those_before_it() {
    fail_on(sources().iter().flat_map(forbidden_imports));
}

#[test]
fn each_big_dependency_has_one_home() {
    fail_on(sources().iter().flat_map(strayed_dependencies));
}

#[test]
fn each_file_says_first_what_lives_in_it_and_is_not_too_long() {
    fail_on(sources().iter().flat_map(shape));
}

#[test]
fn each_module_of_the_order_is_in_the_map_of_the_crate() {
    let map = source("lib.rs", &read(&root().join("lib.rs")));
    let listed = Regex::new(r"(?m)^(?:pub(?:\([a-z]+\))? )?mod (\w+);").expect("a pattern");
    let modules: Vec<&str> =
        listed.captures_iter(&map.text).filter_map(|found| Some(found.get(1)?.as_str())).collect();
    let unknown: Vec<&&str> = modules.iter().filter(|module| !ORDER.contains(*module)).collect();
    assert!(unknown.is_empty(), "give {unknown:?} a place in ORDER");
    assert!(modules.len() > 15, "only {modules:?} found in lib.rs");
}

/// A file of `src`, without what its unit tests do.
#[derive(Debug)]
struct Source {
    /// Its path below `src`.
    path: PathBuf,
    /// Its whole text.
    text: String,
    /// Its text without comments and unit tests; the lines keep their numbers.
    code: String,
}

impl Source {
    /// The top module it belongs to: `fetch` for `fetch/client.rs`.
    fn module(&self) -> String {
        let first = self.path.iter().next().map(Path::new);
        first.and_then(Path::file_stem).unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Whether it is the file that a top module begins with, where `super` is the crate.
    fn is_top(&self) -> bool {
        let depth = self.path.iter().count();
        depth == 1 || (depth == 2 && self.path.ends_with("mod.rs"))
    }

    /// Whether it is, or is below, a file or folder named without its extension.
    fn is_within(&self, home: &str) -> bool {
        self.path.with_extension("").starts_with(home)
    }

    fn wrong(&self, line: usize, what: String) -> Wrong {
        Wrong { path: self.path.clone(), line, what }
    }
}

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    path: PathBuf,
    line: usize,
    what: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "src/{}:{}: {}", self.path.display(), self.line, self.what)
    }
}

fn fail_on(wrong: impl Iterator<Item = Wrong>) {
    let lines: Vec<String> = wrong.map(|wrong| wrong.to_string()).collect();
    assert!(lines.is_empty(), "\n{}", lines.join("\n"));
}

fn forbidden_imports(source: &Source) -> Vec<Wrong> {
    let own = source.module();
    if own == "lib" || own == "main" {
        return Vec::new();
    }
    let place = |module: &str| ORDER.iter().position(|known| *known == module);
    let Some(own_place) = place(&own) else {
        return vec![source.wrong(1, format!("`{own}` has no place in ORDER"))];
    };
    let why = |used: &str| match place(used) {
        _ if used == own => None,
        None => Some("is not a module of ORDER"),
        Some(its_place) if its_place > own_place => Some("comes after it"),
        Some(_) => STRANGERS.contains(&(own.as_str(), used)).then_some("is a stranger to it"),
    };
    let uses = crate_uses(source).into_iter();
    uses.filter_map(|(line, used)| {
        Some(source.wrong(line, format!("`{own}` uses `{used}`, which {}", why(&used)?)))
    })
    .collect()
}

/// The top modules that a file names, with the line of each.
fn crate_uses(source: &Source) -> Vec<(usize, String)> {
    let root = if source.is_top() { r"(?:\bcrate|(?m:^(?:pub )?use super))" } else { r"\bcrate" };
    let one = Regex::new(&format!(r"{root}\s*::\s*(?:(\w+)|\{{)")).expect("a pattern");
    let mut uses = Vec::new();
    for found in one.captures_iter(&source.code) {
        let end = found.get(0).expect("the whole match").end();
        let line = source.code[..end].matches('\n').count() + 1;
        match found.get(1) {
            Some(name) => uses.push((line, name.as_str().to_owned())),
            None => uses.extend(group(&source.code[end..]).into_iter().map(|name| (line, name))),
        }
    }
    uses
}

/// The first names of a `{…}` of imports, from behind its opening brace.
fn group(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => parts.push(String::new()),
            c if depth == 0 => parts.last_mut().expect("there is always one").push(c),
            _ => {}
        }
    }
    let first_name = |part: &String| part.trim().split(|c| !is_word(c)).next().unwrap_or_default().to_owned();
    parts.iter().map(first_name).filter(|name| !name.is_empty()).collect()
}

fn strayed_dependencies(source: &Source) -> Vec<Wrong> {
    let strayed = HOMES.iter().filter(|(_, homes)| !homes.iter().any(|home| source.is_within(home)));
    let lines = strayed.flat_map(|(name, homes)| {
        let named = source.code.lines().enumerate().filter(|(_, line)| names(line, name));
        named
            .map(move |(at, _)| source.wrong(at + 1, format!("`{name}` lives in {} alone", homes.join(", "))))
    });
    lines.collect()
}

/// Whether a line of code imports something, or takes it by its path: `name::x`, `use name;`, `use name as x`, `name()`.
fn names(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let (before, after) = (line[..at].trim_end_matches("std::time::"), &line[at + name.len()..]);
        let begins = !before.ends_with(|c| is_word(c) || c == ':');
        begins && ["::", ";", "(", " as "].iter().any(|next| after.starts_with(next))
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn shape(source: &Source) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    if !source.text.starts_with("//! ") {
        wrong.push(source.wrong(1, "it does not begin with a `//!` line of what lives here".to_owned()));
    }
    let lines = source.text.lines().count();
    if lines > LONGEST_FILE {
        wrong.push(source.wrong(lines, format!("it has {lines} lines, more than {LONGEST_FILE}")));
    }
    wrong
}

fn sources() -> Vec<Source> {
    let files = rust_files(&root());
    assert!(files.len() > 20, "only {files:?} found");
    let relative = |file: &PathBuf| {
        file.strip_prefix(root()).expect("it was found there").to_string_lossy().into_owned()
    };
    files.iter().map(|file| source(&relative(file), &read(file))).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of a folder").path()).collect();
    paths.sort();
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    paths
        .into_iter()
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .filter(is_rust)
        .collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn source(path: &str, text: &str) -> Source {
    let path = PathBuf::from(path);
    let is_test =
        path.file_stem().is_some_and(|stem| stem == "tests") || path.iter().any(|part| part == "tests");
    let code = if is_test { String::new() } else { without_tests(text) };
    Source { path, text: text.to_owned(), code }
}

/// The code without comments, and without what stands under `#[cfg(test)]` at the left margin.
fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut in_test = false;
    for line in text.lines() {
        in_test |= line == "#[cfg(test)]";
        if !in_test {
            code.push_str(
                line.split_once("//")
                    .filter(|(before, _)| !before.ends_with(':'))
                    .map_or(line, |(before, _)| before),
            );
        }
        let inside = line.starts_with([' ', '#']) || line.is_empty();
        let ends = !inside && line.ends_with([';', '}']);
        in_test &= !ends;
        code.push('\n');
    }
    code
}

/// The checkers see what they should: a table of bad samples and of good ones.
mod checkers {
    use super::*;

    fn said(wrong: &[Wrong]) -> Vec<String> {
        wrong.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_import_against_the_order_is_found_however_it_is_written() {
        let in_tests = "#[cfg(test)]\n#[path = \"x\"]\nmod tests {\n    fn f() {\n        g();\n    }\n}\nuse crate::cli;";
        for (path, text, line, used, why) in [
            ("fetch/mod.rs", "use crate::frontier::Permit;", 0, "", ""),
            ("fetch/mod.rs", "use crate::fetch::client::Client;", 0, "", ""),
            ("fetch/mod.rs", "use crate::work::Pool;", 1, "work", "comes after it"),
            ("clock.rs", "\nfn f() {\n    crate::cli::run();\n}", 3, "cli", "comes after it"),
            ("page.rs", "pub(crate) use crate::task;", 1, "task", "comes after it"),
            (
                "frontier/a.rs",
                "use crate::{\n    clock::{self, T},\n    sink as s,\n};",
                1,
                "sink",
                "comes after it",
            ),
            ("robots/mod.rs", "use super::run;", 1, "run", "comes after it"),
            ("robots/rules.rs", "use super::run;", 0, "", ""),
            ("extract/mod.rs", "use crate::frontier;", 1, "frontier", "is a stranger to it"),
            ("work/pool.rs", "use crate::monitor::Counters;", 0, "", ""),
            ("clock.rs", "use crate::helpers;", 1, "helpers", "is not a module of ORDER"),
            ("main.rs", "use crate::whatever;", 0, "", ""),
            ("clock.rs", "//! See [`crate::cli`].\n/* fine */ // crate::cli", 0, "", ""),
            ("clock.rs", "#[cfg(test)]\nmod tests {\n    use crate::cli;\n}\n", 0, "", ""),
            ("clock.rs", "#[cfg(test)]\nmod tests;\nuse crate::cli;", 3, "cli", "comes after it"),
            ("clock.rs", in_tests, 8, "cli", "comes after it"),
            ("clock.rs", "#[cfg(test)]\nuse crate::{\n    cli,\n};\n", 0, "", ""),
            ("clock.rs", "#[cfg(test)]\nfn f() {}\nuse crate::cli;", 3, "cli", "comes after it"),
            ("clock/tests.rs", "use crate::cli;", 0, "", ""),
        ] {
            let (source, mut wrong) = (source(path, text), String::new());
            if line > 0 {
                wrong = format!("src/{path}:{line}: `{}` uses `{used}`, which {why}", source.module());
            }
            assert_eq!(said(&forbidden_imports(&source)).join("\n"), wrong, "{path}: {text}");
        }
        let homeless = said(&forbidden_imports(&source("helpers.rs", "")));
        assert_eq!(homeless, ["src/helpers.rs:1: `helpers` has no place in ORDER"]);
    }

    #[test]
    fn a_dependency_away_from_home_is_found() {
        for (path, text, strayed) in [
            ("fetch/client.rs", "use reqwest::Client;", false),
            ("work/mod.rs", "use reqwest::Client;", true),
            ("work/mod.rs", "    let c = reqwest::Client::new();", true),
            ("work/mod.rs", "fn f(e: &reqwest::Error) {}", true),
            ("work/mod.rs", "use reqwest;", true),
            ("work/mod.rs", "// reqwest::Client is elsewhere", false),
            ("work/mod.rs", "let text = my_reqwest::x();", false),
            ("frontier/sqlite/mod.rs", "use rusqlite::Connection;", false),
            ("frontier/sqlite.rs", "use rusqlite::Connection;", false),
            ("frontier/mod.rs", "use rusqlite::Connection;", true),
            ("frontier/sqlite_like.rs", "use rusqlite::Connection;", true),
            ("main.rs", "use clap::Parser;", false),
            ("crawl.rs", "#[derive(clap::Args)]", true),
            ("clock.rs", "SystemTime::now()", false),
            ("work/mod.rs", "let t = SystemTime::now();", true),
            ("work/mod.rs", "let t = std::time::SystemTime::now();", true),
            ("work/mod.rs", "let t: SystemTime = t;", false),
        ] {
            let found = strayed_dependencies(&source(path, text));
            assert_eq!(!found.is_empty(), strayed, "{path}: {text}: {:?}", said(&found));
        }
    }

    #[test]
    fn a_file_without_a_first_line_or_with_too_many_is_found() {
        let long = format!("//! x\n{}", "\n".repeat(LONGEST_FILE));
        for (text, faults) in
            [("//! What lives here.\n", 0), ("use std::fmt;\n", 1), ("", 1), (long.as_str(), 1)]
        {
            let found = shape(&source("clock.rs", text));
            assert_eq!(found.len(), faults, "{:?}", said(&found));
        }
    }
}
