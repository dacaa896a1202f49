//! Which starts are early, and what is told of them.

use super::*;

fn sent(site: &str, at: i64, interval: u64) -> Record {
    Record {
        site: site.to_owned(),
        unit: "unit".to_owned(),
        start_at: Some(Timestamp::from_millis(1_795_165_200_000 + at - 1)),
        unit_wait: Some(Duration::from_millis(interval)),
        site_wait: Duration::from_millis(interval),
        fence: 1,
        signed_by: None,
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
    let of = |unit: &str, record| Record { unit: unit.to_owned(), unit_wait: Some(Duration::ZERO), ..record };
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
    assert!(unit.starts.capacity() * size_of::<RequestStart>() <= 32 * 100_000, "{}", unit.starts.capacity());
}
