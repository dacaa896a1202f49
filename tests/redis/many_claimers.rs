//! A hundred claimers, each with a connection of its own: they start as much as 24 do, no later, and ask hardly more often
//! (C18, L1).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use paced::internals::frontier::WorkScope;

use crate::steps::*;
use crate::support::*;

const SITES: usize = 50;
const INTERVAL: i64 = 200;
/// How long an answer takes, in ms.
const TAKES: i64 = 300;
/// What all of them did at first isn't counted.
const FIRST: Duration = Duration::from_secs(2);
const WHILE: Duration = Duration::from_secs(5);

/// What so many claimers asked for and were granted, and by how much a start came later than it might have, in ms.
#[derive(Debug, Default)]
struct Claimed {
    claims: usize,
    starts: usize,
    late: Vec<i64>,
}

impl Claimed {
    fn late_p99(&self) -> i64 {
        self.late[self.late.len() * 99 / 100]
    }
}

/// Claims as the pool does, until the time is over; how often, and what it was granted.
async fn claim_until(url: String, begins: Instant, ends: Instant) -> (usize, Vec<(String, i64)>) {
    let frontier = open(&url);
    let member = frontier.join(WorkScope::All).await.expect("joined");
    let (mut claims, mut starts) = (0, Vec::new());
    while Instant::now() < ends {
        let grant = frontier.claim(want(&member.name, 32, 0)).await.expect("a frontier that answers");
        let counts = Instant::now() >= begins;
        claims += usize::from(counts);
        for lease in grant.leases {
            if counts {
                starts.push((lease.site.clone(), lease.departure.at));
            }
            let (frontier, owner) = (frontier.clone(), member.name.clone());
            tokio::spawn(async move {
                sleep(TAKES).await;
                settle(&frontier, &owner, &lease, done()).await;
            });
        }
        let next = grant.next_in.map_or(Duration::MAX, |ms| Duration::from_millis(ms.unsigned_abs()));
        let next = next.min(ends.saturating_duration_since(Instant::now()));
        tokio::select! {
            () = tokio::time::sleep(next) => {}
            () = frontier.woken(&member) => {}
        }
    }
    (claims, starts)
}

fn claimed_by(claimers: usize) -> Option<Claimed> {
    let db = RedisDb::take()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("threads");
    runtime.block_on(async {
        let frontier = open(&db.url());
        for site in 0..SITES {
            let name = format!("s{site:02}");
            register_as(&frontier, &name, INTERVAL).await;
            put_in(&frontier, &name, 0..60).await.expect("answers");
        }
        let begins = Instant::now() + FIRST;
        let all: Vec<_> =
            (0..claimers).map(|_| tokio::spawn(claim_until(db.url(), begins, begins + WHILE))).collect();
        let (mut claimed, mut sites) = (Claimed::default(), BTreeMap::<String, Vec<i64>>::new());
        for one in all {
            let (claims, starts) = one.await.expect("it went well");
            claimed.claims += claims;
            claimed.starts += starts.len();
            for (site, at) in starts {
                sites.entry(site).or_default().push(at);
            }
        }
        for starts in sites.values_mut() {
            starts.sort_unstable();
            claimed.late.extend(starts.windows(2).map(|pair| pair[1] - pair[0] - INTERVAL));
        }
        claimed.late.sort_unstable();
        Some(claimed)
    })
}

#[test]
fn c18_l1_a_hundred_claimers_on_a_redis_claim_at_most_two_and_a_half_times_a_start_and_no_later() {
    in_three_tries(|| {
        let (Some(few), Some(many)) = (claimed_by(24), claimed_by(100)) else { return Ok(()) };
        for (claimers, claimed) in [(24, &few), (100, &many)] {
            let (Claimed { claims, starts, late }, p99) = (claimed, claimed.late_p99());
            let worst = late.last().copied().unwrap_or_default();
            println!(
                "{claimers} claimers: {claims} claims for {starts} starts, {p99} ms late p99, at most {worst}"
            );
            assert!(late.iter().all(|late| *late >= 0), "{claimers} claimers: a start came early");
            // 250 a second.
            bound(starts * 100 >= 97 * 5 * 250, format_args!("{claimers} claimers: {starts} starts"))?;
            bound(
                claims * 2 <= starts * 5,
                format_args!("{claimers} claimers: {claims} for {starts} starts"),
            )?;
        }
        bound(
            many.late_p99() <= few.late_p99() + 10,
            format_args!("{} and {} ms late", few.late_p99(), many.late_p99()),
        )
    });
}
