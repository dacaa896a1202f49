//! The proof of pace: how far apart the starts of a pace unit were, by their send stamps. Pure; the stamps come from a
//! scan of the archive.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::archive::Record;
use crate::clock::{Timestamp, millis};
use crate::manners::grace;

/// So many early starts are named; the others are counted.
const NAMED_EARLY: usize = 20;

/// Counts records and reports on them a pace unit at a time. A start takes 16 bytes, 32 while the table grows.
///
/// Starts may come in any order, from any number of processes.
#[derive(Debug, Default)]
pub struct Audit {
    units: BTreeMap<String, UnitStarts>,
}

/// What is known of one pace unit's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitReport {
    /// The pace unit: a group, or a site without one.
    pub unit: String,
    /// The sites whose requests are counted.
    pub sites: Vec<String>,
    /// How many requests were sent.
    pub starts: u64,
    /// The shortest and the longest interval that was in force.
    pub interval: (Duration, Duration),
    /// The times between one start and the next; none for a single start.
    pub gaps: Option<Gaps>,
    /// How many starts came before their time by more than grace.
    pub early: u64,
    /// The earliest in time of them, at most 20.
    pub early_starts: Vec<EarlyStart>,
    /// How many answers had which status.
    pub statuses: BTreeMap<u16, u64>,
    /// How many requests had no answer.
    pub unanswered: u64,
    /// The length of all answers, heads and bodies as kept.
    pub bytes: u64,
    /// The first start.
    pub first: Timestamp,
    /// The last start.
    pub last: Timestamp,
}

/// The times between consecutive starts; percentiles by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// The shortest.
    pub min: Duration,
    /// Half of them are not longer.
    pub p50: Duration,
    /// All but one in a hundred are not longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

/// A start that came too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyStart {
    /// When it was sent.
    pub at: Timestamp,
    /// How long after the start before it.
    pub gap: Duration,
    /// How long it had to be, grace not taken off.
    pub interval: Duration,
}

impl Audit {
    /// Counts all of `records`.
    pub fn of(records: impl IntoIterator<Item = Record>) -> Self {
        let mut audit = Self::default();
        records.into_iter().for_each(|record| audit.count(&record));
        audit
    }

    /// Counts one record.
    pub fn count(&mut self, record: &Record) {
        if let Some(unit) = self.units.get_mut(&record.unit) {
            unit.count(record);
        } else {
            self.units.entry(record.unit.clone()).or_default().count(record);
        }
    }

    /// What was counted, sorted by the units' names.
    pub fn report(self) -> Vec<UnitReport> {
        self.units.into_iter().map(|(name, unit)| unit.report(name)).collect()
    }
}

/// A request that was sent: starts of one unit are in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequestStart {
    at: Timestamp,
    /// The site's number in its unit.
    site: u32,
    /// The interval in force, in milliseconds.
    interval: u32,
}

#[derive(Debug, Default)]
struct UnitStarts {
    starts: Vec<RequestStart>,
    sites: BTreeMap<String, u32>,
    statuses: BTreeMap<u16, u64>,
    unanswered: u64,
    bytes: u64,
}

impl UnitStarts {
    fn count(&mut self, record: &Record) {
        let site = self.site_number(&record.site);
        let interval = u32::try_from(millis(record.interval)).unwrap_or(u32::MAX);
        self.starts.push(RequestStart { at: record.sent_at, site, interval });
        self.bytes = self.bytes.saturating_add(record.bytes);
        match record.status {
            Some(status) => *self.statuses.entry(status).or_default() += 1,
            None => self.unanswered += 1,
        }
    }

    fn site_number(&mut self, site: &str) -> u32 {
        if let Some(number) = self.sites.get(site) {
            return *number;
        }
        let number = u32::try_from(self.sites.len()).unwrap_or(u32::MAX);
        self.sites.insert(site.to_owned(), number);
        number
    }

    fn report(mut self, unit: String) -> UnitReport {
        self.starts.sort_unstable();
        let (early, early_starts) = self.early();
        let stamp = |start: Option<&RequestStart>| start.map_or(Timestamp::default(), |start| start.at);
        let intervals = || self.starts.iter().map(RequestStart::interval);
        UnitReport {
            unit,
            starts: self.starts.len() as u64,
            interval: (intervals().min().unwrap_or_default(), intervals().max().unwrap_or_default()),
            early,
            early_starts,
            unanswered: self.unanswered,
            bytes: self.bytes,
            first: stamp(self.starts.first()),
            last: stamp(self.starts.last()),
            sites: self.sites.into_keys().collect(),
            statuses: self.statuses,
            gaps: gaps(&self.starts),
        }
    }

    fn early(&self) -> (u64, Vec<EarlyStart>) {
        let (mut count, mut named) = (0, Vec::new());
        for pair in self.starts.windows(2) {
            let (gap, interval) = (pair[1].at.since(pair[0].at), owed(pair[0], pair[1]));
            if gap < interval.saturating_sub(grace(interval)) {
                count += 1;
                if named.len() < NAMED_EARLY {
                    named.push(EarlyStart { at: pair[1].at, gap, interval });
                }
            }
        }
        (count, named)
    }
}

impl RequestStart {
    fn interval(&self) -> Duration {
        Duration::from_millis(self.interval.into())
    }
}

/// How long the later of two starts had to wait: the interval of the earlier one's site, as in force at the later one
/// (I1). Where the sites differ, only what was in force at the earlier one is on record.
fn owed(earlier: RequestStart, later: RequestStart) -> Duration {
    if earlier.site == later.site { later.interval() } else { earlier.interval() }
}

fn gaps(starts: &[RequestStart]) -> Option<Gaps> {
    let mut gaps: Vec<i64> = starts.windows(2).map(|pair| millis(pair[1].at.since(pair[0].at))).collect();
    gaps.sort_unstable();
    let rank = |percent: usize| {
        let gap = gaps[(gaps.len() * percent).div_ceil(100).max(1) - 1];
        Duration::from_millis(gap.unsigned_abs())
    };
    (!gaps.is_empty()).then(|| Gaps { min: rank(0), p50: rank(50), p99: rank(99), max: rank(100) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(site: &str, at: i64, interval: u64) -> Record {
        Record {
            site: site.to_owned(),
            unit: "unit".to_owned(),
            interval: Duration::from_millis(interval),
            fence: 1,
            url: "http://shop.example/".to_owned(),
            sent_at: Timestamp::from_millis(1_795_165_200_000 + at),
            status: Some(200),
            bytes: 100,
            error: None,
            place: None,
        }
    }

    fn early(starts: &[(&str, i64, u64)]) -> u64 {
        let records = starts.iter().map(|(site, at, interval)| sent(site, *at, *interval));
        Audit::of(records).report()[0].early
    }

    #[test]
    fn i1_a_start_is_early_when_it_comes_before_interval_less_grace() {
        for (starts, expected) in [
            (&[("a", 0, 1000), ("a", 1000, 1000)][..], 0),
            (&[("a", 0, 1000), ("a", 900, 1000)], 0),
            (&[("a", 0, 1000), ("a", 899, 1000)], 1),
            (&[("a", 899, 1000), ("a", 0, 1000)], 1),
            (&[("a", 0, 10_000), ("a", 9750, 10_000)], 0),
            (&[("a", 0, 10_000), ("a", 9749, 10_000)], 1),
            (&[("a", 0, 50), ("a", 40, 50)], 0),
            (&[("a", 0, 50), ("a", 39, 50)], 1),
            (&[("a", 0, 1000), ("a", 0, 1000), ("a", 0, 1000)], 2),
            (&[("a", 0, 0), ("a", 0, 0)], 0),
            (&[("a", 0, 1000)], 0),
        ] {
            assert_eq!(early(starts), expected, "{starts:?}");
        }
    }

    #[test]
    fn i1_a_tuned_interval_is_the_measure_from_the_next_start_on() {
        assert_eq!(early(&[("a", 0, 10_000), ("a", 1000, 1000)]), 0, "tuned down");
        assert_eq!(early(&[("a", 0, 1000), ("a", 1000, 10_000)]), 1, "tuned up");
    }

    #[test]
    fn i1_in_a_group_the_earlier_starts_own_site_is_the_measure() {
        assert_eq!(early(&[("slow", 0, 5000), ("fast", 1000, 1000)]), 1);
        assert_eq!(early(&[("fast", 0, 1000), ("slow", 1000, 5000)]), 0);
    }

    #[test]
    fn a_report_counts_starts_of_all_processes_in_order_of_time() {
        let mut records: Vec<Record> = (0..100).map(|n| sent("a", n * 1000, 1000)).collect();
        records.reverse();
        records.push(Record { status: None, bytes: 0, ..sent("b", 99_000 + 3000, 2000) });
        records.push(Record { status: Some(404), unit: "other".to_owned(), ..sent("c", 7, 500) });
        let reports = Audit::of(records).report();
        let seconds = Duration::from_secs;
        assert_eq!(reports[1].unit, "unit");
        assert_eq!(reports[1].sites, ["a", "b"]);
        assert_eq!((reports[1].starts, reports[1].early), (101, 0));
        assert_eq!(reports[1].interval, (seconds(1), seconds(2)));
        let gaps = Gaps { min: seconds(1), p50: seconds(1), p99: seconds(1), max: seconds(3) };
        assert_eq!(reports[1].gaps, Some(gaps));
        assert_eq!(reports[1].statuses, BTreeMap::from([(200, 100)]));
        assert_eq!((reports[1].unanswered, reports[1].bytes), (1, 10_000));
        assert_eq!(reports[1].last.since(reports[1].first), seconds(102));
        assert_eq!((reports[0].unit.as_str(), reports[0].gaps), ("other", None));
        assert_eq!(reports[0].statuses, BTreeMap::from([(404, 1)]));
    }

    #[test]
    fn early_starts_are_named_with_what_they_owed() {
        let report = &Audit::of([sent("a", 0, 1000), sent("a", 500, 1000)]).report()[0];
        let named = EarlyStart {
            at: Timestamp::from_millis(1_795_165_200_500),
            gap: Duration::from_millis(500),
            interval: Duration::from_secs(1),
        };
        assert_eq!(report.early_starts, [named]);
    }

    #[test]
    fn percentiles_go_by_nearest_rank() {
        let mut at = 0;
        let records = (0..=100).map(|n| {
            at += n;
            sent("a", at, 0)
        });
        let report = &Audit::of(records.collect::<Vec<_>>()).report()[0];
        let ms = Duration::from_millis;
        assert_eq!(report.gaps, Some(Gaps { min: ms(1), p50: ms(50), p99: ms(99), max: ms(100) }));
    }

    #[test]
    fn a_start_takes_sixteen_bytes_at_most() {
        let mut unit = UnitStarts::default();
        for n in 0..100_000 {
            unit.count(&sent("a", n, 1000));
        }
        assert!(unit.starts.capacity() * size_of::<i64>() <= 16 * 100_000, "{}", unit.starts.capacity());
    }
}
