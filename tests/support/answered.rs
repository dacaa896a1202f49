//! Visits to keep: a page that a shop answered with.

use std::time::Duration;

use bytes::Bytes;
use paced::internals::archive::{SentRequest, Visit, VisitOutcome};
use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::Timestamp;
use paced::internals::page::{Headers, Page};
use paced::internals::task::Departure;

/// A page of HTML.
pub fn answer(url: &str, sent_at: Timestamp, body: Bytes) -> Page {
    Page {
        url: CanonicalUrl::parse(url).expect("a URL"),
        sent_at,
        version: http::Version::HTTP_11,
        status: 200,
        headers: Headers(vec![("content-type".to_owned(), b"text/html".to_vec())]),
        body,
        response: Duration::from_millis(640),
        remote: None,
    }
}

/// The site `shop` was asked for it, at a pace of a second.
pub fn answered(page: Page) -> Visit {
    Visit {
        site: "shop".to_owned(),
        unit: "shop".to_owned(),
        departure: Departure { at: page.sent_at.as_millis() - 1, unit: 1_000, site: 1_000 },
        fence: 1,
        request: SentRequest {
            url: page.url.clone(),
            method: "GET",
            headers: Vec::new(),
            sent_at: page.sent_at,
            signed_by: None,
            http_version: http::Version::HTTP_11,
        },
        outcome: VisitOutcome::Response(page),
    }
}
