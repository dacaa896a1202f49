//! The JSON Schema of a site file, for editors, made of the table of keys. The reader additionally checks rules that span keys.

use serde_json::{Map, Value, json};

use super::keys::KEYS;
use super::read::{FileKey, Shape, TextForm, keys_of};

/// The schema, by JSON Schema 2020-12.
pub fn schema() -> Value {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A site file of paced",
    });
    if let (Value::Object(schema), Value::Object(top)) = (&mut schema, section("")) {
        schema.extend(top);
    }
    schema["$defs"] = definitions();
    schema
}

fn definitions() -> Value {
    let mut page = section("page");
    page["if"] = json!({ "properties": { "item": { "const": true } }, "required": ["item"] });
    page["else"] = json!({ "properties": { "fields": false, "key": false, "product": { "const": false } } });
    let mut field = section("field");
    field["not"] =
        json!({ "required": ["required", "default"], "properties": { "required": { "const": true } } });
    json!({
        "pace": section("pace"),
        "scope": section("scope"),
        "fetch": section("fetch"),
        "page": page,
        "field": field,
        "text": { "type": "string", "pattern": "\\S" },
        "name": { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" },
        "duration": {
            "type": "string",
            "pattern": "^\\s*([0-9]+(\\.[0-9]+)?\\s*[A-Za-z]+\\s*)+$",
            "examples": ["200ms", "2s", "1h 30m"]
        },
        "size": {
            "type": ["string", "integer"], "minimum": 1,
            "pattern": "^\\s*[0-9]+\\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)?\\s*$", "examples": ["512KiB", "8MiB"]
        },
        "pattern": { "type": "string", "pattern": "^([/*]|re:)", "examples": ["/product/*", "re:^/item/\\d+$"] },
    })
}

/// A kind of section: its keys and no others.
fn section(kind: &str) -> Value {
    let property = |key: &FileKey| (key.name.to_owned(), described(key));
    let properties: Map<String, Value> = keys_of(KEYS, kind).iter().map(property).collect();
    let mut section = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    let needed: Vec<&str> = keys_of(KEYS, kind).iter().filter(|key| key.needed).map(|key| key.name).collect();
    if !needed.is_empty() {
        section["required"] = json!(needed);
    }
    section
}

fn described(key: &FileKey) -> Value {
    let mut value = value(key.shape);
    value["description"] = json!(key.says);
    if let Some(default) = key.shape.default() {
        value["default"] = default;
    }
    value
}

fn value(shape: Shape) -> Value {
    match shape {
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Count { least, .. } => json!({ "type": "integer", "minimum": least }),
        Shape::Duration { .. } => reference("duration"),
        Shape::Size(_) => reference("size"),
        Shape::OneOf(words) => json!({ "enum": words() }),
        Shape::Only("[]") => json!({ "type": "array", "maxItems": 0 }),
        Shape::Only(_) => json!({ "const": shape.default() }),
        Shape::Text(of, _) | Shape::TextOr(of, _) => form(of),
        Shape::List(of, least, _) | Shape::ListOr(of, least, _) => list(of, least),
        Shape::OneOrList(of, least) => json!({ "oneOf": [form(of), list(of, least)] }),
        Shape::Table(TextForm::Field) => json!({
            "type": "object", "propertyNames": { "pattern": "\\S" },
            "additionalProperties": { "oneOf": [reference("text"), reference("field")] }
        }),
        Shape::Table(of) => json!({ "type": "object", "additionalProperties": form(of) }),
        Shape::Any => json!({}),
        Shape::Section(kind) => reference(kind),
        Shape::Sections(kind) => json!({ "type": "array", "items": reference(kind), "minItems": 1 }),
    }
}

fn form(of: TextForm) -> Value {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    match of {
        TextForm::Text | TextForm::Selector => reference("text"),
        TextForm::Name => reference("name"),
        TextForm::Url => text("^\\s*[Hh][Tt][Tt][Pp][Ss]?://"),
        TextForm::Host => text("^[^/@*?#\\\\\\s]+$"),
        TextForm::Pattern => reference("pattern"),
        TextForm::MediaType => text("^[^/\\s;]+/[^/\\s;]+$"),
        TextForm::Variable => text("^PACED_SECRET_[A-Z0-9_]+$"),
        TextForm::Proxy => json!({ "oneOf": [
            text("^(https?|socks4a?|socks5h?)://[^@]+$"),
            table(&[("env", TextForm::Variable)])
        ] }),
        TextForm::Signature => json!({ "oneOf": [
            table(&[("env", TextForm::Variable)]),
            table(&[("key", TextForm::Name), ("agent", TextForm::Origin)])
        ] }),
        TextForm::Origin => text("^https://[^/@?#\\s]+/?$"),
        TextForm::Header | TextForm::Rate => json!({ "type": "string" }),
        TextForm::Group | TextForm::Tenant => json!({ "type": "object" }),
        TextForm::Weight => json!({ "type": "integer" }),
        TextForm::Field => reference("field"),
    }
}

/// A table of just these keys.
fn table(keys: &[(&str, TextForm)]) -> Value {
    let properties: Map<String, Value> =
        keys.iter().map(|(key, of)| ((*key).to_owned(), form(*of))).collect();
    let required: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

fn list(of: TextForm, least: usize) -> Value {
    let mut list = json!({ "type": "array", "items": form(of) });
    if least > 0 {
        list["minItems"] = json!(least);
    }
    list
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let schema = schema();
        let text = schema.to_string();
        for reference in text.split("\"#/$defs/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schema["$defs"][name].is_object(), "{name}");
        }
    }
}
