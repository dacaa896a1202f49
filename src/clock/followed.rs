//! The time of another machine, as it is known from its answers: bounded from both sides.

use std::sync::{Mutex, PoisonError};

/// No two clocks run alike: the bounds move apart by one part in so many of the time that passes.
const DRIFT: i64 = 20_000;

/// What is known of another machine's clock.
///
/// Each answer that tells the time is a sample: when it was asked for, that time hadn't come to its end yet, and when it came,
/// it had begun. The best of them bound how far the other clock is ahead of this machine's time since boot.
#[derive(Debug, Default)]
pub struct Followed(Mutex<Option<TimeBounds>>);

/// How far the other clock is ahead, in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeBounds {
    least: i64,
    most: i64,
    /// Until when they moved apart, in µs since boot.
    at: i64,
}

impl TimeBounds {
    /// Of one sample: a whole ms, asked for and answered at these times.
    fn of(asked: i64, answered: i64, told_ms: i64) -> Self {
        Self { least: told_ms * 1_000 - answered, most: (told_ms + 1) * 1_000 - asked, at: answered }
    }

    fn aged(self, now: i64) -> Self {
        let drift = (now - self.at).max(0) / DRIFT;
        // What is less than a µs of drift counts later, however often this is asked.
        Self { least: self.least - drift, most: self.most + drift, at: self.at + drift * DRIFT }
    }

    /// What both say; only the later where they contradict each other: the other clock was set, or is being drawn back.
    fn narrowed_by(self, later: Self) -> Self {
        let (least, most) = (self.least.max(later.least), self.most.min(later.most));
        if least <= most { Self { least, most, at: self.at } } else { later }
    }
}

impl Followed {
    /// Takes a sample in: times in µs since boot, and what the other machine told in between, in ms.
    pub fn sample(&self, asked: i64, answered: i64, told_ms: i64) {
        let sample = TimeBounds::of(asked, answered, told_ms);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(known.map_or(sample, |known| known.aged(answered).narrowed_by(sample)));
    }

    /// The other machine's time at `now` µs since boot, at the earliest and at the latest, in µs. None before the first answer.
    pub fn at(&self, now: i64) -> Option<(i64, i64)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).map(|known| known.aged(now));
        known.map(|TimeBounds { least, most, .. }| (now + least, now + most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000;

    #[test]
    fn the_other_time_is_within_the_bounds_of_the_best_trips() {
        let clock = Followed::default();
        assert_eq!(clock.at(0), None);
        // The other clock is 1,000.4 ms ahead. A slow answer, then one quick there and one quick back.
        clock.sample(0, 20 * MS, 1_010);
        assert_eq!(clock.at(20 * MS), Some((1_010 * MS, 1_031 * MS)));
        clock.sample(30 * MS, 36 * MS, 1_030);
        clock.sample(40 * MS, 46 * MS, 1_046);
        let (least, most) = clock.at(46 * MS).expect("known");
        let true_time = 1_046 * MS + 400;
        assert!(least <= true_time && true_time <= most && most - least <= MS + 10, "{least} {most}");
    }

    #[test]
    fn an_answer_that_contradicts_the_others_is_believed_alone() {
        let clock = Followed::default();
        clock.sample(0, MS, 5_000);
        clock.sample(2 * MS, 3 * MS, 9_000);
        assert_eq!(clock.at(3 * MS), Some((9_000 * MS, 9_002 * MS)), "set forward");
        clock.sample(4 * MS, 5 * MS, 4_000);
        assert_eq!(clock.at(5 * MS), Some((4_000 * MS, 4_002 * MS)), "set back");
    }

    #[test]
    fn a_clock_that_runs_fast_or_slow_is_never_mistaken_by_more_than_a_way_and_a_millisecond() {
        // Ten times what two clocks may differ by, as a clock that is being drawn to the right time does.
        for slew in [-DRIFT / 10, DRIFT / 10] {
            let clock = Followed::default();
            let other = |at: i64| 1_000 * MS + at + at / slew;
            let (way, pause) = (MS / 2, 100 * MS);
            for turn in 1..3_000 {
                let at = turn * pause;
                clock.sample(at - way, at + way, other(at).div_euclid(MS));
                for later in [way, pause - way] {
                    let (least, most) = clock.at(at + later).expect("known");
                    let (mistake, moved) = (way + MS, pause / slew.abs() + 1);
                    let true_time = other(at + later);
                    assert!(least <= true_time + mistake + moved, "{} µs ahead", least - true_time);
                    assert!(most + mistake + moved >= true_time, "{} µs behind", true_time - most);
                }
            }
        }
    }

    #[test]
    fn bounds_move_apart_however_often_the_time_is_told() {
        let clock = Followed::default();
        clock.sample(0, 0, 1_000);
        // Slow answers every 10 ms: each of them alone says less than the first one.
        for told in 1..=2_000 {
            let at = told * 10 * MS;
            clock.sample(at - 9 * MS, at + 9 * MS, 1_000 + told * 10);
        }
        let (least, most) = clock.at(20_009 * MS).expect("known");
        assert_eq!((least, most), (21_009 * MS - MS, 21_010 * MS + MS));
    }

    #[test]
    fn bounds_move_apart_while_nothing_is_heard() {
        let clock = Followed::default();
        clock.sample(0, 0, 1_000);
        let (least, most) = clock.at(20_000 * MS).expect("known");
        assert_eq!((least, most), (21_000 * MS - MS, 21_001 * MS + MS));
    }
}
