//! Numbers as people read them in logs and tables. Pure.

use std::time::Duration;

/// A duration in its two largest units: `640ms`, `14s`, `13m40s`, `2h05m`, `9d12h`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{}ms", time.as_millis()),
        1..=59 => format!("{seconds}s"),
        60..=3_599 => two(seconds / 60, 'm', seconds % 60, 's'),
        3_600..=86_399 => two(seconds / 3_600, 'h', seconds % 3_600 / 60, 'm'),
        _ => two(seconds / 86_400, 'd', seconds % 86_400 / 3_600, 'h'),
    }
}

fn two(large: u64, large_unit: char, small: u64, small_unit: char) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small:02}{small_unit}"),
    }
}

/// Starts a second, as `0.99/s`.
pub fn rate(per_second: f64) -> String {
    format!("{per_second:.2}/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_shows_its_two_largest_units() {
        for (millis, shown) in [
            (640, "640ms"),
            (14_000, "14s"),
            (820_000, "13m40s"),
            (840_000, "14m"),
            (7_500_000, "2h05m"),
            (820_800_000, "9d12h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), shown);
        }
    }
}
