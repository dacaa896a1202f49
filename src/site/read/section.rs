//! One table of a file: its values by key, and the keys nobody knows, each reported.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::nearest::nearest;
use super::{Entry, Report};

/// The keys of each kind of section, `""` being the top of the file.
pub(crate) type Layout = &'static [(&'static str, &'static [&'static str])];

/// A table whose keys are all known; one that isn't in the file has none.
pub(crate) struct Section<'a> {
    /// Who is told of errors.
    pub report: &'a Report<'a>,
    /// Where the section begins, in bytes.
    pub span: Range<usize>,
    table: Option<&'a DeTable<'a>>,
    known: &'static [&'static str],
}

impl<'a> Section<'a> {
    /// The top of the file.
    pub fn top(report: &'a Report<'a>, layout: Layout, table: &'a DeTable<'a>) -> Self {
        Self::of(report, layout, "", table, 0..0)
    }

    /// A table of the kind `kind`, its unknown keys reported.
    pub fn of(
        report: &'a Report<'a>,
        layout: Layout,
        kind: &'static str,
        table: &'a DeTable<'a>,
        span: Range<usize>,
    ) -> Self {
        for key in table.keys() {
            if !keys_of(layout, kind).contains(&key.get_ref().as_ref()) {
                let what_to_do = meant(layout, kind, key.get_ref());
                report.error(&key.span(), format!("unknown key `{}`", key.get_ref()), what_to_do);
            }
        }
        Self { report, span, table: Some(table), known: keys_of(layout, kind) }
    }

    /// The value of a key that is in the file.
    pub fn get(&self, key: &'static str) -> Option<Entry<'a>> {
        debug_assert!(self.known.contains(&key), "`{key}` is missing from the layout");
        let value = self.table?.get(key)?;
        Some(Entry::new(self.report, key, value))
    }

    /// The section under a key, empty if it isn't in the file.
    pub fn section(&self, layout: Layout, key: &'static str) -> Self {
        let absent = Self { report: self.report, span: 0..0, table: None, known: keys_of(layout, key) };
        let Some(entry) = self.get(key) else { return absent };
        match entry.value {
            DeValue::Table(table) => Self::of(self.report, layout, key, table, entry.span),
            _ => entry.wrong_type("a section", &format!("write [{key}] on its own line")).unwrap_or(absent),
        }
    }

    /// Reports that a key must be there.
    pub fn missing<T>(&self, what: impl Into<String>, what_to_do: impl Into<String>) -> Option<T> {
        self.report.error(&self.span, what, what_to_do);
        None
    }
}

impl<'a> Entry<'a> {
    /// The entries of a table whose keys are free, in the order of the file.
    pub fn entries(&self) -> Option<Vec<Entry<'a>>> {
        let table = self.value.as_table()?;
        let mut entries: Vec<(usize, Entry<'a>)> = table
            .iter()
            .map(|(key, value)| (key.span().start, Entry::new(self.report, key.get_ref(), value)))
            .collect();
        entries.sort_by_key(|(at, _)| *at);
        Some(entries.into_iter().map(|(_, entry)| entry).collect())
    }
}

fn keys_of(layout: Layout, kind: &str) -> &'static [&'static str] {
    layout.iter().find(|(name, _)| *name == kind).map_or(&[], |(_, keys)| keys)
}

/// What to do about a key that this kind of section doesn't have.
fn meant(layout: Layout, kind: &str, key: &str) -> String {
    if let Some(word) = nearest(key, keys_of(layout, kind).iter().copied()) {
        return format!("did you mean `{word}`?");
    }
    match layout.iter().find_map(|(name, keys)| Some((*name, nearest(key, keys.iter().copied())?))) {
        Some(("", word)) if word == key => {
            "move it to the top of the file, above the first [section]".to_owned()
        }
        Some((name, word)) if word == key => format!("move it to {}", title(name)),
        Some((name, word)) => format!("did you mean `{word}` in {}?", title(name)),
        None => format!("remove it; {} takes {}", title(kind), keys_of(layout, kind).join(", ")),
    }
}

fn title(kind: &str) -> String {
    match kind {
        "" => "the top of the file".to_owned(),
        "page" => "a [[page]]".to_owned(),
        "field" => "a field".to_owned(),
        "group" => "a [group.NAME]".to_owned(),
        _ => format!("[{kind}]"),
    }
}
