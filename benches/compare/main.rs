//! paced beside Scrapy on the same shops in one run: CPU time, memory, requests that came too early, and what `kill -9` loses.
//!
//! `cargo bench --bench compare`, with `PRODUCTS` (200 a shop), `KILLS` (3) and `SEED` in the environment. It makes a Python
//! environment with a pinned Scrapy in `target/tmp`; where that can't be, it says so and ends. The shops are served by a process
//! of their own. Scrapy keeps items alone; paced keeps every page and its queue as well.

#[path = "../measure/mod.rs"]
mod measure;
#[path = "../crawl/site_file.rs"]
mod site_file;

mod crawlers;

use crawlers::{Crawler, has_scrapy};
use measure::{Measured, Plan, Yard, a_thousand, keep_open, number, share, table};
use site_file::site_toml;

fn main() {
    if std::env::var("ROLE").as_deref() == Ok("shops") {
        return keep_open();
    }
    if !has_scrapy() {
        eprintln!("no Scrapy to compare with: python3 with venv, and a package index, are needed");
        return;
    }
    let products = u32::try_from(number("PRODUCTS", 200)).expect("a shop");
    let rows = Crawler::BOTH.map(|crawler| {
        let cost = costs(crawler, products);
        let pace = early(crawler);
        let loss = losses(crawler);
        [vec![crawler.name()], cost, pace, loss].concat()
    });
    let head = [
        "",
        "CPU s/1000 pages",
        "peak MiB",
        "early of",
        "shortest ms of 200",
        "wall s",
        "requests until the last kill",
        "pages lost",
        "items lost",
    ];
    table(&head, rows);
}

/// 20 shops without pace.
fn costs(crawler: Crawler, products: u32) -> Vec<String> {
    let yard = Yard::open(Plan::plain(20, products, 30_000));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = Measured::run(&mut crawler.command(&yard, folder.path(), false));
    let all = (20 * products) as usize;
    measure::must_be("items", &crawler.items(folder.path()), &all);
    let pages = yard.plan.pages();
    vec![format!("{:.2}", a_thousand(run.cost.cpu, pages)), format!("{:.0}", share(run.cost.peak, 1 << 20))]
}

/// 20 shops that answer in 50 to 1500 ms, at one request in 200 ms each.
fn early(crawler: Crawler) -> Vec<String> {
    let plan = Plan { latency: [50, 1_500], interval: 200, ..Plan::plain(20, 60, 30_000) };
    let yard = Yard::open(plan);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = Measured::run(&mut crawler.command(&yard, folder.path(), false));
    measure::must_be("items", &crawler.items(folder.path()), &1_200);
    let seen = yard.close();
    vec![
        format!("{} of {}", seen.early, seen.requests - 20),
        seen.shortest.to_string(),
        format!("{:.0}", run.cost.wall.as_secs_f64()),
    ]
}

/// Killed after random numbers of requests, started again each time, and at last left to its end.
fn losses(crawler: Crawler) -> Vec<String> {
    let plan = Plan { latency: [20, 200], interval: 50, ..Plan::plain(20, 100, 30_000) };
    let mut yard = Yard::open(plan);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut chance = fastrand::Rng::with_seed(number("SEED", 1));
    for _ in 0..number("KILLS", 3) {
        let mut command = crawler.command(&yard, folder.path(), true);
        let end = yard.requests() + chance.u64(100..500);
        Measured::killed_when(&mut command, || yard.requests() >= end);
    }
    let before = yard.requests();
    Measured::run(&mut crawler.command(&yard, folder.path(), true));
    let items = crawler.items(folder.path());
    let all = yard.plan.pages();
    let seen = yard.close();
    let lost = 20 * 100 - items;
    if crawler == Crawler::Paced {
        measure::must_be("pages and items that paced lost", &(all - seen.pages, lost), &(0, 0));
    }
    vec![before.to_string(), format!("{} of {all}", all - seen.pages), format!("{lost} of {}", 20 * 100)]
}
