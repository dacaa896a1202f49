//! What keeping a page costs: packed, hashed and durable, beside the same bytes written as they are.
//!
//! `cargo bench --bench archive`, with `PAGES` (5000), `BYTES` (30000, a page) and `AT_ONCE` (64) in the environment. Each page
//! is kept by one of so many callers at once, which share commits.

mod measure;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use measure::{Shop, a_thousand, body, cpu, keep, micros, number, share, since, table};
use paced::internals::archive::COMMIT_PAGES;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let pages = number("PAGES", 5_000);
    let bytes = usize::try_from(number("BYTES", 30_000)).expect("a page");
    let shop = Shop { name: "shop".to_owned(), products: 500, bytes };
    let bodies: Arc<Vec<Bytes>> =
        Arc::new((1..=500).map(|n| shop.page(&format!("/product/{n}")).expect("a product").into()).collect());
    let plain: u64 = (0..pages).map(|n| body(&bodies, n).len() as u64).sum();

    let (cpu_plain, wall_plain) = write_plainly(&bodies, pages);
    let (cpu_kept, wall_kept, kept) =
        runtime.expect("a runtime").block_on(keep(&bodies, pages, number("AT_ONCE", 64)));
    let row = |name: &str, time: Duration, wall: Duration, stored: u64| {
        vec![
            name.to_owned(),
            format!("{:.0}", share(pages * 1_000_000, micros(time))),
            format!("{:.3}", a_thousand(time, pages)),
            format!("{:.0}", share(plain, micros(time))),
            format!("{:.0}", share(plain, micros(wall))),
            format!("{:.3}", share(stored, plain)),
        ]
    };
    println!("{pages} pages of {bytes} bytes");
    table(
        &["", "pages/CPU-s", "CPU s/1000 pages", "MB/CPU-s", "MB/s", "size"],
        [row("written plainly", cpu_plain, wall_plain, plain), row("kept", cpu_kept, wall_kept, kept)],
    );
}

/// The bodies alone into one file, made durable as often as the archive does.
fn write_plainly(bodies: &[Bytes], pages: u64) -> (Duration, Duration) {
    let mut file = tempfile::tempfile().expect("a temporary file");
    let (began, clock) = (cpu(), Instant::now());
    for n in 0..pages {
        file.write_all(body(bodies, n)).expect("room on the disk");
        if (n + 1) % COMMIT_PAGES as u64 == 0 {
            file.sync_data().expect("durable");
        }
    }
    (since(began), clock.elapsed())
}
