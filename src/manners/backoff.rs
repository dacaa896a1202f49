//! How long a page that failed waits for its next attempt.

use std::time::Duration;

/// The longest wait after the first failure; each further failure doubles it.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait of all.
const MOST: Duration = Duration::from_mins(10);

/// The wait after `failures` failed attempts, the last one included: anything up to 1 s, 2 s, 4 s … 10 min, as
/// `random` (from 0 to 1) has it, so that pages that failed together don't come back together.
pub fn backoff(failures: u32, random: f64) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    FIRST.saturating_mul(doubled).min(MOST).mul_f64(random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_ten_minutes_and_chance_takes_of_it() {
        let most = [0, 1, 2, 3, 10, 11, 4000].map(|failures| backoff(failures, 1.0).as_secs());
        assert_eq!(most, [1, 1, 2, 4, 512, 600, 600]);
        assert_eq!(backoff(3, 0.25), Duration::from_secs(1));
        assert_eq!(backoff(3, 0.0), Duration::ZERO);
    }
}
