//! One table of a file: its values by key, and the keys nobody knows, each reported.

use std::ops::Range;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::nearest::nearest;
use super::{Entry, FileKey, Layout, Report, Shape, keys_of};

/// A table whose keys are all known; one that isn't in the file has none.
pub(crate) struct Section<'a> {
    /// Who is told of errors.
    pub report: &'a Report<'a>,
    /// Where the section begins, in bytes.
    pub span: Range<usize>,
    table: Option<&'a DeTable<'a>>,
    layout: Layout,
    kind: &'static str,
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
            if keys_of(layout, kind).all(|known| known.name != key.get_ref()) {
                let what_to_do = meant(layout, kind, key.get_ref());
                report.error(&key.span(), format!("unknown key `{}`", key.get_ref()), what_to_do);
            }
        }
        Self { report, span, table: Some(table), layout, kind }
    }

    /// The value of a key that is in the file.
    pub fn get(&self, key: &'static str) -> Option<Entry<'a>> {
        debug_assert!(self.row(key).is_some(), "`{key}` is missing from the layout");
        let value = self.table?.get(key)?;
        Some(Entry::new(self.report, key, value))
    }

    /// Whether a key is `true`.
    pub fn flag(&self, key: &'static str) -> bool {
        self.get(key).and_then(|entry| entry.flag()).unwrap_or(false)
    }

    /// A whole number, or its key's default.
    pub fn count<N: TryFrom<i64>>(&self, key: &'static str) -> Option<N> {
        let Some(Shape::Count { least, default }) = self.row(key).map(|row| row.shape) else { return None };
        let written = self.get(key).and_then(|entry| entry.count(least.into()));
        written.or_else(|| N::try_from(default?.into()).ok())
    }

    /// A duration, or its key's default.
    pub fn duration(&self, key: &'static str) -> Option<Duration> {
        let Some(Shape::Duration { zero, default }) = self.row(key).map(|row| row.shape) else { return None };
        let read = |entry: Entry<'a>| if zero { entry.duration() } else { entry.some_duration() };
        self.get(key).and_then(read).or(default)
    }

    /// Reports a value that isn't the only one that its key supports so far.
    pub fn only_default(&self, key: &'static str) {
        let (Some(entry), Some(row)) = (self.get(key), self.row(key)) else { return };
        let only = match row.shape {
            Shape::OnlyText(only) if entry.value.as_str() != Some(only) => format!("\"{only}\""),
            Shape::OnlyCount(only) if entry.count::<u32>(1).is_some_and(|count| count != only) => {
                only.to_string()
            }
            Shape::OnlyEmpty if !entry.list().is_empty() => "[]".to_owned(),
            _ => return,
        };
        entry.not_supported_but(&only);
    }

    fn row(&self, key: &str) -> Option<&'static FileKey> {
        keys_of(self.layout, self.kind).find(|row| row.name == key)
    }

    /// The section under a key, empty if it isn't in the file.
    pub fn section(&self, key: &'static str) -> Self {
        let layout = self.layout;
        let absent = Self { report: self.report, span: 0..0, table: None, layout, kind: key };
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

/// What to do about a key that this kind of section doesn't have.
fn meant(layout: Layout, kind: &str, key: &str) -> String {
    let names = || keys_of(layout, kind).map(|row| row.name);
    if let Some(word) = nearest(key, names()) {
        return format!("did you mean `{word}`?");
    }
    let elsewhere = |row: &FileKey| (row.name == key).then_some((row.section, row.name));
    let alike = |row: &FileKey| Some((row.section, nearest(key, std::iter::once(row.name))?));
    match layout.iter().find_map(elsewhere).or_else(|| layout.iter().find_map(alike)) {
        Some(("", word)) if word == key => {
            "move it to the top of the file, above the first [section]".to_owned()
        }
        Some((name, word)) if word == key => format!("move it to {}", title(name)),
        Some((name, word)) => format!("did you mean `{word}` in {}?", title(name)),
        None => format!("remove it; {} takes {}", title(kind), names().collect::<Vec<_>>().join(", ")),
    }
}

/// A kind of section as messages and the manual name it.
pub(crate) fn title(kind: &str) -> String {
    match kind {
        "" => "the top of the file".to_owned(),
        "page" => "a [[page]]".to_owned(),
        "field" => "a field".to_owned(),
        "group" => "a [group.NAME]".to_owned(),
        _ => format!("[{kind}]"),
    }
}
