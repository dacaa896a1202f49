//! The `[page.fields]` of a page rule.

use serde_json::{Map, Number, Value};
use toml::de::DeValue;

use crate::site::keys::KEYS;
use crate::site::read::{Entry, Section};
use crate::site::{FieldKind, FieldRule};

use super::patterns::{regex, selector};

/// The fields in the order of the file, by name; one that is wrong is reported and has no rule.
pub(super) fn read<'a>(entry: &Entry<'a>) -> Vec<(&'a str, Option<FieldRule>)> {
    match entry.entries() {
        Some(fields) => fields.iter().map(|field| (field.key, rule(field))).collect(),
        None => entry.wrong_type("a section", "write [page.fields] on a line of its own").unwrap_or_default(),
    }
}

fn rule(field: &Entry<'_>) -> Option<FieldRule> {
    if field.key.trim().is_empty() {
        return field.refuse("a field has an empty name", "write it as in title = \"h1\"");
    }
    let (section, css) = match field.value {
        DeValue::String(_) => (Section::absent(field.report, KEYS, "field"), Some(field.clone())),
        DeValue::Table(table) => {
            let section = Section::of(field.report, KEYS, "field", table, field.span.clone());
            let css = section.get("css");
            (section, css)
        }
        _ => {
            let hint = "write a CSS selector, or a table as in { css = \".price\", as = \"price\" }";
            return field.wrong_type("a field", hint);
        }
    };
    let name = field.key;
    let css = match css {
        Some(entry) => selector(&entry),
        None => section
            .missing(format!("the field `{name}` has no `css`"), "write where it is, as in css = \"h1\""),
    };
    let required = section.flag("required");
    if let Some(default) = section.get("default").filter(|_| required) {
        default.refuse::<()>(
            format!("the field `{name}` is required, so its `default` is never used"),
            "remove one of the two",
        );
    }
    Some(FieldRule {
        name: name.to_owned(),
        attr: section.get("attr").and_then(|e| e.text().map(str::to_owned)),
        regex: section.get("regex").and_then(|e| regex(&e)),
        kind: section.word("as", &FieldKind::WORDS),
        default: section.get("default").and_then(|e| json(&e, e.value)),
        required,
        all: section.flag("all"),
        css: css?,
    })
}

/// A TOML value as the JSON that an item holds.
fn json(entry: &Entry<'_>, value: &DeValue<'_>) -> Option<Value> {
    let no_json =
        || entry.refuse("`default` can't be written as JSON", "write a text, a number, true or false");
    match value {
        DeValue::String(text) => Some(Value::String(text.to_string())),
        DeValue::Boolean(flag) => Some(Value::Bool(*flag)),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => Some(Value::Number(number.into())),
            Err(_) => no_json(),
        },
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(Number::from_f64);
            number.map(Value::Number).or_else(no_json)
        }
        DeValue::Datetime(_) => no_json(),
        DeValue::Array(values) => values
            .iter()
            .map(|value| json(entry, value.get_ref()))
            .collect::<Option<Vec<_>>>()
            .map(Value::Array),
        DeValue::Table(table) => {
            let member = |(key, value): (&toml::Spanned<_>, &toml::Spanned<_>)| {
                Some((ToString::to_string(&key.get_ref()), json(entry, value.get_ref())?))
            };
            table.iter().map(member).collect::<Option<Map<_, _>>>().map(Value::Object)
        }
    }
}
