//! The `[fetch]` section.

use http::{HeaderName, HeaderValue};
use url::Url;

use crate::site::FetchRules;
use crate::site::read::{Entry, Section};

/// Header fields that are the crawler's own, or the connection's.
const OWN_HEADERS: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "if-modified-since",
    "if-none-match",
    "keep-alive",
    "range",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

const PROXY_SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// Reads `[fetch]`; what is wrong is reported, and a default taken in its place.
pub(super) fn read(section: &Section<'_>) -> FetchRules {
    let duration = |key| section.duration(key).unwrap_or_default();
    FetchRules {
        timeout: duration("timeout"),
        connect_timeout: duration("connect_timeout"),
        read_timeout: duration("read_timeout"),
        max_body: section.get("max_body").and_then(|e| e.size()).unwrap_or(FetchRules::MAX_BODY),
        accept_types: accept_types(section),
        attempts: section.count("attempts").unwrap_or_default(),
        headers: section.get("headers").map(|e| headers(&e)).unwrap_or_default(),
        cookies: section.flag("cookies"),
        auth_env: section.get("auth_env").and_then(|e| variable(&e)),
        proxy: section.get("proxy").and_then(|e| proxy(&e)),
        allow_private: section.flag("allow_private"),
    }
}

fn accept_types(section: &Section<'_>) -> Vec<String> {
    let Some(entry) = section.get("accept_types") else { return section.texts("accept_types") };
    let types = entry
        .some_list("`accept_types` is empty, so no page would be kept", "name a type or remove the line");
    types.iter().filter_map(media_type).collect()
}

fn media_type(entry: &Entry<'_>) -> Option<String> {
    let text = entry.text()?;
    let part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c))
    };
    match text.split_once('/') {
        Some((kind, subtype)) if part(kind) && part(subtype) => Some(text.to_ascii_lowercase()),
        _ => entry.refuse(
            format!("`{text}` is no media type"),
            "write type and subtype, each by name and without parameters, as in \"text/html\"",
        ),
    }
}

fn headers(entry: &Entry<'_>) -> Vec<(String, String)> {
    let entries = entry.entries("a table", "write it as in headers = { Accept-Language = \"ja\" }");
    let mut headers: Vec<(String, String)> = Vec::new();
    for field in &entries {
        let Some((name, value)) = header(field) else { continue };
        if headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name)) {
            field.refuse::<()>(format!("the header `{name}` is there twice"), "keep one of the two");
        }
        headers.push((name, value));
    }
    headers
}

fn header(field: &Entry<'_>) -> Option<(String, String)> {
    let name = field.key;
    let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
        return field.refuse(
            format!("`{}` is no name of a header", name.escape_debug()),
            "write it as in Accept-Language",
        );
    };
    if OWN_HEADERS.contains(&parsed.as_str()) {
        let what_to_do = match parsed.as_str() {
            "user-agent" => "remove it; say who you are with `contact` in [pace]",
            _ => "remove it",
        };
        return field.refuse(format!("the header `{name}` is set by the crawler itself"), what_to_do);
    }
    let value = field.value.as_str().or_else(|| field.wrong_type("a text", "write it in quotes"))?;
    if HeaderValue::from_str(value).is_err() {
        return field.refuse(
            format!("the header `{name}` can't be `{}`", value.escape_debug()),
            "write printable ASCII, in one line",
        );
    }
    Some((name.to_owned(), value.to_owned()))
}

fn variable(entry: &Entry<'_>) -> Option<String> {
    let text = entry.text()?;
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !text.starts_with(|c: char| c.is_ascii_digit());
    if plain {
        return Some(text.to_owned());
    }
    // The text may be a password written here by mistake: it isn't repeated.
    entry.refuse(
        "`auth_env` is no name of an environment variable",
        "write the variable's name, as in \"SHOP_AUTH\", and put user:password into the variable",
    )
}

fn proxy(entry: &Entry<'_>) -> Option<Url> {
    let text = entry.text()?;
    let url = Url::parse(text).ok().filter(|url| url.has_host() && PROXY_SCHEMES.contains(&url.scheme()));
    match url {
        // A proxy's URL may hold a password: it isn't repeated.
        None => entry.refuse(
            "`proxy` is no URL of a proxy",
            format!(
                "write it whole, as in \"http://proxy.example:3128\"; schemes: {}",
                PROXY_SCHEMES.join(", ")
            ),
        ),
        url => url,
    }
}
