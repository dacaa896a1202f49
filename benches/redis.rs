//! What a frontier on Redis costs: server time a claim and a whole page, calls a page, bytes a waiting task and a known one.
//!
//! `cargo bench --bench redis` with `SITES`, `TASKS` and `PAGES` in the environment (1000, 100000, 5000). It starts a
//! `redis-server` of its own. A page is its claim, its settle, which takes its parse along (else a claim of that), ten links put
//! (`NEW` of them new, 1) and the settle of the parse, by 16 workers of one process; that its body ended is said by the settle,
//! as wherever places in flight aren't short. With fewer `WORKERS` batches are smaller, as those of a bigger fleet are; one
//! claim takes up to `CLAIMED` pages (1). Server time is that of `cmdstat_fcall`, which is wall time; beside it stands the CPU
//! time of the server, its reading and writing included.
//!
//! `LANES=1` adds five lanes, none of them empty, three rules and a thousand tenants: each page is put by one of them, and its
//! links are theirs as well. Of ten pages of a site, two are the steps of a session.
//!
//! `INSTRUCTIONS=1` counts instructions of the server instead, by valgrind: other programs of the machine disturb that by
//! next to nothing. It is some fifty times as slow, so that there are fewer sites, tasks and pages (20, 4000, 192).

#[path = "measure/mod.rs"]
mod measure;
#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use measure::{Spent, done, name, register_at, share, url};
use paced::internals::frontier::{Claim, Frontier, WorkScope};
use paced::internals::task::{
    FleetRules, LaneRule, LaneWish, Lease, Priority, Put, SessionWish, Settled, Settlement,
};
use support::RedisServer;
use tokio::task::JoinSet;

const WORKERS: u64 = 16;
const OWNER: &str = "bench";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(run());
}

async fn run() {
    let builder = RedisServer::builder();
    let counted = std::env::var_os("INSTRUCTIONS").is_some();
    let builder = if counted { builder.counted() } else { builder };
    let Some(server) = builder.start() else { return };
    let (sites, tasks, pages) = if counted { (20, 4_000, 192) } else { (1_000, 100_000, 5_000) };
    let (sites, tasks, pages) = (number("SITES", sites), number("TASKS", tasks), number("PAGES", pages));
    let frontier = Frontier::open(&server.url(0)).expect("a URL");
    println!("{sites} sites, {tasks} tasks, {pages} pages");
    frontier.work_on(OWNER, WorkScope::All).await.expect("said");
    if has_lanes() {
        frontier.agree(rules(tasks), 1).await.expect("agreed");
    }

    let began = Instant::now();
    register(&frontier, sites).await;
    let empty = memory(&server);
    fill(&frontier, sites, tasks / sites, if counted { 25 } else { 500 }).await;
    let full = memory(&server);
    println!(
        "filled in {:.0} s; {:.0} bytes a waiting task with a 60-byte URL",
        began.elapsed().as_secs_f64(),
        share(full.saturating_sub(empty), tasks)
    );

    if counted {
        let before = frontier.calls().unwrap_or(0);
        server.count_instructions();
        work_off(&frontier, pages, sites).await;
        let calls = frontier.calls().unwrap_or(0) - before;
        println!(
            "{pages} pages: {:.0} instructions of the server a page, {:.2} calls a page",
            share(server.instructions(), pages),
            share(calls, pages),
        );
        each_step(&server, &frontier, pages, sites, counted).await;
        bare_instructions(&server, sites);
        return;
    }
    claims_alone(&server, &frontier, pages).await;
    whole_pages(&server, &frontier, pages, sites).await;
    each_step(&server, &frontier, pages, sites, counted).await;
    known_pages(&server, &frontier).await;
    bare_claims(&server, sites);
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

async fn register(frontier: &Frontier, sites: u64) {
    in_parallel(frontier, 0..sites, |frontier, site| async move { register_at(&frontier, site, 1).await })
        .await;
}

async fn fill(frontier: &Frontier, sites: u64, each: u64, portion: usize) {
    in_parallel(frontier, 0..sites, move |frontier, site| async move {
        let put = |page| Put {
            wish: wish(page),
            session: session(page),
            ..Put::request(url(site, page), Priority::from_value(240))
        };
        let puts: Vec<Put> = (0..each).map(put).collect();
        for portion in puts.chunks(portion) {
            frontier.put(&name(site), portion.to_vec()).await.expect("put");
        }
    })
    .await;
}

/// Whether there are lanes, rules and tenants.
fn has_lanes() -> bool {
    std::env::var_os("LANES").is_some()
}

/// Five lanes, and rules that lead a tenant from one to the next but for the last. Each lane gets a part of the tasks.
fn rules(tasks: u64) -> FleetRules {
    let part = u32::try_from(tasks / 5_000).unwrap_or(u32::MAX).max(1);
    let rule = |lane: &str, parts| LaneRule {
        lane: lane.to_owned(),
        threshold: parts * part,
        per: 86_400_000,
        stage: None,
    };
    let lanes = [("general", 6), ("slow", 3), ("slower", 2), ("slowest", 1), ("bulk", 1)];
    FleetRules {
        lanes: lanes.map(|(lane, weight)| (lane.to_owned(), weight)).into(),
        fairness: vec![rule("slow", 1), rule("slower", 2), rule("slowest", 3)],
        ..FleetRules::default()
    }
}

/// Of a thousand tenants one, and now and then a lane that was asked for.
fn wish(page: u64) -> LaneWish {
    if !has_lanes() {
        return LaneWish::default();
    }
    let tenant = Some(format!("tenant{}", fastrand::u32(..1_000)));
    let lane = page.is_multiple_of(5).then(|| "bulk".to_owned());
    LaneWish { lane, urgent: false, tenant }
}

/// The session of a page: two of ten are the steps of one.
fn session(page: u64) -> Option<SessionWish> {
    let is_step = has_lanes() && matches!(page % 10, 3 | 7);
    is_step.then(|| SessionWish { name: format!("session{}", page / 10), on_failure: None })
}

/// Claims of one task each, one after the other; what they leased goes back to its place by settling.
async fn claims_alone(server: &RedisServer, frontier: &Frontier, count: u64) {
    let mut leases = Vec::new();
    let before = spent(server);
    for _ in 0..count.min(2_000) {
        let claim = Claim {
            owner: OWNER.to_owned(),
            token: fastrand::u64(1..u64::MAX / 2),
            download: 1,
            parse: 0,
            dice: vec![fastrand::u32(..)],
            lead: 0,
        };
        leases.extend(frontier.claim(claim).await.expect("a grant").leases);
    }
    let Spent { calls, micros, cpu } = spent(server).since(before);
    println!(
        "{} claims of one task: {:.0} us of the server a claim, {:.0} us of its CPU",
        leases.len(),
        share(micros, calls),
        share(cpu, calls),
    );
    for lease in leases {
        settled(frontier, lease, false).await;
    }
}

async fn whole_pages(server: &RedisServer, frontier: &Frontier, pages: u64, sites: u64) {
    let (sent_before, before) = (frontier.calls().unwrap_or(0), spent(server));
    let began = Instant::now();
    work_off(frontier, pages, sites).await;
    let Spent { calls, micros, cpu } = spent(server).since(before);
    let sent = frontier.calls().unwrap_or(0) - sent_before;
    println!(
        "{pages} pages at {:.0}/s: {:.0} us of the server a page, {:.0} us of its CPU, {:.2} calls a page (the client counts {sent}, the server {calls})",
        share(pages * 1_000, u64::try_from(began.elapsed().as_millis()).expect("minutes")),
        share(micros, pages),
        share(cpu, pages),
        share(calls, pages),
    );
}

fn bare_claims(server: &RedisServer, sites: u64) {
    let mut cli = server.connect();
    let Spent { calls, micros, cpu } =
        measure::barest_claims(|words| cli.say(words).expect("an answer").text(), sites);
    println!(
        "to compare with, the barest claim: {:.0} us of the server, {:.0} us of its CPU",
        share(micros, calls),
        share(cpu, calls),
    );
}

fn bare_instructions(server: &RedisServer, sites: u64) {
    let mut cli = server.connect();
    let mut say = |words: &[&str]| cli.say(words).expect("an answer").text();
    let claim = measure::BarestClaim::ready(&mut say, sites);
    server.instructions();
    let count = 200;
    (0..count).for_each(|_| claim.make(&mut say));
    println!("{:>9.0} instructions: to compare with, the barest claim", share(server.instructions(), count));
}

/// Sixteen workers take a page each, or several by one claim, until there were so many.
async fn work_off(frontier: &Frontier, pages: u64, sites: u64) {
    let (left, new) = (Arc::new(AtomicU64::new(pages)), Arc::new(AtomicU64::new(1 << 32)));
    let mut workers = JoinSet::new();
    let most = number("CLAIMED", 1);
    for _ in 0..number("WORKERS", WORKERS) {
        let (frontier, left, new) = (frontier.clone(), Arc::clone(&left), Arc::clone(&new));
        workers.spawn(async move {
            let mut empty = 0;
            while let Some(wanted) = taken(&left, most) {
                let leases = claim(&frontier, wanted, 0).await;
                empty = if leases.is_empty() { empty + 1 } else { 0 };
                assert!(empty < 1_000, "nothing is left to claim: TASKS must be more");
                left.fetch_add(u64::from(wanted) - leases.len() as u64, Ordering::SeqCst);
                let pages = leases.into_iter().map(|lease| {
                    let (frontier, new) = (frontier.clone(), Arc::clone(&new));
                    async move { page(&frontier, lease, &new, sites).await }
                });
                pages.collect::<JoinSet<_>>().join_all().await;
            }
        });
    }
    workers.join_all().await;
}

/// Takes up to so many of what is left.
fn taken(left: &AtomicU64, most: u64) -> Option<u32> {
    let less = |n: u64| (n > 0).then(|| n.saturating_sub(most));
    let before = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).ok()?;
    u32::try_from(before.min(most)).ok()
}

async fn page(frontier: &Frontier, lease: Lease, new: &AtomicU64, sites: u64) {
    let parse = match settled(frontier, lease, true).await {
        Settled::Leased(parse) => Some(*parse),
        _ => claim(frontier, 0, 1).await.pop(),
    };
    let Some(lease) = parse else { return };
    links(frontier, &lease, new, sites).await;
    settled(frontier, lease, false).await;
}

/// Ten links, some of which are new.
async fn links(frontier: &Frontier, lease: &Lease, new: &AtomicU64, sites: u64) {
    let site: u64 = lease.site[4..].parse().unwrap_or(fastrand::u64(..sites));
    let wish = LaneWish { tenant: lease.tenant.clone(), ..LaneWish::default() };
    let link = |page| Put { wish: wish.clone(), ..Put::link(url(site, page), 1) };
    let count = number("NEW", 1).min(10);
    let (known, first) = (0..10 - count, new.fetch_add(count, Ordering::SeqCst));
    let links = known.chain(first..first + count).map(link).collect();
    frontier.put(&lease.site, links).await.expect("put");
}

/// What each step of a page takes by itself, sixteen of a kind at a time. Leases live for 30 s: not too many pages.
async fn each_step(server: &RedisServer, frontier: &Frontier, pages: u64, sites: u64, counted: bool) {
    let new = Arc::new(AtomicU64::new(1 << 33));
    let mut leases: Vec<Option<Lease>> = (0..pages.min(1_600)).map(|_| None).collect();
    for (kind, name) in
        ["claim", "settle, parse taken along", "ten links", "settle of the parse"].iter().enumerate()
    {
        let (before, count) = (spent(server), leases.len() as u64);
        let mut next = Vec::new();
        while !leases.is_empty() {
            let some = leases.split_off(leases.len().saturating_sub(16)).into_iter().map(|lease| {
                let (frontier, new) = (frontier.clone(), Arc::clone(&new));
                async move { step(kind, &frontier, lease, &new, sites).await }
            });
            next.extend(some.collect::<JoinSet<_>>().join_all().await);
        }
        if counted {
            println!("{:>9.0} instructions: {name}", share(server.instructions(), count));
        } else {
            println!("{:>6.0} us of the server: {name}", share(spent(server).since(before).micros, count));
        }
        leases = next;
    }
}

async fn step(
    kind: usize,
    frontier: &Frontier,
    lease: Option<Lease>,
    new: &AtomicU64,
    sites: u64,
) -> Option<Lease> {
    match (kind, lease) {
        (0, _) => claim(frontier, 1, 0).await.pop(),
        (1, Some(lease)) => match settled(frontier, lease, true).await {
            Settled::Leased(parse) => Some(*parse),
            other => panic!("{other:?} where no other parse waits"),
        },
        (2, Some(lease)) => {
            links(frontier, &lease, new, sites).await;
            Some(lease)
        }
        (_, Some(lease)) => {
            settled(frontier, lease, false).await;
            None
        }
        (_, None) => None,
    }
}

async fn claim(frontier: &Frontier, download: u32, parse: u32) -> Vec<Lease> {
    let claim = Claim {
        owner: OWNER.to_owned(),
        token: fastrand::u64(1..u64::MAX / 2),
        download,
        parse,
        dice: (0..download.max(1)).map(|_| fastrand::u32(..)).collect(),
        lead: 0,
    };
    frontier.claim(claim).await.expect("a grant").leases
}

async fn settled(frontier: &Frontier, lease: Lease, brings: bool) -> Settled {
    let parse = brings.then(|| fastrand::u64(1..u64::MAX / 2));
    let settlement = Settlement { parse, ..done(lease, brings) };
    let settled = frontier.settle(OWNER, fastrand::u64(1..u64::MAX / 2), vec![settlement]).await;
    settled.expect("settled").remove(0)
}

/// Bytes of a page that is known: a site of its own whose pages are put, claimed and settled.
async fn known_pages(server: &RedisServer, frontier: &Frontier) {
    let pages = 4_000;
    register(frontier, 1).await;
    let site = name(0);
    frontier.work_on(OWNER, WorkScope::of([site.clone()])).await.expect("said");
    let mut known = 0;
    while known < pages {
        let puts = (0..200).map(|i| Put::request(url(0, 1 << 40 | (known + i)), Priority::from_value(120)));
        frontier.put(&site, puts.collect()).await.expect("put");
        let mut taken = 0;
        while taken < 200 {
            let claim = Claim {
                owner: OWNER.to_owned(),
                token: fastrand::u64(1..u64::MAX / 2),
                download: 8,
                parse: 0,
                dice: vec![0],
                lead: 0,
            };
            let leases = frontier.claim(claim).await.expect("a grant").leases;
            let settlements: Vec<_> = leases.into_iter().map(|lease| done(lease, false)).collect();
            taken += settlements.len() as u64;
            frontier.settle(OWNER, fastrand::u64(1..u64::MAX / 2), settlements).await.expect("settled");
        }
        known += taken;
    }
    let count = "local n, b = 0, 0 for _, k in ipairs(redis.call('KEYS', '{paced:0}:known:site000000:*')) do
        n = n + redis.call('SCARD', k) b = b + redis.call('MEMORY', 'USAGE', k) end return b .. ' ' .. n";
    let said = server.cli(&["EVAL", count, "0"]);
    let (bytes, known) = said.trim().split_once(' ').expect("two numbers");
    let number = |text: &str| text.parse().expect("a number");
    println!("{:.1} bytes a known page", share(number(bytes), number(known)));
}

async fn in_parallel<F>(
    frontier: &Frontier,
    numbers: std::ops::Range<u64>,
    work: impl Fn(Frontier, u64) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = ()> + Send,
{
    let (next, end) = (Arc::new(AtomicU64::new(numbers.start)), numbers.end);
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (frontier, next, work) = (frontier.clone(), Arc::clone(&next), work.clone());
        workers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                if number >= end {
                    return;
                }
                work(frontier.clone(), number).await;
            }
        });
    }
    workers.join_all().await;
}

fn memory(server: &RedisServer) -> u64 {
    info(server, "memory", "used_memory:").parse().expect("a number")
}

/// What the batches took so far.
fn spent(server: &RedisServer) -> Spent {
    Spent::on("fcall", |words| server.cli(words))
}

fn info(server: &RedisServer, section: &str, field: &str) -> String {
    let all = server.cli(&["INFO", section]);
    all.lines().find_map(|line| line.trim().strip_prefix(field)).unwrap_or_default().to_owned()
}
