//! Pages into an archive, by many callers at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use paced::internals::archive::{Archive, Visit};
use paced::internals::clock::{Clock, Timestamp};

use super::answered::{answer, answered};
use super::{cpu, must_be, since};

/// The body of the n-th page.
pub fn body(bodies: &[Bytes], n: u64) -> &Bytes {
    &bodies[usize::try_from(n).expect("not that many") % bodies.len()]
}

/// Keeps so many pages; CPU time, wall time and bytes on the disk.
pub async fn keep(bodies: &Arc<Vec<Bytes>>, pages: u64, at_once: u64) -> (Duration, Duration, u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = Archive::open(folder.path(), "bench", Clock::wall()).expect("an archive");
    let next = Arc::new(AtomicU64::new(0));
    let (began, clock) = (cpu(), Instant::now());
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..at_once {
        let (archive, bodies, next) = (archive.clone(), Arc::clone(bodies), Arc::clone(&next));
        callers.spawn(async move {
            let mut last = None;
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= pages {
                    return last;
                }
                let body = body(&bodies, n).clone();
                last = Some((archive.keep(visit(n, body.clone())).await.expect("kept"), body));
            }
        });
    }
    let last = callers.join_all().await;
    let (spent, wall) = (since(began), clock.elapsed());
    for (place, body) in last.into_iter().flatten() {
        must_be("a body read back", &archive.read(&place).expect("it is there").body, &body);
    }
    archive.close().await.expect("closed");
    let files = std::fs::read_dir(folder.path()).expect("its folder");
    let kept = files.map(|file| file.and_then(|file| file.metadata()).expect("a file").len()).sum();
    (spent, wall, kept)
}

fn visit(n: u64, body: Bytes) -> Visit {
    let sent_at = Timestamp::from_millis(1_800_000_000_000);
    let asked = ["user-agent: paced/0.1.0", "accept: text/html", "accept-encoding: gzip, br"];
    let mut visit = answered(answer(&format!("https://shop.example/product/{n}"), sent_at, body));
    let fields = asked.iter().filter_map(|field| field.split_once(": "));
    visit.request.headers = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    visit
}
