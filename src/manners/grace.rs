//! How late a start may be on the wire.

use std::time::Duration;

/// A start may be late by one part of the interval in so many.
pub const PARTS: u32 = 10;
/// It may always be so late.
pub const LEAST: Duration = Duration::from_millis(10);
/// It may never be later.
pub const MOST: Duration = Duration::from_millis(250);

/// How late a start may be on the wire: a tenth of the interval, between 10 and 250 ms.
pub fn grace(interval: Duration) -> Duration {
    (interval / PARTS).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_is_a_tenth_within_bounds() {
        for (interval, allowed) in
            [(0, 10), (50, 10), (100, 10), (200, 20), (1_000, 100), (2_500, 250), (60_000, 250)]
        {
            let graced = grace(Duration::from_millis(interval));
            assert_eq!(graced, Duration::from_millis(allowed), "{interval} ms");
        }
    }
}
