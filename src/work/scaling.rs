//! How many workers are enough: the mission's formula, `workers ≥ response time / interval + α`. Pure.

use std::time::{Duration, Instant};

use crate::monitor::Load;

/// The response time that is assumed until one is measured.
const ASSUMED: Duration = Duration::from_secs(1);
/// The share by which there are more workers than the formula's.
const ALPHA: f64 = 0.15;
/// Workers go only after they weren't needed for so long: a queue that runs empty is often full again at once.
const LAG: Duration = Duration::from_secs(5);

/// How many workers there are: more as soon as they are needed, fewer after a while.
#[derive(Debug, Default)]
pub(super) struct Scale {
    workers: usize,
    /// Since when fewer were needed, and the most of those needed since then.
    lower: Option<(Instant, usize)>,
}

impl Scale {
    /// How many there are from `now` on, where so many are needed.
    pub(super) fn follow(&mut self, needed: usize, now: Instant) -> usize {
        if needed >= self.workers {
            (self.workers, self.lower) = (needed, None);
            return needed;
        }
        let (since, most) = self.lower.map_or((now, needed), |(since, most)| (since, most.max(needed)));
        self.lower = Some((since, most));
        if now.duration_since(since) >= LAG {
            (self.workers, self.lower) = (most, None);
        }
        self.workers
    }
}

/// Σ min(parallel, response / interval) over the sites, and 15 % more, at least one (V15); and those whose answer has
/// ended and who wait for nothing but their page to be durable, which may take some intervals.
pub(super) fn workers(loads: &[Load]) -> usize {
    let needed: f64 = loads.iter().map(|load| needed_by(*load)).sum();
    let alpha = (needed * ALPHA).max(1.0);
    ceil(needed + alpha)
}

fn needed_by(load: Load) -> f64 {
    let parallel = f64::from(load.parallel);
    let response = load.response.unwrap_or(ASSUMED).max(load.oldest);
    if load.interval.is_zero() {
        return parallel;
    }
    let keeping = (load.keeping.as_secs_f64() / load.interval.as_secs_f64()).floor();
    (response.as_secs_f64() / load.interval.as_secs_f64()).max(1.0).min(parallel) + keeping
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of workers")]
fn ceil(workers: f64) -> usize {
    workers.ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(response: u64, interval: u64, parallel: u32) -> Load {
        let (response, interval) = (Duration::from_millis(response), Duration::from_millis(interval));
        Load { interval, parallel, response: Some(response), oldest: Duration::ZERO, keeping: Duration::ZERO }
    }

    #[test]
    fn v15_workers_follow_response_time_over_interval() {
        assert_eq!(workers(&[load(3_000, 1_000, 8)]), 4);
        assert_eq!(workers(&[load(200, 1_000, 8)]), 2);
        assert_eq!(workers(&[load(20_000, 1_000, 8)]), 10);
        let sites = vec![load(1_000, 200, 16); 20];
        assert_eq!(workers(&sites), 115);
        assert_eq!(workers(&[load(50, 0, 8)]), 10);
    }

    #[test]
    fn workers_come_at_once_and_go_after_five_seconds_without_need() {
        let (mut scale, start) = (Scale::default(), Instant::now());
        let history = [
            (0, 9, 9),
            (1_000, 1, 9),
            (5_900, 4, 9),
            (6_000, 2, 4),
            (6_100, 12, 12),
            (10_000, 3, 12),
            (14_900, 12, 12),
            (15_000, 3, 12),
            (20_000, 1, 3),
        ];
        for (at, needed, workers) in history {
            assert_eq!(scale.follow(needed, start + Duration::from_millis(at)), workers, "at {at} ms");
        }
    }

    #[test]
    fn v15_workers_that_wait_for_a_slow_page_store_are_made_up_for() {
        let keeping = |ms| Load { keeping: Duration::from_millis(ms), ..load(200, 200, 8) };
        assert_eq!(workers(&[keeping(50)]), 2, "a local disk costs none");
        assert_eq!(workers(&[keeping(5_100)]), 30, "beyond `parallel`, which is about requests in flight");
    }

    #[test]
    fn v15_an_unanswered_request_counts_with_its_age() {
        let waiting = Load { oldest: Duration::from_secs(4), ..load(100, 1_000, 8) };
        assert_eq!(workers(&[waiting]), 5);
    }
}
