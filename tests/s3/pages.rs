//! Pages to keep: what a visit looks like.

use std::time::Duration;

use bytes::Bytes;
use paced::archive::{Archive, Location, SentRequest, Visit, VisitOutcome, writer_name};
use paced::canonical_url::CanonicalUrl;
use paced::clock::{Clock, Timestamp};
use paced::page::{Headers, Page};

pub const START: i64 = 1_795_165_200_123;

/// Opens a place as a writer of its own.
pub async fn open(location: &Location) -> Archive {
    let clock = Clock::fake(Timestamp::from_millis(START));
    Archive::open_at(location, &writer_name(), clock).await.expect("a page store")
}

/// An answer that was sent `ms` after the start.
pub fn page(path: &str, body: &str, ms: i64) -> Page {
    Page {
        url: CanonicalUrl::parse(&format!("http://shop.example/{path}")).expect("a URL"),
        sent_at: Timestamp::from_millis(START + ms),
        version: http::Version::HTTP_11,
        status: 200,
        headers: Headers(vec![("content-type".to_owned(), b"text/html".to_vec())]),
        body: Bytes::copy_from_slice(body.as_bytes()),
        response: Duration::from_millis(640),
        remote: None,
    }
}

/// A visit that ended with that answer.
pub fn visit(page: Page) -> Visit {
    Visit {
        site: "shop".to_owned(),
        unit: "shop".to_owned(),
        interval: Duration::from_secs(1),
        fence: 7,
        request: SentRequest {
            url: page.url.clone(),
            method: "GET",
            headers: Vec::new(),
            sent_at: page.sent_at,
            http_version: http::Version::HTTP_11,
        },
        outcome: VisitOutcome::Response(page),
    }
}
