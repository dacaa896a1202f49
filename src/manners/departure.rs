//! How exact a start is: how long ahead it is granted, and how late it may be on the wire.

use std::time::Duration;

use crate::clock::millis;

/// A start may be late by one part of the wait in so many.
pub const GRACE_PARTS: u32 = 10;
/// It may always be so late.
pub const LEAST_GRACE: Duration = Duration::from_millis(10);
/// It may never be later.
pub const MOST_GRACE: Duration = Duration::from_millis(250);
/// A unit can be claimed ahead of its due time by one part of its wait in so many.
pub const AHEAD_PARTS: u32 = 4;
/// It can't be claimed earlier.
pub const MOST_AHEAD: Duration = Duration::from_millis(50);
/// A start is granted ahead of itself by at least one part of the wait in so many, so that the answer is there before its time.
pub const LEAD_PARTS: u32 = 10;
/// That is never longer.
pub const MOST_LEAD: Duration = Duration::from_millis(10);

/// A start that is sent no later than this is exact.
pub const LATE: Duration = Duration::from_millis(2);
/// Of starts that are less than this apart, the mean rate alone is kept.
pub const LEAST_EXACT: Duration = Duration::from_millis(100);

/// Whether a start came too soon after the one before: by more than the grace of its wait.
pub fn is_early(gap: Duration, wait: Duration) -> bool {
    wait >= LEAST_EXACT && gap + grace(wait) < wait
}

/// How late a start may be on the wire: a tenth of the wait, between 10 and 250 ms.
pub fn grace(wait: Duration) -> Duration {
    (wait / GRACE_PARTS).clamp(LEAST_GRACE, MOST_GRACE)
}

/// The same, in ms.
pub fn grace_ms(wait: i64) -> i64 {
    millis(grace(spell(wait)))
}

/// How long before its due time a unit can be claimed: a quarter of its wait, 50 ms at most.
pub fn ahead(wait: Duration) -> Duration {
    (wait / AHEAD_PARTS).min(MOST_AHEAD)
}

/// The same, in ms.
pub fn ahead_ms(wait: i64) -> i64 {
    millis(ahead(spell(wait)))
}

/// How long before it a start is granted at the latest, in ms: a tenth of the wait, 10 ms at most.
pub fn lead_ms(wait: i64) -> i64 {
    millis((spell(wait) / LEAD_PARTS).min(MOST_LEAD))
}

fn spell(wait: i64) -> Duration {
    Duration::from_millis(u64::try_from(wait).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_early_by_more_than_its_grace_where_starts_are_exact() {
        let ms = Duration::from_millis;
        for (gap, wait, early) in [
            (900, 1_000, false),
            (899, 1_000, true),
            (90, 100, false),
            (89, 100, true),
            (0, 99, false),
            (0, 0, false),
        ] {
            assert_eq!(is_early(ms(gap), ms(wait)), early, "{gap} of {wait} ms");
        }
    }

    #[test]
    fn grace_is_a_tenth_within_bounds() {
        for (wait, allowed) in
            [(0, 10), (50, 10), (100, 10), (200, 20), (1_000, 100), (2_500, 250), (60_000, 250)]
        {
            assert_eq!(grace_ms(wait), allowed, "{wait} ms");
        }
    }

    #[test]
    fn a_claim_comes_a_quarter_of_the_wait_ahead_and_a_grant_a_tenth_within_bounds() {
        for (wait, ahead, lead) in [(0, 0, 0), (40, 10, 4), (100, 25, 10), (200, 50, 10), (60_000, 50, 10)] {
            assert_eq!((ahead_ms(wait), lead_ms(wait)), (ahead, lead), "{wait} ms");
        }
    }
}
