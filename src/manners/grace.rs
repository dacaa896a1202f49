//! How late a start may be sent without asking for a new one.

use std::time::Duration;

/// A tenth of the interval, from 10 ms to 250 ms: the spacing on the wire is never below interval less grace.
pub fn grace(interval: Duration) -> Duration {
    (interval / 10).min(Duration::from_millis(250)).max(Duration::from_millis(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_is_a_tenth_within_bounds() {
        for (interval, allowed) in [(0, 10), (50, 10), (200, 20), (1000, 100), (2500, 250), (60_000, 250)] {
            let graced = grace(Duration::from_millis(interval));
            assert_eq!(graced, Duration::from_millis(allowed), "{interval} ms");
        }
    }
}
