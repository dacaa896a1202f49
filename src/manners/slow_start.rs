//! How a site is asked again that was left alone for long: slowly at first (W6).

/// A block that is shorter than this, in ms, is followed by the usual pace.
pub const LEAST_BLOCK: i64 = 60_000;
/// So many starts come after it before the usual pace is in force again.
pub const STARTS: u32 = 60;
/// So many of them at four times the interval, then as many at twice, then as many in which a refusal still counts as the same one.
pub const STARTS_A_STEP: u32 = 20;
/// After so long without a refusal, in ms, what happened is forgotten.
pub const FORGIVEN_AFTER: i64 = 30 * 60_000;

/// By how much the interval is longer with so many starts left.
pub fn factor(left: u32) -> i64 {
    match left {
        0..=20 => 1,
        21..=40 => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w6_a_slow_start_is_four_times_twice_and_once_the_interval_twenty_starts_each() {
        let gaps: Vec<i64> = (0..=STARTS).rev().map(factor).collect();
        let of = |factor: i64| gaps.iter().filter(|gap| **gap == factor).count();
        assert_eq!((of(4), of(2), of(1)), (20, 20, 21));
        assert!(gaps.is_sorted_by(|a, b| a >= b));
        assert_eq!(STARTS, 3 * STARTS_A_STEP);
    }
}
