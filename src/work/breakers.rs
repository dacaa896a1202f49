//! A breaker for each site: one that is down is left alone, instead of its pages dying one after the other. Others of its
//! group go on.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::info;

use crate::clock::since_boot;
use crate::fetch::Exchange;
use crate::manners::{Breaker, Health};
use crate::recent::Recent;
use crate::task::{Lease, Outcome};

/// The most sites whose failures are kept in mind.
const MOST_SITES: usize = 16_384;

/// This process's breakers, by site; one that never failed, or answers again, has none. Their openings are blocks of the site,
/// which hold for every process.
#[derive(Debug, Default)]
pub(crate) struct Breakers(Mutex<Recent<String, Breaker, MOST_SITES>>);

impl Breakers {
    /// Whether nobody answers there, as far as this process has found out.
    pub(crate) fn is_open(&self, site: &str) -> bool {
        self.lock().peek(site).is_some_and(Breaker::is_open)
    }

    /// Hears how a request went that began no sooner than `noted`, by the time since boot; for how long its site is to be
    /// left alone now, and why.
    pub(super) fn hear(&self, lease: &Lease, noted: Duration, health: Health) -> Option<(Duration, String)> {
        let mut breakers = self.lock();
        match health {
            Health::Answers => {
                if breakers.remove(&lease.site).is_some_and(|mut breaker| breaker.answers()) {
                    info!(site = lease.site, "breaker closed: the site answers again");
                }
                None
            }
            // Its own record says how long the host waits for it.
            Health::Away(_) if lease.robots.is_some() => None,
            Health::Away(why) => {
                let breaker = breakers.get_or(lease.site.clone(), Breaker::default);
                let wait = breaker.fails(&lease.url, noted, since_boot())?;
                Some((wait, format!("breaker open: pages can't be had one after the other, the last: {why}")))
            }
            Health::Unknown => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Recent<String, Breaker, MOST_SITES>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an exchange tells of the site.
pub(super) fn health_of(exchange: &Exchange) -> Health {
    match &exchange.answer {
        Ok(fetched) => Health::of_status(fetched.page.status),
        Err(error) => error.health(),
    }
}

/// A page that met a breaker opening is tried again after it, and after others: else the same ones would spend an attempt at
/// each try.
pub(super) fn put_off(outcome: Outcome, opened: Option<&(Duration, String)>) -> Outcome {
    match (outcome, opened) {
        (Outcome::Retry { after, why }, Some((wait, _))) => Outcome::Retry { after: after + *wait, why },
        (outcome, _) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i17_only_sites_that_fail_have_a_breaker_and_of_many_those_that_failed_last() {
        let breakers = Breakers::default();
        let mut lease = crate::work::under_way::tests::lease(1);
        let mut hear = |n: usize, health| {
            lease.site = format!("s{n}");
            breakers.hear(&lease, Duration::ZERO, health);
            breakers.lock().len()
        };
        let away = || Health::Away("HTTP 503".to_owned());
        assert_eq!([hear(1, Health::Answers), hear(1, away()), hear(2, away())], [0, 1, 2]);
        assert_eq!([hear(1, Health::Answers), hear(3, Health::Answers)], [1, 1]);
        let most = (0..2 * MOST_SITES).map(|n| hear(n, away())).max();
        assert_eq!(most, Some(MOST_SITES));
    }
}
