//! One connection to a server, over HTTP/1.1 or HTTP/2: whether a request would leave at once, and when it is gone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Uri, response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::client::legacy::connect::HttpInfo;
use hyper_util::rt::TokioIo;
use reqwest::header::HOST;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::dial::{BoxError, Transport};
use super::http2::{Http2, Http2Slot, Listening, NEW, StreamBody};

/// A new connection, with the protocol that was agreed on.
#[derive(Debug)]
pub enum Opened {
    /// One request at a time.
    Http1(Http1),
    /// Many at a time.
    Http2(Http2),
}

/// Begins to speak the protocol that the two sides agreed on. `changed` is told whenever a stream more may be opened.
///
/// # Errors
/// Why the server isn't ready for a request.
pub async fn open(transport: Box<dyn Transport>, changed: Arc<Notify>) -> Result<Opened, BoxError> {
    let connected = transport.connected();
    let mut extras = http::Extensions::new();
    connected.get_extras(&mut extras);
    let remote = extras.get::<HttpInfo>().map(HttpInfo::remote_addr);
    if connected.is_negotiated_h2() {
        return Ok(Opened::Http2(Http2::open(TokioIo::new(transport), remote, changed).await?));
    }
    let (sender, connection) = http1::handshake(transport).await?;
    let gone = CancellationToken::new();
    let ends = gone.clone().drop_guard();
    tokio::spawn(async move {
        // A request that is under way hears of it itself.
        let _ = connection.await;
        drop(ends);
    });
    let (proxied, made) = (connected.is_proxied(), Instant::now());
    Ok(Opened::Http1(Http1 { sender, remote, proxied, made, used: false, gone }))
}

/// A connection that takes one request at a time.
#[derive(Debug)]
pub struct Http1 {
    sender: http1::SendRequest<Empty<Bytes>>,
    remote: Option<SocketAddr>,
    /// A proxy reads the requests, and wants whole URLs.
    proxied: bool,
    made: Instant,
    used: bool,
    gone: CancellationToken,
}

impl Http1 {
    /// Nothing was sent on it yet, and it was made just now.
    pub fn is_new(&self) -> bool {
        !self.used && self.made.elapsed() < NEW
    }

    /// It takes no request any more.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// It would take a request at once.
    fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    /// Waits until the answer under way is read; false: the connection ended.
    pub async fn until_ready(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    async fn send(&mut self, request: Request<()>) -> Result<HttpAnswer, Unanswered> {
        self.used = true;
        let (mut head, ()) = request.into_parts();
        head.headers.entry(HOST).or_insert(host(&head.uri)?);
        if !self.proxied {
            let target = head.uri.path_and_query().cloned();
            head.uri = Uri::from(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
        }
        let sent = self.sender.try_send_request(Request::from_parts(head, Empty::new())).await;
        let (head, body) = match sent {
            Ok(answer) => answer.into_parts(),
            Err(mut error) => {
                let left = error.take_message().is_none();
                let why = error.into_error().into();
                return Err(if left { Unanswered::Sent(why) } else { Unanswered::Unsent(why) });
            }
        };
        Ok(HttpAnswer { head, remote: self.remote, body: AnswerBody::Http1(body) })
    }
}

fn host(uri: &Uri) -> Result<HeaderValue, Unanswered> {
    let name = uri.host().unwrap_or_default();
    let standard = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let host = match uri.port_u16() {
        Some(port) if port != standard => format!("{name}:{port}"),
        _ => name.to_owned(),
    };
    HeaderValue::try_from(host).map_err(|error| Unanswered::Sent(error.into()))
}

/// A connection, or a place on one, that is one request's.
#[derive(Debug)]
pub enum Exclusive {
    /// A whole connection.
    Http1(Http1),
    /// A stream of one.
    Http2(Http2Slot),
}

impl Exclusive {
    /// A request would leave at once.
    pub fn is_ready(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_ready(),
            Self::Http2(slot) => slot.is_ready(),
        }
    }

    /// Nothing was sent on it yet, and it was made just now.
    pub fn is_new(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_new(),
            Self::Http2(slot) => slot.connection().is_new(),
        }
    }

    /// Begins a wait for what comes on a connection that others use as well.
    pub fn listen(&self) -> Option<Listening> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(slot) => Some(slot.listen()),
        }
    }

    /// Ends when another connection is to be taken.
    pub fn gone(&self) -> &CancellationToken {
        match self {
            Self::Http1(connection) => &connection.gone,
            Self::Http2(slot) => slot.gone(),
        }
    }

    /// Sends a request and waits for the answer's head. Its first bytes are on their way when this is first polled.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send(&mut self, request: Request<()>) -> Result<HttpAnswer, Unanswered> {
        match self {
            Self::Http1(connection) => connection.send(request).await,
            Self::Http2(slot) => {
                let (head, body) =
                    slot.send(request).await.map_err(|error| Unanswered::Sent(error.into()))?;
                Ok(HttpAnswer { head, remote: slot.connection().remote(), body: AnswerBody::Http2(body) })
            }
        }
    }
}

/// Why a request has no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// Nothing of it left: the connection was at its end.
    Unsent(BoxError),
    /// It may have arrived.
    Sent(BoxError),
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub struct HttpAnswer {
    /// Status, version and header fields.
    pub head: response::Parts,
    /// Who answered: the site, or the proxy before it.
    pub remote: Option<SocketAddr>,
    /// The rest.
    pub body: AnswerBody,
}

/// The body of an answer.
#[derive(Debug)]
pub enum AnswerBody {
    /// Of a connection with one request.
    Http1(Incoming),
    /// Of a stream.
    Http2(StreamBody),
}

impl AnswerBody {
    /// Begins a wait for what comes on a connection that others use as well.
    pub fn listen(&self) -> Option<Listening> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(body) => body.listen(),
        }
    }

    /// The next piece, none at the end.
    ///
    /// # Errors
    /// Why the rest doesn't come.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BoxError> {
        match self {
            Self::Http2(body) => body.chunk().await,
            Self::Http1(body) => loop {
                let Some(frame) = body.frame().await else { return Ok(None) };
                if let Ok(data) = frame?.into_data() {
                    return Ok(Some(data));
                }
            },
        }
    }
}
