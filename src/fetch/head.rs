//! The header of a request: what every site sees of us, and what its file adds.

use std::env;

use data_encoding::BASE64;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use super::Request;
use super::error::{FetchError, FetchErrorKind};
use crate::canonical_url::CanonicalUrl;
use crate::content_coding::ACCEPT_ENCODING;
use crate::page::Validators;
use crate::site::Site;

/// The header fields of a request but `Host`, in the order in which they are sent.
///
/// # Errors
/// `Settings`, where the site's file names a field that HTTP has no place for; `Lacking`, where it names a variable that isn't set.
pub fn head(request: &Request<'_>, cookies: Option<HeaderValue>) -> Result<HeaderMap, FetchError> {
    let fields = plain_fields(request).into_iter().chain(request.site.fetch.headers.iter().cloned());
    let mut head = HeaderMap::new();
    for (name, value) in fields {
        let field = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(value).ok());
        let no_field = || {
            format!(
                "`{name}` under headers in [fetch] makes no header field; take line breaks out of its value"
            )
        };
        let (name, mut value) = field.ok_or_else(|| settings(request, &no_field()))?;
        value.set_sensitive(name == AUTHORIZATION);
        if name != AUTHORIZATION || is_trusted(request) {
            head.insert(name, value);
        }
    }
    if let Some(cookies) = cookies {
        head.insert("cookie", cookies);
    }
    if let Some(variable) = request.site.fetch.auth_env.as_ref().filter(|_| is_trusted(request)) {
        head.insert(AUTHORIZATION, basic(request, variable)?);
    }
    Ok(head)
}

/// Whether a password is for this host: it is a seed's, with or without `www.`, and the request goes out encrypted unless that seed's
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
pub fn lacking(site: &Site) -> Option<String> {
    let variable = site.fetch.auth_env.as_ref()?;
    credentials(variable).is_none().then(|| unset(variable))
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

fn basic(request: &Request<'_>, variable: &str) -> Result<HeaderValue, FetchError> {
    let lacking = || FetchError::new(request.url, FetchErrorKind::Lacking(unset(variable)));
    let credentials = credentials(variable).ok_or_else(lacking)?;
    let value = HeaderValue::try_from(format!("Basic {}", BASE64.encode(credentials.as_bytes())));
    let mut value = value.map_err(|_| settings(request, "the credentials make no header field"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn credentials(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| value.contains(':'))
}

fn unset(variable: &str) -> String {
    format!("auth_env names {variable}: set it to user:password in the environment")
}

/// The site's file asks for what can't be done.
pub fn settings(request: &Request<'_>, what: &str) -> FetchError {
    FetchError::new(request.url, FetchErrorKind::Settings(what.to_owned()))
}
