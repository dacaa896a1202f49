//! The JSON Schema of a site file, for editors: every key that the reader knows, with what it means and its default. What
//! a schema can't say, such as that a seed needs a rule that takes it, only the reader checks.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::load::{KINDS, LAYOUT, META_ROBOTS, ROBOTS};
use super::{FetchRules, Pace, Scope};

/// The schema, by JSON Schema 2020-12.
pub fn schema() -> Value {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A site file of paced",
    });
    if let (Value::Object(schema), Value::Object(top)) = (&mut schema, section("", &["seeds", "page"])) {
        schema.extend(top);
    }
    schema["$defs"] = definitions();
    schema
}

fn definitions() -> Value {
    let mut page = section("page", &["name", "match"]);
    page["if"] = json!({ "properties": { "item": { "const": true } }, "required": ["item"] });
    page["else"] = json!({ "properties": { "fields": false, "key": false, "product": { "const": false } } });
    let mut field = section("field", &["css"]);
    field["not"] =
        json!({ "required": ["required", "default"], "properties": { "required": { "const": true } } });
    json!({
        "pace": section("pace", &[]),
        "scope": section("scope", &[]),
        "fetch": section("fetch", &[]),
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

/// A section of the reader's layout: its keys and no others.
fn section(kind: &str, required: &[&str]) -> Value {
    let keys = LAYOUT.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, keys)| keys);
    let known = keys.iter().filter_map(|key| Some(((*key).to_owned(), key_of(kind, key)?)));
    let properties: Map<String, Value> = known.collect();
    let mut section = json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if !required.is_empty() {
        section["required"] = json!(required);
    }
    section
}

fn key_of(kind: &str, key: &str) -> Option<Value> {
    match kind {
        "" => top(key),
        "pace" => pace(key),
        "scope" => scope(key),
        "fetch" => fetch(key),
        "page" => page(key),
        "field" => field(key),
        _ => None,
    }
}

fn top(key: &str) -> Option<Value> {
    Some(match key {
        "name" => {
            with("The site's name, which names files and queues; default: the file's name", reference("name"))
        }
        "seeds" => with(
            "Where a run starts",
            some(&json!({ "type": "string", "pattern": "^\\s*[Hh][Tt][Tt][Pp][Ss]?://" })),
        ),
        "sitemaps" => with("Sitemaps to read", json!({ "const": "off", "default": "off" })),
        "lane" => with(
            "The lane that the site's tasks wait in",
            json!({ "const": "general", "default": "general" }),
        ),
        "group" => with("Sites of one group share one pace", reference("name")),
        "pace" => with("How fast, and with what manners", reference("pace")),
        "scope" => with("Which URLs belong to the crawl", reference("scope")),
        "fetch" => with("How one request is made", reference("fetch")),
        "page" => {
            with("What to do with a page: the first whose `match` fits takes it", some(&reference("page")))
        }
        _ => return None,
    })
}

fn pace(key: &str) -> Option<Value> {
    Some(match key {
        "interval" => with(
            "The least time between the starts of two requests; what robots.txt asks for is a floor. Zero only with allow_private",
            duration(Pace::INTERVAL),
        ),
        "parallel" => with("The most requests in flight at once", count(1, Some(Pace::PARALLEL.into()))),
        "robots" => with("Whether robots.txt is obeyed", one_of(&ROBOTS)),
        "meta_robots" => with(
            "Whether what a page says of nofollow, noindex and noarchive is obeyed",
            one_of(&META_ROBOTS),
        ),
        "contact" => {
            with("A mail address or URL of who runs the crawl, as part of the user agent", reference("text"))
        }
        "max_crawl_delay" => with(
            "robots.txt may ask for so much between two requests; where it asks for more, the site is blocked",
            duration(Pace::MAX_CRAWL_DELAY),
        ),
        "max_retry_after" => {
            with("The longest that a Retry-After is followed", duration(Pace::MAX_RETRY_AFTER))
        }
        "window" => {
            with("When the site may be asked", json!({ "type": "array", "maxItems": 0, "default": [] }))
        }
        _ => return None,
    })
}

fn scope(key: &str) -> Option<Value> {
    Some(match key {
        "hosts" => with(
            "The site's hosts, with a port where it isn't the scheme's own; default: the seeds' hosts, with and without www.",
            some(&json!({ "type": "string", "pattern": "^[^/@*?#\\\\\\s]+$" })),
        ),
        "deny" => with("What is never asked for, and all below it", list(&reference("pattern"), &json!([]))),
        "max_depth" => {
            with("How many links away from a seed a page may be", count(0, Some(Scope::MAX_DEPTH.into())))
        }
        "max_pages" => with("The most pages of a run; default: no limit", count(1, None)),
        "strip_query" => with(
            "Query parameters that don't make a page another one; `*` at the end stands for any ending",
            list(&reference("text"), &json!(Scope::STRIP_QUERY)),
        ),
        _ => return None,
    })
}

fn fetch(key: &str) -> Option<Value> {
    let headers = json!({ "type": "object", "additionalProperties": { "type": "string" }, "default": {} });
    Some(match key {
        "timeout" => with("For a whole request", duration(FetchRules::TIMEOUT)),
        "connect_timeout" => {
            with("For a connection to be up, TLS included", duration(FetchRules::CONNECT_TIMEOUT))
        }
        "read_timeout" => {
            with("The longest silence while the answer is read", duration(FetchRules::READ_TIMEOUT))
        }
        "max_body" => with("The largest body, after decompression", size(FetchRules::MAX_BODY)),
        "accept_types" => with(
            "The media types that are kept",
            some_or(
                &json!({ "type": "string", "pattern": "^[^/\\s;]+/[^/\\s;]+$" }),
                &json!(FetchRules::ACCEPT_TYPES),
            ),
        ),
        "attempts" => {
            with("How often a page is tried before it is dead", count(1, Some(FetchRules::ATTEMPTS.into())))
        }
        "gone_after" => {
            with("404 or 410 so often before an item counts as gone", json!({ "const": 3, "default": 3 }))
        }
        "headers" => with("Further header fields of each request", headers),
        "cookies" => with("Whether cookies are kept and sent back", flag()),
        "auth_env" => with(
            "The environment variable that holds user:password for basic authentication",
            json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }),
        ),
        "proxy" => with(
            "The proxy; the environment's is never used",
            json!({ "type": "string", "pattern": "^(https?|socks4a?|socks5h?)://" }),
        ),
        "allow_private" => with("Whether loopback and private addresses may be crawled", flag()),
        _ => return None,
    })
}

fn page(key: &str) -> Option<Value> {
    let fields = json!({
        "type": "object", "propertyNames": { "pattern": "\\S" },
        "additionalProperties": { "oneOf": [reference("text"), reference("field")] }
    });
    Some(match key {
        "name" => with("The rule's name, unique in the file", reference("text")),
        "match" => with(
            "Which pages it takes, by path and query: `*` stops at / and ?, `**` doesn't; `re:` before a regular expression",
            one_or_some(&reference("pattern")),
        ),
        "follow" => {
            with("Selectors of links to put; \"*\" is every link in scope", one_or_list(&reference("text")))
        }
        "max_pages" => with("The most pages it takes in a run; default: no limit", count(1, None)),
        "item" => with("Whether its pages are items", flag()),
        "key" => with(
            "What makes two items one: \"url\", \"canonical\" or the name of a field",
            json!({ "$ref": "#/$defs/text", "default": "canonical" }),
        ),
        "recrawl" => {
            with("How old a page may grow before it is fetched again; default: never", reference("duration"))
        }
        "product" => with(
            "Whether name, price, currency, availability, sku, gtin, brand and image are filled from JSON-LD, microdata and OpenGraph",
            flag(),
        ),
        "fields" => with("The item's fields: a CSS selector, or a table", fields),
        _ => return None,
    })
}

fn field(key: &str) -> Option<Value> {
    Some(match key {
        "css" => with("Where on the page", reference("text")),
        "attr" => with("This attribute's value instead of the element's text", reference("text")),
        "regex" => with("Its first group, or the whole match where it has none", reference("text")),
        "as" => with("What the text is read as", one_of(&KINDS)),
        "default" => json!({ "description": "The value where nothing is found" }),
        "required" => with("Whether an item without it is none", flag()),
        "all" => with("Every match, as a list, instead of the first", flag()),
        _ => return None,
    })
}

fn with(description: &str, mut shape: Value) -> Value {
    shape["description"] = json!(description);
    shape
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn flag() -> Value {
    json!({ "type": "boolean", "default": false })
}

fn count(least: i64, default: Option<i64>) -> Value {
    let mut shape = json!({ "type": "integer", "minimum": least });
    if let Some(default) = default {
        shape["default"] = json!(default);
    }
    shape
}

/// The first word is the default.
fn one_of<T>(words: &[(&str, T)]) -> Value {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    json!({ "enum": words, "default": words[0] })
}

fn duration(default: Duration) -> Value {
    let seconds = default.as_secs();
    let text =
        if seconds.is_multiple_of(3_600) { format!("{}h", seconds / 3_600) } else { format!("{seconds}s") };
    json!({ "$ref": "#/$defs/duration", "default": text })
}

fn size(default: u64) -> Value {
    json!({ "$ref": "#/$defs/size", "default": format!("{}MiB", default >> 20) })
}

fn list(of: &Value, default: &Value) -> Value {
    json!({ "type": "array", "items": of, "default": default })
}

fn some(of: &Value) -> Value {
    json!({ "type": "array", "items": of, "minItems": 1 })
}

fn some_or(of: &Value, default: &Value) -> Value {
    json!({ "type": "array", "items": of, "minItems": 1, "default": default })
}

fn one_or_some(of: &Value) -> Value {
    json!({ "oneOf": [of, some(of)] })
}

fn one_or_list(of: &Value) -> Value {
    json!({ "oneOf": [of, { "type": "array", "items": of }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_the_reader_knows_is_told_of() {
        for (kind, keys) in LAYOUT {
            for key in *keys {
                let told =
                    key_of(kind, key).unwrap_or_else(|| panic!("no `{key}` of `{kind}` in the schema"));
                assert!(told["description"].as_str().is_some_and(|text| !text.is_empty()), "{kind}.{key}");
            }
        }
    }

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
