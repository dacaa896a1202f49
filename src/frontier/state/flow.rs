//! What flows through a site's queue: how much came in and left lately, and how long its pages waited. Pure.

use std::time::Duration;

use super::{EPOCH, StageCounts, Task};
use crate::clock::Timestamp;
use crate::task::{LANE, Priority, Stage};

/// Books and waits are kept by slots of so many ms.
pub const SLOT_MS: i64 = 300_000;
/// So many slots are an hour. Books of older ones are forgotten.
pub const HOUR_SLOTS: usize = 12;
/// The slot that stands for the beginning of the run.
pub const RUN_SLOT: i64 = 0;
/// What one wait counts, before the first slot's end halves it.
pub const WAIT_ONE: u64 = 1_024;
/// After so many slots without a start nothing is told of waits any more.
pub const WAITS_KEPT: i64 = 24;
/// With so many counters of a site, a wait makes none of its tenant's own.
pub const MOST_WAITS: u32 = 500;
/// Where the buckets of waits end, in ms; the last one has no end.
pub const WAIT_BOUNDS: [i64; 19] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];
const BUCKETS: usize = WAIT_BOUNDS.len() + 1;
/// A queue that takes longer isn't told to fill.
const LONGEST: f64 = 366.0 * 86_400.0;

/// The slot of a time, in ms.
pub fn slot_of(now: i64) -> i64 {
    now.div_euclid(SLOT_MS)
}

/// The bucket of a wait, in ms.
pub fn bucket_of(wait: i64) -> usize {
    WAIT_BOUNDS.iter().take_while(|bound| wait >= **bound).count()
}

/// What was ever counted of a site's downloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueBooks {
    /// Tasks that came in.
    pub entered: u64,
    /// Tasks that left.
    pub gone: u64,
    /// Puts.
    pub puts: u64,
    /// Puts that another one stood for already.
    pub coalesced: u64,
}

impl QueueBooks {
    /// By a stage's counters.
    pub fn of(counts: &StageCounts) -> Self {
        let StageCounts { created, revived, reruns, done, dead, dropped, .. } = counts;
        let StageCounts { coalesced, deferred, known, over_budget, .. } = counts;
        Self {
            entered: created + revived + reruns,
            gone: done + dead + dropped,
            puts: created + revived + coalesced + deferred + known + over_budget,
            coalesced: *coalesced,
        }
    }

    /// The share of the puts since then that were coalesced; none without any.
    fn share_since(&self, puts: f64, coalesced: f64) -> Option<f64> {
        let (all, some) = (number(self.puts) - puts, number(self.coalesced) - coalesced);
        (all > 0.0).then(|| (some / all).clamp(0.0, 1.0))
    }
}

/// Which waits are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitKey {
    /// The lane.
    pub lane: String,
    /// The level of priority.
    pub level: Priority,
    /// Whom they were for, where that isn't whom the site is for.
    pub tenant: Option<String>,
    /// How long they were.
    pub bucket: u32,
}

impl WaitKey {
    /// The wait of a download that is granted now. Only the first try of a task ends one, and no `robots.txt` had any.
    pub fn of(task: &Task, now: i64) -> Option<Self> {
        let rare = &task.rare;
        let is_again = rare.attempts > 0 || rare.losses > 0 || rare.returned;
        let is_robots = rare.errand.is_some() || task.priority == Priority::ROBOTS;
        if task.stage == Stage::Parse || is_again || is_robots {
            return None;
        }
        Some(Self {
            lane: rare.lane.clone().unwrap_or_else(|| LANE.to_owned()),
            level: task.priority.level(),
            tenant: rare.tenant.clone(),
            bucket: u32::try_from(bucket_of(now - EPOCH - task.position)).unwrap_or_default(),
        })
    }
}

/// How long pages waited, by buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitTimes([u64; BUCKETS]);

/// A wait as far as its bucket tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitBound {
    /// It was no longer.
    Within(Duration),
    /// It was longer than any bound.
    Over(Duration),
}

impl WaitTimes {
    /// Adds what was counted in a bucket.
    pub fn add(&mut self, bucket: u32, count: u64) {
        let last = BUCKETS - 1;
        self.0[usize::try_from(bucket).map_or(last, |bucket| bucket.min(last))] += count;
    }

    /// Both together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
        self
    }

    /// How long so many percent of the waits were at most; none where nothing was counted.
    pub fn percentile(&self, percent: u64) -> Option<WaitBound> {
        let all: u64 = self.0.iter().sum();
        let wanted = all.saturating_mul(percent).div_ceil(100);
        let mut so_far = 0;
        let reaches = |count: &u64| {
            so_far += count;
            so_far >= wanted
        };
        let bucket = self.0.iter().position(reaches).filter(|_| all > 0)?;
        let bound = |ms: i64| Duration::from_millis(ms.unsigned_abs());
        let last = WAIT_BOUNDS[BUCKETS - 2];
        Some(WAIT_BOUNDS.get(bucket).map_or(WaitBound::Over(bound(last)), |ms| WaitBound::Within(bound(*ms))))
    }
}

/// What flows through a queue in a time, a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowRate {
    /// Tasks that come in.
    pub enters: f64,
    /// Tasks that leave.
    pub leaves: f64,
}

impl FlowRate {
    /// How long the queue takes at this rate until so many more are in it; none where that isn't within a year.
    pub fn time_to_fill(&self, room: u64) -> Option<Duration> {
        let seconds = number(room) / (self.enters - self.leaves);
        (self.enters > self.leaves && seconds <= LONGEST).then(|| Duration::from_secs_f64(seconds))
    }
}

/// The longest waiting download of a lane and priority.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OldestWaiting {
    /// The lane.
    pub lane: String,
    /// The priority.
    pub priority: Priority,
    /// When it was put.
    pub put_at: Timestamp,
}

/// What flows through a site's queue of downloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueFlow {
    /// When this was read.
    pub at: Timestamp,
    /// Its books now.
    pub books: QueueBooks,
    /// Its books as this slot began, and each of the twelve before.
    pub past: Vec<QueueBooks>,
    /// Its books as the run began, where that is known.
    pub run: Option<QueueBooks>,
    /// Waits that ended lately: newer ones count more.
    pub waits: Vec<(WaitKey, u64)>,
    /// What waits longest.
    pub oldest: Vec<OldestWaiting>,
}

impl QueueFlow {
    /// What came in and left in the last 5 minutes.
    pub fn lately(&self) -> FlowRate {
        self.rate_over(1)
    }

    /// The same of the last hour.
    pub fn in_an_hour(&self) -> FlowRate {
        self.rate_over(HOUR_SLOTS)
    }

    fn rate_over(&self, slots: usize) -> FlowRate {
        let seconds = number(slots as u64 * SLOT_MS.unsigned_abs()) / 1_000.0;
        let rate = |of: fn(&QueueBooks) -> u64| (number(of(&self.books)) - self.before(slots, of)) / seconds;
        FlowRate { enters: rate(|books| books.entered).max(0.0), leaves: rate(|books| books.gone).max(0.0) }
    }

    /// What a counter was exactly so many slots ago, if it rose evenly in the slot of that time.
    fn before(&self, slots: usize, of: fn(&QueueBooks) -> u64) -> f64 {
        let passed = self.at.as_millis().rem_euclid(SLOT_MS).unsigned_abs();
        let part = number(passed) / number(SLOT_MS.unsigned_abs());
        let began = |slots: usize| number(self.past.get(slots).map_or(0, of));
        began(slots) + (began(slots - 1) - began(slots)) * part
    }

    /// The share of puts that were coalesced in the last hour; none without any.
    pub fn coalesced_in_an_hour(&self) -> Option<f64> {
        let [puts, coalesced]: [fn(&QueueBooks) -> u64; 2] = [|books| books.puts, |books| books.coalesced];
        self.books.share_since(self.before(HOUR_SLOTS, puts), self.before(HOUR_SLOTS, coalesced))
    }

    /// The same in the run.
    pub fn coalesced_in_the_run(&self) -> Option<f64> {
        let began = self.run?;
        self.books.share_since(number(began.puts), number(began.coalesced))
    }

    /// How long those pages waited that `is_it` chooses.
    pub fn wait_times(&self, is_it: impl Fn(&WaitKey) -> bool) -> WaitTimes {
        let mut times = WaitTimes::default();
        self.waits
            .iter()
            .filter(|(key, _)| is_it(key))
            .for_each(|(key, count)| times.add(key.bucket, *count));
        times
    }

    /// When the page was put that waits longest of those that `is_it` chooses, by lane and level.
    pub fn longest_waiting(&self, is_it: impl Fn(&str, Priority) -> bool) -> Option<Timestamp> {
        let pages = self.oldest.iter().filter(|page| page.priority != Priority::ROBOTS);
        pages.filter(|page| is_it(&page.lane, page.priority.level())).map(|page| page.put_at).min()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate's digits are few")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn n2_each_wait_has_a_bucket_by_its_bounds() {
        assert_eq!([-5, 0, 999].map(bucket_of), [0; 3]);
        assert_eq!([1_000, 1_999, 2_000, 4_999, 5_000].map(bucket_of), [1, 1, 2, 2, 3]);
        assert_eq!([999_999_999, 1_000_000_000, i64::MAX].map(bucket_of), [18, 19, 19]);
        assert!(WAIT_BOUNDS.is_sorted() && BUCKETS == 20);
    }

    #[test]
    fn n2_percentiles_are_the_bounds_of_their_buckets() {
        let mut times = WaitTimes::default();
        assert_eq!(times.percentile(50), None);
        times.add(4, 94);
        times.add(7, 5);
        times.add(19, 1);
        assert_eq!(times.percentile(50), Some(WaitBound::Within(ms(20_000))));
        assert_eq!(times.percentile(94), Some(WaitBound::Within(ms(20_000))));
        assert_eq!(times.percentile(95), Some(WaitBound::Within(ms(200_000))));
        assert_eq!(times.percentile(100), Some(WaitBound::Over(ms(1_000_000_000))));
    }

    fn flow(passed: i64, now: [u64; 4], past: &[[u64; 4]]) -> QueueFlow {
        let books =
            |[entered, gone, puts, coalesced]: [u64; 4]| QueueBooks { entered, gone, puts, coalesced };
        QueueFlow {
            at: Timestamp::from_millis(6_000_000 * SLOT_MS + passed),
            books: books(now),
            past: past.iter().copied().map(books).collect(),
            run: None,
            waits: Vec::new(),
            oldest: Vec::new(),
        }
    }

    #[test]
    fn n1_a_rate_is_that_of_the_last_five_minutes_or_of_the_hour() {
        let mut past = vec![[0; 4]; 13];
        (past[0], past[1]) = ([600, 300, 0, 0], [300, 300, 0, 0]);
        let flow = flow(0, [600, 300, 0, 0], &past);
        assert_eq!(flow.lately(), FlowRate { enters: 1.0, leaves: 0.0 });
        assert_eq!(flow.in_an_hour(), FlowRate { enters: 600.0 / 3_600.0, leaves: 300.0 / 3_600.0 });
    }

    #[test]
    fn n1_of_a_slot_that_is_partly_over_its_part_counts() {
        let mut past = vec![[0; 4]; 13];
        past[0] = [300, 0, 0, 0];
        // A minute is over: four minutes of the slot before count.
        let flow = flow(60_000, [360, 0, 0, 0], &past);
        assert_eq!(flow.lately(), FlowRate { enters: (60.0 + 240.0) / 300.0, leaves: 0.0 });
    }

    #[test]
    fn n1_a_queue_that_grows_is_full_in_a_time_and_one_that_does_not_never_is() {
        let rate = |enters, leaves| FlowRate { enters, leaves };
        assert_eq!(rate(3.0, 1.0).time_to_fill(100), Some(Duration::from_secs(50)));
        assert_eq!(rate(3.0, 1.0).time_to_fill(0), Some(Duration::ZERO));
        assert_eq!(rate(1.0, 1.0).time_to_fill(0), None);
        assert_eq!(rate(1.0, 3.0).time_to_fill(100), None);
        assert_eq!(rate(1.0, 0.999_999).time_to_fill(5_000_000), None, "that is not within a year");
    }

    #[test]
    fn n3_the_share_of_coalesced_puts_is_that_of_the_hour_and_of_the_run() {
        let mut past = vec![[0, 0, 100, 90]; 13];
        let told = |flow: &QueueFlow| (flow.coalesced_in_an_hour(), flow.coalesced_in_the_run());
        let mut of = flow(0, [0, 0, 200, 115], &past);
        assert_eq!(told(&of), (Some(0.25), None));
        of.run = Some(QueueBooks { puts: 150, coalesced: 90, ..QueueBooks::default() });
        assert_eq!(told(&of), (Some(0.25), Some(0.5)));
        past.fill([0, 0, 200, 115]);
        assert_eq!(flow(0, [0, 0, 200, 115], &past).coalesced_in_an_hour(), None, "nothing was put");
    }
}
