//! What the tests of pace prove. What the senders stamped holds on any machine and is asserted; what the servers saw may be
//! spoilt by a busy machine, and is a bound to be tried again.

use std::collections::BTreeSet;
use std::time::Duration;

use paced::internals::manners::grace;

use crate::ground::*;
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
    machine: &[Stall],
    interval: Duration,
) -> Measured {
    let times: Vec<Duration> = arrivals.iter().map(|arrival| arrival.at).collect();
    let gaps = GapReport::new(&times, &[stalls, machine].concat(), interval);
    println!("{name}: {gaps}");
    Measured { name: name.to_owned(), gaps }
}

pub fn measure_shop(shop: &Shop, machine: &[Stall], interval: Duration) -> Measured {
    measure(&shop.plan.name, &shop.arrivals(), &shop.stalls(), machine, interval)
}

pub fn measure_shops(shops: &Shops, machine: &[Stall], interval: Duration) -> Vec<Measured> {
    shops.all().iter().map(|shop| measure_shop(shop, machine, interval)).collect()
}

/// No start was early at the servers (L7), but for 0.5 % of the gaps: those that a stall explains, and those of requests that
/// waited between their stamp and the wire unseen by any ticker. What was stamped early is never forgiven: `assert_audited`.
pub fn kept<'a>(all: impl IntoIterator<Item = &'a Measured>) -> Result<(), String> {
    let (mut early, mut aside, mut gaps) = (Vec::new(), 0, 0);
    for Measured { name, gaps: report } in all {
        early.extend(report.early.iter().map(|gap| format!("{name}: {gap:?}")));
        (aside, gaps) = (aside + report.set_aside.len(), gaps + report.count);
    }
    println!("{gaps} gaps, {} early, {aside} set aside", early.len());
    assert!(gaps > 0, "no start was measured");
    let most = (gaps / 200).max(1);
    bound(
        early.len() + aside <= most,
        format_args!("of {gaps} gaps {aside} were set aside, and early were {early:?}"),
    )
}

/// At least this share of the permitted starts was used (L5). `starts` are those of each unit while its queue was full.
pub fn used(wanted: f64, starts: &[Vec<Duration>], interval: Duration) -> Result<(), String> {
    let used: usize = starts.iter().map(|starts| starts.len() - 1).sum();
    let span: Duration = starts.iter().map(|starts| starts[starts.len() - 1].saturating_sub(starts[0])).sum();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand starts")]
    let share = used as f64 * interval.as_secs_f64() / span.as_secs_f64();
    println!("{:.1} % of {used} starts used, {:.0} % wanted", share * 100.0, wanted * 100.0);
    bound(share >= wanted, format_args!("{share:.3} of the permitted starts were used, {wanted} were wanted"))
}

/// Each shop was asked for each of its URLs once, and the audit counts each of these starts and finds none of them early.
#[track_caller]
pub fn assert_all_audited(ground: &Ground, shops: &Shops) {
    let audit = ground.audit();
    for shop in shops.all() {
        let arrivals = shop.arrivals();
        let paths: BTreeSet<&String> = arrivals.iter().map(|arrival| &arrival.path).collect();
        let wanted = shop.plan.requests() as usize;
        assert_eq!((paths.len(), arrivals.len()), (wanted, wanted), "{}: each URL once", shop.plan.name);
        assert_audited(&audit[&shop.plan.name], wanted);
    }
}

/// The audit, by the send stamps of the archive, tells of the same gaps as the server.
pub fn same(audit: &serde_json::Value, measured: &Measured) -> Result<(), String> {
    let gap = |name: &str| audit["gap_ms"][name].as_u64().map(ms).expect("a gap");
    let gaps = &measured.gaps;
    // One arrival that was read late among thousands makes the least gap.
    let least = (gap("min"), gaps.min, grace(gaps.interval));
    [least, (gap("p50"), gaps.p50, ms(5))].into_iter().try_for_each(|(stamped, arrived, most)| {
        bound(stamped.abs_diff(arrived) <= most, format_args!("{audit} and {gaps}"))
    })
}
