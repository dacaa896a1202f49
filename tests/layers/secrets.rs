//! What holds a secret can't be shown or stored: its type has none of the traits by which that would happen.

use regex::Regex;

use crate::{read, root};

/// Files, and the types in them that hold secrets.
const HOLDERS: [(&str, &str); 3] =
    [("secret.rs", "Secret"), ("signature/key.rs", "SigningKey"), ("signature/mod.rs", "SignatureFields")];

/// How the type of a text could be shown or stored.
fn shown(text: &str, name: &str) -> Vec<String> {
    let derived =
        Regex::new(&format!(r"#\[derive\(([^)]*)\)\]\s*(?:pub )?struct {name}\b")).expect("a pattern");
    let written =
        Regex::new(&format!(r"impl(?:<[^>]*>)?\s+([\w:]+)(?:<[^>]*>)?\s+for\s+{name}\b")).expect("a pattern");
    let traits = |pattern: &Regex| {
        let found = pattern.captures_iter(text).filter_map(|found| found.get(1));
        found.map(|found| found.as_str().to_owned()).collect::<Vec<_>>()
    };
    let is_telling = |text: &String| {
        ["Debug", "Display", "Serialize", "Deref", "AsRef", "Borrow", "From", "Clone"]
            .iter()
            .any(|t| text.contains(t))
    };
    [traits(&derived), traits(&written)].concat().into_iter().filter(is_telling).collect()
}

#[test]
fn no_type_that_holds_a_secret_can_be_shown_or_stored() {
    for (file, name) in HOLDERS {
        let text = read(&root().join(file));
        assert!(text.contains(&format!("pub struct {name}")), "{file} has no {name}");
        assert_eq!(shown(&text, name), Vec::<String>::new(), "{file}: {name}");
    }
}

#[test]
fn a_way_to_show_one_is_found() {
    for text in [
        "#[derive(Clone, Debug)]\npub struct Secret(String);",
        "impl fmt::Display for Secret {",
        "impl<S> AsRef<str> for Secret {",
        "impl From<Secret> for String {}\nimpl serde::Serialize for Secret {",
    ] {
        assert!(!shown(text, "Secret").is_empty(), "{text}");
    }
    assert!(
        shown("#[derive(Debug)]\npub struct SecretName(String);\npub struct Secret(String);", "Secret")
            .is_empty()
    );
}
