//! Steps and their answers as values that travel to a server and back: how a type is written and read. A Lua table without
//! entries is read as an empty list; `false` is none.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::canonical_url::CanonicalUrl;
use crate::clock::Timestamp;
use crate::task::{Priority, Stage};

/// An answer that can't be read: the server holds something that this version didn't write.
#[derive(Clone, Debug, thiserror::Error)]
#[error("an answer can't be read ({0})")]
pub(crate) struct MalformedReply(String);

pub(crate) type Decoded<T> = Result<T, MalformedReply>;

/// An argument of a step, written as one value or several; what is missing is `false`.
pub(crate) trait ToWire {
    /// Adds it to the arguments before it.
    fn put(&self, row: &mut Vec<Value>);
}

/// An answer to a step, or a part of one.
pub(crate) trait FromWire: Sized {
    /// Reads it.
    fn read(value: &Value) -> Decoded<Self>;
}

impl MalformedReply {
    pub(in crate::frontier) fn of(text: &str) -> Self {
        Self(text.chars().take(200).collect())
    }
}

pub(in crate::frontier) fn malformed(value: &Value) -> MalformedReply {
    MalformedReply::of(&value.to_string())
}

pub(in crate::frontier) fn some(value: &Value) -> Option<&Value> {
    (!matches!(value, Value::Null | Value::Bool(false))).then_some(value)
}

pub(in crate::frontier) fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true)
}

pub(in crate::frontier) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(in crate::frontier) fn parse<T: DeserializeOwned>(value: &Value) -> Decoded<T> {
    T::deserialize(value).map_err(|_| malformed(value))
}

/// JSON in a string: what the script hands through unread.
pub(in crate::frontier) fn embedded<T: DeserializeOwned>(value: &Value) -> Decoded<T> {
    let text = value.as_str().ok_or_else(|| malformed(value))?;
    serde_json::from_str(text).map_err(|_| malformed(value))
}

/// A row of values, read by place.
pub(in crate::frontier) struct ReplyRow<'a>(&'a [Value]);

impl<'a> ReplyRow<'a> {
    pub(in crate::frontier) fn of(value: &'a Value) -> Decoded<Self> {
        value.as_array().map(|row| Self(row)).ok_or_else(|| malformed(value))
    }

    pub(in crate::frontier) fn at(&self, place: usize) -> &'a Value {
        self.0.get(place).unwrap_or(&Value::Null)
    }

    pub(in crate::frontier) fn number(&self, place: usize) -> Decoded<i64> {
        whole(self.at(place)).ok_or_else(|| malformed(self.at(place)))
    }

    pub(in crate::frontier) fn get<T: FromWire>(&self, place: usize) -> Decoded<T> {
        T::read(self.at(place))
    }

    pub(in crate::frontier) fn text(&self, place: usize) -> Decoded<&'a str> {
        self.at(place).as_str().ok_or_else(|| malformed(self.at(place)))
    }
}

/// A whole number, also where Lua wrote it with an exponent.
#[expect(clippy::cast_possible_truncation, reason = "numbers of the script are whole and below 2^53")]
pub(in crate::frontier) fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64))
}

/// A record of the script, read by name; what is missing is nothing.
pub(in crate::frontier) struct ReplyRecord<'a>(pub(in crate::frontier) &'a Map<String, Value>);

impl<'a> ReplyRecord<'a> {
    pub(in crate::frontier) fn of(value: &'a Value, name: &str) -> Decoded<Self> {
        value.get(name).and_then(Value::as_object).map(Self).ok_or_else(|| malformed(value))
    }

    pub(in crate::frontier) fn maybe(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(whole)
    }

    pub(in crate::frontier) fn number(&self, name: &str) -> i64 {
        self.maybe(name).unwrap_or(0)
    }

    pub(in crate::frontier) fn count(&self, stage: char, name: &str) -> u64 {
        self.number(&format!("{stage}.{name}")).unsigned_abs()
    }

    pub(in crate::frontier) fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    pub(in crate::frontier) fn time(&self, name: &str) -> Option<Timestamp> {
        self.maybe(name).map(Timestamp::from_millis)
    }
}

impl FromWire for () {
    fn read(_: &Value) -> Decoded<Self> {
        Ok(())
    }
}

impl FromWire for bool {
    fn read(value: &Value) -> Decoded<Self> {
        Ok(is_true(value))
    }
}

impl FromWire for i64 {
    fn read(value: &Value) -> Decoded<Self> {
        whole(value).ok_or_else(|| malformed(value))
    }
}

impl FromWire for u32 {
    fn read(value: &Value) -> Decoded<Self> {
        i64::read(value)?.try_into().map_err(|_| malformed(value))
    }
}

impl FromWire for Timestamp {
    fn read(value: &Value) -> Decoded<Self> {
        i64::read(value).map(Self::from_millis)
    }
}

impl FromWire for Priority {
    fn read(value: &Value) -> Decoded<Self> {
        i64::read(value)?.try_into().map(Self::from_value).map_err(|_| malformed(value))
    }
}

/// As the script names it.
impl FromWire for Stage {
    fn read(value: &Value) -> Decoded<Self> {
        Ok(if value == "p" { Self::Parse } else { Self::Download })
    }
}

impl FromWire for CanonicalUrl {
    fn read(value: &Value) -> Decoded<Self> {
        value.as_str().and_then(|text| Self::parse(text).ok()).ok_or_else(|| malformed(value))
    }
}

impl FromWire for String {
    fn read(value: &Value) -> Decoded<Self> {
        parse(value)
    }
}

impl<T: FromWire> FromWire for Option<T> {
    fn read(value: &Value) -> Decoded<Self> {
        some(value).map(T::read).transpose()
    }
}

impl<T: FromWire> FromWire for Vec<T> {
    fn read(value: &Value) -> Decoded<Self> {
        list(value).iter().map(T::read).collect()
    }
}

impl<T: FromWire> FromWire for Box<T> {
    fn read(value: &Value) -> Decoded<Self> {
        T::read(value).map(Box::new)
    }
}
