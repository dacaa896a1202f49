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
    /// How many requests were signed with which key, by its thumbprint: the site finds them by it in its own log.
    pub signed_by: BTreeMap<String, u64>,
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
        for unit in units.values_mut() {
            unit.starts.sort_unstable();
        }
        let moved = MovedSites::between(&units);
        let mut names: Vec<(u32, String)> = sites.into_iter().map(|(name, number)| (number, name)).collect();
        names.sort_unstable();
        let reports =
            (0..).zip(units).map(|(number, (name, unit))| unit.report(name, number, &names, &moved));
        reports.collect()
    }
}

/// The starts of sites that were in several units: in order of time, each with its unit's number.
struct MovedSites(HashMap<u32, Vec<(Timestamp, usize)>>);

impl MovedSites {
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
        for starts in moved.values_mut() {
            starts.sort_unstable();
        }
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
    signed_by: BTreeMap<String, u64>,
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
        if let Some(key) = &record.signed_by {
            *self.signed_by.entry(key.clone()).or_default() += 1;
        }
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
    fn report(self, unit: String, number: usize, names: &[(u32, String)], moved: &MovedSites) -> UnitReport {
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
            signed_by: self.signed_by,
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
    fn tally(&self, unit: usize, moved: &MovedSites) -> PaceTally {
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
mod tests;
