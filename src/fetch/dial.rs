//! A connection, made by the HTTP client and taken from it before anything is sent. Which are kept is for `pool`.
//!
//! Names, addresses, proxies and TLS are the client's. It can't be told to connect and wait, so it is given a request
//! that never leaves: its outermost connector keeps the connection and fails.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::Connection;
use reqwest::{Client, ClientBuilder};
use tower_layer::Layer;
use tower_service::Service;
use url::Url;

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A connection that nothing was sent on, through TLS where the URL asks for that.
pub trait Transport: Read + Write + Connection + Send + Unpin {}

impl<T: Read + Write + Connection + Send + Unpin> Transport for T {}

tokio::task_local! {
    /// Where the connection of this task's request is kept.
    static MADE: Arc<Mutex<Option<Box<dyn Transport>>>>;
}

/// Makes connections. Clones share one client.
#[derive(Clone, Debug)]
pub struct Dialer(Client);

impl Dialer {
    /// A dialer that goes by the settings of `builder`.
    ///
    /// # Errors
    /// What the builder can't do.
    pub fn new(builder: ClientBuilder) -> reqwest::Result<Self> {
        builder.pool_max_idle_per_host(0).connector_layer(KeepConnection).build().map(Self)
    }

    /// A new connection to the server of a URL.
    ///
    /// # Errors
    /// Why none came about.
    pub async fn dial(&self, url: &Url) -> Result<Box<dyn Transport>, BoxError> {
        let made = Arc::default();
        let request = self.0.get(url.clone()).send();
        let failed = MADE.scope(Arc::clone(&made), request).await;
        let made = made.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (made, failed) {
            (Some(connection), _) => Ok(connection),
            (None, Err(error)) => Err(error.without_url().into()),
            (None, Ok(_)) => Err("the client answered without a connection".into()),
        }
    }
}

#[derive(Clone, Copy)]
struct KeepConnection;

impl<S> Layer<S> for KeepConnection {
    type Service = Keeping<S>;

    fn layer(&self, inner: S) -> Keeping<S> {
        Keeping(inner)
    }
}

/// A connector whose connections are kept, and which always fails.
#[derive(Clone)]
struct Keeping<S>(S);

impl<S, R> Service<R> for Keeping<S>
where
    S: Service<R, Error = BoxError>,
    S::Response: Transport + 'static,
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
        Box::pin(async move {
            let connection = connect.await?;
            MADE.with(|made| {
                made.lock().unwrap_or_else(PoisonError::into_inner).replace(Box::new(connection));
            });
            Err(ConnectionKept.into())
        })
    }
}

/// Why the client's request never leaves.
#[derive(Debug)]
struct ConnectionKept;

impl fmt::Display for ConnectionKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is kept")
    }
}

impl std::error::Error for ConnectionKept {}
