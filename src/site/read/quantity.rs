//! Durations, sizes and rates as people write them. Pure.

use std::time::Duration;

/// Reads `"200ms"`, `"2s"`, `"1h 30m"`; whole milliseconds only, as time is counted in them.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let wait = humantime::parse_duration(text.trim()).ok()?;
    wait.subsec_nanos().is_multiple_of(1_000_000).then_some(wait)
}

/// Reads `"8MiB"`, `"512KiB"`, `"10MB"`, `"4096"` as bytes.
pub(crate) fn size(text: &str) -> Option<u64> {
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
pub(crate) fn rate(text: &str) -> Option<u32> {
    let number = text.trim().strip_suffix("/s")?;
    number.trim_end().parse().ok().filter(|rate| *rate > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_milliseconds_with_a_unit() {
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
            assert_eq!(duration(text), millis.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn sizes_are_bytes_with_decimal_or_binary_units() {
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
            assert_eq!(size(text), bytes, "{text}");
        }
    }

    #[test]
    fn rates_are_whole_numbers_a_second() {
        for (text, expected) in [
            ("50/s", Some(50)),
            ("1 /s", Some(1)),
            ("0/s", None),
            ("50", None),
            ("10/m", None),
            ("-1/s", None),
        ] {
            assert_eq!(rate(text), expected, "{text}");
        }
    }
}
