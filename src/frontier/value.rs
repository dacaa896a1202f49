//! Steps and their answers as values that travel to a server and back: how a type is written and read. A Lua table without
//! entries is read as an empty list; `false` is none.

use serde::de::DeserializeOwned;
use serde_json::Value;

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

pub(in crate::frontier) fn malformed(value: &Value) -> MalformedReply {
    MalformedReply(value.to_string().chars().take(200).collect())
}

pub(in crate::frontier) fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true)
}

pub(in crate::frontier) fn parse<T: DeserializeOwned>(value: &Value) -> Decoded<T> {
    T::deserialize(value).map_err(|_| malformed(value))
}

/// JSON in a string: what the script hands through unread.
pub(in crate::frontier) fn embedded<T: DeserializeOwned>(value: &Value) -> Decoded<T> {
    let text = value.as_str().ok_or_else(|| malformed(value))?;
    serde_json::from_str(text).map_err(|_| malformed(value))
}

/// A row of values, read one after the other; what is missing is none.
pub(in crate::frontier) struct ReplyRow<'a>(std::slice::Iter<'a, Value>);

impl<'a> ReplyRow<'a> {
    pub(in crate::frontier) fn of(value: &'a Value) -> Decoded<Self> {
        value.as_array().map(|row| Self(row.iter())).ok_or_else(|| malformed(value))
    }

    pub(in crate::frontier) fn next<T: FromWire>(&mut self) -> Decoded<T> {
        T::read(self.0.next().unwrap_or(&Value::Null))
    }
}

/// Types that a function reads.
macro_rules! read_by {
    ($($type:ty: $read:expr;)*) => {
        $(impl FromWire for $type {
            fn read(value: &Value) -> Decoded<Self> {
                let read: fn(&Value) -> Decoded<Self> = $read;
                read(value)
            }
        })*
    };
}

pub(in crate::frontier) use read_by;

read_by! {
    (): |_| Ok(());
    bool: |value| Ok(is_true(value));
    i64: |value| whole(value).ok_or_else(|| malformed(value));
    u32: |value| i64::read(value)?.try_into().map_err(|_| malformed(value));
    Timestamp: |value| i64::read(value).map(Self::from_millis);
    Priority: |value| i64::read(value)?.try_into().map(Self::from_value).map_err(|_| malformed(value));
    // As the script names it.
    Stage: |value| Ok(if value == "p" { Self::Parse } else { Self::Download });
    CanonicalUrl: |value| value.as_str().and_then(|text| Self::parse(text).ok()).ok_or_else(|| malformed(value));
    String: parse;
}

/// A whole number, also where Lua wrote it with an exponent.
#[expect(clippy::cast_possible_truncation, reason = "numbers of the script are whole and below 2^53")]
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64))
}

impl<T: FromWire> FromWire for Option<T> {
    fn read(value: &Value) -> Decoded<Self> {
        let is_none = matches!(value, Value::Null | Value::Bool(false));
        if is_none { Ok(None) } else { T::read(value).map(Some) }
    }
}

impl<T: FromWire> FromWire for Vec<T> {
    fn read(value: &Value) -> Decoded<Self> {
        value.as_array().map_or(&[][..], Vec::as_slice).iter().map(T::read).collect()
    }
}

impl<T: FromWire> FromWire for Box<T> {
    fn read(value: &Value) -> Decoded<Self> {
        T::read(value).map(Box::new)
    }
}

macro_rules! tuples {
    ($(($($part:ident),*))*) => {
        $(impl<$($part: FromWire),*> FromWire for ($($part),*) {
            fn read(value: &Value) -> Decoded<Self> {
                let mut row = ReplyRow::of(value)?;
                Ok(($(row.next::<$part>()?),*))
            }
        })*
    };
}

tuples! { (A, B) (A, B, C) (A, B, C, D) }
