//! One crawl: shops, processes, and what came of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paced::internals::archive::{Filter, Record, scan};
use paced::internals::audit::{Audit, Lateness};

use crate::gaps::Gaps;
use crate::ground::{Ground, Shared, SiteFile};
use crate::machine::Machine;
use crate::measure::{BarestClaim, barest_claim, must_be, share};
use crate::shops::{Plan, Yard};
use crate::support::{RedisServer, Running};

/// How often the barest claim is made beside a crawl: as often as pages are asked for at 250 starts a second.
const BETWEEN: Duration = Duration::from_millis(4);

/// What came of one crawl.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub pages: u32,
    pub gaps: Gaps,
    /// How late requests were sent.
    pub late: Option<Lateness>,
    /// CPU time of all processes.
    pub cpu: Duration,
    /// What it took of the Redis, where there was one.
    pub server: Option<OfServer>,
}

/// What a page took of a Redis.
#[derive(Clone, Copy, Debug)]
pub struct OfServer {
    pub calls: f64,
    pub micros: f64,
    /// The same of the barest claim, on the same server with nothing else to do.
    pub barest: f64,
    /// And in between, while the crawl went on: it finds as little in the caches as the crawl's own batches.
    pub barest_between: f64,
}

impl Outcome {
    pub fn lateness(&self) -> String {
        self.late
            .map_or_else(String::new, |late| format!("{}, {}", late.p50.as_millis(), late.p99.as_millis()))
    }
}

/// Crawls the shops by so many processes, and looks whether each page came once.
pub fn crawl(plan: &Plan, shared: &Shared, processes: usize) -> Outcome {
    let yard = Yard::open(plan);
    let interval = Duration::from_millis(plan.interval);
    let file = |(number, addr): (usize, &SocketAddr)| {
        let file = SiteFile::new(&format!("s{number:02}"), format!("http://{addr}/")).interval(interval);
        file.pace("parallel = 32").pages(plan.rules())
    };
    let ground = Ground::on(shared, yard.addrs.iter().enumerate().map(file));
    ground.verb_on_all("seed").run().expect_code(0);
    let server = shared.is_redis().then(|| shared.server());
    let (machine, before) = (Machine::watch(), server.map(spent));
    let start =
        |number| ground.verb("work").arg("--name").arg(format!("w{number}")).arg("--until-empty").start();
    let beside = server.map(|server| ClaimsBetween::start(server, plan.sites));
    let workers: Vec<Running> = (0..processes).map(start).collect();
    let spent_before = children();
    for worker in workers {
        worker.finish().expect_code(0);
    }
    let cpu = children().saturating_sub(spent_before);
    let (stalls, after) = (machine.stalls(), server.map(spent));
    let barest_between = beside.map(ClaimsBetween::micros);
    let seen = yard.close();
    let pages = plan.sites * plan.pages_of_a_site();
    must_be("requests, each page and each robots.txt once", &seen.requests, &(pages + plan.sites));
    let of_server = |server: &RedisServer| {
        let (from, to) = (before.expect("asked"), after.expect("asked"));
        OfServer {
            calls: share(to.0 - from.0, pages.into()),
            micros: share(to.1 - from.1, pages.into()),
            barest: barest_claim(teller(server), plan.sites.into()),
            barest_between: barest_between.expect("made beside it"),
        }
    };
    let gaps = Gaps::of(&seen.arrivals, &[seen.stalls(), stalls].concat(), interval);
    Outcome { pages, gaps, late: lateness(&ground), cpu, server: server.map(of_server) }
}

/// Barest claims that are made one by one while something else goes on.
struct ClaimsBetween {
    is_over: Arc<AtomicBool>,
    micros: JoinHandle<f64>,
}

impl ClaimsBetween {
    fn start(server: &RedisServer, sites: u32) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (mut say, over) = (teller(server), Arc::clone(&is_over));
        let micros = thread::spawn(move || {
            let claim = BarestClaim::ready(&mut say, sites.into());
            while !over.load(Ordering::SeqCst) {
                claim.make(&mut say);
                thread::sleep(BETWEEN);
            }
            BarestClaim::micros(say)
        });
        Self { is_over, micros }
    }

    fn micros(self) -> f64 {
        self.is_over.store(true, Ordering::SeqCst);
        self.micros.join().expect("it claimed")
    }
}

/// Sends commands on a connection of its own.
fn teller(server: &RedisServer) -> impl FnMut(&[&str]) -> String + Send + use<> {
    let mut cli = server.connect();
    move |words| cli.say(words).expect("an answer").text()
}

/// Batches that a Redis ran, and the microseconds that these took.
fn spent(server: &RedisServer) -> (u64, u64) {
    let text = server.cli(&["INFO", "commandstats"]);
    let line = text.lines().find_map(|line| line.strip_prefix("cmdstat_fcall:")).unwrap_or_default();
    let field = |name: &str| {
        let value = line.split(',').find_map(|field| field.strip_prefix(name)).unwrap_or("0");
        value.parse().expect("a number")
    };
    (field("calls="), field("usec="))
}

/// CPU time of the processes that ended.
fn children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux tells it");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    let hundredths: u64 = fields[13..15].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(hundredths * 10)
}

/// How late the requests of all sites were sent, p50 and p99, by their records.
fn lateness(ground: &Ground) -> Option<Lateness> {
    let mut audit = Audit::default();
    for record in scan(&*ground.pages(), Filter::default()).expect("a walk") {
        let record = record.expect("a record");
        audit.count(&Record { unit: "all".to_owned(), ..record });
    }
    audit.report().first()?.lateness
}
