//! One request and what came of it, and the records that tell it. Where they are written is decided elsewhere.

use std::ops::Range;

use super::member::Packer;
use super::store::Store;
use super::warc::{self, Header};
use super::{RecordPlace, stored};
use crate::canonical_url::CanonicalUrl;
use crate::clock::{Timestamp, millis};
use crate::page::Page;
use crate::task::Departure;

/// A request that was sent, under which pace, and how it ended.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The site's name.
    pub site: String,
    /// The pace unit: the site's group, or the site.
    pub unit: String,
    /// When the request was to be sent, and the waits as in force at its last grant.
    pub departure: Departure,
    /// The lease's fence.
    pub fence: i64,
    /// What was sent.
    pub request: SentRequest,
    /// What came back.
    pub outcome: VisitOutcome,
}

/// A request as it was sent.
#[derive(Clone, Debug)]
pub struct SentRequest {
    /// What was asked for.
    pub url: CanonicalUrl,
    /// `GET` or `HEAD`.
    pub method: &'static str,
    /// The header fields; `host` is added where it is missing.
    pub headers: Vec<(String, String)>,
    /// When it was sent: the stamp that the proof of pace goes by.
    pub sent_at: Timestamp,
    /// The key that signed it, by its thumbprint.
    pub signed_by: Option<String>,
    /// The protocol that was spoken.
    pub http_version: http::Version,
}

/// What came of a request.
#[derive(Clone, Debug)]
pub enum VisitOutcome {
    /// An answer, whatever its status.
    Response(Page),
    /// A 304: the stored body is still right.
    NotModified {
        /// The answer, which has no body.
        page: Page,
        /// Where the stored body is.
        of: RecordPlace,
        /// When the stored body was fetched; the stored record's own date is preferred where it can be read.
        fetched_at: Timestamp,
    },
    /// No whole answer came.
    Failed {
        /// What happened, in one line.
        error: String,
    },
}

/// The records of one visit, ready to be written.
#[derive(Debug)]
pub(super) struct Encoded {
    /// One gzip member a record.
    pub(super) bytes: Vec<u8>,
    /// The record that the visit's place names, in `bytes`.
    pub(super) named: Range<usize>,
    /// Where the body is, if it was kept before.
    pub(super) stored: Option<RecordPlace>,
}

/// Spells out a visit's records: the request first, so that a segment cut behind it still tells that it was sent.
pub(super) fn encode(visit: &Visit, store: &dyn Store) -> Encoded {
    Packer::lend(|packer| encode_with(packer, visit, store))
}

fn encode_with(packer: &mut Packer, visit: &Visit, store: &dyn Store) -> Encoded {
    let mut bytes = Vec::new();
    let (id, answer_id) = (warc::record_id(), warc::record_id());
    request(&mut bytes, packer, visit, &id, &answer_id);
    let start = bytes.len();
    let header = |kind| shared_header(kind, &answer_id, visit).with("WARC-Concurrent-To", &id);
    let stored = match &visit.outcome {
        VisitOutcome::Response(page) => {
            response(&mut bytes, packer, header("response"), visit.request.method, page);
            None
        }
        VisitOutcome::NotModified { page, of, fetched_at } => {
            revisit(&mut bytes, packer, header("revisit"), page, &stored::origin(store, of, *fetched_at));
            Some(of.clone())
        }
        VisitOutcome::Failed { error } => {
            failure(&mut bytes, packer, header("metadata"), error);
            None
        }
    };
    let named = start..bytes.len();
    Encoded { bytes, named, stored }
}

fn shared_header(kind: &str, id: &str, visit: &Visit) -> Header {
    let request = &visit.request;
    let ip = match &visit.outcome {
        VisitOutcome::Response(page) | VisitOutcome::NotModified { page, .. } => page.remote,
        VisitOutcome::Failed { .. } => None,
    };
    let h2 = request.http_version == http::Version::HTTP_2;
    Header::of(kind, id, request.sent_at)
        .with("WARC-Target-URI", request.url.as_str())
        .with_some("WARC-IP-Address", ip.map(|address| address.ip().to_canonical()))
        .with_some("WARC-Protocol", h2.then_some("h2"))
}

fn request(out: &mut Vec<u8>, packer: &mut Packer, visit: &Visit, id: &str, answer_id: &str) {
    let SentRequest { url, method, headers, .. } = &visit.request;
    let header = shared_header("request", id, visit)
        .with("WARC-Concurrent-To", answer_id)
        .with("Content-Type", warc::HTTP_REQUEST)
        .with("Paced-Site", &visit.site)
        .with("Paced-Unit", &visit.unit)
        .with_some("Paced-Start-At", visit.departure.is_paced().then(|| visit.departure.at()))
        .with("Paced-Unit-Wait-Ms", visit.departure.unit)
        .with("Paced-Site-Wait-Ms", visit.departure.site)
        .with("Paced-Fence", visit.fence)
        .with_some(warc::SIGNED_BY, visit.request.signed_by.as_ref());
    let target = &url.url()[url::Position::BeforePath..url::Position::AfterQuery];
    let first = format!("{method} {target} {}", http_name(visit.request.http_version));
    let host = url.host();
    let named = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = (!named).then(|| ("host", host.as_str().as_bytes()));
    let rest = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let head = warc::http_head(&first, host.into_iter().chain(rest));
    warc::append(out, packer, header, &head, None);
}

fn response(out: &mut Vec<u8>, packer: &mut Packer, header: Header, method: &str, page: &Page) {
    let length = page.body.len().to_string();
    let head = warc::http_head(&status_line(page.status), framed(method, page, &length));
    let header =
        header.with("Content-Type", warc::HTTP_RESPONSE).with("Paced-Response-Ms", millis(page.response));
    warc::append(out, packer, header, &head, Some(&page.body));
}

/// The header fields that fit the body as it is kept: the client has taken the chunks apart, so no
/// `transfer-encoding`, and the `content-length` is the body's. An answer to `HEAD` keeps what it told.
fn framed<'a>(method: &str, page: &'a Page, length: &'a str) -> Vec<(&'a str, &'a [u8])> {
    let bodiless = method == "HEAD" || page.status == 304;
    let dropped = |name: &str| {
        name.eq_ignore_ascii_case("transfer-encoding")
            || (!bodiless && name.eq_ignore_ascii_case("content-length"))
    };
    let mut fields: Vec<_> = page
        .headers
        .0
        .iter()
        .filter(|(name, _)| !dropped(name))
        .map(|(name, value)| (name.as_str(), value.as_slice()))
        .collect();
    if !bodiless && page.status != 204 {
        fields.push(("content-length", length.as_bytes()));
    }
    fields
}

fn revisit(out: &mut Vec<u8>, packer: &mut Packer, header: Header, page: &Page, origin: &stored::RefersTo) {
    let head = warc::http_head(&status_line(page.status), framed("GET", page, ""));
    let header = header
        .with("Content-Type", warc::HTTP_RESPONSE)
        .with("WARC-Profile", warc::NOT_MODIFIED)
        .with_some("WARC-Refers-To", origin.id.as_deref())
        .with("WARC-Refers-To-Target-URI", origin.url.as_deref().unwrap_or(page.url.as_str()))
        .with("WARC-Refers-To-Date", &origin.date)
        .with("Paced-Response-Ms", millis(page.response));
    warc::append(out, packer, header, &head, None);
}

fn failure(out: &mut Vec<u8>, packer: &mut Packer, header: Header, error: &str) {
    let block = format!("error: {}\r\n", warc::one_line(error));
    let header = header.with("Content-Type", warc::WARC_FIELDS);
    warc::append(out, packer, header, block.as_bytes(), None);
}

fn status_line(status: u16) -> String {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason());
    format!("HTTP/1.1 {status:03} {}", reason.unwrap_or_default())
}

/// HTTP/2 has no first line: it is written as HTTP/1.1, and `WARC-Protocol` tells what was spoken.
fn http_name(version: http::Version) -> &'static str {
    if version == http::Version::HTTP_10 { "HTTP/1.0" } else { "HTTP/1.1" }
}
