//! The pace on the wire, and what a page costs a fleet: how many of the permitted starts are used, how far apart they reach
//! the shops, how late they are sent, and what one, four, 24 and 100 processes ask of one Redis for the same pages.
//!
//! `cargo bench --bench pace`, with `ONLY` (some of `chain`, `fleet`, `load`, `cpu`), `FLEETS` (1,4,24,100) and `SECONDS` (40) in the
//! environment. The shops are served by a process of their own on loopback. Nothing else should run on the machine: what its
//! own stalls explain is set aside, and told.

#[path = "../../tests/crawl/ground.rs"]
#[allow(clippy::wildcard_imports, reason = "a file of the tests, where clippy lets it pass")]
mod ground;
#[path = "../../tests/pace/machine.rs"]
#[allow(clippy::wildcard_imports, reason = "a file of the tests, where clippy lets it pass")]
mod machine;
#[path = "../measure/mod.rs"]
mod measure;
#[path = "../../tests/support/mod.rs"]
mod support;

mod gaps;
mod run;
mod shops;

use ground::Shared;
use measure::{number, share, table};
use run::{OfServer, Outcome, crawl};
use shops::{Kind, Plan, keep_open};

const INTERVAL: u64 = 200;

fn main() {
    if std::env::var("ROLE").as_deref() == Ok("shops") {
        return keep_open();
    }
    let only = std::env::var("ONLY").unwrap_or_default();
    let wanted = |name: &str| only.is_empty() || only.split(',').any(|one| one == name);
    let scenarios: [(&str, fn()); 4] = [("chain", chain), ("fleet", fleet), ("load", load), ("cpu", cpu)];
    for (name, run) in scenarios {
        if wanted(name) {
            run();
        }
    }
}

/// Pages a site that keep it busy for as long as is wanted.
fn pages() -> u32 {
    u32::try_from(number("SECONDS", 40) * 1_000 / INTERVAL).expect("minutes")
}

fn fleets() -> Vec<usize> {
    let text = std::env::var("FLEETS").unwrap_or_else(|_| "1,4,24,100".to_owned());
    text.split(',').map(|count| count.trim().parse().expect("FLEETS is numbers")).collect()
}

/// One process, listings that lead from one to the next, answers of up to a second and a half: on each backend.
fn chain() {
    let plan =
        Plan { kind: Kind::Chain, sites: 20, pages: pages(), latency: [50, 1_500], interval: INTERVAL };
    println!("a chain of listings of 50 products, 20 sites, answers within 50 to 1500 ms, one process");
    let on = |name: &str, shared: &Shared| row(name, &crawl(&plan, shared, 1));
    let mut rows = vec![on("SQLite", &Shared::default())];
    rows.extend(Shared::redis().map(|shared| on("Redis", &shared)));
    table(&HEAD, rows);
}

/// Several processes on one Redis, answers of up to three seconds.
fn fleet() {
    let plan = Plan { kind: Kind::Chain, sites: 50, pages: pages(), latency: [0, 3_000], interval: INTERVAL };
    println!("a chain of listings of 50 products, 50 sites, answers within 3 s");
    table(&HEAD, on_redis(&plan, |processes, outcome| row(&processes.to_string(), outcome)));
}

/// What the same pages cost one Redis, whoever fetches them.
fn load() {
    let plan = Plan { kind: Kind::Tree, sites: 50, pages: pages(), latency: [0, 300], interval: INTERVAL };
    println!("pages of ten links of which three are new, 50 sites, 250 starts a second");
    let head = [
        "processes",
        "calls a page",
        "server us a page",
        "× the barest claim",
        "CPU us of the server",
        "× the barest claim",
        "late p50, p99 ms",
    ];
    let rows = on_redis(&plan, |processes, outcome| {
        let OfServer { crawl, barest } = outcome.server.expect("it was on Redis");
        let a_page = |spent| share(spent, outcome.pages.into());
        let a_claim = |spent| share(spent, barest.calls);
        vec![
            processes.to_string(),
            format!("{:.2}", a_page(crawl.calls)),
            format!("{:.0}", a_page(crawl.micros)),
            format!("{:.1}", a_page(crawl.micros) / a_claim(barest.micros)),
            format!("{:.0}", a_page(crawl.cpu)),
            format!("{:.1}", a_page(crawl.cpu) / a_claim(barest.cpu)),
            outcome.lateness(),
        ]
    });
    table(&head, rows);
}

fn on_redis(plan: &Plan, row: impl Fn(usize, &Outcome) -> Vec<String>) -> Vec<Vec<String>> {
    let of = |processes| Shared::redis().map(|shared| row(processes, &crawl(plan, &shared, processes)));
    fleets().into_iter().filter_map(of).collect()
}

/// What the pace itself costs one process: a hundred starts a second, beside the same pages as fast as they come.
fn cpu() {
    let plan = Plan { kind: Kind::Tree, sites: 20, pages: pages(), latency: [0, 0], interval: INTERVAL };
    println!("CPU of one process, 20 sites");
    let [paced, unpaced] =
        [INTERVAL, 0].map(|interval| crawl(&Plan { interval, ..plan }, &Shared::default(), 1));
    let of = |outcome: &Outcome| outcome.cpu.as_secs_f64() * 1_000.0 / f64::from(outcome.pages);
    let row = |name: &str, outcome: &Outcome| {
        vec![name.to_owned(), format!("{:.2}", of(outcome)), format!("{:.2}", of(outcome) / of(&unpaced))]
    };
    table(
        &["", "CPU ms a page", "× without pace"],
        [row("100 starts a second", &paced), row("without pace", &unpaced)],
    );
}

const HEAD: [&str; 8] = [
    "",
    "starts used",
    "gaps ≥ interval − 2 ms",
    "below 95 %",
    "below interval − grace",
    "set aside",
    "late p50, p99 ms",
    "calls a page",
];

fn row(name: &str, outcome: &Outcome) -> Vec<String> {
    let gaps = &outcome.gaps;
    vec![
        name.to_owned(),
        format!("{:.2} %", gaps.used * 100.0),
        gaps.share(gaps.fit()),
        gaps.share(gaps.short),
        gaps.early.to_string(),
        gaps.share(gaps.aside),
        outcome.lateness(),
        outcome.server.map_or_else(String::new, |server| {
            format!("{:.2}", share(server.crawl.calls, outcome.pages.into()))
        }),
    ]
}
