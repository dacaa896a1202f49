//! The `[fetch]` section.

use http::{HeaderName, HeaderValue};
use url::Url;

use super::names;
use crate::secret::SecretName;
use crate::site::read::{Entry, Section};
use crate::site::{FetchRules, ProxyRule, SignatureRule};

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

/// What the names of header fields have that hold secrets, without `-` and `_`.
const SECRET: [&str; 10] =
    ["auth", "cookie", "key", "token", "secret", "passw", "signature", "session", "credential", "bearer"];

const PROXY_SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// Reads `[fetch]`; what is wrong is reported, and a default taken in its place. Secrets are those of `owners` alone: the site, and
/// its group.
pub(super) fn read(section: &Section<'_>, owners: &[&str]) -> FetchRules {
    let duration = |key| section.duration(key).unwrap_or_default();
    FetchRules {
        timeout: duration("timeout"),
        connect_timeout: duration("connect_timeout"),
        read_timeout: duration("read_timeout"),
        max_body: section.get("max_body").and_then(|e| e.size()).unwrap_or(FetchRules::MAX_BODY),
        parse_budget: duration("parse_budget"),
        accept_types: accept_types(section),
        attempts: section.count("attempts").unwrap_or_default(),
        headers: section.get("headers").map(|e| headers(&e, owners)).unwrap_or_default(),
        cookies: section.flag("cookies"),
        auth_env: section.get("auth_env").and_then(|e| secret(&e, owners, "user:password")),
        secret_headers: section.get("secret_headers").map(|e| secret_headers(&e, owners)).unwrap_or_default(),
        signature: section.get("signature").and_then(|e| signature(&e, owners)),
        proxy: section.get("proxy").and_then(|e| proxy(&e, owners)),
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

fn headers(entry: &Entry<'_>, owners: &[&str]) -> Vec<(String, String)> {
    let entries = entry.entries("a table", "write it as in headers = { Accept-Language = \"ja\" }");
    each_once(&entries, |field| header(field, owners))
}

fn secret_headers(entry: &Entry<'_>, owners: &[&str]) -> Vec<(String, SecretName)> {
    let example =
        format!("write it as in secret_headers = {{ X-Api-Key = \"{}\" }}", example(owners, "_KEY"));
    each_once(&entry.entries("a table", &example), |field| {
        header_name(field)?;
        Some((field.key.to_owned(), secret(field, owners, "the value")?))
    })
}

/// The header fields of a table, each once.
fn each_once<T>(entries: &[Entry<'_>], read: impl Fn(&Entry<'_>) -> Option<(String, T)>) -> Vec<(String, T)> {
    let mut headers: Vec<(String, T)> = Vec::new();
    for field in entries {
        let Some((name, value)) = read(field) else { continue };
        if headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name)) {
            field.refuse::<()>(format!("the header `{name}` is there twice"), "keep one of the two");
        }
        headers.push((name, value));
    }
    headers
}

/// The name of a header field that is not the crawler's own.
fn header_name(field: &Entry<'_>) -> Option<HeaderName> {
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
    Some(parsed)
}

fn header(field: &Entry<'_>, owners: &[&str]) -> Option<(String, String)> {
    let (name, parsed) = (field.key, header_name(field)?);
    let plain = parsed.as_str().replace(['-', '_'], "");
    if SECRET.iter().any(|secret| plain.contains(secret)) {
        let variable = example(owners, "_KEY");
        return field.refuse(
            format!("the header `{name}` holds a secret, which this file and every store of it would show"),
            format!(
                "write secret_headers = {{ {name} = \"{variable}\" }}, and put the value into that variable"
            ),
        );
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

/// A secret of the site's, or its group's, by the name of its variable.
fn secret(entry: &Entry<'_>, owners: &[&str], holds: &str) -> Option<SecretName> {
    let text = entry.text()?;
    let name = SecretName::of(text, owners);
    if name.is_none() {
        // The text may be a password written here by mistake: it isn't repeated.
        return entry.refuse(
            format!("`{}` names no variable of this site's", entry.key),
            format!(
                "write \"{0}\", or that with `_` and more, and put {holds} into the variable",
                example(owners, "")
            ),
        );
    }
    name
}

/// How a secret of the site's may be called.
fn example(owners: &[&str], more: &str) -> String {
    SecretName::first(owners.iter().find(|owner| !owner.is_empty()).unwrap_or(&"shop")) + more
}

fn proxy(entry: &Entry<'_>, owners: &[&str]) -> Option<ProxyRule> {
    let written = format!("proxy = {{ env = \"{}\" }}", example(owners, "_PROXY"));
    if entry.value.is_table() {
        let entries = entry.entries("a table", &written);
        return match &entries[..] {
            [env] if env.key == "env" => secret(env, owners, "the proxy's URL").map(ProxyRule::Secret),
            _ => entry.refuse("`proxy` has other keys than `env`", format!("write it as in {written}")),
        };
    }
    let text = entry.text()?;
    // A proxy's URL may hold a password: it isn't repeated.
    match proxy_url(text) {
        None => entry.refuse(
            "`proxy` is no URL of a proxy",
            format!(
                "write it whole, as in \"http://proxy.example:3128\"; schemes: {}",
                PROXY_SCHEMES.join(", ")
            ),
        ),
        Some(url) if !url.username().is_empty() || url.password().is_some() => entry.refuse(
            "`proxy` holds a password, which this file and every store of it would show",
            format!("write {written}, and put the whole URL into that variable"),
        ),
        url => url.map(ProxyRule::Open),
    }
}

fn signature(entry: &Entry<'_>, owners: &[&str]) -> Option<SignatureRule> {
    let written = format!(
        "signature = {{ env = \"{}\" }}, or {{ key = \"NAME\", agent = \"https://bots.example\" }}",
        example(owners, "_SIG")
    );
    let entries = entry.entries("a table", &format!("write {written}"));
    match &entries[..] {
        [env] if env.key == "env" => secret(env, owners, "the header lines").map(SignatureRule::Made),
        [one, other] => {
            let by_name = |name| [one, other].into_iter().find(|entry| entry.key == name);
            let (Some(key), Some(agent)) = (by_name("key"), by_name("agent")) else {
                return entry.refuse("`signature` has other keys", format!("write {written}"));
            };
            let (name, agent) = (key_name(key), origin(agent));
            Some(SignatureRule::Key { name: name?, agent: agent? })
        }
        [] if !entry.value.is_table() => None,
        _ => entry.refuse("`signature` has other keys", format!("write {written}")),
    }
}

/// A key's name. The text may be the key itself, written here by mistake: it isn't repeated.
fn key_name(entry: &Entry<'_>) -> Option<String> {
    let text = entry.text()?;
    if names::is_plain(text) {
        return Some(text.to_owned());
    }
    entry.refuse("`key` is no key's name", "make one with `paced key new NAME`, and write that name")
}

/// The origin of a site over `https`, without a path: its keys are published at one place.
fn origin(entry: &Entry<'_>) -> Option<String> {
    let text = entry.text()?;
    let url = Url::parse(text).ok().filter(|url| {
        url.scheme() == "https" && url.path() == "/" && url.query().is_none() && url.fragment().is_none()
    });
    let is_plain = |url: &Url| url.username().is_empty() && url.password().is_none();
    match url.filter(is_plain) {
        Some(url) => Some(url.origin().ascii_serialization()),
        None => entry.refuse(
            "`agent` is no site that publishes keys",
            "write scheme and host alone, as in \"https://bots.example\"",
        ),
    }
}

/// The URL of a proxy. What HTTP takes for none, as a host with `{` in it, would be passed over by the client in silence.
pub(crate) fn proxy_url(text: &str) -> Option<Url> {
    let is_one = |url: &Url| {
        url.has_host() && PROXY_SCHEMES.contains(&url.scheme()) && url.as_str().parse::<http::Uri>().is_ok()
    };
    Url::parse(text).ok().filter(is_one)
}
