//! A site of arbitrary pages on loopback, that goes wrong as a test asks, and what it saw.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use paced::internals::demo::arrivals::{Arrival, Stall};
use paced::internals::demo::gaps::GapReport;
use paced::internals::demo::plan::Latency;
use paced::internals::demo::reply::{ShopReply as Reply, ShopRequest as Request};
use paced::internals::demo::server::{ServedHost, Server};

type Fault = Box<dyn FnMut(&Request) -> Option<Reply> + Send>;

/// A site before it is served.
#[must_use]
pub struct TestSiteBuilder {
    desk: Desk,
    port: u16,
}

impl TestSiteBuilder {
    /// A page at a path (with its query, if any).
    pub fn page(self, path: &str, html: impl Into<String>) -> Self {
        self.reply(path, Reply::html(html.into()))
    }

    /// A JSON text at a path.
    pub fn json(self, path: &str, json: impl Into<String>) -> Self {
        self.reply(path, Reply::json(json.into()))
    }

    /// A redirect at a path.
    pub fn redirect(self, path: &str, status: u16, to: &str) -> Self {
        self.reply(path, Reply::redirect(status, to))
    }

    /// Nothing but a status at a path.
    pub fn status(self, path: &str, status: u16) -> Self {
        self.reply(path, Reply::status(status))
    }

    /// Any answer at a path.
    pub fn reply(mut self, path: &str, reply: Reply) -> Self {
        self.desk.pages.insert(path.to_owned(), reply);
        self
    }

    /// A `robots.txt`; without one it is a 404.
    pub fn robots(self, text: &str) -> Self {
        self.reply("/robots.txt", Reply::text(text.to_owned()))
    }

    /// How long each answer takes.
    pub fn latency(mut self, latency: Latency) -> Self {
        self.desk.latency = latency;
        self
    }

    /// Asked before the pages, at each request: what it returns is answered instead. Latency is added to it as well.
    pub fn faults(mut self, fault: impl FnMut(&Request) -> Option<Reply> + Send + 'static) -> Self {
        self.desk.fault = Some(Box::new(fault));
        self
    }

    /// The port, as for a site that comes back where it was.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Opens the site.
    pub fn serve(self) -> TestSite {
        let desk = Arc::new(Mutex::new(self.desk));
        let answering = Arc::clone(&desk);
        let routes = Arc::new(move |request: &Request| lock(&answering).answer(request));
        let server = Server::start([(self.port, routes as _)]).expect("a port of 127.0.0.1");
        TestSite { desk, server }
    }
}

/// A site that is served until it is dropped.
pub struct TestSite {
    desk: Arc<Mutex<Desk>>,
    server: Server,
}

impl TestSite {
    /// A site where everything is a 404, to be filled.
    pub fn builder() -> TestSiteBuilder {
        let chance = fastrand::Rng::with_seed(1);
        let latency = Latency::default();
        let desk = Desk { pages: HashMap::new(), latency, chance, fault: None, requests: Vec::new() };
        TestSiteBuilder { desk, port: 0 }
    }

    fn host(&self) -> &ServedHost {
        &self.server.hosts()[0]
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.host().addr()
    }

    /// The absolute URL of a path.
    pub fn url(&self, path: &str) -> String {
        self.host().url(path)
    }

    /// The beginning of a site file for it, up to and without the first `[[page]]`: `robots` is obeyed, everything else is
    /// the default.
    pub fn toml(&self, name: &str, interval: Duration) -> String {
        let addr = self.addr();
        let interval = interval.as_millis();
        format!(
            "name = \"{name}\"\nseeds = [\"http://{addr}/\"]\n\n[pace]\ninterval = \"{interval}ms\"\n\
             contact = \"test@example.com\"\n\n[fetch]\nallow_private = true\n\n"
        )
    }

    /// Puts another answer at a path, from now on.
    pub fn put(&self, path: &str, reply: Reply) {
        lock(&self.desk).pages.insert(path.to_owned(), reply);
    }

    /// Takes a page away, from now on.
    pub fn remove(&self, path: &str) {
        lock(&self.desk).pages.remove(path);
    }

    /// Every request so far, with its header.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.desk).requests.clone()
    }

    /// How often each path was asked for.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for request in self.requests() {
            *counts.entry(request.path).or_default() += 1;
        }
        counts
    }

    /// How often one path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.requests().iter().filter(|request| request.path == path).count()
    }

    /// Every request so far, with times and status.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.host().arrivals()
    }

    /// The server's own stalls so far.
    pub fn stalls(&self) -> Vec<Stall> {
        self.host().stalls()
    }

    /// What the gaps between all its arrivals say about a promised interval.
    pub fn gaps(&self, interval: Duration) -> GapReport {
        let arrivals: Vec<Duration> = self.arrivals().iter().map(|arrival| arrival.at).collect();
        GapReport::new(&arrivals, &self.stalls(), interval)
    }
}

impl fmt::Debug for TestSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestSite").field("addr", &self.addr()).field("counts", &self.counts()).finish()
    }
}

struct Desk {
    pages: HashMap<String, Reply>,
    latency: Latency,
    chance: fastrand::Rng,
    fault: Option<Fault>,
    requests: Vec<Request>,
}

impl Desk {
    fn answer(&mut self, request: &Request) -> Reply {
        self.requests.push(request.clone());
        let latency = self.latency.draw(&mut self.chance);
        let fault = self.fault.as_mut().and_then(|fault| fault(request));
        let reply = fault.or_else(|| self.pages.get(&request.path).cloned());
        reply.unwrap_or_else(|| Reply::html("<h1>There is no such page</h1>").with_status(404)).after(latency)
    }
}

/// A fault that panics fails its own request; the site goes on.
fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}
