//! `Retry-After` (RFC 9110 section 10.2.3), read strictly.

use std::time::{Duration, UNIX_EPOCH};

use crate::clock::{Timestamp, millis};

/// How long a `Retry-After` asks to wait: whole seconds, or an HTTP date in any of its three forms. Nothing is read
/// from what is negative, a fraction or otherwise no such value; a date that is past asks for no wait.
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(millis(date)).since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_the_three_forms_of_a_date_are_read_and_nothing_else() {
        let now = Timestamp::from_millis(784_111_767_000);
        for (value, seconds) in [
            ("0", Some(0)),
            ("120", Some(120)),
            ("\t42 ", Some(42)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(10)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(10)),
            ("Sun Nov  6 08:49:37 1994", Some(10)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("²", None),
            ("", None),
            ("soon", None),
            ("Sun, 06 Nov 1994 08:49:37 EST", None),
        ] {
            assert_eq!(retry_after(value, now), seconds.map(Duration::from_secs), "{value}");
        }
    }
}
