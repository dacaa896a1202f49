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

    /// A table of the kind `kind`. Unknown keys are reported, and values that are not supported so far.
    pub fn of(
        report: &'a Report<'a>,
        layout: Layout,
        kind: &'static str,
        table: &'a DeTable<'a>,
        span: Range<usize>,
    ) -> Self {
        let section = Self { span, table: Some(table), ..Self::absent(report, layout, kind) };
        for key in table.keys() {
            let Some(row) = section.row(key.get_ref()) else {
                let what_to_do = meant(layout, kind, key.get_ref());
                report.error(&key.span(), format!("unknown key `{}`", key.get_ref()), what_to_do);
                continue;
            };
            section.check_only(row);
        }
        section
    }

    /// One that isn't in the file.
    pub fn absent(report: &'a Report<'a>, layout: Layout, kind: &'static str) -> Self {
        Self { report, span: 0..0, table: None, layout, kind }
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

    /// One of a few words, the first where there is none.
    pub fn word<T: Copy>(&self, key: &'static str, words: &[(&'static str, T)]) -> T {
        self.get(key).and_then(|entry| entry.word(words)).unwrap_or(words[0].1)
    }

    /// Texts, or the key's default.
    pub fn texts(&self, key: &'static str) -> Vec<String> {
        match (self.get(key), self.row(key).map(|row| row.shape)) {
            (Some(entry), _) => entry.list().iter().filter_map(|one| one.text().map(str::to_owned)).collect(),
            (None, Some(Shape::ListOr(_, _, all))) => all.iter().map(ToString::to_string).collect(),
            (None, _) => Vec::new(),
        }
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

    fn check_only(&self, row: &FileKey) {
        let Some(entry) = self.get(row.name) else { return };
        if let Shape::Only(only) = row.shape
            && entry.json() != row.shape.default()
        {
            entry.not_supported_but(only);
        }
    }

    fn row(&self, key: &str) -> Option<&'static FileKey> {
        keys_of(self.layout, self.kind).iter().find(|row| row.name == key)
    }

    /// The section under a key, empty if it isn't in the file.
    pub fn section(&self, key: &'static str) -> Self {
        let hint = format!("write [{key}] on its own line");
        let section = self.get(key).and_then(|entry| entry.section(self.layout, key, &hint));
        section.unwrap_or(Self::absent(self.report, self.layout, key))
    }

    /// The value of a key that must be there; else that is reported.
    pub fn needed(&self, key: &'static str, what: impl Into<String>, what_to_do: &str) -> Option<Entry<'a>> {
        self.get(key).or_else(|| self.missing(what, what_to_do))
    }

    /// Reports that a key must be there.
    pub fn missing<T>(&self, what: impl Into<String>, what_to_do: impl Into<String>) -> Option<T> {
        self.report.error(&self.span, what, what_to_do);
        None
    }
}

impl<'a> Entry<'a> {
    /// The table as a section of that kind.
    pub fn section(&self, layout: Layout, kind: &'static str, hint: &str) -> Option<Section<'a>> {
        match self.value {
            DeValue::Table(table) => Some(Section::of(self.report, layout, kind, table, self.span.clone())),
            _ => self.wrong_type("a section", hint),
        }
    }
}

/// What to do about a key that this kind of section doesn't have.
fn meant(layout: Layout, kind: &str, key: &str) -> String {
    let names = || keys_of(layout, kind).iter().map(|row| row.name);
    if let Some(word) = nearest(key, names()) {
        return format!("did you mean `{word}`?");
    }
    let all = || layout.iter().flat_map(|(section, keys)| keys.iter().map(|row| (*section, row.name)));
    let alike = || all().find(|(_, name)| nearest(key, [*name]).is_some());
    match all().find(|(_, name)| *name == key).or_else(alike) {
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
        "fairness" => "a [[fairness]]".to_owned(),
        "tenant" => "a [tenant.NAME]".to_owned(),
        _ => format!("[{kind}]"),
    }
}
