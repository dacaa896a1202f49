//! What the embedded frontier costs: claim and settle in batches, bytes a waiting task on disk, memory while there are a million.
//!
//! `cargo bench --bench frontier`, with `TASKS` (1000000, on 1,000 sites) and `PAIRS` (20000) in the environment. A pair is a
//! claim and its settlement, eight of each in one step; a download that is settled brings a parse task, which is claimed and
//! settled as well. A tenth of the tasks on 10, 1,000 and 100,000 sites shows what the number of sites costs.

mod measure;

use std::path::Path;
use std::time::Instant;

use measure::{cpu, micros, must_be, name, number, pairs_of, register, resident, share, since, table, url};
use paced::internals::frontier::Frontier;
use paced::internals::task::{Priority, Put, Stage};
use tokio::task::JoinSet;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let tasks = number("TASKS", 1_000_000);
    let rows = runtime.expect("a runtime").block_on(async {
        let mut rows = Vec::new();
        let few = tasks / 10;
        for (sites, tasks) in [(10, few), (1_000, few), (100_000, few), (1_000, tasks)] {
            rows.push(run(sites.min(tasks), tasks).await);
        }
        rows
    });
    let head = [
        "sites",
        "tasks",
        "CPU µs a put",
        "bytes a task on disk",
        "MiB more in RAM",
        "CPU µs a download",
        "CPU µs a parse",
        "pairs/CPU-s",
        "pairs/s",
    ];
    table(&head, rows);
}

async fn run(sites: u64, tasks: u64) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("frontier.db");
    let frontier = Frontier::sqlite(&file, None).expect("a new file");
    register(&frontier, sites).await;
    drop(frontier);
    let (empty, ram) = (length(&file), resident());

    let frontier = Frontier::sqlite(&file, None).expect("the file");
    let began = cpu();
    fill(&frontier, sites, tasks / sites).await;
    let put = since(began);
    drop(frontier);
    let full = length(&file);

    let frontier = Frontier::sqlite(&file, None).expect("the file");
    let pairs = number("PAIRS", 20_000).min(tasks);
    let (began, clock) = (cpu(), Instant::now());
    let downloads = pairs_of(&frontier, pairs, Stage::Download).await;
    let (middle, download_time) = (cpu(), clock.elapsed());
    let parses = pairs_of(&frontier, downloads, Stage::Parse).await;
    let (download, parse) = (middle.saturating_sub(began), since(middle));
    must_be("downloads settled", &downloads, &pairs);
    must_be("parses settled", &parses, &pairs);
    balance(&frontier, sites).await;
    let more = resident().saturating_sub(ram);
    vec![
        sites.to_string(),
        tasks.to_string(),
        format!("{:.1}", share(micros(put), tasks)),
        format!("{:.0}", share(full - empty, tasks)),
        format!("{:.0}", share(more, 1 << 20)),
        format!("{:.0}", share(micros(download), pairs)),
        format!("{:.0}", share(micros(parse), pairs)),
        format!("{:.0}", share(pairs * 1_000_000, micros(download))),
        format!("{:.0}", share(pairs * 1_000_000, micros(download_time))),
    ]
}

fn length(file: &Path) -> u64 {
    std::fs::metadata(file).expect("closed, it is one file").len()
}

/// Puts by 16 tasks at once, as parses do.
async fn fill(frontier: &Frontier, sites: u64, each: u64) {
    let mut fillers = JoinSet::new();
    for first in 0..16 {
        let frontier = frontier.clone();
        fillers.spawn(async move {
            for site in (first..sites).step_by(16) {
                let puts: Vec<Put> =
                    (0..each).map(|page| Put::request(url(site, page), Priority::from_value(240))).collect();
                for portion in puts.chunks(50) {
                    frontier.put(&name(site), portion.to_vec()).await.expect("put");
                }
            }
        });
    }
    fillers.join_all().await;
}

/// What came in must be somewhere.
async fn balance(frontier: &Frontier, sites: u64) {
    for site in (0..sites).step_by(usize::try_from(sites.div_ceil(100)).expect("few")) {
        let view = frontier.view(&name(site)).await.expect("a view").expect("the site");
        let imbalance = [view.download.imbalance(), view.parse.imbalance()];
        must_be("the books of a site", &imbalance, &[0, 0]);
    }
}
