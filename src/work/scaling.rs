//! How many workers are enough: the mission's formula, `workers ≥ response time / interval + α`. Pure.

use std::time::{Duration, Instant};

use crate::forecast::{self, Demand};
use crate::manners::ahead;

/// The most sites that are named where the number of workers changes.
const MOST_TOLD: usize = 3;
/// Workers go only after they weren't needed for so long: a queue that runs empty is often full again at once.
const LAG: Duration = Duration::from_secs(5);

/// What the formula for workers needs of a site that moves.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) site: String,
    pub(super) interval: Duration,
    /// The most requests in flight.
    pub(super) parallel: u32,
    /// The response time measured, if any.
    pub(super) response: Option<Duration>,
    /// The age of its oldest request in flight: the response time is at least that.
    pub(super) oldest: Duration,
    /// How long the oldest of its answers waits to be durable.
    pub(super) keeping: Duration,
}

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
    forecast::workers(loads.iter().map(slots).sum()) as usize
}

/// What of so many workers falls to one of the processes that share them (C18): an equal part, and always some more than it has
/// downloads under way, as others may do less than their part.
pub(super) fn part_of(workers: usize, sharers: usize, under_way: usize) -> usize {
    let more = forecast::workers(u32::try_from(under_way).map_or(f64::MAX, f64::from)) as usize;
    workers.div_ceil(sharers).max(more).min(workers)
}

/// The sites that ask for most of the workers, and how many each.
pub(super) fn most_asking(loads: &[Load]) -> String {
    let mut asking: Vec<(f64, &str)> = loads.iter().map(|load| (slots(load), load.site.as_str())).collect();
    asking.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    asking.truncate(MOST_TOLD);
    let told: Vec<String> = asking.iter().map(|(slots, site)| format!("{site} {slots:.1}")).collect();
    told.join(", ")
}

fn slots(load: &Load) -> f64 {
    // A request is in flight from its grant on, which comes ahead of its start.
    let response = load.response.unwrap_or(Demand::ASSUMED) + ahead(load.interval);
    let response = response.max(load.oldest);
    let demand = Demand { interval: load.interval, parallel: load.parallel, response };
    if load.interval.is_zero() {
        return demand.slots();
    }
    demand.slots() + (load.keeping.as_secs_f64() / load.interval.as_secs_f64()).floor()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(response: u64, interval: u64, parallel: u32) -> Load {
        let (response, interval) = (Duration::from_millis(response), Duration::from_millis(interval));
        Load {
            site: "shop".to_owned(),
            interval,
            parallel,
            response: Some(response),
            oldest: Duration::ZERO,
            keeping: Duration::ZERO,
        }
    }

    #[test]
    fn v15_workers_follow_response_time_over_interval() {
        assert_eq!(workers(&[load(2_950, 1_000, 8)]), 4, "in flight for 3 s with the time ahead");
        assert_eq!(workers(&[load(200, 1_000, 8)]), 2);
        assert_eq!(workers(&[load(20_000, 1_000, 8)]), 10);
        let sites = vec![load(950, 200, 16); 20];
        assert_eq!(workers(&sites), 115);
        assert_eq!(workers(&[load(50, 0, 8)]), 10);
    }

    #[test]
    fn c18_processes_share_workers_and_one_that_does_more_than_its_part_has_some_to_spare() {
        for (workers, sharers, under_way, part) in [
            (12, 1, 0, 12),
            (12, 2, 0, 6),
            (12, 2, 5, 6),
            (12, 2, 6, 7),
            (12, 2, 10, 12),
            (12, 2, 40, 12),
            (1, 30, 0, 1),
            (100, 30, 60, 69),
        ] {
            assert_eq!(part_of(workers, sharers, under_way), part, "{workers} {sharers} {under_way}");
        }
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
    fn c17_response_times_that_go_up_and_down_keep_the_workers_they_need_at_most() {
        let (mut scale, start) = (Scale::default(), Instant::now());
        let noisy =
            (0..400_u64).map(|i| (i * 250, if i % 7 == 0 { 14 } else { 10 + usize::from(i % 2 == 0) }));
        let counts: Vec<usize> =
            noisy.map(|(at, needed)| scale.follow(needed, start + Duration::from_millis(at))).collect();
        assert!(counts.iter().all(|count| *count == 14), "{counts:?}");
    }

    #[test]
    fn the_sites_that_ask_most_are_named_first() {
        let named = |site: &str, response| Load { site: site.to_owned(), ..load(response, 1_000, 8) };
        let loads = [named("a", 100), named("b", 3_200), named("c", 20_000), named("d", 900)];
        assert_eq!(most_asking(&loads), "c 8.0, b 3.2, a 1.0");
    }

    #[test]
    fn v15_workers_that_wait_for_a_slow_page_store_are_made_up_for() {
        let keeping = |ms| Load { keeping: Duration::from_millis(ms), ..load(150, 200, 8) };
        assert_eq!(workers(&[keeping(50)]), 2, "a local disk costs none");
        assert_eq!(workers(&[keeping(5_100)]), 30, "beyond `parallel`, which is about requests in flight");
    }

    #[test]
    fn v15_an_unanswered_request_counts_with_its_age() {
        let waiting = Load { oldest: Duration::from_secs(4), ..load(100, 1_000, 8) };
        assert_eq!(workers(&[waiting]), 5);
    }
}
