//! The `[page.fields]` of a page rule.

use crate::site::keys::KEYS;
use crate::site::read::{Entry, Section};
use crate::site::{FieldKind, FieldRule};

use super::patterns::{regex, selector};

/// The fields in the order of the file, by name; one that is wrong is reported and has no rule.
pub(super) fn read<'a>(entry: &Entry<'a>) -> Vec<(&'a str, Option<FieldRule>)> {
    let fields = entry.entries("a section", "write [page.fields] on a line of its own");
    fields.iter().map(|field| (field.key, rule(field))).collect()
}

fn rule(field: &Entry<'_>) -> Option<FieldRule> {
    if field.key.trim().is_empty() {
        return field.refuse("a field has an empty name", "write it as in title = \"h1\"");
    }
    let name = field.key;
    let (section, css) = if field.value.is_str() {
        (Section::absent(field.report, KEYS, "field"), selector(field))
    } else if field.value.is_table() {
        let section = field.section(KEYS, "field", "")?;
        let (what, hint) =
            (format!("the field `{name}` has no `css`"), "write where it is, as in css = \"h1\"");
        let css = section.needed("css", what, hint).and_then(|entry| selector(&entry));
        (section, css)
    } else {
        let hint = "write a CSS selector, or a table as in { css = \".price\", as = \"price\" }";
        return field.wrong_type("a field", hint);
    };
    let required = section.flag("required");
    if let Some(default) = section.get("default").filter(|_| required) {
        default.refuse::<()>(
            format!("the field `{name}` is required, so its `default` is never used"),
            "remove one of the two",
        );
    }
    Some(FieldRule {
        name: name.to_owned(),
        attr: section.get("attr").and_then(|e| e.text().map(str::to_owned)),
        regex: section.get("regex").and_then(|e| regex(&e)),
        kind: section.word("as", &FieldKind::WORDS),
        default: section.get("default").and_then(|e| e.json().or_else(|| no_json(&e))),
        required,
        all: section.flag("all"),
        css: css?,
    })
}

fn no_json<T>(entry: &Entry<'_>) -> Option<T> {
    entry.refuse("`default` can't be written as JSON", "write a text, a number, true or false")
}
