//! Shops that are open: who answers in them, with which delay and which fault, and what they saw. The bytes on the wire are
//! `server`'s.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::gaps::GapReport;
use super::plan::{FaultKind, PlannedFault, PlannedWall, ShopPage, ShopPlan};
use super::reply::{Delivery, ShopReply, ShopRequest};
use super::server::{Routes, ServeError, ServedHost, Server};
use super::site;

/// Opens the shops, each on its own port of 127.0.0.1 and so each a host of its own.
pub fn serve(plans: impl IntoIterator<Item = ShopPlan>) -> Result<Shops, ServeError> {
    let plans: Vec<ShopPlan> = plans.into_iter().collect();
    let server = Server::start(plans.iter().map(|plan| (plan.port, routes(plan.clone()))))?;
    let shops = plans.into_iter().zip(server.hosts()).map(|(plan, host)| Shop { plan, host: host.clone() });
    Ok(Shops { shops: shops.collect(), _server: server })
}

/// Shops that are open. Dropped, they close.
#[derive(Debug)]
pub struct Shops {
    shops: Vec<Shop>,
    _server: Server,
}

impl Shops {
    /// All of them, in the order of their plans.
    pub fn all(&self) -> &[Shop] {
        &self.shops
    }

    /// The shop of that name.
    pub fn get(&self, name: &str) -> Option<&Shop> {
        self.shops.iter().find(|shop| shop.plan.name == name)
    }
}

/// A shop that is open, and what it saw. A clone can still be asked after the shop closed.
#[derive(Clone, Debug)]
pub struct Shop {
    /// How it was planned.
    pub plan: ShopPlan,
    host: ServedHost,
}

/// Where it listens and what it saw is its host's.
impl Deref for Shop {
    type Target = ServedHost;

    fn deref(&self) -> &ServedHost {
        &self.host
    }
}

impl Shop {
    /// What the gaps between arrivals say about a promised interval.
    pub fn gaps(&self, interval: Duration) -> GapReport {
        let arrivals: Vec<Duration> = self.arrivals().iter().map(|arrival| arrival.at).collect();
        GapReport::new(&arrivals, &self.stalls(), interval)
    }

    /// The text of a site file for this shop.
    pub fn site_toml(&self, interval: Duration) -> String {
        site::site_toml(&self.plan, self.addr(), interval)
    }
}

fn routes(plan: ShopPlan) -> Routes {
    let desk = Desk::new(plan);
    Arc::new(move |request| desk.serve(request))
}

/// Who answers in one shop.
struct Desk {
    plan: ShopPlan,
    pages: HashMap<String, ShopPage>,
    links: HashMap<String, ShopPage>,
    ledger: Mutex<Ledger>,
}

/// What the desk remembers.
struct Ledger {
    chance: fastrand::Rng,
    requests: u32,
    failures: HashMap<String, u32>,
    /// When its wall began, since boot.
    walled: Option<Duration>,
}

impl Desk {
    fn new(plan: ShopPlan) -> Self {
        let pages = plan.places().map(|place| (plan.path(place), place)).collect();
        let links = plan.places().map(|place| (plan.link(place), place)).collect();
        let chance = fastrand::Rng::with_seed(plan.seed);
        let ledger = Mutex::new(Ledger { chance, requests: 0, failures: HashMap::new(), walled: None });
        Self { plan, pages, links, ledger }
    }

    fn serve(&self, request: &ShopRequest) -> ShopReply {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let latency = self.plan.latency.draw(&mut ledger.chance);
        let reply = if request.path == "/robots.txt" {
            self.plan.robots.clone().map_or_else(not_found, ShopReply::text)
        } else {
            let fault = ledger.fault(&self.plan.faults, &request.path);
            let page = || self.page(&request.path);
            match self.plan.wall {
                Some(wall) if ledger.is_walled(wall, request.at) => challenge(),
                _ => fault.map_or_else(page, |kind| faulty(kind, page)),
            }
        };
        reply.after(latency)
    }

    fn page(&self, path: &str) -> ShopReply {
        if let Some(place) = self.pages.get(path) {
            return ShopReply::html(self.plan.page(*place));
        }
        let target = self.links.get(path).map(|place| self.plan.path(*place));
        target.map_or_else(not_found, |target| ShopReply::redirect(301, target))
    }
}

impl Ledger {
    /// Whether the wall stands at that time, since boot. It begins with the first request that it meets.
    fn is_walled(&mut self, wall: PlannedWall, at: Duration) -> bool {
        if self.requests <= wall.after {
            return false;
        }
        at < *self.walled.get_or_insert(at) + wall.lasts
    }

    /// Counts a request, and says what befalls it.
    fn fault(&mut self, faults: &[PlannedFault], path: &str) -> Option<FaultKind> {
        self.requests += 1;
        let due = faults.iter().find(|fault| self.requests.is_multiple_of(fault.every))?;
        if matches!(due.kind, FaultKind::Slow { .. }) {
            return Some(due.kind);
        }
        let failures = self.failures.entry(path.to_owned()).or_default();
        *failures += 1;
        (*failures <= ShopPlan::FAILURES_PER_URL).then_some(due.kind)
    }
}

fn faulty(kind: FaultKind, page: impl FnOnce() -> ShopReply) -> ShopReply {
    match kind {
        FaultKind::Unavailable { retry_after } => stay_away(503, retry_after),
        FaultKind::TooMany { retry_after } => stay_away(429, retry_after),
        FaultKind::Reset => ShopReply::reset(),
        FaultKind::Cut => {
            let page = page();
            let after = page.body.len() / 2;
            page.delivered(Delivery::Cut { after })
        }
        FaultKind::Slow { pause } => {
            let page = page();
            let bytes = page.body.len().div_ceil(10);
            page.delivered(Delivery::Slow { bytes, pause })
        }
    }
}

fn stay_away(status: u16, retry_after: Option<Duration>) -> ShopReply {
    let reply = ShopReply::text("Too busy just now.\n").with_status(status);
    match retry_after {
        Some(wait) => reply.header("retry-after", wait.as_secs().to_string()),
        None => reply,
    }
}

fn challenge() -> ShopReply {
    ShopReply::html("<!DOCTYPE html>\n<title>Just a moment...</title>\n<p>Prove that you are human.</p>\n")
        .with_status(403)
        .header("cf-mitigated", "challenge")
}

fn not_found() -> ShopReply {
    ShopReply::html("<!DOCTYPE html>\n<title>Not found</title>\n<h1>There is no such page</h1>\n")
        .with_status(404)
}
