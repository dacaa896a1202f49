//! What is no TOML in a file, in plain words, and whether the rest can still be read.

use std::ops::Range;

use toml::de::{DeTable, Error};

use super::{Report, place};

/// What the parser says, what that means, and what to do; after each of these the rest of the file reads as meant.
const SLIPS: [(&str, &str, &str); 6] = [
    ("duplicate key", "the key is there twice", "keep one of the two"),
    ("string values must be quoted", "a text without quotes", "put it in quotes, as in name = \"books\""),
    (
        "missing escaped value",
        "a backslash before a character that needs none",
        "write the text in 'single quotes', where a backslash stands for itself",
    ),
    ("invalid basic string", "a text that doesn't end on its line", "close it with the quote it began with"),
    (
        "invalid literal string",
        "a text that doesn't end on its line",
        "close it with the quote it began with",
    ),
    ("invalid boolean", "a misspelt true or false", "write true or false, in small letters"),
];

/// The file's tables; `None` if an error leaves it open what the rest of the file means.
pub(super) fn document<'t>(report: &Report<'t>, text: &'t str) -> Option<DeTable<'t>> {
    let (table, mut errors) = DeTable::parse_recoverable(text);
    errors.sort_by_key(|error| at(error).start);
    let known = errors.iter().all(|error| slip(error).is_some());
    let mut last_line = None;
    for error in &errors {
        // What follows on the same line comes of the same slip.
        let line = place(text, at(error).start).0;
        if last_line.replace(line) != Some(line) {
            say(report, error);
        }
    }
    known.then(|| table.into_inner())
}

fn say(report: &Report<'_>, error: &Error) {
    match slip(error) {
        Some((_, what, what_to_do)) => report.error(&at(error), *what, *what_to_do),
        None => report.error(
            &at(error),
            format!("not TOML: {}", error.message()),
            "mend the line; the form is key = value below a [section] (https://toml.io)",
        ),
    }
}

fn slip(error: &Error) -> Option<&'static (&'static str, &'static str, &'static str)> {
    SLIPS.iter().find(|(said, ..)| error.message().starts_with(said))
}

fn at(error: &Error) -> Range<usize> {
    error.span().unwrap_or(0..0)
}
