//! One name, one meaning: no two types of `src` have the same name, whoever may see them.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::{Source, source, sources};

#[test]
fn a_type_s_name_has_one_meaning() {
    let shared: BTreeMap<_, _> =
        types(&sources()).into_iter().filter(|(_, places)| places.len() > 1).collect();
    assert!(shared.is_empty(), "these names have two meanings: {shared:#?}");
}

/// Where a type of each name is declared; types that belong to a trait or to unit tests are left out.
fn types(sources: &[Source]) -> BTreeMap<String, Vec<String>> {
    let declared = r"(?m)^(?:(?:pub(?:\([^)]*\))? )?type|\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|union|trait)|\s+pub(?:\([^)]*\))? type) (\w+)";
    let declared = Regex::new(declared).expect("a pattern");
    let tested: BTreeSet<String> = sources.iter().flat_map(test_modules).collect();
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources {
        let path = source.path.with_extension("").display().to_string();
        for found in declared.captures_iter(&source.code).filter(|_| !tested.contains(&path)) {
            types.entry(found[1].to_owned()).or_default().push(path.clone());
        }
    }
    types
}

/// The files that a file declares as modules of its tests.
fn test_modules(source: &Source) -> Vec<String> {
    let declared = Regex::new(r"#\[cfg\(test\)\]\n(?:pub(?:\([^)]*\))? )?mod (\w+);").expect("a pattern");
    let path = source.path.with_extension("");
    let folder = if path.ends_with("mod") { path.parent().unwrap_or(&path) } else { &path };
    let name = |module: &str| folder.join(module).display().to_string();
    declared.captures_iter(&source.text).map(|found| name(&found[1])).collect()
}

#[test]
fn a_declaration_is_found_wherever_it_stands() {
    for (text, found) in [
        (
            "struct A;\npub enum B {}\npub(crate) trait C {}\ntype D = u8;\npub(super) type E = u8;",
            "A B C D E",
        ),
        ("impl X {\n    type Error = u8;\n}\ntrait Y {\n    type Item;\n}", "Y"),
        ("fn f() {\n    struct Inside;\n}\nmod m {\n    pub type Short = u8;\n}", "Inside Short"),
        ("// struct No;\n//! enum No\n#[cfg(test)]\nmod tests {\n    struct No;\n}", ""),
    ] {
        let types = types(&[source("a.rs", text)]);
        assert_eq!(types.into_keys().collect::<Vec<_>>().join(" "), found, "{text}");
    }
    let types = types(&[
        source("a/mod.rs", "mod b;\n#[cfg(test)]\nmod c;\n"),
        source("a/b.rs", "struct S;"),
        source("a/c.rs", "struct S;"),
    ]);
    assert_eq!(types["S"], ["a/b"]);
}
