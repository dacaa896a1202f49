//! What a whole crawl costs, beside the barest program that fetches and reads the same pages.
//!
//! `cargo bench --bench crawl`, with `SITES`, `PRODUCTS` (a site), `BYTES` (a page), `IN_FLIGHT` in the environment
//! (20, 476, 30000, 64). The shops are served by a process of their own on loopback, without any pace. *bare* is reqwest and
//! scraper with four selectors over the same URLs, kept nowhere; *paced* is the program: links, four fields, archive, items and
//! the durable frontier. Both are processes whose CPU time and memory are taken from outside.

#[path = "../measure/mod.rs"]
mod measure;

mod bare;
mod ours;
mod site_file;
mod steps;

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
    let fetch = bare::run("fetch", &urls);
    let bare = bare::run("bare", &urls);
    let paced = ours::run(&yard);
    let row = |name: &str, cost: Cost| {
        vec![
            name.to_owned(),
            format!("{:.3}", a_thousand(cost.cpu, pages)),
            format!("{:.3}", a_thousand(cost.system, pages)),
            format!("{:.2}", cost.cpu.as_secs_f64() / bare.cpu.as_secs_f64()),
            format!("{:.0}", measure::share(cost.peak, 1 << 20)),
            format!("{:.1}", cost.wall.as_secs_f64()),
        ]
    };
    let head = ["", "CPU s/1000 pages", "of the system", "× bare", "peak MiB", "wall s"];
    table(&head, [row("fetched only", fetch), row("bare", bare), row("paced", paced)]);
    steps::tell(&yard, fetch.cpu, paced.cpu);
}

fn in_flight() -> usize {
    usize::try_from(number("IN_FLIGHT", 64)).expect("a few")
}
