//! Shops served by a process of their own: this program once more, told by its environment.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ground::page;
use crate::support::{Latency, Reply, Request, Stall};

const PER_LISTING: u32 = 50;

/// Which pages a shop has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Listings of fifty products, each of which leads to the next.
    Chain,
    /// Pages of ten links, three of which are new.
    Tree,
}

/// Shops of one kind.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub kind: Kind,
    pub sites: u32,
    /// Products of a chain, pages of a tree, each site.
    pub pages: u32,
    /// Answers take as many ms, drawn evenly.
    pub latency: [u64; 2],
    /// The ms that two starts should be apart.
    pub interval: u64,
}

/// What the shops saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Each site's arrivals, from the first that isn't the way in.
    pub arrivals: Vec<Vec<Duration>>,
    /// All requests.
    pub requests: u32,
    stalls: Vec<(Duration, Duration)>,
}

impl Seen {
    pub fn stalls(&self) -> Vec<Stall> {
        self.stalls.iter().map(|&(from, to)| Stall { from, to }).collect()
    }
}

impl Plan {
    fn listings(&self) -> u32 {
        self.pages.div_ceil(PER_LISTING)
    }

    /// Pages of a site without `robots.txt`.
    pub fn pages_of_a_site(&self) -> u32 {
        self.pages + if self.kind == Kind::Chain { self.listings() } else { 0 }
    }

    /// The rules of a site file.
    pub fn rules(&self) -> &'static str {
        match self.kind {
            Kind::Chain => {
                "[[page]]\nname = \"product\"\nmatch = \"/p/*\"\nitem = true\n[page.fields]\ntitle = \"h1\"\n\
                 [[page]]\nname = \"listing\"\nmatch = \"/**\"\nfollow = \"*\"\n"
            }
            Kind::Tree => crate::ground::EVERY_PAGE,
        }
    }

    fn body(&self, path: &str) -> Option<String> {
        let after = |prefix: &str| path.strip_prefix(prefix)?.parse::<u32>().ok();
        match self.kind {
            Kind::Chain if after("/p/").is_some_and(|n| n < self.pages) => Some(page(path, [""; 0])),
            Kind::Chain => {
                let listing = if path == "/" { 0 } else { after("/l/").filter(|n| *n < self.listings())? };
                let products = listing * PER_LISTING..((listing + 1) * PER_LISTING).min(self.pages);
                let next = (listing + 1 < self.listings()).then(|| format!("/l/{}", listing + 1));
                Some(page(path, products.map(|n| format!("/p/{n}")).chain(next)))
            }
            Kind::Tree => {
                let number =
                    if path == "/" { 0 } else { after("/n/").filter(|n| (1..self.pages).contains(n))? };
                let new = (3 * number + 1..=3 * number + 3).filter(|n| *n < self.pages);
                let known = (1..=number).rev().chain(std::iter::repeat(1)).take(7);
                Some(page(path, known.chain(new).map(|n| format!("/n/{n}"))))
            }
        }
    }

    fn is_way_in(&self, path: &str) -> bool {
        path == "/robots.txt" || self.kind == Kind::Chain && !path.starts_with("/p/")
    }
}

/// The process that serves, until this is closed or dropped.
pub struct Yard {
    pub addrs: Vec<SocketAddr>,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Yard {
    pub fn open(plan: &Plan) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a program"));
        command.env("ROLE", "shops").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env("PLAN", serde_json::to_string(plan).expect("JSON"));
        let mut child = command.spawn().expect("it runs already");
        let stdin = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut addr = |_| lines.next().expect("a line a shop").expect("text").parse().expect("an address");
        let addrs = (0..plan.sites).map(&mut addr).collect();
        Self { addrs, child, stdin, lines }
    }

    /// Closes the shops; what they saw.
    pub fn close(mut self) -> Seen {
        drop(self.stdin.take());
        let line = self.lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        // What it has to tell isn't read any more, so it could wait for ever.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves the shops and prints where, a line each. When nobody holds the standard input any more it prints what they saw.
pub fn keep_open() {
    let plan: Plan = serde_json::from_str(&std::env::var("PLAN").expect("a plan")).expect("JSON");
    let [least, most] = plan.latency.map(Duration::from_millis);
    let (latency, chance) =
        (Latency::between(least, most), Arc::new(Mutex::new(fastrand::Rng::with_seed(1))));
    let route = move |request: &Request| {
        let wait = latency.draw(&mut chance.lock().expect("nobody panics with it"));
        let none = || Reply::text("There is no such page.\n").with_status(404);
        plan.body(&request.path).map_or_else(none, Reply::html).after(wait)
    };
    let route: paced::internals::demo::server::Routes = Arc::new(route);
    let hosts = (0..plan.sites).map(|_| (0, Arc::clone(&route)));
    let server = paced::internals::demo::server::Server::start(hosts).expect("free ports");
    let mut out = std::io::stdout();
    for host in server.hosts() {
        writeln!(out, "{}", host.addr()).expect("it is read");
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let mut seen = Seen::default();
    for host in server.hosts() {
        let mut all = host.arrivals();
        all.sort_by_key(|arrival| arrival.at);
        seen.requests += u32::try_from(all.len()).expect("not that many");
        let from_the_first = all.iter().skip_while(|arrival| plan.is_way_in(&arrival.path));
        seen.arrivals.push(from_the_first.map(|arrival| arrival.at).collect());
        seen.stalls = host.stalls().iter().map(|stall| (stall.from, stall.to)).collect();
    }
    writeln!(out, "{}", serde_json::to_string(&seen).expect("JSON")).expect("it is read");
}
