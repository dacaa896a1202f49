//! Durations, sizes, rates and counts, as people write and read them. Pure.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Reads `"200ms"`, `"2s"`, `"1h 30m"`; whole milliseconds only, as time is counted in them.
pub(crate) fn read_duration(text: &str) -> Option<Duration> {
    let wait = humantime::parse_duration(text.trim()).ok()?;
    wait.subsec_nanos().is_multiple_of(1_000_000).then_some(wait)
}

/// Reads `"8MiB"`, `"512KiB"`, `"10MB"`, `"4096"` as bytes.
pub(crate) fn read_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let bytes: u64 = match unit.trim_start() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(bytes)
}

/// Reads `"50/s"` as a number a second, at least 1.
pub(crate) fn read_rate(text: &str) -> Option<u32> {
    let number = text.trim().strip_suffix("/s")?;
    number.trim_end().parse().ok().filter(|rate| *rate > 0)
}

/// A duration of whole milliseconds as a site file has it, in its largest whole unit: `"24h"`, `"30s"`, `"200ms"`.
pub(crate) fn written(time: Duration) -> String {
    let is_whole = |unit: u64| time.subsec_nanos() == 0 && time.as_secs().is_multiple_of(unit);
    let unit = [(HOUR, "h"), (MINUTE, "m"), (1, "s")].into_iter().find(|(unit, _)| is_whole(*unit));
    let millis = || format!("{}ms", time.as_millis());
    unit.map_or_else(millis, |(unit, name)| format!("{}{name}", time.as_secs() / unit))
}

/// A size as a site file has it: `"8MiB"`, `"1500B"`.
pub(crate) fn written_size(bytes: u64) -> String {
    let unit =
        [(30, "GiB"), (20, "MiB"), (10, "KiB")].into_iter().find(|(bits, _)| bytes.is_multiple_of(1 << bits));
    unit.map_or_else(|| format!("{bytes}B"), |(bits, name)| format!("{}{name}", bytes >> bits))
}

/// A duration in sentences and tables: `9.5 days`, `6 h`, `1.5 min`, `2 s`, `250 ms`. Its unit is that of the rounded number.
pub fn spoken(time: Duration) -> String {
    let mut number = time.as_secs_f64() * 1_000.0;
    for (unit, of_the_next) in [("ms", 1_000.0), ("s", 60.0), ("min", 60.0), ("h", 24.0)] {
        let tenths = rounded(number, 10.0);
        if tenths < of_the_next {
            return format!("{tenths} {unit}");
        }
        number /= of_the_next;
    }
    match rounded(number, 10.0) {
        1.0 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

/// A duration as a value of the log, in its two largest units: `640ms`, `14s`, `13m40s`, `2h05m`, `9d12h`.
pub fn compact(time: Duration) -> String {
    let seconds = time.as_secs();
    for (large, name, small, name_of_small) in
        [(DAY, 'd', HOUR, 'h'), (HOUR, 'h', MINUTE, 'm'), (MINUTE, 'm', 1, 's')]
    {
        match (seconds / large, seconds % large / small) {
            (0, _) => {}
            (count, 0) => return format!("{count}{name}"),
            (count, rest) => return format!("{count}{name}{rest:02}{name_of_small}"),
        }
    }
    if seconds > 0 { format!("{seconds}s") } else { format!("{}ms", time.as_millis()) }
}

/// A rate in sentences and tables: `22/s`, `1/s`, `0.25/s`.
pub fn spoken_rate(per_second: f64) -> String {
    format!("{}/s", rounded(per_second, if per_second >= 10.0 { 1.0 } else { 100.0 }))
}

/// To the nearest of so many parts of one.
fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

/// A rate as a value of the log: `0.99/s`.
pub fn compact_rate(per_second: f64) -> String {
    format!("{per_second:.2}/s")
}

/// A count with its thousands apart: `412,000`.
pub fn spoken_count(count: u64) -> String {
    grouped(&count.to_string(), ",")
}

/// Digits with a mark before each third from the end.
pub(crate) fn grouped(digits: &str, mark: &str) -> String {
    let (first, rest) = digits.split_at(digits.len() % 3);
    let thirds = (0..rest.len()).step_by(3).map(|at| &rest[at..at + 3]);
    Some(first).filter(|first| !first.is_empty()).into_iter().chain(thirds).collect::<Vec<_>>().join(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_whole_milliseconds_with_a_unit() {
        for (text, millis) in [
            ("200ms", Some(200)),
            ("2s", Some(2_000)),
            ("1.5s", Some(1_500)),
            ("0s", Some(0)),
            ("1m", Some(60_000)),
            ("1h 30m", Some(5_400_000)),
            ("24h", Some(86_400_000)),
            ("500us", None),
            ("2", None),
            ("", None),
            ("-1s", None),
            ("soon", None),
        ] {
            assert_eq!(read_duration(text), millis.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_as_bytes_with_decimal_or_binary_units() {
        for (text, bytes) in [
            ("8MiB", Some(8 << 20)),
            ("512KiB", Some(512 << 10)),
            ("10MB", Some(10_000_000)),
            ("1 GB", Some(1_000_000_000)),
            ("4096", Some(4_096)),
            ("1.5MiB", None),
            ("8Mib", None),
            ("MiB", None),
            ("99999999999GiB", None),
        ] {
            assert_eq!(read_size(text), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        for text in ["24h", "90m", "30s", "1500ms"] {
            assert_eq!(read_duration(text).map(written).as_deref(), Some(text));
        }
        for text in ["1GiB", "8MiB", "3KiB", "1500B"] {
            assert_eq!(read_size(text).map(written_size).as_deref(), Some(text));
        }
    }

    #[test]
    fn rates_are_read_as_whole_numbers_a_second() {
        for (text, expected) in [
            ("50/s", Some(50)),
            ("1 /s", Some(1)),
            ("0/s", None),
            ("50", None),
            ("10/m", None),
            ("-1/s", None),
        ] {
            assert_eq!(read_rate(text), expected, "{text}");
        }
    }

    #[test]
    fn a_duration_has_one_form_in_sentences_and_one_in_the_log() {
        for (millis, in_sentences, in_the_log) in [
            (0, "0 ms", "0ms"),
            (250, "250 ms", "250ms"),
            (640, "640 ms", "640ms"),
            (1_000, "1 s", "1s"),
            (3_240, "3.2 s", "3s"),
            (14_000, "14 s", "14s"),
            (90_000, "1.5 min", "1m30s"),
            (820_000, "13.7 min", "13m40s"),
            (840_000, "14 min", "14m"),
            (7_500_000, "2.1 h", "2h05m"),
            (21_600_000, "6 h", "6h"),
            (86_400_000, "1 day", "1d"),
            (820_800_000, "9.5 days", "9d12h"),
            // The unit is that of the rounded number; the log leaves out what it has no room for.
            (59_949, "59.9 s", "59s"),
            (59_950, "1 min", "59s"),
            (3_596_999, "59.9 min", "59m56s"),
            (3_597_000, "1 h", "59m57s"),
            (86_219_999, "23.9 h", "23h56m"),
            (86_220_000, "1 day", "23h57m"),
        ] {
            let time = Duration::from_millis(millis);
            assert_eq!((spoken(time).as_str(), compact(time).as_str()), (in_sentences, in_the_log));
        }
        assert_eq!(spoken(Duration::from_micros(999_960)), "1 s");
    }

    #[test]
    fn rates_and_counts_are_said_as_people_say_them() {
        for (rate, said) in
            [(22.2, "22/s"), (1.0, "1/s"), (0.25, "0.25/s"), (100.0, "100/s"), (9.99, "9.99/s")]
        {
            assert_eq!(spoken_rate(rate), said);
        }
        for (count, said) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (412_000, "412,000"), (2_000_000, "2,000,000")]
        {
            assert_eq!(spoken_count(count), said);
        }
    }
}
