//! What a pace allows, reckoned beforehand: starts a second, workers, days. Pure.

use std::time::Duration;

const DAY: f64 = 86_400.0;
/// The share by which there are more workers than the formula's.
const ALPHA: f64 = 0.15;

/// One pace, and how long its answers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The least time between two request starts; zero for none.
    pub interval: Duration,
    /// The most requests in flight.
    pub parallel: u32,
    /// How long an answer takes.
    pub response: Duration,
}

impl Demand {
    /// The response time that is assumed until one is measured.
    pub const ASSUMED: Duration = Duration::from_secs(1);

    /// Requests in flight that use every start: `response / interval`, at least one, at most `parallel` (V15'); all of
    /// `parallel` where there is no interval.
    pub fn slots(&self) -> f64 {
        self.wanted().clamp(1.0, f64::from(self.parallel.max(1)))
    }

    /// Starts a second that interval and `parallel` allow together; none where neither bounds them.
    pub fn rate(&self) -> Option<f64> {
        let allowed = per_second(self.interval);
        let carried = per_second(self.response).map(|rate| rate * f64::from(self.parallel));
        allowed.into_iter().chain(carried).reduce(f64::min)
    }

    /// The `parallel` that would use every start, if the one in force doesn't: `parallel × interval` is less than the
    /// response time.
    pub fn parallel_short_of(&self) -> Option<u32> {
        (!self.interval.is_zero() && self.is_narrow()).then(|| whole(self.wanted() * (1.0 + ALPHA)))
    }

    /// Whether `parallel`, not the interval, bounds the rate.
    pub fn is_narrow(&self) -> bool {
        self.interval.is_zero() || self.wanted() > f64::from(self.parallel)
    }

    /// How long so many pages take at least; none where nothing bounds the rate.
    pub fn time_for(&self, pages: u64) -> Option<Duration> {
        Some(span(as_f64(pages) / self.rate()?))
    }

    /// Pages that a day brings at most.
    pub fn pages_a_day(&self) -> Option<f64> {
        Some(self.rate()? * DAY)
    }

    fn wanted(&self) -> f64 {
        if self.interval.is_zero() {
            return f64::from(self.parallel);
        }
        self.response.as_secs_f64() / self.interval.as_secs_f64()
    }
}

/// Workers for that many busy slots: 15 % more, at least one more (V15).
pub fn workers(slots: f64) -> u32 {
    whole(slots + (slots * ALPHA).max(1.0))
}

/// So many in that time, a second; none in no time.
pub fn rate_of(count: u64, time: Duration) -> Option<f64> {
    per_second(time).map(|rate| as_f64(count) * rate)
}

fn per_second(time: Duration) -> Option<f64> {
    (!time.is_zero()).then(|| time.as_secs_f64().recip())
}

fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of workers")]
fn whole(number: f64) -> u32 {
    number.ceil() as u32
}

#[expect(clippy::cast_precision_loss, reason = "counts for people, far below 2^53")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(response: u64, interval: u64, parallel: u32) -> Demand {
        let (response, interval) = (Duration::from_millis(response), Duration::from_millis(interval));
        Demand { interval, parallel, response }
    }

    #[test]
    fn v15_slots_are_response_over_interval_up_to_parallel() {
        for (response, interval, parallel, slots, enough) in [
            (3_000, 1_000, 8, 3.0, 4),
            (200, 1_000, 8, 1.0, 2),
            (20_000, 1_000, 8, 8.0, 10),
            (50, 0, 8, 8.0, 10),
            (0, 0, 0, 1.0, 2),
        ] {
            let found = demand(response, interval, parallel).slots();
            assert!((found - slots).abs() < 1e-9, "{response} ms at {interval} ms: {found}");
            assert_eq!(workers(found), enough, "{response} ms at {interval} ms");
        }
    }

    #[test]
    fn v16_a_thousand_pages_take_a_thousand_intervals_or_as_long_as_so_few_in_flight_need() {
        for (response, interval, parallel, seconds) in [
            (5_000, 1_000, 1, 5_000),
            (200, 1_000, 1, 1_000),
            (5_000, 1_000, 5, 1_000),
            (3_000, 1_000, 2, 1_500),
        ] {
            let time = demand(response, interval, parallel).time_for(1_000);
            let off = time.map(|time| time.abs_diff(Duration::from_secs(seconds)));
            assert!(off.is_some_and(|off| off < Duration::from_millis(1)), "{response} ms: {time:?}");
        }
        assert_eq!(demand(0, 0, 8).time_for(5), None);
    }

    #[test]
    fn parallel_is_short_where_it_times_the_interval_is_below_the_response_time() {
        for (response, interval, parallel, short_of) in
            [(8_000, 1_000, 8, None), (9_000, 1_000, 8, Some(11)), (9_000, 0, 8, None), (900, 1_000, 1, None)]
        {
            assert_eq!(demand(response, interval, parallel).parallel_short_of(), short_of, "{response} ms");
        }
    }
}
