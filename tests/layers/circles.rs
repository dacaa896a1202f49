//! Circles of imports between the files and rooms that stand side by side in one folder of `src`.
//!
//! A folder's own `mod.rs` is no neighbour: its files stand on it and it shows them to others. What it passes on from one of
//! them is that one's.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::{Source, source, sources};

#[test]
fn no_folder_holds_a_circle_of_imports() {
    let circles = circles(&sources());
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

/// A module, as the names that lead to it from the crate's root.
type Module = Vec<String>;

/// The modules of the crate, and what each of them passes on from its children.
struct Modules<'a> {
    code: BTreeMap<Module, &'a str>,
    passed_on: BTreeMap<Module, BTreeMap<String, Module>>,
}

/// One line for each circle: the folder, and who in it imports whom around.
fn circles(sources: &[Source]) -> Vec<String> {
    let code: BTreeMap<Module, &str> = sources.iter().map(|source| (module(source), &*source.code)).collect();
    let mut modules = Modules { code, passed_on: BTreeMap::new() };
    modules.passed_on =
        modules.code.keys().map(|module| (module.clone(), modules.shown_by(module))).collect();
    // Folder, and in it: who imports whom.
    let mut folders: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for user in modules.code.keys() {
        for used in modules.imports(user) {
            let shared = user.iter().zip(&used).take_while(|(one, other)| one == other).count();
            if let (Some(one), Some(other)) = (user.get(shared), used.get(shared)) {
                let folder = folders.entry(user[..shared].to_vec()).or_default();
                folder.entry(one.clone()).or_default().insert(other.clone());
            }
        }
    }
    folders.remove(&Module::new());
    let told = |(folder, edges): (Module, _)| {
        let circles = circles_among(&edges).into_iter();
        circles.map(|circle| format!("src/{}: {}", folder.join("/"), circle.join(", "))).collect::<Vec<_>>()
    };
    folders.into_iter().flat_map(told).collect()
}

fn module(source: &Source) -> Module {
    let path = source.path.with_extension("");
    let mut names: Module = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| ["mod", "lib"].contains(&last.as_str())) {
        names.pop();
    }
    names
}

/// Those who reach themselves by way of others.
fn circles_among(edges: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reach = |from: &String| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(name) = next.pop() {
            let fresh =
                edges.get(name).into_iter().flatten().filter(|other| reached.insert((*other).clone()));
            next.extend(fresh.collect::<Vec<_>>());
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = edges.keys().map(|name| (name, reach(name))).collect();
    let around = |name: &&String| -> Vec<String> {
        reached
            .iter()
            .filter(|(other, of)| reached[*name].contains(**other) && of.contains(*name))
            .map(|(other, _)| (*other).clone())
            .collect()
    };
    reached.keys().map(around).filter(|circle| circle.len() > 1).collect()
}

impl Modules<'_> {
    /// What others find in a module although it is a child's: `use child::Name;`.
    fn shown_by(&self, module: &Module) -> BTreeMap<String, Module> {
        let uses = Regex::new(r"(?m)^(?:pub(?:\([^)]*\))? )?use (?:self::)?([^;]+);").expect("a pattern");
        let paths = uses.captures_iter(self.code[module]).flat_map(|found| leaves(&found[1]));
        let shown = paths.filter_map(|path| {
            let child = self.below(module, path.first()?)?;
            Some((path.last()?.clone(), child))
        });
        shown.collect()
    }

    fn below(&self, module: &Module, name: &String) -> Option<Module> {
        let child: Module = module.iter().chain([name]).cloned().collect();
        self.code.contains_key(&child).then_some(child)
    }

    /// The modules that one names by a path.
    fn imports(&self, user: &Module) -> BTreeSet<Module> {
        let mut used: BTreeSet<Module> = rooted_paths(self.code[user])
            .into_iter()
            .map(|path| {
                let steps = path.iter().position(|name| name != "super" && name != "self" && name != "crate");
                let (roots, names) = path.split_at(steps.unwrap_or(path.len()));
                let supers = roots.iter().filter(|root| *root == "super").count();
                let depth = if roots[0] == "crate" { 0 } else { user.len().saturating_sub(supers) };
                self.resolve(user[..depth].to_vec(), names)
            })
            .collect();
        used.remove(user);
        used
    }

    /// The module that has what names lead to from another one.
    fn resolve(&self, from: Module, names: &[String]) -> Module {
        let Some((first, rest)) = names.split_first() else { return from };
        match (self.below(&from, first), self.passed_on[&from].get(first)) {
            (Some(child), _) => self.resolve(child, rest),
            (None, Some(child)) => self.resolve(child.clone(), names),
            (None, None) => from,
        }
    }
}

/// The paths in code that begin at the crate, at a parent or at the module itself; a group of imports is one each.
fn rooted_paths(code: &str) -> Vec<Vec<String>> {
    let begin = Regex::new(r"\b(?:crate|super|self)\s*::").expect("a pattern");
    let mut paths = Vec::new();
    let mut end = 0;
    for found in begin.find_iter(code) {
        if found.start() < end {
            continue;
        }
        let text = &code[found.start()..];
        let length = length_of_tree(text);
        end = found.start() + length;
        paths.extend(leaves(&text[..length]));
    }
    paths
}

/// How far a path reaches, with its group of imports.
fn length_of_tree(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' if depth > 0 || text[..at].trim_end().ends_with("::") => depth += 1,
            '}' if depth > 0 => depth -= 1,
            c if depth > 0 || c == '_' || c == ':' || c.is_alphanumeric() => {}
            c if c.is_whitespace() && text[..at].trim_end().ends_with("::") => {}
            _ => return at,
        }
    }
    text.len()
}

/// The paths of a tree of imports: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn leaves(tree: &str) -> Vec<Vec<String>> {
    let Some((stem, group)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![
            path.split("::").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
        ];
    };
    let stem = leaves(stem).remove(0);
    let group = group.rsplit_once('}').map_or(group, |(inside, _)| inside);
    let (mut depth, mut parts) = (0_usize, vec![String::new()]);
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => parts.push(String::new()),
            _ => {}
        }
        if c != ',' || depth > 0 {
            parts.last_mut().expect("there is always one").push(c);
        }
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty()).flat_map(|part| leaves(part));
    parts.map(|leaf| stem.iter().cloned().chain(leaf).collect()).collect()
}

#[test]
fn a_circle_is_found_however_its_imports_are_written() {
    let lib = ("lib.rs", "mod a;");
    let table: [(&[(&str, &str)], &str); 8] = [
        (&[("a/b.rs", "use super::c::C;"), ("a/c.rs", "use crate::a::{x, b::{B, D as E}};")], "src/a: b, c"),
        (&[("a/b.rs", "use super::c::C;"), ("a/c.rs", "// use super::b::B;")], ""),
        (&[("a/b.rs", "fn f() { super::c::f() }"), ("a/c.rs", "use crate::\n    a::b;")], "src/a: b, c"),
        (
            &[("a/b/mod.rs", ""), ("a/b/d.rs", "use super::super::c::C;"), ("a/c.rs", "use super::b::d::D;")],
            "src/a: b, c",
        ),
        (
            &[
                ("a/mod.rs", "mod b;\nmod c;\npub use b::B;\n"),
                ("a/b.rs", "use super::c::C;"),
                ("a/c.rs", "use super::B;"),
            ],
            "src/a: b, c",
        ),
        (&[("a/mod.rs", "mod b;\nuse b::B;\npub struct A;"), ("a/b.rs", "use super::A;")], ""),
        (
            &[("a/b.rs", "use super::c::C;"), ("a/c.rs", "use super::d;"), ("a/d.rs", "use super::b;")],
            "src/a: b, c, d",
        ),
        (&[("b.rs", "use crate::c;"), ("c.rs", "use crate::b;")], ""),
    ];
    for (files, told) in table {
        let has_room = files.iter().any(|(path, _)| *path == "a/mod.rs");
        let room = (!has_room).then_some(("a/mod.rs", "mod b;\nmod c;\nmod d;"));
        let sources: Vec<Source> =
            files.iter().copied().chain([lib]).chain(room).map(|(path, text)| source(path, text)).collect();
        assert_eq!(circles(&sources).join("\n"), told, "{files:?}");
    }
}
