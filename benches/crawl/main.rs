//! What a whole crawl costs, beside the barest program that fetches and reads the same pages.
//!
//! `cargo bench --bench crawl`, with `SITES`, `PRODUCTS` (a site), `BYTES` (a page), `IN_FLIGHT`, `ROUNDS` in the environment
//! (20, 476, 30000, 64, 5). All take turns, and the round in the middle counts: a shared machine is a tenth slower now and then. The shops are served by a process of their own on loopback, without any pace. *bare* is reqwest and
//! scraper with four selectors over the same URLs, kept nowhere; *paced* is the program: links, four fields, archive, items and
//! the durable frontier. Both are processes whose CPU time and memory are taken from outside.

#[path = "../measure/mod.rs"]
mod measure;

mod bare;
mod ours;
mod site_file;
mod steps;

use std::time::Duration;

use measure::{Cost, Plan, Yard, a_thousand, keep_open, number, table};

fn main() {
    match std::env::var("ROLE").as_deref() {
        Ok("shops") => keep_open(),
        Ok("bare") => bare::walk(true),
        Ok("fetch") => bare::walk(false),
        _ => compare(),
    }
}

fn plan() -> Plan {
    let (sites, products, bytes) = (number("SITES", 20), number("PRODUCTS", 476), number("BYTES", 30_000));
    let small = |n| u32::try_from(n).expect("a small number");
    Plan::plain(small(sites), small(products), usize::try_from(bytes).expect("a page"))
}

fn compare() {
    let yard = Yard::open(plan());
    let urls = yard.urls();
    let pages = urls.len() as u64;
    println!(
        "{} sites, {pages} pages of {} bytes, {} in flight",
        yard.plan.shops,
        yard.plan.bytes,
        in_flight()
    );
    let round = |_| [bare::run("fetch", &urls), bare::run("bare", &urls), ours::run(&yard)];
    let rounds: Vec<[Cost; 3]> = (0..number("ROUNDS", 5).max(1)).map(round).collect();
    let row = |name: &str, column: usize| {
        let cost = middle(rounds.iter().map(|round| round[column]), |cost| cost.cpu);
        let ratio = |round: &[Cost; 3]| round[column].cpu.as_secs_f64() / round[1].cpu.as_secs_f64();
        let ratios = || rounds.iter().map(ratio);
        let [least, most] = [ratios().fold(f64::MAX, f64::min), ratios().fold(0.0, f64::max)];
        vec![
            name.to_owned(),
            format!("{:.3}", a_thousand(cost.cpu, pages)),
            format!("{:.3}", a_thousand(cost.system, pages)),
            format!("{:.2}", middle(ratios(), |ratio| Duration::from_secs_f64(*ratio))),
            format!("{least:.2} to {most:.2}"),
            format!("{:.0}", measure::share(cost.peak, 1 << 20)),
            format!("{:.1}", cost.wall.as_secs_f64()),
        ]
    };
    let head = ["", "CPU s/1000 pages", "of the system", "× bare", "of all rounds", "peak MiB", "wall s"];
    table(&head, [row("fetched only", 0), row("bare", 1), row("paced", 2)]);
    let whole = |column: usize| middle(rounds.iter().map(|round| round[column].cpu), |cpu| *cpu);
    steps::tell(&yard, whole(0), whole(2));
}

/// The one in the middle.
fn middle<T>(all: impl Iterator<Item = T>, by: impl Fn(&T) -> Duration) -> T {
    let mut all: Vec<T> = all.collect();
    all.sort_by_key(by);
    all.swap_remove(all.len() / 2)
}

fn in_flight() -> usize {
    usize::try_from(number("IN_FLIGHT", 64)).expect("a few")
}
