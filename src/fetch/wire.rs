//! From permit to wire: a request leaves only while its permit holds, on a pooled connection as on a new one.
//!
//! A pooled connection takes the request in the first poll, so the permit is asked right before. A new one is made in a
//! task of its own: whatever wakes the request while that runs may be a connection to send on (the new one, or an old
//! one that another request gave back), so the permit is asked again before the request is polled.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use tower_layer::Layer;
use tower_service::Service;

use crate::clock::Timestamp;
use crate::frontier::permit::NotNow;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

tokio::task_local! {
    /// The request that a connection is made for. Absent where a connection is finished for the pool alone.
    static ERRAND: Arc<Errand>;
}

/// What the making of a connection must know of its request.
#[derive(Debug)]
pub struct Errand {
    connect_timeout: Duration,
    /// One new connection at a time of a site.
    cold: Arc<Semaphore>,
    stage: AtomicU8,
    answered: AtomicBool,
    wakes: Arc<Wakes>,
}

/// How far a request is. Anything but `CONNECTING` may be polled without asking the permit.
mod stage {
    /// On a pooled connection, or not yet polled.
    pub const POOLED: u8 = 0;
    /// A new connection is being made.
    pub const CONNECTING: u8 = 1;
    /// The new connection has the request.
    pub const UP: u8 = 2;
    /// No connection came about.
    pub const FAILED: u8 = 3;
}

impl Errand {
    /// An errand of a site with this semaphore.
    pub fn new(connect_timeout: Duration, cold: Arc<Semaphore>) -> Arc<Self> {
        Arc::new(Self {
            connect_timeout,
            cold,
            stage: AtomicU8::new(stage::POOLED),
            answered: AtomicBool::new(false),
            wakes: Arc::default(),
        })
    }

    fn stage(&self) -> u8 {
        self.stage.load(Ordering::SeqCst)
    }

    /// The making of the connection ended, unless the request is no longer concerned with it.
    fn connecting_ended(&self, stage: u8) -> bool {
        self.stage.compare_exchange(stage::CONNECTING, stage, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// The request went out on another connection; this one is finished for the pool.
    fn went_elsewhere(&self) {
        if self.connecting_ended(stage::POOLED) {
            self.wakes.wake_task();
        }
    }
}

/// A request that was sent, and what became of it until the answer's head.
#[derive(Debug)]
pub struct Started<T> {
    /// The stamp of its permit.
    pub sent_at: Timestamp,
    /// The same moment on the clock that time-outs are counted by.
    pub sent: Instant,
    /// The answer; none where it didn't come within the time.
    pub answer: Option<T>,
}

/// Why a request was not sent.
#[derive(Debug)]
pub enum Unstarted<E> {
    /// The permit holds no longer.
    NotNow(NotNow),
    /// No connection came about.
    Connect(E),
}

/// Sends a request when `start`, its permit, lets it go, and waits up to `patience`, counted from the send, for the answer's head.
pub async fn send<T, E, S: Future<Output = Result<Timestamp, NotNow>>>(
    request: impl Future<Output = Result<T, E>>,
    start: impl Fn() -> S,
    errand: Arc<Errand>,
    patience: Duration,
) -> Result<Started<Result<T, E>>, Unstarted<E>> {
    let mut request = pin!(ERRAND.scope(Arc::clone(&errand), request));
    loop {
        let sent_at = start().await.map_err(Unstarted::NotNow)?;
        let sent = Instant::now();
        let step = until_answered_or_up(request.as_mut(), &errand, sent + patience).await;
        let answer = match step {
            Step::MayBeUp => continue,
            Step::TooLate => None,
            Step::Answered(Err(error)) if errand.stage() == stage::FAILED => {
                return Err(Unstarted::Connect(error));
            }
            Step::Answered(answer) => Some(answer),
        };
        errand.answered.store(true, Ordering::SeqCst);
        return Ok(Started { sent_at, sent, answer });
    }
}

enum Step<T> {
    Answered(T),
    MayBeUp,
    TooLate,
}

async fn until_answered_or_up<F: Future>(
    mut request: Pin<&mut F>,
    errand: &Errand,
    deadline: Instant,
) -> Step<F::Output> {
    let mut too_late = pin!(tokio::time::sleep_until(deadline.into()));
    let wakes = &errand.wakes;
    let waker = Waker::from(Arc::clone(wakes));
    let mut asked_just_now = true;
    std::future::poll_fn(move |cx| {
        wakes.pass_on_to(cx.waker());
        let connecting = errand.stage() == stage::CONNECTING;
        if connecting && !asked_just_now {
            return if wakes.woken() { Poll::Ready(Step::MayBeUp) } else { Poll::Pending };
        }
        asked_just_now = false;
        wakes.forget();
        if let Poll::Ready(answer) = request.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Poll::Ready(Step::Answered(answer));
        }
        if errand.stage() == stage::CONNECTING {
            return Poll::Pending;
        }
        too_late.as_mut().poll(cx).map(|()| Step::TooLate)
    })
    .await
}

/// Tells whether the request itself was woken, and not a timer beside it.
#[derive(Debug, Default)]
struct Wakes {
    woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wakes {
    fn pass_on_to(&self, task: &Waker) {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).replace(task.clone());
    }

    fn woken(&self) -> bool {
        self.woken.load(Ordering::SeqCst)
    }

    fn wake_task(&self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            task.wake_by_ref();
        }
    }

    fn forget(&self) {
        self.woken.store(false, Ordering::SeqCst);
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.wake_task();
    }
}

/// Makes new connections one at a time a site, within the site's `connect_timeout`.
#[derive(Clone, Copy, Debug)]
pub struct ColdConnects;

impl<S> Layer<S> for ColdConnects {
    type Service = ColdConnect<S>;

    fn layer(&self, inner: S) -> ColdConnect<S> {
        ColdConnect(inner)
    }
}

/// A connector with `ColdConnects` around it.
#[derive(Clone, Debug)]
pub struct ColdConnect<S>(S);

impl<S, R> Service<R> for ColdConnect<S>
where
    S: Service<R, Error = BoxError>,
    S::Response: Send + 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let connect = self.0.call(target);
        let Ok(errand) = ERRAND.try_with(Arc::clone) else { return Box::pin(connect) };
        errand.stage.store(stage::CONNECTING, Ordering::SeqCst);
        let mut task = AbortOnDropHandle::new(tokio::spawn(cold_connect(Arc::clone(&errand), connect)));
        Box::pin(std::future::poll_fn(move |cx| {
            if ERRAND.try_with(|_| ()).is_err() {
                errand.went_elsewhere();
            }
            let connection = ready!(Pin::new(&mut task).poll(cx))??;
            errand.connecting_ended(stage::UP);
            Poll::Ready(Ok(connection))
        }))
    }
}

/// Waits for the site's turn and connects. A failure is noted before the request hears of it, so that no start is
/// spent on hearing it.
async fn cold_connect<T>(
    errand: Arc<Errand>,
    connect: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    let connected = async {
        let _turn = errand.cold.acquire().await?;
        if errand.answered.load(Ordering::SeqCst) {
            return Err(BoxError::from(Needless));
        }
        tokio::time::timeout(errand.connect_timeout, connect).await.map_err(|_| ConnectTimeout)?
    };
    let connected = connected.await;
    if connected.is_err() {
        errand.connecting_ended(stage::FAILED);
    }
    connected
}

/// No connection within the site's `connect_timeout`.
#[derive(Debug, thiserror::Error)]
#[error("no connection in time")]
pub struct ConnectTimeout;

/// The request went out on another connection meanwhile.
#[derive(Debug, thiserror::Error)]
#[error("the connection is needed no longer")]
struct Needless;

#[cfg(test)]
mod tests {
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

    impl<S: Service<R, Error = BoxError>, R> Service<R> for Behind<S>
    where
        S::Response: Send + 'static,
        S::Future: Send + 'static,
    {
        type Response = S::Response;
        type Error = BoxError;
        type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
            self.0.poll_ready(cx)
        }

        fn call(&mut self, target: R) -> Self::Future {
            let (connect, door) = (self.0.call(target), self.1.clone());
            Box::pin(async move {
                if door.connects.fetch_add(1, Ordering::SeqCst) > 0 {
                    door.opened.notified().await;
                }
                connect.await
            })
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
        let started =
            send(request, || async { Ok(asked.once_more()) }, errand, LONG).await.expect("it is sent");
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
            if first { Ok(Timestamp::from_millis(1)) } else { Err(NotNow("paused".to_owned())) }
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
}
