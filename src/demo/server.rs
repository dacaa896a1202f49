//! HTTP/1.1 on loopback: many hosts on one thread of their own, each request's arrival stamped. What is answered is not
//! decided here.

use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use http::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use super::arrivals::{Arrival, Noted, OpenArrival, Stall};
use super::reply::{Delivery, Planned, SentBody, ShopReply, ShopRequest};
use crate::clock;

/// What a host answers to a request. Called at its arrival, on the server's thread: it should not block.
pub type Routes = Arc<dyn Fn(&ShopRequest) -> ShopReply + Send + Sync>;

/// Hosts that are being served, on a thread of their own so that the visitors' work disturbs their stamps little.
/// Dropped, they stop and their connections end.
#[derive(Debug)]
pub struct Server {
    hosts: Vec<ServedHost>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// Why hosts can't be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address can't be listened on.
    #[error("can't listen on {addr}: {source}; is something else using the port?")]
    Listen {
        /// What was asked for.
        addr: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no thread to serve on.
    #[error("can't start the server's thread: {0}")]
    Thread(#[source] io::Error),
}

impl Server {
    /// Serves each of `hosts` on its port of 127.0.0.1, where 0 takes any that is free. Requests that come after this
    /// returns are answered.
    pub fn start(hosts: impl IntoIterator<Item = (u16, Routes)>) -> Result<Self, ServeError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(ServeError::Thread)?;
        let stalls = Noted::<Stall>::default();
        let stop = CancellationToken::new();
        let mut served = Vec::new();
        for (port, routes) in hosts {
            let (addr, listener) = listen(&runtime, port)?;
            let host = ServedHost { addr, arrivals: Noted::default(), stalls: stalls.clone() };
            runtime.spawn(accept(listener, host.arrivals.clone(), routes));
            served.push(host);
        }
        runtime.spawn(stalls.watch());
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("shops".to_owned())
            .spawn(move || runtime.block_on(stopped.cancelled()))
            .map_err(ServeError::Thread)?;
        Ok(Self { hosts: served, stop, thread: Some(thread) })
    }

    /// The hosts, in the order in which they were given.
    pub fn hosts(&self) -> &[ServedHost] {
        &self.hosts
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A route that panics ends its own connection; the thread goes on.
            let _ = thread.join();
        }
    }
}

/// One served host: its address and what it saw. Clones see the same, also after the server stopped.
#[derive(Clone, Debug)]
pub struct ServedHost {
    addr: SocketAddr,
    arrivals: Noted<Arrival>,
    stalls: Noted<Stall>,
}

impl ServedHost {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The absolute URL of a path on this host.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Every request so far, in the order of arrival.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.all()
    }

    /// The server's stalls so far.
    pub fn stalls(&self) -> Vec<Stall> {
        self.stalls.all()
    }
}

fn listen(runtime: &Runtime, port: u16) -> Result<(SocketAddr, TcpListener), ServeError> {
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listen = || {
        let listener = std::net::TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        let _context = runtime.enter();
        Ok((listener.local_addr()?, TcpListener::from_std(listener)?))
    };
    listen().map_err(|source| ServeError::Listen { addr, source })
}

async fn accept(listener: TcpListener, arrivals: Noted<Arrival>, routes: Routes) {
    let mut connection = 0;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connection += 1;
                let visitor = Visitor {
                    arrivals: arrivals.clone(),
                    routes: Arc::clone(&routes),
                    connection,
                    reset: Arc::default(),
                };
                tokio::spawn(visitor.converse(stream));
            }
            // Out of descriptors: they come back as connections end.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// One connection.
#[derive(Clone)]
struct Visitor {
    arrivals: Noted<Arrival>,
    routes: Routes,
    connection: u64,
    reset: Arc<AtomicBool>,
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<SentBody>, Planned>> + Send>>;

impl Visitor {
    async fn converse(self, stream: TcpStream) {
        // Without it small answers wait for the visitor's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        let reset = Arc::clone(&self.reset);
        let service = service_fn(move |request| self.answer(&request));
        let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let _ = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
        let stream = connection.into_parts().io.into_inner();
        if reset.load(Ordering::Relaxed) {
            // Closing then sends a reset instead of an orderly end.
            let _ = stream.set_zero_linger();
        }
    }

    fn answer(&self, request: &http::Request<Incoming>) -> Answering {
        let request = ShopRequest {
            at: clock::since_boot(),
            method: request.method().clone(),
            path: request.uri().path_and_query().map_or("/", |p| p.as_str()).to_owned(),
            headers: request.headers().clone(),
            connection: self.connection,
        };
        let reply = (self.routes)(&request);
        let visit = self.arrivals.note(Arrival {
            at: request.at,
            done: None,
            path: request.path,
            status: reply.status,
            connection: self.connection,
        });
        Box::pin(send(reply, visit, Arc::clone(&self.reset)))
    }
}

async fn send(
    reply: ShopReply,
    visit: OpenArrival,
    reset: Arc<AtomicBool>,
) -> Result<Response<SentBody>, Planned> {
    if !reply.wait.is_zero() {
        tokio::time::sleep(reply.wait).await;
    }
    match reply.delivery {
        Delivery::Reset => {
            reset.store(true, Ordering::Relaxed);
            Err(Planned)
        }
        Delivery::Silence => pending().await,
        _ => Ok(reply.into_response(visit)),
    }
}
