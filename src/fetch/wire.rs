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

use crate::clock::{self, Timestamp};
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
            Progress::MayBeUp => continue,
            Progress::TooLate => None,
            Progress::Answered(Err(error)) if errand.stage() == stage::FAILED => {
                return Err(Unstarted::Connect(error));
            }
            Progress::Answered(answer) => Some(answer),
        };
        errand.answered.store(true, Ordering::SeqCst);
        return Ok(Started { sent_at, sent, answer });
    }
}

enum Progress<T> {
    Answered(T),
    MayBeUp,
    TooLate,
}

async fn until_answered_or_up<F: Future>(
    mut request: Pin<&mut F>,
    errand: &Errand,
    deadline: Instant,
) -> Progress<F::Output> {
    let mut too_late = pin!(clock::wait_until(deadline));
    let wakes = &errand.wakes;
    let waker = Waker::from(Arc::clone(wakes));
    let mut asked_just_now = true;
    std::future::poll_fn(move |cx| {
        wakes.pass_on_to(cx.waker());
        let woken = wakes.woken.swap(false, Ordering::SeqCst);
        let connecting = errand.stage() == stage::CONNECTING;
        if connecting && !asked_just_now {
            return if woken { Poll::Ready(Progress::MayBeUp) } else { Poll::Pending };
        }
        asked_just_now = false;
        if let Poll::Ready(answer) = request.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Poll::Ready(Progress::Answered(answer));
        }
        if errand.stage() == stage::CONNECTING {
            return Poll::Pending;
        }
        too_late.as_mut().poll(cx).map(|()| Progress::TooLate)
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

    fn wake_task(&self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            task.wake_by_ref();
        }
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
            return Err("the request went out on another connection".into());
        }
        clock::within(errand.connect_timeout, connect).await.ok_or(ConnectTimeout)?
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

#[cfg(test)]
mod tests;
