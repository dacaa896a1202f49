//! What a bucket's errors mean to people, in one line: what is wrong and what to do. Nothing of the credentials is told.

use std::env;
use std::error::Error as _;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

/// What is wrong with the variables, as far as that shows without asking.
pub(super) fn wrong_settings() -> Option<&'static str> {
    let given = |name: &str| env::var_os(name).is_some();
    let plain = endpoint().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let allowed = env::var("AWS_ALLOW_HTTP")
        .is_ok_and(|text| matches!(text.to_ascii_lowercase().as_str(), "1" | "true" | "on" | "yes" | "y"));
    match (given("AWS_ACCESS_KEY_ID"), given("AWS_SECRET_ACCESS_KEY")) {
        (true, false) => Some("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY isn't; set both or none"),
        (false, true) => Some("AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID isn't; set both or none"),
        _ if plain && !allowed => Some(
            "AWS_ENDPOINT_URL is http://, so nothing would be encrypted; set AWS_ALLOW_HTTP=true if that is right",
        ),
        _ => None,
    }
}

fn endpoint() -> Option<String> {
    ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"].iter().find_map(|name| env::var(name).ok())
}

/// What is wrong, and what to do.
pub(super) fn why(error: &Error) -> String {
    let text = error.to_string();
    explain(&text, transport(error), endpoint().as_deref())
}

/// Whether the same request may succeed later.
pub(super) fn is_passing(error: &Error) -> bool {
    let text = error.to_string();
    let passing = ["InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout"];
    code(&text)
        .map_or_else(|| !matches!(error, Error::PermissionDenied { .. }), |code| passing.contains(&code))
}

/// Whether there is nothing at that place.
pub(super) fn is_missing(error: &Error) -> bool {
    let text = error.to_string();
    match error {
        Error::NotFound { .. } => code(&text) != Some("NoSuchBucket"),
        _ => matches!(code(&text), Some("InvalidRange")),
    }
}

/// How far a request came that had no answer, and the innermost reason.
fn transport(error: &Error) -> Option<(HttpErrorKind, String)> {
    let (mut cause, mut kind) = (error.source(), None);
    let mut innermost = String::new();
    while let Some(error) = cause {
        kind = error.downcast_ref::<HttpError>().map(HttpError::kind).or(kind);
        innermost = error.to_string();
        cause = error.source();
    }
    kind.map(|kind| (kind, innermost))
}

fn explain(text: &str, transport: Option<(HttpErrorKind, String)>, endpoint: Option<&str>) -> String {
    let endpoint = endpoint.filter(|endpoint| !endpoint.contains('@')).unwrap_or("the storage");
    if text.contains("/latest/api/token") || text.contains("/latest/meta-data") {
        return "no keys, and none from this machine's role either; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            .to_owned();
    }
    if let Some((kind, reason)) = transport {
        let how = match kind {
            HttpErrorKind::Connect => "can't be reached",
            HttpErrorKind::Timeout => "didn't answer in time",
            _ => "broke the connection off",
        };
        return format!("{endpoint} {how} ({reason}); check AWS_ENDPOINT_URL, AWS_REGION and the network");
    }
    let elsewhere = || "the bucket is in another region; set AWS_REGION to its own".to_owned();
    match code(text) {
        Some("NoSuchBucket") => "there is no such bucket; make it, or name another with --pages".to_owned(),
        Some(
            code @ ("InvalidAccessKeyId"
            | "SignatureDoesNotMatch"
            | "InvalidToken"
            | "ExpiredToken"
            | "InvalidClientTokenId"
            | "TokenRefreshRequired"),
        ) => format!(
            "the keys are refused ({code}); check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
        ),
        Some("AccessDenied" | "AllAccessDisabled") => {
            "access is denied; the keys must allow ListBucket, GetObject and PutObject there".to_owned()
        }
        Some("PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
            elsewhere()
        }
        Some(code) => format!("{code}: {}", between(text, "Message").unwrap_or("no reason is given")),
        None if text.contains("incorrectly configured region") => elsewhere(),
        None => text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect(),
    }
}

/// The name that S3 gives to what went wrong.
fn code(text: &str) -> Option<&str> {
    between(text, "Code")
}

fn between<'a>(text: &'a str, element: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{element}>"))?;
    let (inner, _) = rest.split_once("</")?;
    Some(inner.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_says_what_to_do() {
        let answer = |code: &str| {
            format!(
                "Generic S3 error: status 403: <Error><Code>{code}</Code><Message>So it is.</Message></Error>"
            )
        };
        for (text, told) in [
            (answer("NoSuchBucket"), "there is no such bucket; make it"),
            (
                answer("SignatureDoesNotMatch"),
                "the keys are refused (SignatureDoesNotMatch); check AWS_ACCESS",
            ),
            (answer("AccessDenied"), "access is denied; the keys must allow ListBucket"),
            (answer("PermanentRedirect"), "set AWS_REGION"),
            (answer("QuotaExceeded"), "QuotaExceeded: So it is."),
            ("Error performing PUT http://169.254.169.254/latest/api/token in 1s".to_owned(), "no keys"),
            ("something\nelse".to_owned(), "something else"),
        ] {
            let why = explain(&text, None, None);
            assert!(why.starts_with(told) || why.ends_with(told) || why.contains(told), "{text}: {why}");
            assert!(!why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn an_endpoint_is_named_where_it_hides_nothing() {
        let gone = || Some((HttpErrorKind::Connect, "refused".to_owned()));
        let told = explain("", gone(), Some("http://127.0.0.1:9000"));
        assert!(
            told.starts_with("http://127.0.0.1:9000 can't be reached (refused); check AWS_ENDPOINT_URL"),
            "{told}"
        );
        let told = explain("", gone(), Some("https://me:secret@store.example"));
        assert!(told.starts_with("the storage can't be reached"), "{told}");
    }
}
