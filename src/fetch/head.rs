//! The header of a request: what every site sees of us, and what its file adds.

use std::time::Duration;

use data_encoding::BASE64;
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::Request;
use super::error::{FetchError, FetchErrorKind};
use crate::canonical_url::CanonicalUrl;
use crate::clock::{Clock, Timestamp};
use crate::content_coding::ACCEPT_ENCODING;
use crate::page::Validators;
use crate::secret::{Secret, SecretName};
use crate::signature::{self, KeyFolder, SignatureFields};
use crate::site::{ProxyRule, SignatureRule, Site, proxy_url};

/// What `auth_env` holds.
const CREDENTIALS: &str = "user:password";

/// A request may wait for its turn for so long after it was signed; a signature that ends by then isn't sent.
const IN_FLIGHT: Duration = Duration::from_mins(1);
/// What the variable of a `signature` holds.
const HEADER_LINES: &str = "the three header lines that the site's owner made";

/// The header of a request.
pub struct Head {
    /// Its fields but `Host`, in the order in which they are sent.
    pub fields: HeaderMap,
    /// The key that signed it, by its thumbprint.
    pub signed_by: Option<String>,
}

/// The header of a request.
///
/// # Errors
/// `Settings`, where the site's file names a field that HTTP has no place for; `Lacking`, where it names a variable that isn't set.
pub fn head(
    request: &Request<'_>,
    cookies: Option<HeaderValue>,
    keys: &KeyFolder,
) -> Result<Head, FetchError> {
    let own = request.site.fetch.headers.iter().filter(|_| !request.is_elsewhere()).cloned();
    let fields = plain_fields(request).into_iter().chain(own);
    let mut head = HeaderMap::new();
    for (name, value) in fields {
        let field = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(value).ok());
        let no_field = || {
            format!(
                "`{name}` under headers in [fetch] makes no header field; take line breaks out of its value"
            )
        };
        let (name, value) = field.ok_or_else(|| settings(request, &no_field()))?;
        head.insert(name, value);
    }
    if !is_trusted(request) {
        return Ok(Head { fields: head, signed_by: None });
    }
    if let Some(mut cookies) = cookies {
        cookies.set_sensitive(true);
        head.insert(COOKIE, cookies);
    }
    for (name, secret) in &request.site.fetch.secret_headers {
        let value = opened(request, secret, "the value")?;
        let field = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value.reveal()).ok());
        let no_field = || format!("{} makes no header field `{name}`: take line breaks out", secret.as_str());
        let (name, mut value) = field.ok_or_else(|| settings(request, &no_field()))?;
        value.set_sensitive(true);
        head.insert(name, value);
    }
    if let Some(variable) = &request.site.fetch.auth_env {
        head.insert(AUTHORIZATION, basic(request, variable)?);
    }
    let signed_by = match &request.site.fetch.signature {
        Some(rule) => Some(sign(request, rule, keys, &mut head)?),
        None => None,
    };
    Ok(Head { fields: head, signed_by })
}

/// Signs the request; the key's thumbprint. What of it a stranger could send on is masked wherever it is shown.
fn sign(
    request: &Request<'_>,
    rule: &SignatureRule,
    keys: &KeyFolder,
    head: &mut HeaderMap,
) -> Result<String, FetchError> {
    let signed = match rule {
        SignatureRule::Made(variable) => made(variable),
        SignatureRule::Key { name, agent } => {
            key(name, keys).map(|key| key.sign(request.url.host().as_str(), agent, Clock::wall().now()))
        }
    };
    let signed = signed.map_err(|why| FetchError::new(request.url, FetchErrorKind::Lacking(why)))?;
    let is_ours = matches!(rule, SignatureRule::Key { .. });
    for (name, value) in signed.fields {
        let no_field = |_| settings(request, &format!("the {name} of its signature makes no header field"));
        let mut value = HeaderValue::try_from(value).map_err(no_field)?;
        value.set_sensitive(!is_ours || name == signature::SIGNATURE);
        head.insert(name, value);
    }
    Ok(signed.key_id)
}

/// The signature that a site's owner made, as long as it holds.
fn made(variable: &SecretName) -> Result<SignatureFields, String> {
    let name = variable.as_str();
    let secret = variable.read().ok_or_else(|| unset("signature", variable, HEADER_LINES))?;
    let made = signature::read(secret.reveal()).map_err(|why| {
        format!("signature names {name}, which holds none: {why}; put {HEADER_LINES} there")
    })?;
    let now = Clock::wall().now();
    match made.ends.filter(|ends| *ends <= now.plus(IN_FLIGHT)) {
        Some(ends) => {
            let when = if ends <= now { "ended" } else { "is too short for a request, as it ends" };
            Err(format!("the signature of {name} {when} at {ends}; {}", signature::ASK))
        }
        None => Ok(made),
    }
}

fn key(name: &str, keys: &KeyFolder) -> Result<std::sync::Arc<signature::SigningKey>, String> {
    let advice = format!("make it with `paced key new {name}`, or name the folder of keys with --keys");
    keys.get(name).map_err(|why| format!("signature names the key {name}: {why}; {advice}"))
}

/// When the signature ends that a site's owner made, where this process has one that says so.
pub fn signature_end(site: &Site) -> Option<Timestamp> {
    match &site.fetch.signature {
        Some(SignatureRule::Made(variable)) => signature::read(variable.read()?.reveal()).ok()?.ends,
        _ => None,
    }
}

/// Whether secrets are for this host: it is a seed's, with or without `www.`, and the request goes out encrypted unless that seed's
/// does not either. What a page links or redirects to may be anybody's, or overheard.
fn is_trusted(request: &Request<'_>) -> bool {
    let bare = |url: &CanonicalUrl| {
        let host = url.host();
        host.as_str().strip_prefix("www.").unwrap_or(host.as_str()).to_owned()
    };
    let (host, is_plain) = (bare(request.url), request.url.url().scheme() == "http");
    let mut seeds = request.site.seeds.iter().filter(|seed| bare(seed) == host);
    seeds.any(|seed| !is_plain || seed.url().scheme() == "http")
}

/// What this process lacks to ask the site for anything, and what to do.
pub fn lacking(site: &Site, keys: &KeyFolder) -> Option<String> {
    let rules = &site.fetch;
    let auth = rules.auth_env.as_ref().filter(|name| credentials(name).is_none());
    let auth = auth.map(|name| unset("auth_env", name, CREDENTIALS));
    let header = rules.secret_headers.iter().find(|(_, name)| name.read().is_none());
    let header = header.map(|(_, name)| unset("secret_headers", name, "the value"));
    let unsigned = || match rules.signature.as_ref()? {
        SignatureRule::Made(variable) => made(variable).err(),
        SignatureRule::Key { name, .. } => key(name, keys).err(),
    };
    auth.or(header).or_else(|| proxy_of(site).err()).or_else(unsigned)
}

/// The site's proxy.
///
/// # Errors
/// In words, where it is a secret that isn't set, or is no proxy's URL.
pub fn proxy_of(site: &Site) -> Result<Option<Url>, String> {
    match &site.fetch.proxy {
        None => Ok(None),
        Some(ProxyRule::Open(url)) => Ok(Some(url.clone())),
        Some(ProxyRule::Secret(name)) => {
            let url = name.read().and_then(|secret| proxy_url(secret.reveal()));
            url.map(Some).ok_or_else(|| unset("proxy", name, "the proxy's whole URL"))
        }
    }
}

fn plain_fields(request: &Request<'_>) -> Vec<(String, String)> {
    let mut fields = vec![
        ("user-agent", request.site.pace.user_agent()),
        ("accept", if request.robots { "text/plain, */*;q=0.1".to_owned() } else { accept(request.site) }),
        // A robots.txt is cut where it is too long, and what is cut can't be decompressed.
        ("accept-encoding", if request.robots { "identity" } else { ACCEPT_ENCODING }.to_owned()),
    ];
    let Validators { etag, last_modified } =
        request.validators.filter(|_| !request.robots).cloned().unwrap_or_default();
    fields.extend(etag.map(|etag| ("if-none-match", etag)));
    fields.extend(last_modified.map(|date| ("if-modified-since", date)));
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn accept(site: &Site) -> String {
    site.fetch.accept_types.iter().map(String::as_str).chain(["*/*;q=0.1"]).collect::<Vec<_>>().join(", ")
}

fn basic(request: &Request<'_>, variable: &SecretName) -> Result<HeaderValue, FetchError> {
    let lacking =
        || FetchError::new(request.url, FetchErrorKind::Lacking(unset("auth_env", variable, CREDENTIALS)));
    let credentials = credentials(variable).ok_or_else(lacking)?;
    let value = HeaderValue::try_from(format!("Basic {}", BASE64.encode(credentials.reveal().as_bytes())));
    let mut value = value.map_err(|_| settings(request, "the credentials make no header field"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn opened(request: &Request<'_>, name: &SecretName, what: &str) -> Result<Secret, FetchError> {
    let lacking =
        || FetchError::new(request.url, FetchErrorKind::Lacking(unset("secret_headers", name, what)));
    name.read().ok_or_else(lacking)
}

fn credentials(variable: &SecretName) -> Option<Secret> {
    variable.read().filter(|secret| secret.reveal().contains(':'))
}

fn unset(key: &str, variable: &SecretName, what: &str) -> String {
    format!("{key} names {}: set it to {what} in the environment", variable.as_str())
}

/// The site's file asks for what can't be done.
pub fn settings(request: &Request<'_>, what: &str) -> FetchError {
    FetchError::new(request.url, FetchErrorKind::Settings(what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_site_s_file_adds_is_for_the_site_s_own_hosts() {
        let text = "seeds = [\"http://shop.example/\"]\n[fetch]\nheaders = { X-Shop = \"1\" }\n[[page]]\nname = \"p\"\nmatch = \"/**\"\n";
        let site = crate::site::parse(text, "shop.toml").expect("a good site");
        for (host, sent) in [("shop.example", true), ("other.example", false)] {
            let url = CanonicalUrl::parse(&format!("http://{host}/robots.txt")).expect("a URL");
            let request = Request { site: &site, url: &url, validators: None, robots: true };
            let head = head(&request, None, &KeyFolder::default()).expect("a head").fields;
            assert_eq!(head.contains_key("x-shop"), sent, "{host}");
            assert!(head.contains_key("user-agent"));
        }
    }
}
