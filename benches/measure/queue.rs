//! Tasks into a frontier and out of it, in batches as a process does it.

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::frontier::{Claim, Frontier, Registered, Registration, SiteSettings, WorkScope};
use paced::internals::page::Validators;
use paced::internals::task::{Lease, Outcome, Settlement, Stage, StoredPage};

/// Tasks of one claim: as many as a process asks for at once.
const BATCH: u32 = 8;
const OWNER: &str = "bench";

/// So many sites without pace.
pub async fn register(frontier: &Frontier, sites: u64) {
    for site in 0..sites {
        register_at(frontier, site, 0).await;
    }
}

/// A site at an interval of so many ms.
pub async fn register_at(frontier: &Frontier, site: u64, interval: i64) {
    let registration = Registration {
        name: name(site),
        text: String::new(),
        group: None,
        hosts: vec![format!("{}.example", name(site))],
        settings: SiteSettings {
            interval,
            parallel: 1_000,
            attempts: 5,
            robots: false,
            budgets: std::collections::BTreeMap::new(),
            ..SiteSettings::default()
        },
    };
    let answer = frontier.register(registration).await.expect("registered");
    assert!(matches!(answer, Registered::Version(_)), "{answer:?}");
}

/// Claims and settles until so many are done or nothing is left; how many were.
pub async fn pairs_of(frontier: &Frontier, wanted: u64, stage: Stage) -> u64 {
    frontier.work_on(OWNER, WorkScope::All).await.expect("said");
    let mut settled = 0;
    while settled < wanted {
        let most = u32::try_from(wanted - settled).unwrap_or(BATCH).min(BATCH);
        let claim = Claim {
            owner: OWNER.to_owned(),
            token: fastrand::u64(1..u64::MAX / 2),
            download: if stage == Stage::Download { most } else { 0 },
            parse: if stage == Stage::Parse { most } else { 0 },
            dice: (0..BATCH).map(|_| fastrand::u32(..)).collect(),
            lead: 0,
        };
        let leases = frontier.claim(claim).await.expect("a grant").leases;
        if leases.is_empty() {
            return settled;
        }
        settled += leases.len() as u64;
        let settlements = leases.into_iter().map(|lease| done(lease, stage == Stage::Download));
        frontier.settle(OWNER, fastrand::u64(1..u64::MAX / 2), settlements.collect()).await.expect("settled");
    }
    settled
}

/// That a task is done, with a page that it brings.
pub fn done(lease: Lease, brings: bool) -> Settlement {
    let stored = brings.then(|| StoredPage {
        place: "20261120T090000Z-a1b2c3d4-00001.warc.gz:123456789:12345".to_owned(),
        fetched_at: lease.granted_at,
        validators: Validators::default(),
    });
    let outcome = Outcome::Done { stored, recrawl: None };
    Settlement::of(lease, outcome)
}

/// The name of the n-th site.
pub fn name(site: u64) -> String {
    format!("site{site:06}")
}

/// A URL of 60 bytes.
pub fn url(site: u64, page: u64) -> CanonicalUrl {
    let text = format!("https://{}.example/products/shoes/p-{page:018}", name(site));
    CanonicalUrl::parse(&text).expect("a URL")
}
