//! The manual's page of all keys of a site file, made of the table of keys.

use std::fmt::Write;

use serde_json::Value;

use super::keys::KEYS;
use super::read::{FileKey, Shape, TextForm, title};

/// The longest line of the page, but for tables.
const WIDTH: usize = 120;

/// The page as it lies in `docs/site-keys.md`.
pub fn keys_page() -> String {
    let mut page = "# Every key of a site file\n\nThis page is made of the table of keys in `src/site/keys.rs`; a test compares the two.\n\
        How to write a first file: [first-site.md](first-site.md).\n\n\
        Durations are written `\"200ms\"`, `\"2s\"` or `\"6h\"`, sizes `\"512KiB\"` or `\"8MiB\"`. Unknown keys are errors.\n\
        `paced check --schema` prints the same table as a JSON Schema, for editors.\n"
        .to_owned();
    for (kind, keys) in KEYS {
        let _ = write!(
            page,
            "\n## {}\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
            heading(kind)
        );
        for key in *keys {
            let default = if key.needed { "must be there".to_owned() } else { default(key.shape) };
            let (first, _) = sentences(key);
            let _ = writeln!(page, "| `{}` | {} | {default} | {first} |", key.name, value(key));
        }
        let remarks = keys.iter().filter_map(|key| Some((key.name, sentences(key).1?)));
        for (n, (name, remark)) in remarks.enumerate() {
            let gap = if n == 0 { "\n" } else { "" };
            let _ = write!(page, "{gap}{}", folded(&format!("* `{name}`: {remark}")));
        }
    }
    page
}

fn heading(kind: &str) -> String {
    match kind {
        "field" => "A field of `[page.fields]`".to_owned(),
        "" => "The top of the file".to_owned(),
        kind => format!("`{}`", title(kind).trim_start_matches("a ")),
    }
}

fn value(key: &FileKey) -> String {
    match key.shape {
        Shape::Flag => "true or false".to_owned(),
        Shape::Count { least, .. } => format!("a whole number from {least} on"),
        Shape::Duration { zero: true, .. } => "a duration".to_owned(),
        Shape::Duration { .. } => "a duration above zero".to_owned(),
        Shape::Size(_) => "a size".to_owned(),
        Shape::OneOf(words) => {
            words().iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
        }
        Shape::Only(_) => "its default, so far".to_owned(),
        Shape::Text(of, _) | Shape::TextOr(of, _) => name(of).to_owned(),
        Shape::List(of, ..) | Shape::ListOr(of, ..) => format!("a list: {}", name(of)),
        Shape::OneOrList(of, _) => format!("{}, or a list", name(of)),
        Shape::Table(of) => format!("a table: {}", name(of)),
        Shape::Any => "any value".to_owned(),
        Shape::Section(_) => "a section".to_owned(),
        Shape::Sections(_) => "sections".to_owned(),
    }
}

fn name(form: TextForm) -> &'static str {
    match form {
        TextForm::Text => "a text",
        TextForm::Name => "letters, digits, `-`, `_`, `.`",
        TextForm::Url => "a whole URL",
        TextForm::Host => "a host's name",
        TextForm::Pattern => "a pattern",
        TextForm::Selector => "a CSS selector",
        TextForm::MediaType => "a media type",
        TextForm::Variable => "a variable's name",
        TextForm::Proxy => "a proxy's URL, or a table",
        TextForm::Signature => "a table",
        TextForm::Origin => "a site's `https` URL",
        TextForm::Rate => "a rate, as in `\"50/s\"`",
        TextForm::Header => "a value by header field",
        TextForm::Group => "a section by group",
        TextForm::Weight => "a whole number by lane",
        TextForm::Tenant => "a section by tenant",
        TextForm::Field => "a selector or table by field",
    }
}

fn default(shape: Shape) -> String {
    match (shape, shape.default()) {
        (Shape::Text(_, words) | Shape::List(_, _, words), _) => words.to_owned(),
        (Shape::Section(_) | Shape::Sections(_), _) => "each key's own".to_owned(),
        (_, Some(Value::Array(all))) if !all.is_empty() => {
            all.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ")
        }
        (_, None | Some(Value::Array(_) | Value::Object(_))) => "none".to_owned(),
        (_, Some(default)) => format!("`{default}`"),
    }
}

/// The sentence of a key's cell, and what is remarked below the table.
fn sentences(key: &FileKey) -> (String, Option<&'static str>) {
    let whole = (key.says.to_owned(), None);
    key.says.split_once(". ").map_or(whole, |(first, rest)| (format!("{first}."), Some(rest)))
}

/// A bullet in lines that are not too long.
fn folded(text: &str) -> String {
    let (mut lines, mut width) = (String::new(), 0);
    for word in text.split(' ') {
        if width > 0 && width + 1 + word.chars().count() > WIDTH {
            lines.push_str("\n ");
            width = 1;
        }
        if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += word.chars().count();
    }
    lines + "\n"
}
