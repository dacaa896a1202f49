//! One crawl: shops, processes, and what came of it.

use std::net::SocketAddr;
use std::time::Duration;

use paced::internals::archive::{Filter, Record, scan};
use paced::internals::audit::{Audit, Lateness};

use crate::gaps::Gaps;
use crate::ground::{Ground, Shared, SiteFile};
use crate::machine::Machine;
use crate::measure::{Spent, barest_claims, must_be};
use crate::shops::{Plan, Yard};
use crate::support::{RedisServer, Running};

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

/// What a crawl took of a Redis, and then barest claims in a row.
#[derive(Clone, Copy, Debug)]
pub struct OfServer {
    pub crawl: Spent,
    pub barest: Spent,
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
    let (machine, before) = (Machine::watch(), server.map(of_batches));
    let start =
        |number| ground.verb("work").arg("--name").arg(format!("w{number}")).arg("--until-empty").start();
    let workers: Vec<Running> = (0..processes).map(start).collect();
    let spent_before = children();
    for worker in workers {
        worker.finish().expect_code(0);
    }
    let cpu = children().saturating_sub(spent_before);
    let (stalls, after) = (machine.stalls(), server.map(of_batches));
    let seen = yard.close();
    let pages = plan.sites * plan.pages_of_a_site();
    must_be("requests, each page and each robots.txt once", &seen.requests, &(pages + plan.sites));
    let of_server = |server: &RedisServer| OfServer {
        crawl: after.expect("asked").since(before.expect("asked")),
        barest: barest_claims(teller(server), plan.sites.into()),
    };
    let gaps = Gaps::of(&seen.arrivals, &[seen.stalls(), stalls].concat(), interval);
    Outcome { pages, gaps, late: lateness(&ground), cpu, server: server.map(of_server) }
}

/// Sends commands on a connection of its own.
fn teller(server: &RedisServer) -> impl FnMut(&[&str]) -> String + Send + use<> {
    let mut cli = server.connect();
    move |words| cli.say(words).expect("an answer").text()
}

/// What the batches of all processes took so far.
fn of_batches(server: &RedisServer) -> Spent {
    Spent::on("fcall", teller(server))
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
