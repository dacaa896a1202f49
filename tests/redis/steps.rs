//! Short words for the steps of a frontier, mostly for one site called `shop`.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::ops::Range;
use std::time::Duration;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::frontier::state::StageCounts;
use paced::internals::frontier::{
    Claim, Frontier, FrontierError, Grant, Registered, Registration, SiteSettings, View, WorkScope,
};
use paced::internals::page::Validators;
use paced::internals::task::{Lease, Outcome, Priority, Put, PutReply, Settled, Settlement, StoredPage};

/// A frontier by its URL.
pub fn open(url: &str) -> Frontier {
    Frontier::open(url).expect("a URL of a frontier")
}

/// Registers the site, with an interval in ms.
pub async fn register(frontier: &Frontier, interval: i64) -> Registered {
    register_as(frontier, "shop", interval).await
}

/// Registers a site of that name.
pub async fn register_as(frontier: &Frontier, name: &str, interval: i64) -> Registered {
    frontier.register(registration(name, interval)).await.expect("a frontier that answers")
}

/// A site of that name, for itself and with a host of its own.
pub fn registration(name: &str, interval: i64) -> Registration {
    let settings = SiteSettings {
        interval,
        parallel: 1_000,
        attempts: 5,
        robots: false,
        min_interval: 1,
        max_parallel: 100_000,
        ..SiteSettings::default()
    };
    Registration {
        name: name.to_owned(),
        text: format!("name = \"{name}\""),
        group: None,
        hosts: vec![format!("{name}.example")],
        settings,
    }
}

/// The site with so many pages waiting.
pub async fn shop(frontier: &Frontier, interval: i64, pages: u32) {
    assert!(matches!(register(frontier, interval).await, Registered::Version(_)));
    if pages > 0 {
        put(frontier, 0..pages).await.expect("a frontier that answers");
    }
}

pub fn url(page: u32) -> CanonicalUrl {
    url_of("shop", page)
}

pub fn url_of(site: &str, page: u32) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("https://{site}.example/{page:06}")).expect("a URL")
}

/// Asks for pages.
pub async fn put(frontier: &Frontier, pages: Range<u32>) -> Result<Vec<PutReply>, FrontierError> {
    put_in(frontier, "shop", pages).await
}

/// Asks for pages of a site of that name.
pub async fn put_in(
    frontier: &Frontier,
    site: &str,
    pages: Range<u32>,
) -> Result<Vec<PutReply>, FrontierError> {
    let puts = pages.map(|page| Put::request(url_of(site, page), Priority::from_value(240))).collect();
    frontier.put(site, puts).await
}

pub fn want(owner: &str, download: u32, parse: u32) -> Claim {
    let (token, dice) = (fastrand::u64(1..1 << 60), vec![fastrand::u32(..)]);
    Claim { owner: owner.to_owned(), token, download, parse, dice, lead: 0 }
}

/// Up to so many downloads, by a process that joins with its first claim to work on all sites.
pub async fn claim(frontier: &Frontier, owner: &str, download: u32) -> Grant {
    let grant = frontier.claim(want(owner, download, 0)).await.expect("a frontier that answers");
    let owners =
        if grant.buried { frontier.owners().await.expect("a frontier that answers") } else { return grant };
    if owners.iter().any(|known| known.name == owner) {
        return grant;
    }
    frontier.work_on(owner, WorkScope::All).await.expect("a frontier that answers");
    frontier.claim(want(owner, download, 0)).await.expect("a frontier that answers")
}

/// The next download, waited for as long as the frontier says.
pub async fn next(frontier: &Frontier, owner: &str) -> Lease {
    for _ in 0..1_000 {
        let mut grant = claim(frontier, owner, 1).await;
        if let Some(lease) = grant.leases.pop() {
            return lease;
        }
        sleep(grant.next_in.expect("pages are waiting")).await;
    }
    panic!("it asked a thousand times in vain");
}

pub async fn sleep(ms: i64) {
    tokio::time::sleep(Duration::from_millis(ms.try_into().expect("forward"))).await;
}

pub async fn settle(frontier: &Frontier, owner: &str, lease: &Lease, outcome: Outcome) -> Settled {
    let settlement = Settlement::of(lease.clone(), outcome);
    let settled = frontier.settle(owner, fastrand::u64(..), vec![settlement]).await;
    settled.expect("a frontier that answers").remove(0)
}

/// Done without a page.
pub fn done() -> Outcome {
    Outcome::Done { stored: None, recrawl: None }
}

/// Done with a page, which goes on to the parse stage.
pub fn fetched(lease: &Lease) -> Outcome {
    let place = format!("segment:{}:1", lease.fence);
    let stored = StoredPage { place, fetched_at: lease.granted_at, validators: Validators::default() };
    Outcome::Done { stored: Some(stored), recrawl: None }
}

pub async fn view(frontier: &Frontier) -> View {
    frontier.view("shop").await.expect("a frontier that answers").expect("the site is there")
}

/// The books of the download stage; they balance (I14).
pub async fn books(frontier: &Frontier) -> StageCounts {
    let view = view(frontier).await;
    assert_eq!((view.download.imbalance(), view.parse.imbalance()), (0, 0), "{view:?}");
    view.download
}

/// Claims and settles until nothing is left; the starts that were granted.
pub async fn work(frontier: &Frontier, owner: &str) -> Vec<Lease> {
    let mut leases = Vec::new();
    loop {
        let grant = claim(frontier, owner, 4).await;
        for lease in &grant.leases {
            settle(frontier, owner, lease, done()).await;
        }
        let idle = grant.leases.is_empty();
        leases.extend(grant.leases);
        match grant.next_in {
            _ if !idle => {}
            // Somebody else may settle what it waits for.
            Some(wait) => sleep(wait.min(100)).await,
            None => return leases,
        }
    }
}

/// The starts keep the interval, each of them.
#[track_caller]
pub fn assert_spaced(leases: &[Lease], interval: i64) {
    let mut starts: Vec<i64> = leases.iter().map(|lease| lease.departure.at).collect();
    starts.sort_unstable();
    let early: Vec<_> = starts.windows(2).filter(|pair| pair[1] - pair[0] < interval).collect();
    assert!(early.is_empty(), "less than {interval} ms apart: {early:?}");
}
