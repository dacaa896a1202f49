//! One value of a file, read as what its key wants; a wrong one is reported where it stands.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Number, Value};
use toml::Spanned;
use toml::de::DeValue;

use super::Report;
use super::nearest::nearest;
use crate::quantity::{read_duration, read_size};

/// A value, the key it stands under and its place.
#[derive(Clone)]
pub(crate) struct Entry<'a> {
    /// The key, for messages.
    pub key: &'a str,
    /// The value as written.
    pub value: &'a DeValue<'a>,
    /// Where the value stands, in bytes.
    pub span: Range<usize>,
    /// Who is told of errors.
    pub report: &'a Report<'a>,
}

impl<'a> Entry<'a> {
    /// The value under a key.
    pub fn new(report: &'a Report<'a>, key: &'a str, value: &'a Spanned<DeValue<'a>>) -> Self {
        Self { key, value: value.get_ref(), span: value.span(), report }
    }

    /// Reports an error where the value stands; `None`, as there is no value then.
    pub fn refuse<T>(&self, what: impl Into<String>, what_to_do: impl Into<String>) -> Option<T> {
        self.report.error(&self.span, what, what_to_do);
        None
    }

    /// Reports a value that isn't the `only` one that works so far.
    pub fn not_supported_but(&self, only: &str) {
        let what = format!("`{}` other than {only} is not supported yet", self.key);
        self.report.error(&self.span, what, format!("remove it or write {only}"));
    }

    /// Reports a value of another type than the `wanted` one.
    pub fn wrong_type<T>(&self, wanted: &str, what_to_do: &str) -> Option<T> {
        let kind = match self.value.type_str() {
            "string" => "text",
            other => other,
        };
        let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
        self.refuse(format!("`{}` is {article} {kind}, not {wanted}", self.key), what_to_do)
    }

    /// A text that isn't empty.
    pub fn text(&self) -> Option<&'a str> {
        match self.value.as_str() {
            Some(text) if text.trim().is_empty() => {
                self.refuse(format!("`{}` is empty", self.key), "write something in it or remove it")
            }
            Some(text) => Some(text),
            None => self.wrong_type("a text", "write it in quotes"),
        }
    }

    /// `true` or `false`.
    pub fn flag(&self) -> Option<bool> {
        match self.value.as_bool() {
            None => self.wrong_type("true or false", "write true or false, without quotes"),
            flag => flag,
        }
    }

    /// A whole number from `least` on that fits in `N`.
    pub fn count<N: TryFrom<i64>>(&self, least: i64) -> Option<N> {
        let Some(integer) = self.value.as_integer() else {
            return self.wrong_type("a whole number", "write digits alone, without quotes");
        };
        let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        if let Some(fitting) = number.filter(|n| *n >= least).and_then(|n| N::try_from(n).ok()) {
            return Some(fitting);
        }
        let too_small = integer.as_str().starts_with('-') || number.is_some_and(|n| n < least);
        let bound = if too_small { format!("from {least} on") } else { "that is smaller".to_owned() };
        self.refuse(format!("`{}` can't be {integer}", self.key), format!("write a whole number {bound}"))
    }

    /// A duration, zero included.
    pub fn duration(&self) -> Option<Duration> {
        let hint = "write a number and a unit, as in \"200ms\", \"2s\" or \"6h\"";
        let Some(text) = self.value.as_str() else { return self.wrong_type("a duration", hint) };
        match read_duration(text) {
            None => self.refuse(format!("`{}` can't be `{text}`, which is no duration", self.key), hint),
            duration => duration,
        }
    }

    /// A duration above zero.
    pub fn some_duration(&self) -> Option<Duration> {
        match self.duration()? {
            Duration::ZERO => {
                self.refuse(format!("`{}` can't be zero", self.key), "write a duration of at least \"1ms\"")
            }
            duration => Some(duration),
        }
    }

    /// A size in bytes, above zero.
    pub fn size(&self) -> Option<u64> {
        let hint = "write bytes as a whole number, or with a unit, as in \"512KiB\" or \"8MiB\"";
        if self.value.is_integer() {
            return self.count(1);
        }
        let Some(text) = self.value.as_str() else { return self.wrong_type("a size", hint) };
        match read_size(text).filter(|bytes| *bytes > 0) {
            None => self.refuse(format!("`{}` can't be `{text}`, which is no size", self.key), hint),
            size => size,
        }
    }

    /// One of a few words, each with what it means.
    pub fn word<T: Copy>(&self, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text()?;
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*meaning);
        }
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let what_to_do = match nearest(text, all.iter().copied()) {
            Some(word) => format!("did you mean `{word}`?"),
            None => format!("write one of {}", all.join(", ")),
        };
        self.refuse(format!("`{}` can't be `{text}`", self.key), what_to_do)
    }

    /// The values of a list.
    pub fn list(&self) -> Vec<Self> {
        match self.value.as_array() {
            Some(array) => array.iter().map(|value| Self::new(self.report, self.key, value)).collect(),
            None => {
                self.wrong_type("a list", "write it in brackets, as in [\"a\", \"b\"]").unwrap_or_default()
            }
        }
    }

    /// The values of a list; that it is empty is reported.
    pub fn some_list(&self, what: &str, what_to_do: &str) -> Vec<Self> {
        if self.value.as_array().is_some_and(|array| array.is_empty()) {
            self.refuse::<()>(what, what_to_do);
        }
        self.list()
    }

    /// The values of a list, or the one value.
    pub fn one_or_list(&self) -> Vec<Self> {
        if self.value.is_array() { self.list() } else { vec![self.clone()] }
    }

    /// The entries of a table whose keys are free, in the order of the file.
    pub fn entries(&self, wanted: &str, what_to_do: &str) -> Vec<Self> {
        let Some(table) = self.value.as_table() else {
            return self.wrong_type(wanted, what_to_do).unwrap_or_default();
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries.into_iter().map(|(key, value)| Self::new(self.report, key.get_ref(), value)).collect()
    }

    /// The value as JSON; none where that can't hold it.
    pub fn json(&self) -> Option<Value> {
        json(self.value)
    }
}

fn json(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix()).ok()?.into(),
        DeValue::Float(float) => Value::Number(Number::from_f64(float.as_str().parse().ok()?)?),
        DeValue::Datetime(_) => return None,
        DeValue::Array(all) => {
            Value::Array(all.iter().map(|one| json(one.get_ref())).collect::<Option<_>>()?)
        }
        DeValue::Table(table) => {
            let members =
                table.iter().map(|(key, value)| Some((key.get_ref().to_string(), json(value.get_ref())?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
    })
}
