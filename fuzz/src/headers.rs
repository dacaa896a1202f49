//! Header fields of an answer, one a line, and the body that follows them.

use std::time::Duration;

use bytes::Bytes;
use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::Timestamp;
use paced::internals::content_coding::decode;
use paced::internals::manners::{Signal, retry_after};
use paced::internals::page::{Headers, Page, Validators};
use paced::internals::robots::{HOLDS, HOLDS_AT_LEAST, UnreachableRow, record_of};
use paced::internals::site::Pace;
use paced::internals::task::RobotsAccess;

use super::canonical_url::{SPELLED, same_again};
use super::cost::Linear;

const MAX_BODY: u64 = 100_000;
/// The record of a `robots.txt`: a byte of it that is no UTF-8 is written as three.
const RECORD: Linear = Linear { least: 1_000, each: 3 };

/// What an answer asks for has bounds: a wait, a redirect to a page, how long `robots.txt` holds, a decoded body, and the length
/// of what is kept of them.
pub fn hold(bytes: &[u8]) {
    let (headers, body) = split(bytes);
    let (pace, now) = (Pace::default(), Timestamp::from_millis(1_795_165_200_123));
    for (_, value) in &headers.0 {
        let text = String::from_utf8_lossy(value);
        if let Some(wait) = retry_after(&text, now) {
            assert!(now.plus(wait) >= now, "{text:?}");
            let later = now.plus(Duration::from_secs(1));
            assert!(retry_after(&text, later).is_some_and(|then| then <= wait), "{text:?}");
        }
    }
    for status in [200, 301, 304, 404, 429, 503] {
        match Signal::of(&answer(status, &headers, &body), &pace, now) {
            Signal::Retry { block: Some((wait, why)), .. } => {
                assert!(!wait.is_zero() && wait <= pace.max_retry_after && !why.is_empty(), "{why}");
            }
            Signal::Redirect(target) => {
                assert!(target.has_host(), "{target}");
                SPELLED.holds(target.as_str().len(), bytes.len(), "bytes of a target");
                if let Ok(target) = CanonicalUrl::from_url(target) {
                    same_again(&target);
                }
            }
            _ => {}
        }
        let record = record_of(status, &headers, &body, &pace, UnreachableRow { failures: 3, random: 0.5 });
        assert!(record.holds_for <= HOLDS && !record.holds_for.is_zero());
        RECORD.holds(
            format!("{:?}", record.refuses).len() + access(&record.access),
            body.len(),
            "bytes of a record",
        );
        assert!(status != 200 || record.holds_for >= HOLDS_AT_LEAST);
    }
    let _ = Validators::of(&headers).is_empty();
    if let Ok(decoded) = decode(&headers, &body, MAX_BODY) {
        assert!(decoded.len() as u64 <= MAX_BODY);
        assert_eq!(decode(&headers, &body, MAX_BODY), Ok(decoded), "decoded twice, it differs");
    }
}

/// How long what is kept of a `robots.txt` is.
fn access(access: &RobotsAccess) -> usize {
    match access {
        RobotsAccess::Rules(text) | RobotsAccess::Unreachable(text) => text.len(),
        RobotsAccess::Absent => 0,
    }
}

/// Lines with a colon up to an empty one; what follows is the body.
fn split(bytes: &[u8]) -> (Headers, Bytes) {
    let (mut fields, mut rest) = (Vec::new(), bytes);
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (rest[..end].trim_ascii(), &rest[end + 1..]);
        rest = after;
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { break };
        let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
        fields.push((name, line[colon + 1..].trim_ascii().to_vec()));
    }
    (Headers(fields), Bytes::copy_from_slice(rest))
}

fn answer(status: u16, headers: &Headers, body: &Bytes) -> Page {
    Page {
        url: CanonicalUrl::parse("https://shop.example/a/b?c").expect("a URL"),
        sent_at: Timestamp::from_millis(0),
        version: http::Version::HTTP_11,
        status,
        headers: headers.clone(),
        body: body.clone(),
        response: Duration::ZERO,
        remote: None,
    }
}
