//! What a page that was fetched and parsed leaves for good, beside its URL: in the file, and in the server's memory. And what a
//! waiting one takes there for its tenant.

use std::path::Path;
use std::time::Duration;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::{Clock, Timestamp};
use paced::internals::frontier::{Claim, Frontier, WorkScope};
use paced::internals::page::Validators;
use paced::internals::task::{LaneWish, Lease, Outcome, Priority, Put, Settlement, Stage, StoredPage};

use crate::support::RedisServer;
use crate::world::{START, shop, wait_for};

const PAGES: u32 = 12_000;
/// Of a short URL and of one that is longer than what Redis keeps packed in a hash by default.
const LENGTHS: [u32; 2] = [60, 110];

fn long_url(page: u32, length: u32) -> CanonicalUrl {
    let begin = "https://shop.example/products/a-thing/";
    let zeros = length as usize - begin.len();
    CanonicalUrl::parse(&format!("{begin}{page:0zeros$}")).expect("a URL")
}

fn done(lease: &Lease, page: u32, recrawl: Option<Duration>) -> Outcome {
    if lease.stage == Stage::Parse {
        return Outcome::Done { stored: None, recrawl: None };
    }
    let place = format!("20261120T090000Z-host-12345-a1b2c3-00001.warc.gz:{}:12345", 123_456_789 + page);
    let stored = StoredPage { place, fetched_at: lease.granted_at, validators: Validators::default() };
    Outcome::Done { stored: Some(stored), recrawl }
}

/// Fetches and parses the pages, with nothing left of their tasks.
async fn crawl(
    frontier: &Frontier,
    length: u32,
    pages: std::ops::Range<u32>,
    recrawl: impl Fn(u32) -> Option<Duration>,
) {
    for first in pages.clone().step_by(500) {
        let portion = first..pages.end.min(first + 500);
        let puts = portion.map(|page| Put::request(long_url(page, length), Priority::from_value(240)));
        frontier.put("shop", puts.collect()).await.expect("answers");
        let mut page = first;
        loop {
            let (owner, token) = ("one".to_owned(), fastrand::u64(..));
            let claim = Claim { owner, token, download: 60, parse: 60, dice: vec![0; 64], lead: 0 };
            let leases = frontier.claim(claim).await.expect("answers").leases;
            if leases.is_empty() {
                break;
            }
            let settlements = leases.into_iter().map(|lease| {
                page += u32::from(lease.stage == Stage::Download);
                let outcome = done(&lease, page, recrawl(page));
                Settlement::of(lease, outcome)
            });
            frontier.settle("one", fastrand::u64(..), settlements.collect()).await.expect("answers");
        }
    }
}

/// Bytes that a page leaves beside its URL of that length.
fn left_by(
    frontier: &Frontier,
    used: impl Fn() -> f64,
    length: u32,
    recrawl: fn(u32) -> Option<Duration>,
) -> f64 {
    wait_for(async {
        let mut site = shop("shop");
        (site.settings.interval, site.settings.parallel) = (0, 1_000);
        frontier.register(site).await.expect("answers");
        frontier.work_on("one", WorkScope::All).await.expect("said");
        crawl(frontier, length, 0..60, recrawl).await;
        let before = used();
        crawl(frontier, length, 60..60 + PAGES, recrawl).await;
        (used() - before) / f64::from(PAGES) - f64::from(length)
    })
}

fn in_a_file(length: u32, recrawl: fn(u32) -> Option<Duration>) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frontier.sqlite");
    let frontier = Frontier::sqlite(&file, None).expect("a new file");
    left_by(&frontier, || used_of(&file), length, recrawl)
}

/// What the file's tables take up.
fn used_of(file: &Path) -> f64 {
    let connection = rusqlite::Connection::open(file).expect("ours");
    let sql = "SELECT (page_count - freelist_count) * page_size
         FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()";
    connection.query_row(sql, [], |row| row.get(0)).expect("ours")
}

fn on_redis(length: u32, recrawl: fn(u32) -> Option<Duration>) -> Option<f64> {
    // At the server's default settings.
    let server = RedisServer::builder().start()?;
    let frontier = Frontier::redis(&server.url(0), None).expect("a URL");
    let used = || server.info("used_memory").and_then(|bytes| bytes.parse().ok()).expect("a number");
    Some(left_by(&frontier, used, length, recrawl))
}

#[expect(clippy::unnecessary_wraps, reason = "a page may have none")]
fn week(_: u32) -> Option<Duration> {
    Some(Duration::from_hours(7 * 24))
}

/// The figures of both lengths, by what is kept of a page.
fn hold(where_: &str, left: impl Fn(u32, fn(u32) -> Option<Duration>) -> Option<f64>, most: f64) {
    for length in LENGTHS {
        let (Some(once), Some(again)) = (left(length, |_| None), left(length, week)) else { return };
        println!(
            "{where_}: {once:.1} bytes and its URL of {length}, {:.1} more with `recrawl`",
            again - once
        );
        assert!(once <= most, "{once:.1} bytes beside a URL of {length}");
        assert!(again - once <= 40.0, "{:.1} bytes more with `recrawl`", again - once);
    }
}

#[test]
fn a_fetched_page_leaves_at_most_75_bytes_in_a_file_and_40_more_with_recrawl() {
    hold("SQLite", |length, recrawl| Some(in_a_file(length, recrawl)), 75.0);
}

#[test]
fn a_fetched_page_leaves_at_most_60_bytes_on_redis_and_40_more_with_recrawl() {
    hold("Redis", on_redis, 60.0);
}

/// Bytes that a waiting task takes, put so many at once, one portion a second.
fn waiting(portion: u32, tenant: fn(u32) -> Option<String>) -> Option<f64> {
    let server = RedisServer::builder().start()?;
    let time = Clock::fake(Timestamp::from_millis(START));
    let frontier = Frontier::redis(&server.url(0), Some(time.clone())).expect("a URL");
    let used = || server.info("used_memory").and_then(|bytes| bytes.parse::<f64>().ok()).expect("a number");
    wait_for(async {
        frontier.register(shop("shop")).await.expect("answers");
        let put = |page| {
            let wish = LaneWish { tenant: tenant(page), ..LaneWish::default() };
            Put { wish, ..Put::request(long_url(page, LENGTHS[0]), Priority::from_value(240)) }
        };
        frontier.put("shop", vec![put(0)]).await.expect("answers");
        let before = used();
        for first in (1..=TENANTED).step_by(portion as usize) {
            time.advance(Duration::from_secs(1));
            frontier.put("shop", (first..first + portion).map(put).collect()).await.expect("answers");
        }
        Some((used() - before) / f64::from(TENANTED))
    })
}

const TENANTED: u32 = 4_000;

#[test]
fn n9_a_waiting_task_of_a_tenant_takes_at_most_60_bytes_more_on_redis() {
    for portion in [1, 500] {
        let Some(plain) = waiting(portion, |_| None) else { return };
        let named = |page: u32| Some(format!("tenant-{}", page % 1_000));
        let more = waiting(portion, named).expect("Redis is installed") - plain;
        println!("{plain:.1} bytes a waiting task, {more:.1} more for its tenant, {portion} a second");
        assert!(more <= 60.0, "{more:.1} bytes more");
    }
}
