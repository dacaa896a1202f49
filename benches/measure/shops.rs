//! Shops that are served by a process of their own, so that what serving them costs isn't counted: the bench itself, started
//! once more under a variable.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paced::internals::demo::gaps::GapReport;
use paced::internals::demo::plan::Latency;
use paced::internals::demo::reply::{ShopReply as Reply, ShopRequest as Request};
use paced::internals::demo::server::{Routes, Server};

use super::number;
use super::pages::Shop;

/// How many shops there are, of which size, and how slowly they answer.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub shops: u32,
    pub products: u32,
    /// The size of a product's page.
    pub bytes: usize,
    /// Answers take as many ms, drawn evenly.
    pub latency: [u64; 2],
    /// The ms that two requests should be apart.
    pub interval: u64,
}

/// A process that serves shops until this is dropped.
#[derive(Debug)]
pub struct Yard {
    pub plan: Plan,
    pub addrs: Vec<SocketAddr>,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

/// What all the shops saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub requests: u64,
    /// Different pages that were asked for and answered, without `robots.txt`.
    pub pages: u64,
    /// Requests that came too soon after the one before.
    pub early: u64,
    /// The shortest time between two requests, in ms.
    pub shortest: u64,
}

impl Plan {
    /// Without latency and pace.
    pub fn plain(shops: u32, products: u32, bytes: usize) -> Self {
        Self { shops, products, bytes, latency: [0, 0], interval: 0 }
    }

    /// The shops.
    pub fn shops(&self) -> Vec<Shop> {
        let shop = |n| Shop { name: format!("shop{n}"), products: self.products, bytes: self.bytes };
        (0..self.shops).map(shop).collect()
    }

    /// Pages of all the shops.
    pub fn pages(&self) -> u64 {
        self.shops().iter().map(|shop| shop.paths().len() as u64).sum()
    }

    fn numbers(&self) -> [(&'static str, u64); 6] {
        [
            ("YARD_SHOPS", self.shops.into()),
            ("YARD_PRODUCTS", self.products.into()),
            ("YARD_BYTES", self.bytes as u64),
            ("YARD_LEAST_MS", self.latency[0]),
            ("YARD_MOST_MS", self.latency[1]),
            ("YARD_INTERVAL_MS", self.interval),
        ]
    }

    fn from_environment() -> Self {
        let read = |name| number(name, 0);
        let small = |name| u32::try_from(read(name)).expect("a small number");
        Self {
            shops: small("YARD_SHOPS"),
            products: small("YARD_PRODUCTS"),
            bytes: usize::try_from(read("YARD_BYTES")).expect("a page"),
            latency: [read("YARD_LEAST_MS"), read("YARD_MOST_MS")],
            interval: read("YARD_INTERVAL_MS"),
        }
    }
}

impl Yard {
    /// Starts this program once more; with `ROLE` being `shops` it must call [`keep_open`].
    pub fn open(plan: Plan) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a program"));
        command.env("ROLE", "shops").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.envs(plan.numbers().map(|(name, value)| (name, value.to_string())));
        let mut child = command.spawn().expect("it runs already");
        let stdin = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut addr = |_| lines.next().expect("a line a shop").expect("text").parse().expect("an address");
        let addrs = (0..plan.shops).map(&mut addr).collect();
        Self { plan, addrs, child, stdin, lines }
    }

    /// The URLs of all pages, the shops in turn.
    pub fn urls(&self) -> Vec<String> {
        let paths: Vec<Vec<String>> = self.plan.shops().iter().map(Shop::paths).collect();
        let longest = paths.iter().map(Vec::len).max().unwrap_or(0);
        let mut urls = Vec::new();
        for n in 0..longest {
            let turn = paths.iter().zip(&self.addrs);
            urls.extend(turn.filter_map(|(paths, addr)| Some(format!("http://{addr}{}", paths.get(n)?))));
        }
        urls
    }

    /// How many requests came so far.
    pub fn requests(&mut self) -> u64 {
        self.stdin.as_mut().expect("it is open").write_all(b"\n").expect("it listens");
        self.next_line().parse().expect("a number")
    }

    fn next_line(&mut self) -> String {
        self.lines.next().expect("a line").expect("text")
    }

    /// Closes the shops; what they saw.
    pub fn close(mut self) -> Seen {
        drop(self.stdin.take());
        let line = self.next_line();
        let numbers: Vec<u64> = line.split(' ').map(|text| text.parse().expect("a number")).collect();
        Seen { requests: numbers[0], pages: numbers[1], early: numbers[2], shortest: numbers[3] }
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        // It ends where nobody can write to it any more.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// Serves the shops and prints where, a line each, and the number of requests for each line of standard input. When that ends,
/// it prints what they saw, and ends.
pub fn keep_open() {
    let plan = Plan::from_environment();
    let server = Server::start(plan.shops().into_iter().map(|shop| (0, routes(shop, plan.latency))));
    let server = server.expect("free ports");
    for host in server.hosts() {
        println!("{}", host.addr());
    }
    for _ in std::io::stdin().lines() {
        println!("{}", server.hosts().iter().map(|host| host.arrivals().len()).sum::<usize>());
    }
    let mut seen = Seen { shortest: u64::MAX, ..Seen::default() };
    for host in server.hosts() {
        let arrivals = host.arrivals();
        seen.requests += arrivals.len() as u64;
        let pages: BTreeSet<&str> = arrivals
            .iter()
            .filter(|arrival| arrival.status == 200 && arrival.done.is_some())
            .map(|arrival| arrival.path.as_str())
            .collect();
        seen.pages += pages.len() as u64;
        let times: Vec<Duration> = arrivals.iter().map(|arrival| arrival.at).collect();
        let gaps = GapReport::new(&times, &host.stalls(), Duration::from_millis(plan.interval));
        seen.early += gaps.early.len() as u64;
        seen.shortest = seen.shortest.min(u64::try_from(gaps.min.as_millis()).unwrap_or(u64::MAX));
    }
    println!("{} {} {} {}", seen.requests, seen.pages, seen.early, seen.shortest);
}

fn routes(shop: Shop, latency: [u64; 2]) -> Routes {
    let [least, most] = latency.map(Duration::from_millis);
    let (latency, chance) = (Latency::between(least, most), Mutex::new(fastrand::Rng::with_seed(1)));
    Arc::new(move |request: &Request| {
        let wait = latency.draw(&mut chance.lock().expect("nobody panics with it"));
        let reply = match shop.page(&request.path) {
            Some(page) => Reply::html(page),
            None => Reply::text("There is no such page.\n").with_status(404),
        };
        reply.after(wait)
    })
}
