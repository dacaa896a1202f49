//! `FileKey`: a row in a file's table of keys. Its reader, its JSON Schema and the manual's page of keys are made of such a table.

use std::time::Duration;

use serde_json::{Value, json};

use crate::quantity::{written, written_size};

/// The keys of a file by the kind of section that they stand in, `""` being the top of the file.
pub(crate) type Layout = &'static [(&'static str, &'static [FileKey])];

/// One key.
#[derive(Debug)]
pub(crate) struct FileKey {
    pub name: &'static str,
    pub shape: Shape,
    /// Without it the section is refused.
    pub needed: bool,
    /// One sentence on what it means.
    pub says: &'static str,
}

/// What a key's value looks like, with its default.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// `true` or `false`; by default `false`.
    Flag,
    /// A whole number from `least` on; without a default there is no limit.
    Count { least: u32, default: Option<u32> },
    /// A duration, where `zero` allows it also `"0s"`.
    Duration { zero: bool, default: Option<Duration> },
    /// A size above zero, in bytes.
    Size(u64),
    /// One of these words; the first is the default.
    OneOf(fn() -> Vec<&'static str>),
    /// The only value that is supported so far, as it is written in TOML and JSON alike; also the default.
    Only(&'static str),
    /// A text, with its default in words.
    Text(TextForm, &'static str),
    /// A text, with its default.
    TextOr(TextForm, &'static str),
    /// A list of at least `least`, with its default in words.
    List(TextForm, usize, &'static str),
    /// A list of at least `least`, with its default.
    ListOr(TextForm, usize, &'static [&'static str]),
    /// One text, or a list of at least so many.
    OneOrList(TextForm, usize),
    /// A table whose keys are free.
    Table(TextForm),
    /// Any value.
    Any,
    /// A section of that kind.
    Section(&'static str),
    /// At least one section of that kind.
    Sections(&'static str),
}

/// What one value of a list or table looks like.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TextForm {
    Text,
    Name,
    Url,
    Host,
    Pattern,
    Selector,
    MediaType,
    Variable,
    Proxy,
    Signature,
    Origin,
    Rate,
    Header,
    Group,
    Weight,
    Tenant,
    /// A selector, or a table of how a field is read.
    Field,
}

impl FileKey {
    pub(crate) const fn needed(self) -> Self {
        Self { needed: true, ..self }
    }
}

impl Shape {
    /// The default as JSON; none where it is said in words or there is none.
    pub(crate) fn default(self) -> Option<Value> {
        Some(match self {
            Self::Flag => json!(false),
            Self::Count { default, .. } => json!(default?),
            Self::Duration { default, .. } => json!(written(default?)),
            Self::Size(bytes) => json!(written_size(bytes)),
            Self::OneOf(words) => json!(words().first()?),
            Self::Only(only) => serde_json::from_str(only).ok()?,
            Self::TextOr(_, default) => json!(default),
            Self::ListOr(_, _, default) => json!(default),
            Self::Table(TextForm::Header | TextForm::Variable) => json!({}),
            _ => return None,
        })
    }
}

/// A key that may be left out.
pub(crate) const fn key(name: &'static str, shape: Shape, says: &'static str) -> FileKey {
    FileKey { name, shape, needed: false, says }
}

/// The words of a few, each with what it means.
pub(crate) fn words<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}

/// The rows of one kind of section.
pub(crate) fn keys_of(layout: Layout, kind: &str) -> &'static [FileKey] {
    layout.iter().find(|(section, _)| *section == kind).map_or(&[], |(_, keys)| keys)
}
