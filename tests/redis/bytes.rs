//! What a page that was fetched and parsed leaves for good in the server's memory, beside its URL.

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::frontier::{Claim, Frontier};
use paced::internals::page::Validators;
use paced::internals::task::{Outcome, Priority, Put, Settlement, StoredPage};

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;

const PAGES: u32 = 12_000;

fn long_url(page: u32, length: usize) -> CanonicalUrl {
    let begin = "https://shop.example/products/a-thing/";
    let zeros = length - begin.len();
    CanonicalUrl::parse(&format!("{begin}{page:0zeros$}")).expect("a URL")
}

async fn settle_all(
    frontier: &Frontier,
    download: u32,
    parse: u32,
    outcome: impl Fn(u32) -> Outcome,
    seen: &mut u32,
) {
    let claim = Claim { dice: vec![0; 64], ..want("one", download, parse) };
    let leases = frontier.claim(claim).await.expect("answers").leases;
    let settlements = leases.into_iter().map(|lease| {
        *seen += 1;
        Settlement { lease, outcome: outcome(*seen), block: None, response: None, parse: None }
    });
    let settlements: Vec<_> = settlements.collect();
    if !settlements.is_empty() {
        frontier.settle("one", fastrand::u64(..), settlements).await.expect("answers");
    }
}

/// Bytes that a page leaves beside its URL of that length.
fn left_by(length: usize) -> Option<f64> {
    let redis = redis_or_skip()?;
    let frontier = open(&redis.url(0));
    let used = || redis.info("used_memory").and_then(|bytes| bytes.parse::<f64>().ok()).expect("a number");
    wait(async {
        shop(&frontier, 0, 0).await;
        claim(&frontier, "one", 1).await;
        put_range(&frontier, length, 0..60).await;
        work_all(&frontier, 60).await;
        let before = used();
        for first in (60..60 + PAGES).step_by(500) {
            put_range(&frontier, length, first..first + 500).await;
            work_all(&frontier, 500).await;
        }
        Some((used() - before) / f64::from(PAGES) - f64::from(u32::try_from(length).expect("short")))
    })
}

async fn put_range(frontier: &Frontier, length: usize, pages: std::ops::Range<u32>) {
    let puts = pages.map(|page| Put::request(long_url(page, length), Priority::from_value(240)));
    frontier.put("shop", puts.collect()).await.expect("answers");
}

async fn work_all(frontier: &Frontier, pages: u32) {
    let stored = |page: u32| {
        let place = format!("20261120T090000Z-host-12345-a1b2c3-00001.warc.gz:{}:12345", 123_456_789 + page);
        let fetched_at = frontier.clock().now();
        Outcome::Done {
            stored: Some(StoredPage { place, fetched_at, validators: Validators::default() }),
            recrawl: None,
        }
    };
    let (mut fetched, mut parsed) = (0, 0);
    while fetched < pages {
        settle_all(frontier, 60, 0, stored, &mut fetched).await;
    }
    while parsed < pages {
        settle_all(frontier, 0, 60, |_| done(), &mut parsed).await;
    }
}

#[test]
fn a_fetched_page_leaves_at_most_sixty_bytes_and_its_url() {
    for length in [60, 110] {
        let Some(bytes) = left_by(length) else { return };
        println!("{bytes:.1} bytes and its URL of {length}");
        assert!(bytes <= 60.0, "{bytes:.1} bytes beside a URL of {length}");
    }
}
