//! Connections that are up: who needs one gets one that is idle, or waits while one is made. How it is made is in `dial`.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use http::Request;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use url::Url;

use super::connection::{self, Exclusive, Http1, HttpAnswer, Opened, Unanswered};
use super::dial::{BoxError, Dialer};
use super::http2::{Http2, Listening};
use crate::clock;
use crate::manners::departure::MOST_AHEAD;

/// The connections that are made in one way. Dropping it closes the idle ones.
#[derive(Debug)]
pub struct ConnectionPool {
    dialer: Dialer,
    /// How long an idle one is kept.
    keep: Duration,
    /// By origin; those without a connection and without anybody who waits for one go.
    servers: Mutex<HashMap<String, ServerConnections>>,
}

#[derive(Debug, Default)]
struct ServerConnections {
    /// The last one that became idle comes last.
    idle: Vec<Idle>,
    /// Where it speaks HTTP/2, one connection is enough.
    shared: Option<Http2>,
    /// Told whenever there may be something for those who wait.
    changed: Arc<Notify>,
    /// The last one took longer to make than a start is granted ahead.
    is_slow: bool,
    /// One ended that could have been used again.
    loses_some: bool,
    /// One is made that nobody waits for yet.
    makes_spare: bool,
}

#[derive(Debug)]
struct Idle {
    connection: Http1,
    since: Instant,
}

/// What a request needs a connection for.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// The URL that is asked for.
    pub url: &'a Url,
    /// One new connection at a time of a site.
    pub cold: &'a Arc<Semaphore>,
    /// How long the making of one may take, or the wait for a stream.
    pub patience: Duration,
}

/// What there is for a request.
enum Offer {
    Connection(Exclusive),
    /// All streams of this connection are taken.
    Later(Http2),
    Nothing,
}

impl ConnectionPool {
    /// A pool that keeps idle connections for so long.
    pub fn new(dialer: Dialer, keep: Duration) -> Arc<Self> {
        let pool = Arc::new(Self { dialer, keep, servers: Mutex::default() });
        tokio::spawn(sweep(Arc::downgrade(&pool), keep / 2));
        pool
    }

    /// How long an idle connection is kept.
    #[cfg(test)]
    pub fn keeps_for(&self) -> Duration {
        self.keep
    }

    /// A connection for one request: one that is there, or else whichever comes first, a new one or one that was given back.
    /// A connection of which no stream becomes free for as long as the making of one may take is replaced.
    ///
    /// # Errors
    /// Why no new one came about.
    pub async fn take(self: &Arc<Self>, need: Need<'_>) -> Result<HeldConnection, BoxError> {
        let origin = need.url.origin().ascii_serialization();
        let changed = Arc::clone(&self.servers().entry(origin.clone()).or_default().changed);
        let wanted = Arc::new(());
        let mut making = None;
        loop {
            let mut change = pin!(changed.notified());
            change.as_mut().enable();
            match self.offer(&origin) {
                Offer::Connection(connection) => {
                    self.make_spare(&origin, need);
                    return Ok(HeldConnection {
                        connection: Some(connection),
                        origin,
                        pool: Arc::clone(self),
                    });
                }
                Offer::Later(shared) => {
                    if clock::within(need.patience, change).await.is_none() {
                        shared.offer_no_more();
                        // A new one would be no better.
                        if shared.is_unused() {
                            return Err(ConnectTimeout.into());
                        }
                    }
                }
                Offer::Nothing => {
                    let made = making.get_or_insert_with(|| self.make(&origin, need, &wanted));
                    tokio::select! {
                        made = made => {
                            making = None;
                            made??;
                        }
                        () = change => {}
                    }
                }
            }
        }
    }

    /// Makes a connection and lays it down, also if it is no longer `wanted` when it is up.
    fn make(
        self: &Arc<Self>,
        origin: &str,
        need: Need<'_>,
        wanted: &Arc<()>,
    ) -> JoinHandle<Result<(), BoxError>> {
        let (pool, origin, wanted) = (Arc::clone(self), origin.to_owned(), Arc::downgrade(wanted));
        let (url, cold, patience) = (need.url.clone(), Arc::clone(need.cold), need.patience);
        tokio::spawn(async move {
            let _turn = cold.acquire().await?;
            if wanted.strong_count() == 0 || pool.has_some(&origin) {
                return Ok(());
            }
            let changed = Arc::clone(&pool.servers().entry(origin.clone()).or_default().changed);
            let began = Instant::now();
            let opening = async { connection::open(pool.dialer.dial(&url).await?, changed).await };
            let opened = clock::within(patience, opening).await.ok_or(ConnectTimeout)??;
            pool.servers().entry(origin.clone()).or_default().is_slow = began.elapsed() > MOST_AHEAD;
            pool.lay(&origin, opened);
            Ok(())
        })
    }

    /// Where connections are slow to make and don't last, the next request finds one: begun once it is granted, it would be late.
    fn make_spare(self: &Arc<Self>, origin: &str, need: Need<'_>) {
        let mut servers = self.servers();
        let Some(server) = servers.get_mut(origin) else { return };
        let is_wanted = server.is_slow && server.loses_some && server.idle.is_empty();
        if !is_wanted || server.shared.is_some() || server.makes_spare {
            return;
        }
        server.makes_spare = true;
        drop(servers);
        let wanted = Arc::new(());
        let making = self.make(origin, need, &wanted);
        let (pool, origin) = (Arc::clone(self), origin.to_owned());
        tokio::spawn(async move {
            // Why none came about the next request is told.
            let _ = making.await;
            drop(wanted);
            if let Some(server) = pool.servers().get_mut(&origin) {
                server.makes_spare = false;
            }
        });
    }

    fn offer(&self, origin: &str) -> Offer {
        let mut servers = self.servers();
        let Some(server) = servers.get_mut(origin) else { return Offer::Nothing };
        server.tidy(self.keep);
        if let Some(shared) = &server.shared {
            let slot = shared.reserve().map(|slot| Offer::Connection(Exclusive::Http2(slot)));
            return slot.unwrap_or_else(|| Offer::Later(shared.clone()));
        }
        let idle = server.idle.pop();
        idle.map_or(Offer::Nothing, |idle| Offer::Connection(Exclusive::Http1(idle.connection)))
    }

    /// Whether some server has a connection here, or somebody who waits for one.
    pub fn has_servers(&self) -> bool {
        self.servers().values().any(ServerConnections::is_needed)
    }

    /// Somebody who waits will find something.
    fn has_some(&self, origin: &str) -> bool {
        let mut servers = self.servers();
        servers.get_mut(origin).is_some_and(|server| {
            server.tidy(self.keep);
            server.shared.is_some() || !server.idle.is_empty()
        })
    }

    fn lay(&self, origin: &str, opened: Opened) {
        let mut servers = self.servers();
        let server = servers.entry(origin.to_owned()).or_default();
        match opened {
            Opened::Http1(connection) => server.idle.push(Idle { connection, since: Instant::now() }),
            Opened::Http2(shared) => server.shared = Some(shared),
        }
        server.changed.notify_waiters();
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<String, ServerConnections>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerConnections {
    /// Drops what ended, and what was idle for too long. A new one stays: the request on it tells that its server closes at
    /// once, and no further one is made for it.
    fn tidy(&mut self, keep: Duration) {
        let open = self
            .idle
            .extract_if(.., |Idle { connection, .. }| !connection.is_new() && connection.is_closed());
        self.loses_some |= open.count() > 0;
        self.idle.retain(|Idle { since, .. }| since.elapsed() < keep);
        self.shared.take_if(|shared| {
            let ended = !shared.is_new() && !shared.is_alive();
            ended || shared.idle_since().is_some_and(|since| since.elapsed() >= keep)
        });
    }

    fn is_needed(&self) -> bool {
        !self.idle.is_empty() || self.shared.is_some() || Arc::strong_count(&self.changed) > 1
    }
}

/// Closes idle connections in time, also of servers that nobody asks any more.
async fn sweep(pool: Weak<ConnectionPool>, every: Duration) {
    loop {
        clock::wait(every).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.servers().retain(|_, server| {
            server.tidy(pool.keep);
            server.is_needed()
        });
    }
}

/// A connection, or a stream of one, that is one request's; it goes back if that isn't sent.
#[derive(Debug)]
pub struct HeldConnection {
    connection: Option<Exclusive>,
    origin: String,
    pool: Arc<ConnectionPool>,
}

impl HeldConnection {
    /// A request would leave at once.
    pub fn is_ready(&self) -> bool {
        self.connection.as_ref().is_some_and(Exclusive::is_ready)
    }

    /// Ends when another connection is to be taken. A server that closes new connections isn't asked for further ones: what
    /// is sent on this one tells of it.
    pub async fn lost(&self) {
        match &self.connection {
            Some(connection) => connection.gone().cancelled().await,
            None => return,
        }
        if self.is_new() {
            std::future::pending::<()>().await;
        }
    }

    /// Begins a wait for what comes on a connection that others use as well.
    pub fn listen(&self) -> Option<Listening> {
        self.connection.as_ref().and_then(Exclusive::listen)
    }

    /// No request was sent on it yet, and it was made just now.
    pub fn is_new(&self) -> bool {
        self.connection.as_ref().is_some_and(Exclusive::is_new)
    }

    /// Sends a request and waits for the answer's head; its first bytes are on their way when this is first polled.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send(mut self, request: Request<()>) -> Result<HttpAnswer, Unanswered> {
        let Some(mut connection) = self.connection.take() else {
            return Err(Unanswered::Unsent("the connection is used".into()));
        };
        let answer = connection.send(request).await?;
        if let Exclusive::Http1(connection) = connection {
            self.give_back(connection);
        }
        Ok(answer)
    }

    /// Gives the connection back once its answer is read. An answer that isn't read to its end ends the connection.
    fn give_back(&self, mut connection: Http1) {
        let (pool, origin) = (Arc::clone(&self.pool), self.origin.clone());
        tokio::spawn(async move {
            if connection.until_ready().await {
                pool.lay(&origin, Opened::Http1(connection));
            } else if let Some(server) = pool.servers().get_mut(&origin) {
                server.loses_some = true;
            }
        });
    }
}

impl Drop for HeldConnection {
    fn drop(&mut self) {
        if let Some(Exclusive::Http1(connection)) = self.connection.take() {
            self.pool.lay(&self.origin, Opened::Http1(connection));
        }
    }
}

/// No connection within the site's `connect_timeout`.
#[derive(Debug, thiserror::Error)]
#[error("no connection in time")]
pub struct ConnectTimeout;

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    fn pool(keep: Duration) -> (Arc<ConnectionPool>, Arc<Semaphore>) {
        super::super::install_tls();
        let dialer = Dialer::new(reqwest::ClientBuilder::new().no_proxy()).expect("a dialer");
        (ConnectionPool::new(dialer, keep), Arc::new(Semaphore::new(1)))
    }

    #[tokio::test]
    async fn a_connection_that_allows_no_stream_before_one_was_opened_is_none() {
        let (pool, cold) = pool(Duration::from_mins(1));
        let (ours, mut theirs) = duplex(4096);
        // SETTINGS_MAX_CONCURRENT_STREAMS
        let allow = |streams| [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, streams];
        theirs.write_all(&allow(1)).await.expect("room");
        let shared = Http2::open(ours, None, Arc::default()).await.expect("a connection");
        theirs.write_all(&allow(0)).await.expect("room");
        while shared.reserve().is_some() {
            clock::wait(Duration::from_millis(1)).await;
        }
        let url = Url::parse("https://127.0.0.1:1/").expect("a URL");
        pool.lay(&url.origin().ascii_serialization(), Opened::Http2(shared));
        let taken = pool.take(Need { url: &url, cold: &cold, patience: Duration::from_millis(50) }).await;
        assert!(taken.is_err_and(|error| error.is::<ConnectTimeout>()));
    }

    #[tokio::test]
    async fn i17_of_servers_that_nobody_asks_any_more_nothing_is_kept() {
        let keep = Duration::from_millis(40);
        let (pool, cold) = pool(keep);
        for port in 1..=200 {
            let url = Url::parse(&format!("http://127.0.0.1:{port}/")).expect("a URL");
            let need = Need { url: &url, cold: &cold, patience: Duration::from_secs(5) };
            let refused = pool.take(need).await;
            assert!(refused.is_err(), "nobody listens on port {port}");
        }
        for _ in 0..1_000 {
            if pool.servers().is_empty() {
                return;
            }
            clock::wait(keep).await;
        }
        panic!("{} servers are still known", pool.servers().len());
    }
}
