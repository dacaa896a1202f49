//! Reading TOML that a person wrote: places, known keys, typed values, every error at once. What the keys mean is not here.

mod entry;
mod key;
mod nearest;
mod section;
mod syntax;

pub(crate) use entry::Entry;
pub(crate) use key::{FileKey, Layout, Shape, TextForm, key, keys_of, words};
pub(crate) use section::{Section, title};

use std::cell::RefCell;
use std::ops::Range;

use toml::de::DeTable;

use super::error::{SiteError, SiteErrors};

/// A file being read, and what was found wrong with it so far.
pub(crate) struct Report<'t> {
    file: &'t str,
    text: &'t str,
    errors: RefCell<Vec<(usize, SiteError)>>,
}

impl<'t> Report<'t> {
    /// Nothing wrong yet.
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, errors: RefCell::default() }
    }

    /// The file's tables; `None` if what isn't TOML in it, which is reported, leaves the rest open.
    pub fn document(&self) -> Option<DeTable<'t>> {
        syntax::document(self, self.text)
    }

    /// Notes one error at a place of the file.
    pub fn error(&self, span: &Range<usize>, what: impl Into<String>, what_to_do: impl Into<String>) {
        let (line, column) = place(self.text, span.start);
        let (file, what, what_to_do) = (self.file.to_owned(), what.into(), what_to_do.into());
        self.errors.borrow_mut().push((span.start, SiteError { file, line, column, what, what_to_do }));
    }

    /// How many errors there are so far.
    pub fn count(&self) -> usize {
        self.errors.borrow().len()
    }

    /// The value that was read, if nothing is wrong; else every error, first line first.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, SiteErrors> {
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|(at, _)| *at);
        match value {
            Some(value) if errors.is_empty() => Ok(value),
            _ => Err(SiteErrors { errors: errors.into_iter().map(|(_, error)| error).collect() }),
        }
    }
}

/// What is to be said of the value under `keys` in the text of a file that could be read.
pub(crate) fn said_of(
    (file, text): (&str, &str),
    keys: &[&str],
    what: String,
    what_to_do: impl Into<String>,
) -> SiteError {
    let (line, column) = place_of(text, keys);
    SiteError { file: file.to_owned(), line, column, what, what_to_do: what_to_do.into() }
}

/// Where the value under `keys` stands, line and column from 1; of those that aren't there, the nearest above.
pub(crate) fn place_of(text: &str, keys: &[&str]) -> (usize, usize) {
    let (document, _) = DeTable::parse_recoverable(text);
    let (mut table, mut at) = (Some(document.get_ref()), 0);
    for key in keys {
        let Some(value) = table.and_then(|t| t.get(*key)) else { break };
        at = value.span().start;
        table = value.get_ref().as_table();
    }
    place(text, at)
}

/// Line and column of a byte, both counted from 1, the column in characters.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(byte)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    (line, before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        for (text, byte, expected) in [
            ("", 0, (1, 1)),
            ("name = 1", 7, (1, 8)),
            ("a = 1\nb = 2\n", 6, (2, 1)),
            ("a = 'é' # x\n", 9, (1, 9)),
            ("\u{feff}a = 1", 3, (1, 1)),
        ] {
            assert_eq!(place(text, byte), expected, "{text:?} at {byte}");
        }
    }

    #[test]
    fn a_key_that_is_not_there_has_the_place_of_its_section() {
        let text = "name = 'x'\n\n[pace]\nrobots = 'ignore'\n";
        for (keys, expected) in [
            (&["pace", "robots"][..], (4, 10)),
            (&["pace", "contact"], (3, 1)),
            (&["scope", "hosts"], (1, 1)),
            (&["name"], (1, 8)),
        ] {
            assert_eq!(place_of(text, keys), expected, "{keys:?}");
        }
    }
}
