//! Values of the script, read by place and by name. A Lua table without entries is read as an empty list; `false` is none.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;

/// An answer that can't be read: the server holds something that this version didn't write.
#[derive(Clone, Debug, thiserror::Error)]
#[error("an answer can't be read ({0})")]
pub(in crate::frontier::redis) struct Odd(String);

pub(super) type Read<T> = Result<T, Odd>;

impl Odd {
    pub(super) fn of(text: &str) -> Self {
        Self(text.chars().take(200).collect())
    }
}

pub(super) fn odd(value: &Value) -> Odd {
    Odd::of(&value.to_string())
}

pub(super) fn some(value: &Value) -> Option<&Value> {
    (!matches!(value, Value::Null | Value::Bool(false))).then_some(value)
}

pub(super) fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true)
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn parse<T: DeserializeOwned>(value: &Value) -> Read<T> {
    T::deserialize(value).map_err(|_| odd(value))
}

pub(super) fn all<T: DeserializeOwned>(value: &Value) -> Read<Vec<T>> {
    list(value).iter().map(parse).collect()
}

/// JSON in a string: what the script hands through unread.
pub(super) fn embedded<T: DeserializeOwned>(value: &Value) -> Read<T> {
    let text = value.as_str().ok_or_else(|| odd(value))?;
    serde_json::from_str(text).map_err(|_| odd(value))
}

pub(super) fn url(value: &Value) -> Read<CanonicalUrl> {
    value.as_str().and_then(|text| CanonicalUrl::parse(text).ok()).ok_or_else(|| odd(value))
}

/// A row of values, read by place.
pub(super) struct Row<'a>(&'a [Value]);

impl<'a> Row<'a> {
    pub(super) fn of(value: &'a Value) -> Read<Self> {
        value.as_array().map(|row| Self(row)).ok_or_else(|| odd(value))
    }

    pub(super) fn at(&self, place: usize) -> &'a Value {
        self.0.get(place).unwrap_or(&Value::Null)
    }

    pub(super) fn number(&self, place: usize) -> Read<i64> {
        whole(self.at(place)).ok_or_else(|| odd(self.at(place)))
    }

    pub(super) fn small(&self, place: usize) -> Read<u32> {
        u32::try_from(self.number(place)?).map_err(|_| odd(self.at(place)))
    }

    pub(super) fn text(&self, place: usize) -> Read<&'a str> {
        self.at(place).as_str().ok_or_else(|| odd(self.at(place)))
    }

    pub(super) fn flag(&self, place: usize) -> bool {
        is_true(self.at(place))
    }

    pub(super) fn maybe<T>(&self, place: usize, read: impl FnOnce(&'a Value) -> Read<T>) -> Read<Option<T>> {
        some(self.at(place)).map(read).transpose()
    }

    pub(super) fn maybe_number(&self, place: usize) -> Read<Option<i64>> {
        self.maybe(place, |value| whole(value).ok_or_else(|| odd(value)))
    }

    pub(super) fn time(&self, place: usize) -> Read<Timestamp> {
        Ok(Timestamp::from_millis(self.number(place)?))
    }
}

/// A whole number, also where Lua wrote it with an exponent.
#[expect(clippy::cast_possible_truncation, reason = "numbers of the script are whole and below 2^53")]
pub(super) fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64))
}

/// A record of the script, read by name; what is missing is nothing.
pub(super) struct Record<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Record<'a> {
    pub(super) fn of(value: &'a Value, name: &str) -> Read<Self> {
        value.get(name).and_then(Value::as_object).map(Self).ok_or_else(|| odd(value))
    }

    pub(super) fn maybe(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(whole)
    }

    pub(super) fn number(&self, name: &str) -> i64 {
        self.maybe(name).unwrap_or(0)
    }

    pub(super) fn count(&self, stage: char, name: &str) -> u64 {
        self.number(&format!("{stage}.{name}")).unsigned_abs()
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    pub(super) fn time(&self, name: &str) -> Option<Timestamp> {
        self.maybe(name).map(Timestamp::from_millis)
    }
}
