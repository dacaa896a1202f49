//! Permits, connections and time-outs on a wire whose every step is told when.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tower_layer::Layer;
use tower_service::Service;
use url::Url;

use super::*;
use crate::fetch::dial::Dialer;
use crate::manners::departure::MOST_AHEAD;

const LONG: Duration = Duration::from_secs(20);

/// Answers every request; counts connections and requests. The body of `/held` waits until told, `/last` ends its
/// connection.
#[derive(Clone, Default)]
struct Shop {
    url: String,
    told: Arc<AtomicBool>,
    /// The connection that waits for a request is closed.
    closing: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Shop {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let shop = Self { url, ..Self::default() };
        let door = shop.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, shop) = (stream.expect("a connection"), door.clone());
                shop.connections.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || shop.answer(stream));
            }
        });
        shop
    }

    fn answer(&self, mut stream: std::net::TcpStream) {
        let mut head = [0; 4096];
        stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket");
        loop {
            match stream.read(&mut head) {
                Ok(1..) => {}
                Err(_) if !self.closing.swap(false, Ordering::SeqCst) => continue,
                _ => return,
            }
            self.requests.fetch_add(1, Ordering::SeqCst);
            if head.starts_with(b"GET /mute") {
                continue;
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
            while head.starts_with(b"GET /held") && !self.told.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let _ = stream.write_all(b"ok");
            if head.starts_with(b"GET /last") {
                return;
            }
        }
    }

    fn seen(&self) -> (usize, usize) {
        (self.connections.load(Ordering::SeqCst), self.requests.load(Ordering::SeqCst))
    }
}

/// Holds every connect after the first until told.
#[derive(Clone, Default)]
struct Door {
    connects: Arc<AtomicUsize>,
    opened: Arc<Notify>,
}

#[derive(Clone)]
struct Behind<S>(S, Door);

impl<S> Layer<S> for Door {
    type Service = Behind<S>;

    fn layer(&self, inner: S) -> Behind<S> {
        Behind(inner, self.clone())
    }
}

impl<S, R> Service<R> for Behind<S>
where
    S: Service<R, Error = BoxError, Response: Send + 'static, Future: Send + 'static>,
{
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;
    type Response = S::Response;
    type Error = BoxError;

    fn call(&mut self, target: R) -> Self::Future {
        let (connect, door) = (self.0.call(target), self.1.clone());
        Box::pin(async move {
            if door.connects.fetch_add(1, Ordering::SeqCst) > 0 {
                door.opened.notified().await;
            }
            connect.await
        })
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }
}

/// One site's way to its server.
struct Way {
    pool: Arc<ConnectionPool>,
    cold: Arc<Semaphore>,
    patience: Duration,
    leaving: CancellationToken,
}

impl Way {
    fn through(door: &Door) -> Self {
        crate::fetch::install_tls();
        let builder = reqwest::Client::builder().no_proxy().tls_certs_only([]);
        let dialer = Dialer::new(builder.connector_layer(door.clone())).expect("a client");
        let (pool, cold) = (ConnectionPool::new(dialer, LONG), Arc::new(Semaphore::new(1)));
        Self { pool, cold, patience: LONG, leaving: CancellationToken::new() }
    }

    async fn send<S: Future<Output = Result<Timestamp, NotNow>>>(
        &self,
        url: &str,
        start: impl Fn() -> S,
        patience: Duration,
    ) -> Result<Started, Unstarted> {
        let mut request = Request::new(());
        *request.uri_mut() = url.parse().expect("a URI");
        let url = Url::parse(url).expect("a URL");
        let need = Need { url: &url, cold: &self.cold, patience: self.patience };
        send(&self.pool, need, &request, start, self.leaving.cancelled(), patience).await
    }

    /// Sends a request whose permit is asked so and so often; its stamp.
    async fn fetch(&self, url: &str, asked: &Asked) -> Timestamp {
        let started = self.send(url, || async { Ok(asked.once_more()) }, LONG).await.expect("it is sent");
        let sent_at = started.sent_at;
        assert_eq!(read(started).await, b"ok");
        sent_at
    }
}

async fn read(started: Started) -> Vec<u8> {
    let mut answer = started.answer.expect("in time").expect("an answer");
    let mut body = Vec::new();
    while let Some(chunk) = answer.body.chunk().await.expect("a body") {
        body.extend_from_slice(&chunk);
    }
    body
}

/// Counts how often it is asked.
struct Asked(AtomicUsize);

impl Asked {
    fn never() -> Self {
        Self(AtomicUsize::new(0))
    }

    fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn once_more(&self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.0.fetch_add(1, Ordering::SeqCst) + 1).unwrap_or(0))
    }
}

#[tokio::test]
async fn the_permit_is_asked_once_when_the_connection_is_up_on_a_new_one_as_on_one_that_was_idle() {
    let (shop, way) = (Shop::open(), Way::through(&Door::default()));
    for requests in 1..3 {
        let asked = Asked::never();
        way.fetch(&shop.url, &asked).await;
        assert_eq!((asked.times(), shop.seen()), (1, (1, requests)));
    }
}

#[tokio::test]
async fn while_a_permit_waits_its_connection_is_made_and_no_other_request_takes_it() {
    let (shop, way, time) = (Shop::open(), Way::through(&Door::default()), Notify::new());
    let early = way.send(
        &shop.url,
        || async {
            time.notified().await;
            Ok(Timestamp::from_millis(0))
        },
        LONG,
    );
    let other = async {
        while shop.seen().0 < 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(shop.seen(), (1, 0), "connected, and nothing is sent");
        time.notify_one();
    };
    let (early, ()) = tokio::join!(early, other);
    assert_eq!((read(early.expect("it is sent")).await, shop.seen()), (b"ok".to_vec(), (1, 1)));
}

#[tokio::test]
async fn a_permit_that_is_lost_sends_nothing_and_its_connection_is_the_next_ones() {
    let (shop, way) = (Shop::open(), Way::through(&Door::default()));
    let sent = way.send(&shop.url, || async { Err(NotNow::WentBack) }, LONG).await;
    assert!(matches!(sent, Err(Unstarted::NotNow(_))));
    way.fetch(&shop.url, &Asked::never()).await;
    assert_eq!(shop.seen(), (1, 1), "only the second request came, on the first one's connection");
}

#[tokio::test]
async fn a_connection_that_ends_while_the_permit_waits_is_replaced_and_the_permit_asked_again() {
    let (shop, door, asked) = (Shop::open(), Door::default(), Asked::never());
    let way = Way::through(&door);
    door.opened.notify_one();
    way.fetch(&shop.url, &Asked::never()).await;
    let start = || async {
        let stamp = asked.once_more();
        if asked.times() == 1 {
            shop.closing.store(true, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        Ok(stamp)
    };
    let sent = way.send(&shop.url, start, LONG).await.expect("it is sent");
    assert_eq!((read(sent).await, asked.times(), shop.seen()), (b"ok".to_vec(), 2, (2, 2)));
}

#[tokio::test]
async fn a_connection_given_back_while_another_is_made_is_taken() {
    let (shop, door, asked) = (Shop::open(), Door::default(), Asked::never());
    let way = Way::through(&door);
    let start = || async { Ok(Timestamp::from_millis(0)) };
    let held = way.send(&format!("{}held", shop.url), start, LONG).await.expect("it is sent");
    let give_back = async {
        while door.connects.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        shop.told.store(true, Ordering::SeqCst);
        read(held).await;
    };
    tokio::join!(way.fetch(&shop.url, &asked), give_back);
    assert_eq!((asked.times(), shop.seen()), (1, (1, 2)), "the second connection is still behind the door");
}

#[tokio::test]
async fn the_permits_sleep_counts_in_no_time_out_and_silence_does() {
    let (shop, mut way) = (Shop::open(), Way::through(&Door::default()));
    // Long enough for a busy machine to connect and to answer.
    let patience = Duration::from_secs(6);
    way.patience = patience;
    let start = || async {
        tokio::time::sleep(patience + Duration::from_millis(200)).await;
        Ok(Timestamp::from_millis(0))
    };
    let sent = way.send(&shop.url, start, patience).await.expect("it is sent");
    assert!(sent.answer.is_some(), "only the permit took longer");
    let at_once = || async { Ok(Timestamp::from_millis(0)) };
    let mute = way
        .send(&format!("{}mute", shop.url), at_once, Duration::from_millis(100))
        .await
        .expect("it is sent");
    assert!(mute.answer.is_none());
}

#[tokio::test]
async fn connections_of_a_site_are_made_one_at_a_time_and_one_that_is_needless_not_at_all() {
    let (shop, door) = (Shop::open(), Door::default());
    let way = Way::through(&door);
    let start = || async { Ok(Timestamp::from_millis(0)) };
    let held = way.send(&format!("{}held", shop.url), start, LONG).await.expect("it is sent");
    let give_back = async {
        while door.connects.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        shop.told.store(true, Ordering::SeqCst);
        read(held).await;
    };
    let (second, third) = (Asked::never(), Asked::never());
    tokio::join!(way.fetch(&shop.url, &second), way.fetch(&shop.url, &third), give_back);
    door.opened.notify_one();
    let _turn = way.cold.acquire().await.expect("an open semaphore");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(door.connects.load(Ordering::SeqCst), 2, "the third request never began to connect");
}

#[tokio::test]
async fn where_connections_are_slow_to_make_and_do_not_last_one_is_begun_before_a_request_needs_it() {
    let (shop, door, asked) = (Shop::open(), Door::default(), Asked::never());
    door.connects.fetch_add(1, Ordering::SeqCst);
    let way = Way::through(&door);
    let begun = async |count| {
        while door.connects.load(Ordering::SeqCst) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let slow = async |count| {
        begun(count).await;
        tokio::time::sleep(MOST_AHEAD + Duration::from_millis(20)).await;
        door.opened.notify_one();
    };
    let last = format!("{}last", shop.url);
    tokio::join!(way.fetch(&last, &asked), slow(2));
    assert_eq!(door.connects.load(Ordering::SeqCst), 2, "it may last");
    tokio::join!(way.fetch(&shop.url, &asked), slow(3));
    begun(4).await;
    door.opened.notify_one();
    way.fetch(&shop.url, &asked).await;
    assert_eq!((asked.times(), door.connects.load(Ordering::SeqCst)), (3, 4), "one more is enough");
}

#[tokio::test]
async fn a_connection_that_takes_too_long_is_no_request() {
    let (shop, door, asked) = (Shop::open(), Door::default(), Asked::never());
    door.connects.fetch_add(1, Ordering::SeqCst);
    let mut way = Way::through(&door);
    way.patience = Duration::from_millis(100);
    let sent = way.send(&shop.url, || async { Ok(asked.once_more()) }, LONG).await;
    let Err(Unstarted::Connect(error)) = sent else { panic!("it was sent") };
    assert!(error.is::<crate::fetch::pool::ConnectTimeout>(), "{error:?}");
    assert_eq!((asked.times(), shop.seen()), (0, (0, 0)), "no start is spent on the failure");
}

#[tokio::test]
async fn nobody_waits_for_a_connection_once_what_is_not_sent_goes_back() {
    let (shop, door, asked) = (Shop::open(), Door::default(), Asked::never());
    door.connects.fetch_add(1, Ordering::SeqCst);
    let way = Way::through(&door);
    let start = || async { Ok(asked.once_more()) };
    let stop = async {
        while door.connects.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        way.leaving.cancel();
    };
    // One connects, the other one waits for its turn to.
    let (first, second, ()) =
        tokio::join!(way.send(&shop.url, start, LONG), way.send(&shop.url, start, LONG), stop);
    for sent in [first, second] {
        assert!(matches!(sent, Err(Unstarted::NotNow(NotNow::Leaving))), "{sent:?}");
    }
    assert_eq!((asked.times(), shop.seen()), (0, (0, 0)));
}
