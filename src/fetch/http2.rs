//! A connection over HTTP/2. A stream is reserved before a request waits for its time, and no more than the server allows:
//! a request that is sent never queues.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Reason, RecvStream};
use http::{Request, Version, response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, oneshot};
use tokio_util::io::InspectReader;
use tokio_util::sync::CancellationToken;

use super::dial::BoxError;

/// A connection that ends unused within this time isn't wanted by its server.
pub const NEW: Duration = Duration::from_secs(1);
/// What may be on its way to us at once, of a connection and of a stream.
const WINDOWS: (u32, u32) = (5 << 20, 2 << 20);
/// The largest header of an answer.
const LARGEST_HEADER: u32 = 16 << 10;
/// Fields that say something of a connection; HTTP/2 has no place for them.
const OF_CONNECTIONS: [&str; 6] =
    ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade", "te"];

/// A connection that several requests share. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Http2 {
    sender: SendRequest<Bytes>,
    remote: Option<SocketAddr>,
    streams: Arc<Streams>,
}

/// The streams of a connection.
#[derive(Debug)]
struct Streams {
    count: Mutex<StreamCount>,
    /// How often something came on the connection.
    heard: AtomicUsize,
    /// Told when a stream more may be opened, or none any more.
    changed: Arc<Notify>,
    /// No stream is to be opened any more.
    gone: CancellationToken,
}

#[derive(Debug)]
struct StreamCount {
    reserved: usize,
    /// What the server allows.
    most: usize,
    /// When the last one ended, or the connection was made.
    idle_since: Instant,
    used: bool,
}

impl Http2 {
    /// Begins, and waits for the server's settings: before them it is unknown how many streams it allows. `changed` is told
    /// whenever a stream more may be opened, or none any more.
    ///
    /// # Errors
    /// Why they didn't come.
    pub async fn open(
        io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        remote: Option<SocketAddr>,
        changed: Arc<Notify>,
    ) -> Result<Self, BoxError> {
        let (connection, stream) = WINDOWS;
        let mut builder = Builder::new();
        builder.initial_connection_window_size(connection).initial_window_size(stream);
        builder.max_header_list_size(LARGEST_HEADER).enable_push(false).initial_max_send_streams(0);
        let count = StreamCount { reserved: 0, most: 0, idle_since: Instant::now(), used: false };
        let (count, heard) = (Mutex::new(count), AtomicUsize::new(0));
        let streams = Arc::new(Streams { count, heard, changed, gone: CancellationToken::new() });
        let hearing = Arc::clone(&streams);
        let io = InspectReader::new(io, move |_| {
            hearing.heard.fetch_add(1, Ordering::Relaxed);
        });
        let (sender, connection) = builder.handshake(io).await?;
        let (settled, settings) = oneshot::channel();
        tokio::spawn(drive(connection, Arc::clone(&streams), settled));
        settings.await??;
        Ok(Self { sender, remote, streams })
    }

    /// Who is at its other end.
    pub fn remote(&self) -> Option<SocketAddr> {
        self.remote
    }

    /// Nothing was sent on it yet, and it was made just now.
    pub fn is_new(&self) -> bool {
        let count = self.streams.count();
        !count.used && count.idle_since.elapsed() < NEW
    }

    /// New streams may still be opened, now or later.
    pub fn is_alive(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        !self.streams.gone.is_cancelled()
            && !matches!(self.sender.clone().poll_ready(&mut cx), Poll::Ready(Err(_)))
    }

    /// No request has it, and none was ever sent on it.
    pub fn is_unused(&self) -> bool {
        let count = self.streams.count();
        !count.used && count.reserved == 0
    }

    /// From now on another connection is to be taken; the streams that it has go on.
    pub fn offer_no_more(&self) {
        self.streams.end();
    }

    /// Since when it has no stream; none, if it has one.
    pub fn idle_since(&self) -> Option<Instant> {
        let count = self.streams.count();
        (count.reserved == 0).then_some(count.idle_since)
    }

    /// A stream for one request, if the server allows one more.
    pub fn reserve(&self) -> Option<Http2Slot> {
        let mut count = self.streams.count();
        (count.reserved < count.most).then(|| {
            count.reserved += 1;
            Http2Slot { connection: self.clone(), reserved: Some(Reserved(Arc::clone(&self.streams))) }
        })
    }
}

impl Streams {
    fn count(&self) -> MutexGuard<'_, StreamCount> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server allows so many.
    fn allow(&self, most: usize) {
        let mut count = self.count();
        let grown = most > count.most;
        count.most = most;
        drop(count);
        if grown {
            self.changed.notify_waiters();
        }
    }

    fn listen(self: &Arc<Self>) -> Listening {
        Listening { streams: Arc::clone(self), heard: self.heard.load(Ordering::Relaxed) }
    }

    /// No stream is to be opened any more.
    fn end(&self) {
        self.gone.cancel();
        self.changed.notify_waiters();
    }
}

/// A wait for something on a connection.
#[derive(Debug)]
pub struct Listening {
    streams: Arc<Streams>,
    heard: usize,
}

impl Listening {
    /// It was in vain. If nothing at all came on the connection meanwhile, another one is to be taken.
    pub fn in_vain(self) {
        if self.streams.heard.load(Ordering::Relaxed) == self.heard {
            self.streams.end();
        }
    }
}

/// Moves a connection's bytes until it ends. `settled` hears when the server's settings are there.
async fn drive<T: AsyncRead + AsyncWrite + Unpin>(
    mut connection: Connection<T, Bytes>,
    streams: Arc<Streams>,
    settled: oneshot::Sender<Result<(), h2::Error>>,
) {
    let mut settled = Some(settled);
    let ended = poll_fn(|cx| {
        let ended = Pin::new(&mut connection).poll(cx);
        let most = connection.max_concurrent_send_streams();
        streams.allow(most);
        if let Some(settled) = settled.take_if(|_| most > 0) {
            // Nobody hears it where the request was given up.
            let _ = settled.send(Ok(()));
        }
        ended
    });
    let ended = ended.await;
    if let (Some(settled), Err(error)) = (settled, ended) {
        let _ = settled.send(Err(error));
    }
    streams.end();
}

/// A stream that is one request's.
#[derive(Debug)]
pub struct Http2Slot {
    connection: Http2,
    reserved: Option<Reserved>,
}

impl Http2Slot {
    /// A request would leave at once: the connection lives, and the server allows as many streams as are reserved.
    pub fn is_ready(&self) -> bool {
        let count = self.connection.streams.count();
        let allowed = count.reserved <= count.most;
        drop(count);
        allowed && self.connection.is_alive()
    }

    /// The connection that it is on.
    pub fn connection(&self) -> &Http2 {
        &self.connection
    }

    /// Begins a wait for what comes on the connection.
    pub fn listen(&self) -> Listening {
        self.connection.streams.listen()
    }

    /// Ends when another connection is to be taken.
    pub fn gone(&self) -> &CancellationToken {
        &self.connection.streams.gone
    }

    /// Sends a request and waits for the answer's head.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send(
        &mut self,
        mut request: Request<()>,
    ) -> Result<(response::Parts, StreamBody), h2::Error> {
        self.connection.streams.count().used = true;
        *request.version_mut() = Version::HTTP_2;
        for name in OF_CONNECTIONS {
            request.headers_mut().remove(name);
        }
        let (answer, _) = self.connection.sender.send_request(request, true)?;
        let (head, stream) = answer.await?.into_parts();
        Ok((head, StreamBody { stream, reserved: self.reserved.take() }))
    }
}

/// Counts a stream as long as it is kept.
#[derive(Debug)]
struct Reserved(Arc<Streams>);

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut count = self.0.count();
        count.reserved -= 1;
        count.idle_since = Instant::now();
        drop(count);
        self.0.changed.notify_waiters();
    }
}

/// The body of an answer over HTTP/2.
#[derive(Debug)]
pub struct StreamBody {
    stream: RecvStream,
    reserved: Option<Reserved>,
}

impl StreamBody {
    /// Begins a wait for what comes on the connection.
    pub fn listen(&self) -> Option<Listening> {
        self.reserved.as_ref().map(|Reserved(streams)| streams.listen())
    }

    /// The next piece, none at the end.
    ///
    /// # Errors
    /// Why the rest doesn't come.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BoxError> {
        let Some(data) = self.stream.data().await else { return Ok(None) };
        let data = match data {
            Ok(data) => data,
            // The server has said all it wanted to (RFC 9113 section 8.1).
            Err(error) if error.reason() == Some(Reason::NO_ERROR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        self.stream.flow_control().release_capacity(data.len())?;
        Ok(Some(data))
    }
}
