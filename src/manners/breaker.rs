//! When pages of a site can't be had one after the other, it is left alone for a while: the breaker opens.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::canonical_url::CanonicalUrl;

/// So many different pages in a row: one that fails again and again is its own matter, and its attempts are counted.
const PAGES: usize = 5;
/// How long it stays open the first time; each further time in a row twice as long.
const FIRST: Duration = Duration::from_secs(15);
/// The longest it stays open.
const MOST: Duration = Duration::from_mins(5);

/// What a request tells of the site that it went to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is there: it gave an answer of its own.
    Answers,
    /// Nobody is there who could answer, for this reason.
    Away(String),
    /// Neither.
    Unknown,
}

impl Health {
    /// What a status tells. What a gateway says whose server is gone is as good as no answer (RFC 9110 sections 15.6.3 to
    /// 15.6.5; 520 to 530 are Cloudflare's); an error of the server's own may be the page's. A server that asks to be left
    /// alone is there, but may not be well: that is a block, or a wall.
    pub fn of_status(status: u16) -> Self {
        match status {
            429 | 503 => Self::Unknown,
            502 | 504 | 520..=530 => Self::Away(format!("HTTP {status}")),
            _ => Self::Answers,
        }
    }
}

/// Closed while requests are answered; open after pages that weren't; then each request tries whether it may close.
/// Times are since any one moment.
#[derive(Debug, Default)]
pub struct Breaker {
    /// Pages that failed in a row.
    failed: BTreeSet<CanonicalUrl>,
    /// How often it opened in a row.
    openings: u32,
    until: Duration,
}

impl Breaker {
    /// Whether it opened, and no request was answered since.
    pub fn is_open(&self) -> bool {
        self.openings > 0
    }

    /// A request was answered; whether that closes it.
    pub fn answers(&mut self) -> bool {
        std::mem::take(self).openings > 0
    }

    /// A request that began at `begun` was not answered; for how long the site is to be left alone now, if it is.
    ///
    /// Requests that were under way when it opened tell nothing new.
    pub fn fails(&mut self, page: &CanonicalUrl, begun: Duration, now: Duration) -> Option<Duration> {
        if self.openings == 0 {
            self.failed.insert(page.clone());
        }
        let is_new = if self.openings == 0 { self.failed.len() >= PAGES } else { begun >= self.until };
        if !is_new {
            return None;
        }
        let wait = FIRST.saturating_mul(2_u32.saturating_pow(self.openings)).min(MOST);
        *self =
            Self { failed: BTreeSet::new(), openings: self.openings.saturating_add(1), until: now + wait };
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn page(number: u32) -> CanonicalUrl {
        CanonicalUrl::parse(&format!("https://shop.example/{number}")).expect("a URL")
    }

    /// Lets so many different pages fail, a second apart, from `from` on; what it said to the last one.
    fn fail(breaker: &mut Breaker, pages: u32, from: u64) -> Option<Duration> {
        let told: Vec<_> =
            (0..pages).map(|n| breaker.fails(&page(n), s(from), s(from + u64::from(n)))).collect();
        assert!(told[..told.len() - 1].iter().all(Option::is_none), "{told:?}");
        told[told.len() - 1]
    }

    #[test]
    fn it_opens_when_five_different_pages_failed_in_a_row() {
        let mut breaker = Breaker::default();
        assert_eq!(fail(&mut breaker, 4, 0), None);
        assert!(!breaker.answers(), "an answer in between: it was closed");
        assert_eq!(fail(&mut breaker, 5, 10), Some(FIRST));
    }

    #[test]
    fn a_page_that_fails_again_and_again_does_not_open_it() {
        let mut breaker = Breaker::default();
        assert!((0..50).all(|n| breaker.fails(&page(u32::from(n % 2 == 0)), s(n), s(n)).is_none()));
    }

    #[test]
    fn open_it_stays_open_twice_as_long_after_each_request_that_tried_in_vain() {
        let mut breaker = Breaker::default();
        assert_eq!(fail(&mut breaker, 5, 0), Some(FIRST));
        let mut now = s(4) + FIRST;
        for seconds in [30, 60, 120, 240, 300, 300, 300] {
            assert_eq!(breaker.fails(&page(0), now, now), Some(s(seconds)));
            assert_eq!(breaker.fails(&page(1), now, now + s(1)), None, "it was under way");
            now += s(seconds);
        }
        assert!(breaker.answers() && !breaker.answers());
        assert_eq!(fail(&mut breaker, 5, 5_000), Some(FIRST));
    }

    #[test]
    fn a_status_of_the_servers_own_is_an_answer_one_of_a_gateway_without_server_is_not() {
        for status in [200, 204, 301, 304, 401, 403, 404, 408, 500, 501, 505, 599] {
            assert_eq!(Health::of_status(status), Health::Answers, "{status}");
        }
        for status in [502, 504, 522] {
            assert_eq!(Health::of_status(status), Health::Away(format!("HTTP {status}")));
        }
        for status in [429, 503] {
            assert_eq!(Health::of_status(status), Health::Unknown, "a block or a wall: {status}");
        }
    }
}
