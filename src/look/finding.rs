//! `Finding`: what today's rules make of a page, against its item of before. Pure.

use serde_json::Value;

use crate::extract::Extract;
use crate::item::Item;

/// What today's rules make of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The item that stands already.
    Same,
    /// An item with other values, or under another key or rule.
    Changed(Item, Vec<Change>),
    /// An item where there was none.
    New(Item),
    /// No item where there was one, and why. The line that was written stays.
    Gone(String),
    /// No item, as before.
    NoItem,
    /// No item, as required fields are missing: the page is a dead letter of the parse stage, or will be.
    Dead(Vec<String>),
    /// An item that does not count, as its page, or another of its key, was fetched later.
    Overtaken,
    /// The page could not be read, and why.
    Failed(String),
}

/// A value that is another one now.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The field; `key` and `page` with an `@` before them are the item's own.
    pub field: String,
    /// The value before.
    pub old: Option<Value>,
    /// The value now.
    pub new: Option<Value>,
}

impl Finding {
    /// Compares a page's item of before with what was extracted now; `why_none` tells why there may be no item.
    pub(super) fn of(old: Option<Item>, now: Option<&Extract>, why_none: &str) -> Self {
        let missing = now.map(|extract| extract.missing.clone()).unwrap_or_default();
        if !missing.is_empty() {
            return Self::Dead(missing);
        }
        match (old, now.and_then(|extract| extract.item.clone())) {
            (None, None) => Self::NoItem,
            (Some(_), None) => Self::Gone(why_none.to_owned()),
            (None, Some(new)) => Self::New(new),
            (Some(old), Some(new)) => {
                let changes = changes(&old, &new);
                let told = |item: &Item| (item.noindex, item.noarchive);
                if changes.is_empty() && old.from == new.from && told(&old) == told(&new) {
                    Self::Same
                } else {
                    Self::Changed(new, changes)
                }
            }
        }
    }

    /// The item that is to be written.
    pub(super) fn to_write(&self) -> Option<&Item> {
        match self {
            Self::Changed(item, _) | Self::New(item) => Some(item),
            _ => None,
        }
    }

    /// Whether a parse of the page comes to its end.
    pub(super) fn is_parsed(&self) -> bool {
        !matches!(self, Self::Dead(_) | Self::Failed(_))
    }

    /// A word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Changed(..) => "changed",
            Self::New(_) => "new",
            Self::Gone(_) => "gone",
            Self::NoItem => "no-item",
            Self::Dead(_) => "dead",
            Self::Overtaken => "overtaken",
            Self::Failed(_) => "failed",
        }
    }

    /// Every word, in the order in which counts are told.
    pub const NAMES: [&'static str; 8] =
        ["same", "changed", "new", "gone", "no-item", "dead", "overtaken", "failed"];
}

/// What differs, in the order of the new item.
fn changes(old: &Item, new: &Item) -> Vec<Change> {
    let text = |value: Option<&str>| value.map(|text| Value::String(text.to_owned()));
    let own = [
        ("@page", text(Some(&old.page)), text(Some(&new.page))),
        ("@key", text(old.key.as_deref()), text(new.key.as_deref())),
    ];
    let own = own.into_iter().map(|(field, old, new)| Change { field: field.to_owned(), old, new });
    let lost = old.fields.keys().filter(|name| !new.fields.contains_key(*name));
    let fields = new.fields.keys().chain(lost).map(|name| Change {
        field: name.clone(),
        old: old.fields.get(name).cloned(),
        new: new.fields.get(name).cloned(),
    });
    own.chain(fields).filter(|change| change.old != change.new).collect()
}
