//! The proof of pace: how far apart the starts of a pace unit were, by their send stamps. Pure; the stamps come from a
//! scan of the archive.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::archive::Record;
use crate::clock::{Timestamp, millis};
use crate::manners::departure::{LEAST_EXACT, LEAST_GRACE};
use crate::manners::is_early;

/// So many early starts are named; the others are counted.
const NAMED_EARLY: usize = 20;

/// Counts records and reports on them a pace unit at a time. A start takes 16 bytes, 32 while the table grows.
///
/// Starts may come in any order, from any number of processes.
#[derive(Debug, Default)]
pub struct Audit {
    units: BTreeMap<String, UnitStarts>,
    /// The sites' numbers.
    sites: BTreeMap<String, u32>,
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
    /// The shortest and the longest interval that was in force: the longer of a start's two waits.
    pub interval: (Duration, Duration),
    /// The times between one start and the next; none for a single start.
    pub gaps: Option<Gaps>,
    /// How long after their time requests were sent; none where that isn't on record.
    pub lateness: Option<Lateness>,
    /// How many starts came before their time by more than grace, in their unit or in their site, which may have had another unit
    /// before.
    pub early: u64,
    /// Starts of several sites that are judged by their own site alone: the wait of their unit isn't on record.
    pub without_unit_wait: u64,
    /// The earliest in time of them, at most 20.
    pub early_starts: Vec<EarlyStart>,
    /// Starts with waits under 100 ms, of which the mean alone is judged.
    pub quick: Option<MeanGap>,
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

/// How far from its time a request was sent; percentiles by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Half of them were not further.
    pub p50: Duration,
    /// All but one in a hundred were not further.
    pub p99: Duration,
}

/// The mean time between starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeanGap {
    /// What it was.
    pub gap: Duration,
    /// What it had to be.
    pub due: Duration,
    /// Whether these starts took as long as they had to, but for one grace.
    pub kept: bool,
}

/// A start that came too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyStart {
    /// When it was sent.
    pub at: Timestamp,
    /// How long after the start before it in its unit, or in its site.
    pub gap: Duration,
    /// What that had to be, grace not taken off.
    pub wait: Duration,
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
        let site = self.site_number(&record.site);
        if let Some(unit) = self.units.get_mut(&record.unit) {
            unit.count(site, record);
        } else {
            self.units.entry(record.unit.clone()).or_default().count(site, record);
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

    /// What was counted, sorted by the units' names.
    pub fn report(self) -> Vec<UnitReport> {
        let Self { mut units, sites } = self;
        units.values_mut().for_each(|unit| unit.starts.sort_unstable());
        let moved = Moved::between(&units);
        let mut names: Vec<(u32, String)> = sites.into_iter().map(|(name, number)| (number, name)).collect();
        names.sort_unstable();
        let reports =
            (0..).zip(units).map(|(number, (name, unit))| unit.report(name, number, &names, &moved));
        reports.collect()
    }
}

/// The starts of sites that were in several units: in order of time, each with its unit's number.
struct Moved(HashMap<u32, Vec<(Timestamp, usize)>>);

impl Moved {
    fn between(units: &BTreeMap<String, UnitStarts>) -> Self {
        let mut of_sites: HashMap<u32, usize> = HashMap::new();
        units.values().flat_map(|unit| &unit.sites).for_each(|site| *of_sites.entry(*site).or_default() += 1);
        let moved = of_sites.into_iter().filter(|(_, units)| *units > 1);
        let mut moved: HashMap<u32, Vec<(Timestamp, usize)>> =
            moved.map(|(site, _)| (site, Vec::new())).collect();
        if moved.is_empty() {
            return Self(moved);
        }
        for (number, unit) in units.values().enumerate() {
            let sites = unit.sites_of_terms();
            for start in &unit.starts {
                if let Some(starts) = moved.get_mut(&sites[start.terms as usize]) {
                    starts.push((start.at, number));
                }
            }
        }
        moved.values_mut().for_each(|starts| starts.sort_unstable());
        Self(moved)
    }

    /// The last start of a site before one of that unit at that time.
    fn before(&self, site: u32, at: Timestamp, unit: usize) -> Option<Timestamp> {
        let starts = self.0.get(&site)?;
        let earlier = starts.partition_point(|start| *start < (at, unit));
        Some(starts[..earlier].last()?.0)
    }
}

/// A request that was sent: starts of one unit are in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequestStart {
    at: Timestamp,
    /// The number of its terms in its unit.
    terms: u32,
    /// How far from its time it was sent, in ms; `UNTOLD` where that isn't on record.
    late: u32,
}

/// What starts have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StartTerms {
    /// The site's number.
    site: u32,
    /// None where that isn't on record.
    unit_wait: Option<Duration>,
    site_wait: Duration,
}

const UNTOLD: u32 = u32::MAX;

#[derive(Debug, Default)]
struct UnitStarts {
    starts: Vec<RequestStart>,
    terms: BTreeMap<StartTerms, u32>,
    sites: BTreeSet<u32>,
    statuses: BTreeMap<u16, u64>,
    unanswered: u64,
    bytes: u64,
}

impl UnitStarts {
    fn count(&mut self, site: u32, record: &Record) {
        let Record { sent_at: at, unit_wait, site_wait, .. } = *record;
        self.sites.insert(site);
        let terms = StartTerms { site, unit_wait, site_wait };
        let next = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
        let terms = *self.terms.entry(terms).or_insert(next);
        let ms = |start_at: Timestamp| at.as_millis().abs_diff(start_at.as_millis());
        let late =
            record.start_at.map_or(UNTOLD, |start_at| u32::try_from(ms(start_at)).unwrap_or(UNTOLD - 1));
        self.starts.push(RequestStart { at, terms, late });
        self.bytes = self.bytes.saturating_add(record.bytes);
        match record.status {
            Some(status) => *self.statuses.entry(status).or_default() += 1,
            None => self.unanswered += 1,
        }
    }

    /// The site of each of the terms, by their number.
    fn sites_of_terms(&self) -> Vec<u32> {
        self.terms_in_order().iter().map(|terms| terms.site).collect()
    }

    fn terms_in_order(&self) -> Vec<&StartTerms> {
        let mut terms: Vec<&StartTerms> = self.terms.keys().collect();
        terms.sort_unstable_by_key(|of| self.terms[*of]);
        terms
    }

    /// Of starts in order of time.
    fn report(self, unit: String, number: usize, names: &[(u32, String)], moved: &Moved) -> UnitReport {
        let tally = self.tally(number, moved);
        let stamp = |start: Option<&RequestStart>| start.map_or(Timestamp::default(), |start| start.at);
        let intervals =
            || self.terms.keys().map(|terms| terms.unit_wait.unwrap_or_default().max(terms.site_wait));
        UnitReport {
            unit,
            starts: self.starts.len() as u64,
            interval: (intervals().min().unwrap_or_default(), intervals().max().unwrap_or_default()),
            lateness: lateness(&self.starts),
            early: tally.early,
            without_unit_wait: if self.sites.len() > 1 { tally.without_unit_wait } else { 0 },
            quick: tally.quick(),
            early_starts: tally.early_starts,
            unanswered: self.unanswered,
            bytes: self.bytes,
            first: stamp(self.starts.first()),
            last: stamp(self.starts.last()),
            sites: self.names(names),
            statuses: self.statuses,
            gaps: gaps(&self.starts),
        }
    }

    fn names(&self, all: &[(u32, String)]) -> Vec<String> {
        let mut names: Vec<String> = self.sites.iter().map(|site| all[*site as usize].1.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Judges each start by its own waits (I1): how long after the last one in its unit, and in its site, it came. The site's may
    /// have been in another unit.
    fn tally(&self, unit: usize, moved: &Moved) -> PaceTally {
        let terms = self.terms_in_order();
        let (mut tally, mut last_of_unit) = (PaceTally::default(), None);
        let mut last_of_site: HashMap<u32, Timestamp> = HashMap::new();
        for RequestStart { at, terms: number, .. } in self.starts.iter().copied() {
            let StartTerms { site, unit_wait, site_wait } = *terms[number as usize];
            let last_of_its_site = last_of_site.insert(site, at).max(moved.before(site, at, unit));
            tally.without_unit_wait += u64::from(unit_wait.is_none());
            let lasts = [(last_of_unit, unit_wait.unwrap_or_default()), (last_of_its_site, site_wait)];
            let waited = lasts.into_iter().filter_map(|(last, wait): (Option<Timestamp>, _)| {
                Some(EarlyStart { at, gap: at.since(last?), wait })
            });
            // The one that was short of more.
            if let Some(waited) = waited.min_by_key(|waited| millis(waited.gap) - millis(waited.wait)) {
                tally.take(waited);
            }
            last_of_unit = Some(at);
        }
        tally
    }
}

/// What the gaps of a unit come to.
#[derive(Debug, Default)]
struct PaceTally {
    early: u64,
    early_starts: Vec<EarlyStart>,
    without_unit_wait: u64,
    /// Starts that wait too short a time to be exact, how long they took, and how long they had to take.
    quick: u32,
    took: Duration,
    due: Duration,
}

impl PaceTally {
    fn take(&mut self, start: EarlyStart) {
        if is_early(start.gap, start.wait) {
            self.early += 1;
            if self.early_starts.len() < NAMED_EARLY {
                self.early_starts.push(start);
            }
        }
        if !start.wait.is_zero() && start.wait < LEAST_EXACT {
            self.quick += 1;
            self.took += start.gap;
            self.due += start.wait;
        }
    }

    fn quick(&self) -> Option<MeanGap> {
        let Self { quick, took, due, .. } = *self;
        (quick > 0).then(|| MeanGap { gap: took / quick, due: due / quick, kept: took + LEAST_GRACE >= due })
    }
}

fn lateness(starts: &[RequestStart]) -> Option<Lateness> {
    let told = starts.iter().map(|start| start.late).filter(|late| *late != UNTOLD);
    let mut late: Vec<i64> = told.map(i64::from).collect();
    late.sort_unstable();
    (!late.is_empty()).then(|| Lateness { p50: rank(&late, 50), p99: rank(&late, 99) })
}

fn gaps(starts: &[RequestStart]) -> Option<Gaps> {
    let mut gaps: Vec<i64> = starts.windows(2).map(|pair| millis(pair[1].at.since(pair[0].at))).collect();
    gaps.sort_unstable();
    let at = |percent| rank(&gaps, percent);
    (!gaps.is_empty()).then(|| Gaps { min: at(0), p50: at(50), p99: at(99), max: at(100) })
}

/// Of sorted times in ms, the one of that rank.
fn rank(sorted: &[i64], percent: usize) -> Duration {
    let ms = sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
    Duration::from_millis(ms.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(site: &str, at: i64, interval: u64) -> Record {
        Record {
            site: site.to_owned(),
            unit: "unit".to_owned(),
            start_at: Some(Timestamp::from_millis(1_795_165_200_000 + at - 1)),
            unit_wait: Some(Duration::from_millis(interval)),
            site_wait: Duration::from_millis(interval),
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
            (&[("a", 0, 100), ("a", 90, 100)], 0),
            (&[("a", 0, 100), ("a", 89, 100)], 1),
            (&[("a", 0, 99), ("a", 1, 99)], 0),
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
    fn i1_in_a_group_a_start_waits_for_its_unit_and_for_its_own_site() {
        let group = |starts: &[(&str, i64, u64)]| {
            let in_unit = |record| Record { unit_wait: Some(Duration::from_secs(1)), ..record };
            let records = starts.iter().map(|(site, at, wait)| in_unit(sent(site, *at, *wait)));
            Audit::of(records).report()[0].early
        };
        assert_eq!(group(&[("slow", 0, 5000), ("fast", 1000, 1000), ("slow", 5000, 5000)]), 0);
        assert_eq!(group(&[("slow", 0, 5000), ("fast", 4100, 1000), ("slow", 4749, 5000)]), 1, "both waits");
        assert_eq!(group(&[("slow", 0, 5000), ("fast", 1000, 1000), ("slow", 4000, 5000)]), 1, "the site's");
        assert_eq!(group(&[("slow", 0, 5000), ("fast", 899, 1000)]), 1, "the unit's");
    }

    #[test]
    fn i1_a_site_that_changed_its_unit_waits_for_its_own_last_start_in_the_former_one() {
        let of =
            |unit: &str, record| Record { unit: unit.to_owned(), unit_wait: Some(Duration::ZERO), ..record };
        let early = |records: &[(&str, &str, i64)]| {
            let records = records.iter().map(|(unit, site, at)| of(unit, sent(site, *at, 1000)));
            Audit::of(records).report().iter().map(|report| report.early).collect::<Vec<_>>()
        };
        assert_eq!(early(&[("a", "a", 0), ("g", "a", 899)]), [0, 1]);
        assert_eq!(early(&[("a", "a", 0), ("g", "a", 900)]), [0, 0]);
        assert_eq!(early(&[("a", "a", 0), ("g", "b", 10), ("g", "a", 899)]), [0, 1], "of several sites");
        assert_eq!(early(&[("g", "a", 0), ("a", "a", 899), ("g", "a", 1800)]), [1, 0], "and back");
        assert_eq!(early(&[("a", "a", 0), ("g", "a", 0)]), [0, 1], "at one moment, once");
        assert_eq!(early(&[("a", "a", 0), ("g", "b", 10)]), [0, 0], "other sites are their own");
    }

    #[test]
    fn records_of_earlier_builds_are_judged_by_their_site_alone_and_it_is_told() {
        let told = |record| Record { start_at: None, unit_wait: None, ..record };
        let records =
            [("a", 0, 1000), ("b", 10, 5000), ("a", 899, 1000)].map(|(s, at, ms)| told(sent(s, at, ms)));
        let report = &Audit::of(records).report()[0];
        assert_eq!((report.early, report.lateness, report.interval.1.as_secs()), (1, None, 5));
        assert_eq!(report.without_unit_wait, 3);
        let alone = [("a", 0, 1000), ("a", 1000, 1000)].map(|(s, at, ms)| told(sent(s, at, ms)));
        assert_eq!(Audit::of(alone).report()[0].without_unit_wait, 0, "a site alone is judged wholly");
    }

    #[test]
    fn l7_under_100_ms_the_mean_alone_is_judged() {
        let quick = |gaps: [i64; 3]| {
            let mut at = 0;
            let stamps = gaps.map(|gap| {
                at += gap;
                sent("a", at, 20)
            });
            let report = Audit::of([sent("a", 0, 20)].into_iter().chain(stamps)).report().remove(0);
            let quick = report.quick.expect("three gaps");
            (report.early, quick.gap.as_millis(), quick.due.as_millis(), quick.kept)
        };
        assert_eq!(quick([40, 0, 20]), (0, 20, 20, true));
        assert_eq!(quick([40, 0, 8]), (0, 16, 20, false));
        assert_eq!(Audit::of([sent("a", 0, 100), sent("a", 1, 100)]).report()[0].quick, None);
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
            wait: Duration::from_secs(1),
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
        let late = |(n, record): (i64, Record)| Record {
            start_at: Some(Timestamp::from_millis(record.sent_at.as_millis() - n)),
            ..record
        };
        let report = &Audit::of((0..=100).zip(records).map(late)).report()[0];
        let ms = Duration::from_millis;
        assert_eq!(report.lateness, Some(Lateness { p50: ms(50), p99: ms(99) }));
        assert_eq!(report.gaps, Some(Gaps { min: ms(1), p50: ms(50), p99: ms(99), max: ms(100) }));
    }

    #[test]
    fn a_start_takes_16_bytes_and_32_while_the_table_grows() {
        let mut unit = UnitStarts::default();
        for n in 0..100_000 {
            unit.count(0, &sent("a", n, 1000));
        }
        assert!(
            unit.starts.capacity() * size_of::<RequestStart>() <= 32 * 100_000,
            "{}",
            unit.starts.capacity()
        );
    }
}
