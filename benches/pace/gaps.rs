//! How far apart the starts reached the shops.

use std::time::Duration;

use paced::internals::manners::grace;

use crate::support::Stall;

/// The gaps of many sites, counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaps {
    /// The share of the permitted starts that were used, from the first product on.
    pub used: f64,
    pub count: u64,
    /// More than 2 ms below the interval.
    pub below: u64,
    /// Below 95 % of it.
    pub short: u64,
    /// Below what the grace allows.
    pub early: u64,
    /// Those of the ones that are more than 2 ms short which a stall of server or sender explains. They count nowhere else.
    pub aside: u64,
}

impl Gaps {
    /// The gaps between the arrivals of each site, which come in order.
    pub fn of(sites: &[Vec<Duration>], stalls: &[Stall], interval: Duration) -> Self {
        let mut gaps = Self::default();
        let (mut used, mut span) = (0, Duration::ZERO);
        for arrivals in sites {
            for pair in arrivals.windows(2) {
                gaps.count(pair[0], pair[1], stalls, interval);
            }
            if let [first, .., last] = arrivals[..] {
                used += arrivals.len() - 1;
                span += last.saturating_sub(first);
            }
        }
        let used = u32::try_from(used).expect("not that many");
        gaps.used = f64::from(used) * interval.as_secs_f64() / span.as_secs_f64().max(f64::MIN_POSITIVE);
        gaps
    }

    fn count(&mut self, from: Duration, to: Duration, stalls: &[Stall], interval: Duration) {
        let gap = to.saturating_sub(from);
        self.count += 1;
        if gap + Duration::from_millis(2) >= interval {
            return;
        }
        if stalls.iter().any(|stall| touches(stall, from) || touches(stall, to)) {
            self.aside += 1;
            return;
        }
        self.below += 1;
        self.short += u64::from(gap < interval * 19 / 20);
        self.early += u64::from(gap + grace(interval) < interval);
    }

    /// Those that are not more than 2 ms short.
    pub fn fit(&self) -> u64 {
        self.count - self.aside - self.below
    }

    /// So many of them, in per cent.
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub fn share(&self, of_them: u64) -> String {
        format!("{:.2} %", of_them as f64 * 100.0 / self.count.max(1) as f64)
    }
}

/// What waited in the sockets is answered in one go after a stall.
fn touches(stall: &Stall, at: Duration) -> bool {
    (stall.from..=stall.to + Duration::from_millis(5)).contains(&at)
}
