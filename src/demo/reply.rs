//! A request as a host's routes see it, and what they reply: a page, or one of the ways in which servers go wrong.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use tokio::time::sleep;

use super::arrivals::OpenArrival;

/// One request, its head read.
#[derive(Clone, Debug)]
pub struct ShopRequest {
    /// When the head had been read, as `clock::since_boot()`.
    pub at: Duration,
    /// `GET`, mostly.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The header fields.
    pub headers: HeaderMap,
    /// The connection it came over: 1, 2, … in the order of the host's connections.
    pub connection: u64,
}

impl ShopRequest {
    /// The first header field of that name, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// What to answer, when, and how.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShopReply {
    /// The HTTP status.
    pub status: u16,
    /// Header fields; length, date and connection are added in sending.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// How long the visitor waits for the head.
    pub wait: Duration,
    /// How the answer goes over the wire.
    pub delivery: Delivery,
}

/// How an answer goes over the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// At once, with its length.
    Whole,
    /// At once, in chunked coding: the length is not told.
    Chunked,
    /// So many bytes at a time, with a pause before each but the first.
    Slow {
        /// Bytes at a time.
        bytes: usize,
        /// The pause between them.
        pause: Duration,
    },
    /// The whole length is promised, the connection ends after so many bytes.
    Cut {
        /// Bytes that are sent.
        after: usize,
    },
    /// The connection is reset without an answer.
    Reset,
    /// No answer ever, the connection stays open.
    Silence,
}

impl ShopReply {
    /// A page.
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::status(200).header("content-type", "text/html; charset=utf-8").with_body(body)
    }

    /// Plain text, as a `robots.txt` is.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self::status(200).header("content-type", "text/plain; charset=utf-8").with_body(body)
    }

    /// JSON text.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self::status(200).header("content-type", "application/json").with_body(body)
    }

    /// A status and nothing else.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            wait: Duration::ZERO,
            delivery: Delivery::Whole,
        }
    }

    /// A redirect.
    pub fn redirect(status: u16, to: impl Into<String>) -> Self {
        Self::status(status).header("location", to)
    }

    /// The connection reset without an answer.
    pub fn reset() -> Self {
        Self::status(0).delivered(Delivery::Reset)
    }

    /// No answer for as long as the visitor holds the connection.
    pub fn silence() -> Self {
        Self::status(0).delivered(Delivery::Silence)
    }

    /// Adds a header field.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With this status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// With this body.
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// So much later.
    pub fn after(mut self, wait: Duration) -> Self {
        self.wait += wait;
        self
    }

    /// Over the wire in this way.
    pub fn delivered(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// The answer as the server sends it; a status or field that HTTP forbids becomes a 500 that says so.
    pub(super) fn into_response(self, visit: OpenArrival) -> Response<SentBody> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in &self.headers {
            response = response.header(name, value.as_bytes());
        }
        if self.delivery != Delivery::Chunked && !self.body.is_empty() {
            response = response.header("content-length", self.body.len());
        }
        match response.body(()) {
            Ok(head) => head.map(|()| sent(self.body, self.delivery, visit)),
            Err(why) => {
                let mut response = Response::new(sent(why.to_string().into(), Delivery::Whole, visit));
                *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                response
            }
        }
    }
}

/// A body on its way. Its end is the visit's end.
pub(super) type SentBody = UnsyncBoxBody<Bytes, Planned>;

/// The server ends the connection on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the connection ends here, as planned")]
pub(super) struct Planned;

/// Time for what is written to leave before the connection is cut.
const FLUSH: Duration = Duration::from_millis(20);

fn sent(body: Bytes, delivery: Delivery, visit: OpenArrival) -> SentBody {
    let (rest, most, pause, is_cut) = match delivery {
        Delivery::Slow { bytes, pause } => (body, bytes.max(1), pause, false),
        Delivery::Cut { after } => (body.slice(..after.min(body.len())), usize::MAX, FLUSH, true),
        _ => (body, usize::MAX, Duration::ZERO, false),
    };
    if rest.is_empty() && !is_cut {
        return SentBody::default();
    }
    let frames = unfold((rest, Duration::ZERO, visit), move |(mut rest, wait, visit)| async move {
        if !wait.is_zero() {
            sleep(wait).await;
        }
        if rest.is_empty() {
            return is_cut.then_some((Err(Planned), (rest, wait, visit)));
        }
        let piece = rest.split_to(most.min(rest.len()));
        let wait = if rest.is_empty() && !is_cut { Duration::ZERO } else { pause };
        Some((Ok(Frame::data(piece)), (rest, wait, visit)))
    });
    SentBody::new(StreamBody::new(frames))
}
