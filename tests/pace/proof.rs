//! What the tests of pace assert, and what they forgive a machine that was busy with something else.

use std::time::Duration;

use paced::demo::gaps::grace;

use crate::ground::ms;
use crate::machine::Seen;
use crate::support::*;

/// Gaps of one pace unit as its server measured them.
pub struct Measured {
    pub name: String,
    pub gaps: GapReport,
}

/// The gaps of arrivals; those that a stall of the server or of the machine explains are set aside.
pub fn measure(
    name: &str,
    arrivals: &[Arrival],
    stalls: &[Stall],
    seen: &Seen,
    interval: Duration,
) -> Measured {
    let times: Vec<Duration> = arrivals.iter().map(|arrival| arrival.at).collect();
    let gaps = GapReport::new(&times, &[stalls, &seen.stalls].concat(), interval);
    println!("{name}: {gaps}");
    Measured { name: name.to_owned(), gaps }
}

pub fn measure_shop(shop: &Shop, seen: &Seen, interval: Duration) -> Measured {
    measure(&shop.plan.name, &shop.arrivals(), &shop.stalls(), seen, interval)
}

/// No start was early (L7), but for 0.5 % of the gaps: those that a stall explains, and those of requests that waited
/// between their stamp and the wire unseen by any ticker. What was stamped early is never forgiven: `assert_same`.
#[track_caller]
pub fn assert_kept<'a>(all: impl IntoIterator<Item = &'a Measured>, seen: &Seen) {
    let (mut early, mut aside, mut gaps) = (Vec::new(), 0, 0);
    for Measured { name, gaps: report } in all {
        early.extend(report.early.iter().map(|gap| format!("{name}: {gap:?}")));
        (aside, gaps) = (aside + report.set_aside.len(), gaps + report.count);
    }
    println!("{gaps} gaps, {} early, {aside} set aside", early.len());
    let bound = (gaps / 200).max(1);
    match seen.is_busy() {
        _ if early.len() + aside <= bound => {}
        None => panic!("of {gaps} gaps {aside} were set aside, and early were {early:#?}"),
        Some(why) => {
            unproven(&format!("{} of {gaps} gaps were early or set aside: {why}", early.len() + aside));
        }
    }
}

/// A machine that others keep busy proves nothing: neither that the pace holds nor that it doesn't.
fn unproven(why: &str) {
    println!("NOT PROVEN HERE: {why}");
    eprintln!("NOT PROVEN HERE: {why}");
}

/// At least this share of the permitted starts was used (L5). `starts` are those of each unit while its queue was full.
#[track_caller]
pub fn assert_used(wanted: f64, starts: &[Vec<Duration>], interval: Duration, seen: &Seen) {
    let used: usize = starts.iter().map(|starts| starts.len() - 1).sum();
    let span: Duration = starts.iter().map(|starts| starts[starts.len() - 1].saturating_sub(starts[0])).sum();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand starts")]
    let share = used as f64 * interval.as_secs_f64() / span.as_secs_f64();
    println!("{:.1} % of {used} starts used, {:.0} % wanted", share * 100.0, wanted * 100.0);
    let (firsts, lasts) =
        (starts.iter().map(|starts| starts[0]), starts.iter().map(|starts| starts[starts.len() - 1]));
    let (from, to) = (firsts.min().unwrap_or_default(), lasts.max().unwrap_or_default());
    match seen.is_full(from, to) {
        _ if share >= wanted => {}
        None => panic!("{share:.3} of the permitted starts were used, {wanted} were wanted"),
        Some(why) => unproven(&format!("{share:.3} of the permitted starts were used: {why}")),
    }
}

/// The audit, by the send stamps of the archive, tells the same story as the server.
#[track_caller]
pub fn assert_same(audit: &serde_json::Value, arrivals: usize, measured: &Measured, seen: &Seen) {
    assert_eq!(audit["starts"], arrivals, "{audit}");
    assert_eq!(audit["early"], 0, "{audit}");
    let gap = |name: &str| audit["gap_ms"][name].as_u64().map(ms).expect("a gap");
    let gaps = &measured.gaps;
    // One arrival that was read late among thousands makes the least gap.
    let least = (gap("min"), gaps.min, grace(gaps.interval));
    for (stamped, arrived, most) in [least, (gap("p50"), gaps.p50, ms(5))] {
        let apart = stamped.abs_diff(arrived);
        assert!(apart <= most || seen.is_busy().is_some(), "{audit} and {gaps}");
    }
}
