//! Re-crawls: pages whose `recrawl` is over are put into their sites' queues, by one process of all that download. It holds a
//! timed mutex while it feeds; where it died or left, another one takes over.

use std::time::{Duration, Instant};

use tracing::debug;

use super::turn::Duty;
use crate::frontier::{Frontier, FrontierError};

/// Pages put in one step: few, as a start that comes up meanwhile waits for it.
const PORTION: u32 = 100;
/// The shortest and the longest time between two steps where nothing is due: a page may get a shorter `recrawl`, or a site room,
/// at any time.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3);

/// Brings in what is due.
pub(super) struct Recrawls(pub(super) Frontier);

/// A page that is put twice is put once.
impl Duty for Recrawls {
    const NAME: &'static str = "feed";
    const FAILS: &'static str = "pages can't be put for their next crawl";
    const LONGEST: Duration = LONGEST;

    /// Puts a portion of what is due.
    async fn step(&mut self) -> Result<Duration, FrontierError> {
        let began = Instant::now();
        let feeding = self.0.feed(PORTION).await?;
        if feeding.put > 0 {
            debug!(pages = feeding.put, "put for their next crawl");
        }
        if feeding.put >= u64::from(PORTION) {
            // More may be due: others have as much time in between.
            return Ok(began.elapsed());
        }
        let next = feeding.next_in.map_or(LONGEST, |ms| Duration::from_millis(ms.unsigned_abs()));
        Ok(next.clamp(SHORTEST, LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::super::turn::{HELD, InTurn};
    use super::*;
    use crate::canonical_url::CanonicalUrl;
    use crate::clock::{Clock, Timestamp};
    use crate::frontier::{Claim, Registration, SiteSettings, WorkScope};
    use crate::page::Validators;
    use crate::task::{Outcome, Put, Settlement, StoredPage};

    /// A site without pace, and so many of its pages fetched, each to be asked for again after an hour.
    async fn fetch(frontier: &Frontier, pages: u32) {
        let settings = SiteSettings { parallel: 8, attempts: 5, ..SiteSettings::default() };
        let (name, hosts) = ("shop".to_owned(), vec!["shop.example".to_owned()]);
        let shop = Registration { name, text: String::new(), group: None, hosts, settings };
        frontier.register(shop).await.expect("a model");
        let owner = frontier.join(WorkScope::All).await.expect("a model").name;
        let url = |n| CanonicalUrl::parse(&format!("https://shop.example/{n}")).expect("a URL");
        frontier.put("shop", (0..pages).map(|n| Put::link(url(n), 1)).collect()).await.expect("a model");
        for token in 1..=u64::from(pages) {
            let claim = Claim { owner: owner.clone(), token, download: 1, parse: 0, dice: vec![0], lead: 0 };
            let lease = frontier.claim(claim).await.expect("a model").leases.remove(0);
            let validators = Validators::default();
            let stored = Some(StoredPage {
                place: "segment:1:1".to_owned(),
                fetched_at: lease.granted_at,
                validators,
            });
            let outcome = Outcome::Done { stored, recrawl: Some(Duration::from_hours(1)) };
            let settlement = Settlement::of(lease, outcome);
            frontier.settle(&owner, token, vec![settlement]).await.expect("a model");
        }
    }

    #[tokio::test]
    async fn l1_one_process_feeds_and_another_one_once_it_is_gone() {
        let clock = Clock::fake(Timestamp::from_millis(1_000));
        let frontier = Frontier::model(clock.clone());
        let [mut first, mut second, mut third] =
            [(); 3].map(|()| InTurn::new(&frontier, Recrawls(frontier.clone())));
        let wait = async |feeder: &mut InTurn<Recrawls>| feeder.step().await.expect("a model");
        for _ in 0..5 {
            assert_eq!(wait(&mut first).await, LONGEST, "nothing is due yet");
            assert_eq!(wait(&mut second).await, HELD, "another one feeds");
            clock.advance(LONGEST);
        }
        // The first one died 3 s ago.
        assert_eq!(wait(&mut second).await, HELD.saturating_sub(LONGEST));
        clock.advance(HELD.saturating_sub(LONGEST));
        assert_eq!(wait(&mut second).await, LONGEST);
        assert_eq!(wait(&mut first).await, HELD, "it only stood still");
        drop(second);
        assert_eq!(wait(&mut third).await, LONGEST);
    }

    #[tokio::test]
    async fn l1_more_than_a_portion_is_fed_at_once_portion_by_portion() {
        let clock = Clock::fake(Timestamp::from_millis(1_000));
        let frontier = Frontier::model(clock.clone());
        let pages = 2 * PORTION + 7;
        fetch(&frontier, pages).await;
        let mut feeder = InTurn::new(&frontier, Recrawls(frontier.clone()));
        assert_eq!(feeder.step().await.expect("a model"), LONGEST, "nothing is due yet");
        clock.advance(Duration::from_hours(2));
        let mut waited = Vec::new();
        while waited.last() != Some(&LONGEST) {
            waited.push(feeder.step().await.expect("a model"));
        }
        // However long a portion took, as much is left to others.
        assert!(waited.len() == 3 && waited[..2].iter().all(|wait| *wait < SHORTEST), "{waited:?}");
        let waiting = frontier.view("shop").await.expect("a model").expect("the site").download.waiting;
        assert_eq!(waiting, u64::from(pages));
    }
}
