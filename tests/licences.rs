//! What the program is made of: each dependency's licence and source, held against `deny.toml`, and told in
//! `docs/licences.txt`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// One platform for all who run this, so that all make the same report.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Deny {
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
    exceptions: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Debug, Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

impl Deny {
    fn read() -> Self {
        let text = std::fs::read_to_string(Path::new(ROOT).join("deny.toml")).expect("deny.toml");
        toml::from_str(&text).expect("a file for cargo-deny")
    }

    /// What is wrong with a dependency.
    fn faults(&self, package: &Package) -> Vec<String> {
        let Package { name, license, source, .. } = package;
        let mut faults = Vec::new();
        let exception = self.licenses.exceptions.iter().find(|exception| exception.name == *name);
        let may = |licence: &str| {
            self.licenses.allow.contains(licence)
                || exception.is_some_and(|exception| exception.allow.contains(licence))
        };
        if !license.as_ref().is_some_and(|licence| satisfied(licence, &may)) {
            faults.push(format!("{name}: the licence {license:?} isn't allowed in deny.toml"));
        }
        let known = |registry: &String| source.as_deref() == Some(&format!("registry+{registry}"));
        if !self.sources.allow_registry.iter().any(known) {
            faults.push(format!("{name}: it comes from {source:?}"));
        }
        if self.bans.deny.iter().any(|banned| banned.name == *name) {
            faults.push(format!("{name}: it is banned in deny.toml"));
        }
        faults
    }
}

/// Whether an SPDX expression leaves a choice of licences that are all allowed. `AND` binds closer than `OR`; crates of old
/// write `/` for `OR`.
fn satisfied(expression: &str, may: &impl Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (is_allowed, rest) = choice(&words, may);
    assert!(rest.is_empty(), "`{expression}` is no SPDX expression");
    is_allowed
}

fn choice<'w>(words: &'w [&'w str], may: &impl Fn(&str) -> bool) -> (bool, &'w [&'w str]) {
    let (mut is_allowed, mut rest) = all_of(words, may);
    while let ["OR", more @ ..] = rest {
        let (other, left) = all_of(more, may);
        (is_allowed, rest) = (is_allowed || other, left);
    }
    (is_allowed, rest)
}

fn all_of<'w>(words: &'w [&'w str], may: &impl Fn(&str) -> bool) -> (bool, &'w [&'w str]) {
    let (mut is_allowed, mut rest) = one(words, may);
    while let ["AND", more @ ..] = rest {
        let (other, left) = one(more, may);
        (is_allowed, rest) = (is_allowed && other, left);
    }
    (is_allowed, rest)
}

fn one<'w>(words: &'w [&'w str], may: &impl Fn(&str) -> bool) -> (bool, &'w [&'w str]) {
    match words {
        ["(", inner @ ..] => match choice(inner, may) {
            (is_allowed, [")", rest @ ..]) => (is_allowed, rest),
            (_, rest) => (false, rest),
        },
        [licence, "WITH", exception, rest @ ..] => (may(&format!("{licence} WITH {exception}")), rest),
        [licence, rest @ ..] => (may(licence), rest),
        [] => (false, words),
    }
}

/// All that is built into the program, by its name and version.
fn dependencies() -> Vec<Package> {
    let features: &[&str] = if cfg!(feature = "s3") { &["--features", "s3"] } else { &[] };
    let told = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", PLATFORM])
        .args(features)
        .current_dir(ROOT)
        .output()
        .expect("cargo");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let metadata: Metadata = serde_json::from_slice(&told.stdout).expect("what cargo tells");
    metadata
        .packages
        .into_iter()
        .filter(|package| !metadata.workspace_members.contains(&package.id))
        .collect()
}

#[test]
fn every_dependency_has_a_licence_and_a_source_that_are_allowed() {
    let (deny, packages) = (Deny::read(), dependencies());
    assert!(packages.len() > 150, "{} packages", packages.len());
    let faults: Vec<String> = packages.iter().flat_map(|package| deny.faults(package)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    for exception in &deny.licenses.exceptions {
        let is_there = packages.iter().any(|package| package.name == exception.name);
        assert!(is_there, "deny.toml makes an exception for {}, which is no dependency", exception.name);
    }
}

#[test]
fn the_report_names_every_dependency_with_its_licence() {
    let file = Path::new(ROOT).join("docs/licences.txt");
    let line = |package: &Package| {
        format!("{} {}: {}", package.name, package.version, package.license.as_deref().unwrap_or("none"))
    };
    let lines: BTreeSet<String> = dependencies().iter().map(line).collect();
    let how = "PACED_WRITE_DOCS=1 cargo test --features s3 --test licences";
    if cfg!(feature = "s3") && std::env::var_os("PACED_WRITE_DOCS").is_some() {
        let head =
            "What paced is made of, on Linux and with all features: each crate, its version, its licence.\n";
        let text: Vec<&str> = lines.iter().map(String::as_str).collect();
        std::fs::write(&file, format!("{head}\n{}\n", text.join("\n"))).expect("written");
    }
    let report = std::fs::read_to_string(&file).expect("the report");
    let told: BTreeSet<String> = report.lines().skip(2).map(str::to_owned).collect();
    let missing: Vec<_> = lines.difference(&told).collect();
    assert!(missing.is_empty(), "docs/licences.txt lacks {missing:?}: {how}");
    if cfg!(feature = "s3") {
        let over: Vec<_> = told.difference(&lines).collect();
        assert!(over.is_empty(), "docs/licences.txt has {over:?}, which is no dependency any more: {how}");
    }
}

#[test]
fn what_is_not_allowed_is_found() {
    let deny = Deny::read();
    let registry = deny.sources.allow_registry.first().map(|registry| format!("registry+{registry}"));
    let package = |name: &str, licence: &str, source: Option<String>| Package {
        name: name.to_owned(),
        license: Some(licence.to_owned()).filter(|licence| !licence.is_empty()),
        source,
        ..Package::default()
    };
    let git = Some("git+https://git.example/x".to_owned());
    let faults: BTreeMap<&str, usize> = [
        ("MIT", deny.faults(&package("x", "MIT", registry.clone()))),
        ("MIT/GPL-3.0", deny.faults(&package("x", "MIT/GPL-3.0", registry.clone()))),
        ("MIT AND GPL-3.0", deny.faults(&package("x", "MIT AND GPL-3.0", registry.clone()))),
        (
            "MIT AND (GPL-3.0 OR ISC)",
            deny.faults(&package("x", "MIT AND (GPL-3.0 OR ISC)", registry.clone())),
        ),
        (
            "GPL-3.0 OR MIT AND MPL-2.0",
            deny.faults(&package("x", "GPL-3.0 OR MIT AND MPL-2.0", registry.clone())),
        ),
        ("MPL-2.0", deny.faults(&package("x", "MPL-2.0", registry.clone()))),
        ("an exception", deny.faults(&package("selectors", "MPL-2.0", registry.clone()))),
        (
            "GPL-2.0 WITH x",
            deny.faults(&package("x", "GPL-2.0 WITH Classpath-exception-2.0", registry.clone())),
        ),
        ("none", deny.faults(&package("x", "", registry.clone()))),
        ("git", deny.faults(&package("x", "MIT", git))),
        ("a ban", deny.faults(&package("openssl", "MIT", registry))),
    ]
    .map(|(what, faults)| (what, faults.len()))
    .into();
    let wrong: BTreeSet<&str> =
        faults.iter().filter(|(_, count)| **count == 1).map(|(what, _)| *what).collect();
    let expected = [
        "GPL-2.0 WITH x",
        "GPL-3.0 OR MIT AND MPL-2.0",
        "MIT AND GPL-3.0",
        "MPL-2.0",
        "a ban",
        "git",
        "none",
    ];
    assert_eq!(wrong, BTreeSet::from(expected), "{faults:?}");
}
