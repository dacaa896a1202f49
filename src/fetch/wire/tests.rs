//! Permits, connections and time-outs on a wire whose every step is told when.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::AtomicUsize;

use reqwest::Client;
use tokio::sync::Notify;

use super::*;

const LONG: Duration = Duration::from_secs(20);

/// Answers every request; counts connections and requests. The body of `/held` waits until told.
#[derive(Clone, Default)]
struct Shop {
    url: String,
    told: Arc<AtomicBool>,
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
        while stream.read(&mut head).is_ok_and(|n| n > 0) {
            self.requests.fetch_add(1, Ordering::SeqCst);
            if head.starts_with(b"GET /mute") {
                continue;
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
            while head.starts_with(b"GET /held") && !self.told.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let _ = stream.write_all(b"ok");
        }
    }

    /// Takes up the only connection.
    async fn held(&self, client: &Client) -> reqwest::Response {
        client.get(format!("{}held", self.url)).send().await.expect("an answer")
    }

    /// Gives it back once another request is on its way to connect.
    async fn give_back(&self, held: reqwest::Response, door: &Door) {
        while door.connects.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.told.store(true, Ordering::SeqCst);
        held.bytes().await.expect("a body");
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

fn client(door: &Door) -> Client {
    crate::fetch::install_tls();
    let builder = Client::builder().no_proxy().tls_certs_only([]);
    builder.connector_layer(door.clone()).connector_layer(ColdConnects).build().expect("a client")
}

fn errand() -> Arc<Errand> {
    Errand::new(LONG, Arc::new(Semaphore::new(1)))
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

async fn fetch(client: &Client, url: &str, asked: &Asked, errand: Arc<Errand>) -> Timestamp {
    let request = client.get(url).send();
    let started = send(request, || async { Ok(asked.once_more()) }, errand, LONG).await.expect("it is sent");
    let body = started.answer.expect("in time").expect("an answer").bytes().await.expect("a body");
    assert_eq!(body, "ok");
    started.sent_at
}

#[tokio::test]
async fn a_new_connection_asks_the_permit_again_when_it_is_up_and_a_pooled_one_once() {
    let (shop, client) = (Shop::open(), client(&Door::default()));
    let (new, pooled) = (Asked::never(), Asked::never());
    let sent_at = fetch(&client, &shop.url, &new, errand()).await;
    assert_eq!((new.times(), sent_at), (2, Timestamp::from_millis(2)), "the stamp is the last one");
    fetch(&client, &shop.url, &pooled, errand()).await;
    assert_eq!((pooled.times(), shop.seen()), (1, (1, 2)));
}

#[tokio::test]
async fn a_permit_that_is_lost_while_connecting_sends_nothing() {
    let (shop, door, asked) = (Shop::open(), Door::default(), Asked::never());
    let client = client(&door);
    let start = || async {
        let first = asked.once_more() == Timestamp::from_millis(1);
        if first { Ok(Timestamp::from_millis(1)) } else { Err(NotNow::WentBack) }
    };
    let sent = send(client.get(&shop.url).send(), start, errand(), LONG).await;
    assert!(matches!(sent, Err(Unstarted::NotNow(_))));
    door.opened.notify_one();
    fetch(&client, &shop.url, &Asked::never(), errand()).await;
    assert_eq!(shop.seen().1, 1, "only the second request came");
}

#[tokio::test]
async fn a_connection_given_back_while_another_is_made_asks_the_permit_again() {
    let (shop, door) = (Shop::open(), Door::default());
    let (client, asked) = (client(&door), Asked::never());
    let held = shop.held(&client).await;
    let (sent_at, ()) =
        tokio::join!(fetch(&client, &shop.url, &asked, errand()), shop.give_back(held, &door));
    assert_eq!((asked.times(), sent_at), (2, Timestamp::from_millis(2)), "asked before connect and send");
    assert_eq!(shop.seen(), (1, 2), "the second connection is still behind the door");
}

#[tokio::test]
async fn the_time_for_an_answer_is_up_on_a_connection_given_back_too() {
    let (shop, door) = (Shop::open(), Door::default());
    let client = client(&door);
    let held = shop.held(&client).await;
    let request = client.get(format!("{}mute", shop.url)).send();
    let start = || async { Ok(Timestamp::from_millis(0)) };
    let sent = send(request, start, errand(), Duration::from_millis(200));
    let (sent, ()) = tokio::join!(sent, shop.give_back(held, &door));
    assert!(sent.expect("it is sent").answer.is_none());
}

#[tokio::test]
async fn the_permits_sleep_counts_in_no_time_out() {
    let (shop, client) = (Shop::open(), client(&Door::default()));
    let errand = Errand::new(Duration::from_millis(500), Arc::new(Semaphore::new(1)));
    let start = || async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        Ok(Timestamp::from_millis(0))
    };
    let sent = send(client.get(&shop.url).send(), start, errand, Duration::from_millis(500)).await;
    assert!(sent.expect("it is sent").answer.expect("in time").is_ok());
}

#[tokio::test]
async fn connections_of_a_site_are_made_one_at_a_time_and_one_that_is_needless_not_at_all() {
    let (shop, door) = (Shop::open(), Door::default());
    let client = client(&door);
    let held = shop.held(&client).await;
    let site = Arc::new(Semaphore::new(1));
    let errand = || Errand::new(LONG, Arc::clone(&site));
    let (second, third) = (Asked::never(), Asked::never());
    tokio::join!(
        fetch(&client, &shop.url, &second, errand()),
        fetch(&client, &shop.url, &third, errand()),
        shop.give_back(held, &door)
    );
    door.opened.notify_one();
    let _turn = site.acquire().await.expect("an open semaphore");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(door.connects.load(Ordering::SeqCst), 2, "the third request never began to connect");
}

#[tokio::test]
async fn a_connection_that_takes_too_long_is_no_request() {
    let (shop, door) = (Shop::open(), Door::default());
    door.connects.fetch_add(1, Ordering::SeqCst);
    let asked = Asked::never();
    let errand = Errand::new(Duration::from_millis(100), Arc::new(Semaphore::new(1)));
    let request = client(&door).get(&shop.url).send();
    let sent = send(request, || async { Ok(asked.once_more()) }, errand, LONG).await;
    let Err(Unstarted::Connect(error)) = sent else { panic!("it was sent") };
    assert!(format!("{error:?}").contains("ConnectTimeout"), "{error:?}");
    assert_eq!((asked.times(), shop.seen()), (1, (0, 0)), "no start is spent on the failure");
}
