//! Pages into an archive, by many callers at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use paced::archive::{Archive, SentRequest, Visit, VisitOutcome};
use paced::canonical_url::CanonicalUrl;
use paced::clock::{Clock, Timestamp};
use paced::page::{Headers, Page};

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
    let url = CanonicalUrl::parse(&format!("https://shop.example/product/{n}")).expect("a URL");
    let sent_at = Timestamp::from_millis(1_800_000_000_000);
    let fields =
        |fields: &[(&str, &str)]| fields.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let page = Page {
        url: url.clone(),
        sent_at,
        version: http::Version::HTTP_11,
        status: 200,
        headers: Headers(vec![("content-type".to_owned(), b"text/html; charset=utf-8".to_vec())]),
        body,
        response: Duration::from_millis(120),
        remote: None,
    };
    let request = SentRequest {
        url,
        method: "GET",
        headers: fields(&[
            ("user-agent", "paced/0.1.0"),
            ("accept", "text/html"),
            ("accept-encoding", "gzip, br"),
        ]),
        sent_at,
        http_version: http::Version::HTTP_11,
    };
    Visit {
        site: "shop".to_owned(),
        unit: "shop".to_owned(),
        interval: Duration::from_secs(1),
        fence: 1,
        request,
        outcome: VisitOutcome::Response(page),
    }
}
