//! The proof of pace: what the gaps between arrivals say. Pure; who measured them is not asked.

use std::fmt;
use std::time::Duration;

use super::arrivals::Stall;
use crate::forecast::rate_of;
use crate::manners::grace;

/// The time between two arrivals that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first arrival.
    pub from: Duration,
    /// The second.
    pub to: Duration,
}

impl Gap {
    /// How long it is.
    pub fn length(self) -> Duration {
        self.to.saturating_sub(self.from)
    }
}

/// The gaps between the arrivals of one pace unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapReport {
    /// What was promised between two starts.
    pub interval: Duration,
    /// How many gaps there are, those set aside included.
    pub count: usize,
    /// The shortest, of those not set aside.
    pub min: Duration,
    /// The median (nearest rank).
    pub p50: Duration,
    /// 99 of 100 are no longer (nearest rank).
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
    /// Gaps below interval − grace.
    pub early: Vec<Gap>,
    /// Gaps below interval − grace that a stall of the server itself explains: it stamped their first arrival late.
    pub set_aside: Vec<Gap>,
}

/// What a report proves (L7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaceVerdict {
    /// No gap is early, and few enough were set aside.
    Kept,
    /// A gap is early.
    Broken,
    /// More than 0.5 % of the gaps were set aside: the server stalled too often to tell.
    Unproven,
}

impl GapReport {
    /// At most so many of a thousand gaps may be set aside; one always may.
    const ASIDE_PER_MILLE: usize = 5;

    /// The gaps between `arrivals`, in any order, against the interval that was promised.
    pub fn new(arrivals: &[Duration], stalls: &[Stall], interval: Duration) -> Self {
        let mut arrivals = arrivals.to_vec();
        arrivals.sort_unstable();
        let gaps: Vec<Gap> = arrivals.windows(2).map(|w| Gap { from: w[0], to: w[1] }).collect();
        let least = interval.saturating_sub(grace(interval));
        let (short, fit): (Vec<Gap>, Vec<Gap>) = gaps.iter().partition(|gap| gap.length() < least);
        let (set_aside, early): (Vec<Gap>, Vec<Gap>) =
            short.into_iter().partition(|gap| gap.length() + stalled_before(gap.from, stalls) >= least);
        let mut counted: Vec<Duration> = fit.iter().chain(&early).map(|gap| gap.length()).collect();
        counted.sort_unstable();
        Self {
            interval,
            count: gaps.len(),
            min: counted.first().copied().unwrap_or_default(),
            p50: rank(&counted, 50),
            p99: rank(&counted, 99),
            max: counted.last().copied().unwrap_or_default(),
            early,
            set_aside,
        }
    }

    /// Whether the pace was kept.
    pub fn verdict(&self) -> PaceVerdict {
        if !self.early.is_empty() {
            PaceVerdict::Broken
        } else if self.set_aside.len() > (self.count * Self::ASIDE_PER_MILLE / 1000).max(1) {
            PaceVerdict::Unproven
        } else {
            PaceVerdict::Kept
        }
    }
}

/// One line for people, and one for each gap that is early or set aside.
impl fmt::Display for GapReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
        let Self { count, early, set_aside, .. } = self;
        let [interval, min, p50, p99, max] = [self.interval, self.min, self.p50, self.p99, self.max].map(ms);
        write!(f, "{count} gaps at an interval of {interval}: min {min}, p50 {p50}, p99 {p99}, max {max}; ")?;
        write!(f, "{} early, {} set aside", early.len(), set_aside.len())?;
        for (what, gaps) in [("early", early), ("set aside", set_aside)] {
            for gap in gaps {
                write!(f, "\n  {what}: {} at {:.6} s", ms(gap.length()), gap.from.as_secs_f64())?;
            }
        }
        Ok(())
    }
}

/// The share of the permitted starts that were used between `from` and `to`: 1 where every interval saw a start.
///
/// The window should begin when the queue is full and end before it runs empty.
pub fn used_share(arrivals: &[Duration], from: Duration, to: Duration, interval: Duration) -> f64 {
    let starts = arrivals.iter().filter(|at| (from..to).contains(*at)).count();
    let rate = rate_of(starts as u64, to.saturating_sub(from)).unwrap_or_default();
    rate * interval.as_secs_f64()
}

/// How much too late an arrival's stamp may be: it may have waited since the start of the stall that just ended.
fn stalled_before(at: Duration, stalls: &[Stall]) -> Duration {
    // What waited in the sockets is answered in one go after a stall; this long at most.
    let burst = Duration::from_millis(5);
    let near = stalls.iter().filter(|stall| stall.from <= at && at <= stall.to + burst);
    near.map(|stall| at.saturating_sub(stall.from)).max().unwrap_or_default()
}

/// The value of nearest rank: the smallest that `percent` of all are not above.
fn rank(sorted: &[Duration], percent: usize) -> Duration {
    let place = (sorted.len() * percent).div_ceil(100);
    sorted.get(place.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn times(millis: &[u64]) -> Vec<Duration> {
        millis.iter().copied().map(ms).collect()
    }

    #[test]
    fn percentiles_are_of_nearest_rank_and_arrivals_may_come_in_any_order() {
        let arrivals: Vec<Duration> = (0..=100_u64).rev().map(|n| ms(n * (n + 1) / 2 + n * 1000)).collect();
        let report = GapReport::new(&arrivals, &[], ms(1000));
        assert_eq!(report.count, 100);
        assert_eq!(
            [report.min, report.p50, report.p99, report.max],
            [ms(1001), ms(1050), ms(1099), ms(1100)]
        );
        assert_eq!(report.verdict(), PaceVerdict::Kept);
    }

    #[test]
    fn l7_a_gap_below_interval_minus_grace_breaks_the_pace_and_one_at_it_does_not() {
        for (second, verdict) in
            [(179, PaceVerdict::Broken), (180, PaceVerdict::Kept), (5_000, PaceVerdict::Kept)]
        {
            let report = GapReport::new(&times(&[0, second]), &[], ms(200));
            assert_eq!(report.verdict(), verdict, "{report}");
        }
    }

    #[test]
    fn l7_a_short_gap_is_set_aside_only_where_a_stall_before_it_is_long_enough_to_explain_it() {
        let arrivals = times(&[0, 260, 400, 600]);
        for (from, to, verdict) in [
            (195, 258, PaceVerdict::Kept),   // the second stamp is up to 63 ms late
            (195, 240, PaceVerdict::Broken), // over before the stamp
            (250, 259, PaceVerdict::Broken), // too short to make 140 out of 180
            (300, 390, PaceVerdict::Broken), // in the middle of the gap: it can't shorten it
        ] {
            let stall = Stall { from: ms(from), to: ms(to) };
            let report = GapReport::new(&arrivals, &[stall], ms(200));
            assert_eq!(report.verdict(), verdict, "{stall:?}: {report}");
            assert_eq!(report.set_aside.len() + report.early.len(), 1, "{report}");
        }
    }

    #[test]
    fn l7_many_gaps_set_aside_prove_nothing() {
        let mut at = 0;
        let mut arrivals = vec![ms(0)];
        let mut stalls = Vec::new();
        for n in 0..400_u64 {
            let late = if n % 100 == 50 { 50 } else { 0 };
            at += 200;
            arrivals.push(ms(at + late));
            if late > 0 {
                stalls.push(Stall { from: ms(at - 1), to: ms(at + late) });
            }
        }
        let report = GapReport::new(&arrivals, &stalls, ms(200));
        assert_eq!((report.set_aside.len(), report.verdict()), (4, PaceVerdict::Unproven), "{report}");
        let half = GapReport::new(&arrivals[..200], &stalls, ms(200));
        assert_eq!((half.set_aside.len(), half.verdict()), (2, PaceVerdict::Unproven), "{half}");
        let few = GapReport::new(&arrivals[..100], &stalls, ms(200));
        assert_eq!((few.set_aside.len(), few.verdict()), (1, PaceVerdict::Kept), "{few}");
    }

    #[test]
    fn the_used_share_counts_starts_against_permitted_ones() {
        let arrivals: Vec<Duration> = (0..100).map(|n| ms(1000 + n * 100)).collect();
        for (from, to, interval, share) in [
            (1000, 11_000, 100, 1.0),
            (1000, 6_000, 100, 1.0),
            (1000, 11_000, 50, 0.5),
            (20_000, 30_000, 100, 0.0),
        ] {
            let used = used_share(&arrivals, ms(from), ms(to), ms(interval));
            assert!((used - share).abs() < 1e-9, "{from}..{to} at {interval} ms: {used}");
        }
    }

    #[test]
    fn nobody_and_a_single_visitor_leave_no_gap() {
        for arrivals in [times(&[]), times(&[7])] {
            let report = GapReport::new(&arrivals, &[], ms(200));
            assert_eq!((report.count, report.verdict()), (0, PaceVerdict::Kept));
        }
    }
}
