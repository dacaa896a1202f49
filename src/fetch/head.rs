//! The header of a request: what every site sees of us, and what its file adds.

use std::env;

use data_encoding::BASE64;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::Request;
use super::error::{FetchError, FetchErrorKind};
use crate::content_coding::ACCEPT_ENCODING;
use crate::page::Validators;
use crate::site::Site;

/// The header fields of a request but `Host`, in the order in which they are sent.
///
/// # Errors
/// `Settings`, where the site's file names a field that HTTP has no place for, or a variable that isn't set.
pub fn head(request: &Request<'_>, cookies: Option<HeaderValue>) -> Result<HeaderMap, FetchError> {
    let fields = plain_fields(request).into_iter().chain(request.site.fetch.headers.iter().cloned());
    let mut head = HeaderMap::new();
    for (name, value) in fields {
        let field = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, value) = field.ok_or_else(|| settings(request, &no_field(&name)))?;
        head.insert(name, value);
    }
    if let Some(cookies) = cookies {
        head.insert("cookie", cookies);
    }
    if let Some(variable) = &request.site.fetch.auth_env {
        head.insert("authorization", basic(request, variable)?);
    }
    Ok(head)
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
    let credentials = env::var(variable).ok().filter(|value| value.contains(':'));
    let credentials = credentials.ok_or_else(|| {
        let what = format!("auth_env names {variable}: set it to user:password in the environment");
        settings(request, &what)
    })?;
    let value = HeaderValue::try_from(format!("Basic {}", BASE64.encode(credentials.as_bytes())));
    let mut value = value.map_err(|_| settings(request, "the credentials make no header field"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn no_field(name: &str) -> String {
    format!("`{name}` under headers in [fetch] makes no header field; take line breaks out of its value")
}

fn settings(request: &Request<'_>, what: &str) -> FetchError {
    FetchError::new(request.url, FetchErrorKind::Settings(what.to_owned()))
}
