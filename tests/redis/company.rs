//! What workers bring travels with their claims: how long it waits for one, and when it doesn't.

use std::time::{Duration, Instant};

use paced::internals::frontier::Frontier;
use paced::internals::task::{Lease, Put, Settled, Settlement};

use crate::ground::wait;
use crate::steps::*;
use crate::support::*;

/// How long it waits for a claim.
const UNTIL_A_CLAIM: Duration = Duration::from_millis(100);

async fn settle_when_one_claims(frontier: &Frontier, lease: Lease) -> Settled {
    let settlement = Settlement::of(lease, done());
    let settled = frontier.settle_waiting("one", fastrand::u64(..), vec![settlement], true).await;
    settled.expect("it answers").remove(0)
}

/// A site without pace, of which this process has so many pages under way.
async fn leases(frontier: &Frontier, pages: u32) -> Vec<Lease> {
    shop(frontier, 0, pages + 1).await;
    claim(frontier, "one", pages).await.leases
}

#[test]
fn a_settlement_and_links_travel_with_the_next_claim() {
    let Some(db) = RedisDb::take() else { return };
    wait(async {
        let frontier = open(&db.url());
        let mut leases = leases(&frontier, 2).await;
        let (before, began) = (frontier.calls(), Instant::now());
        let link = vec![Put::link(url(77), 1)];
        let (settled, put, grant) = tokio::join!(
            settle_when_one_claims(&frontier, leases.remove(0)),
            frontier.put_waiting("shop", link, true),
            async {
                sleep(5).await;
                claim(&frontier, "one", 1).await
            }
        );
        assert_eq!((settled, put.expect("it answers").len(), grant.leases.len()), (Settled::Kept, 1, 1));
        assert_eq!(frontier.calls(), before.map(|calls| calls + 1), "after {:?}", began.elapsed());
    });
}

#[test]
fn a_settlement_waits_for_a_claim_no_longer_than_a_tenth_of_a_second() {
    in_three_tries(|| {
        let Some(db) = RedisDb::take() else { return Ok(()) };
        wait(async {
            let frontier = open(&db.url());
            let mut leases = leases(&frontier, 2).await;
            let began = Instant::now();
            assert_eq!(settle_when_one_claims(&frontier, leases.remove(0)).await, Settled::Kept);
            let took = began.elapsed();
            assert!(took >= UNTIL_A_CLAIM, "it waits for a claim: {took:?}");
            bound(took < 2 * UNTIL_A_CLAIM, format_args!("{took:?}"))
        })
    });
}

#[test]
fn l1_what_somebody_waits_for_and_the_last_words_of_a_process_wait_for_no_claim() {
    in_three_tries(|| {
        let Some(db) = RedisDb::take() else { return Ok(()) };
        wait(async {
            let frontier = open(&db.url());
            let mut leases = leases(&frontier, 3).await;
            let began = Instant::now();
            // A settlement that frees a site takes the others along.
            let (first, second) = (leases.remove(0), leases.remove(0));
            tokio::join!(settle_when_one_claims(&frontier, first), settle(&frontier, "one", &second, done()));
            let in_company = began.elapsed();
            let last = leases.remove(0);
            tokio::join!(settle_when_one_claims(&frontier, last), async {
                sleep(5).await;
                frontier.hurry();
            });
            let leaving = began.elapsed().saturating_sub(in_company);
            bound(in_company.max(leaving) < UNTIL_A_CLAIM, format_args!("{in_company:?}, {leaving:?}"))
        })
    });
}
