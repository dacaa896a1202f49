//! Text to a date, as RFC 3339 spells it.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use time::{Date, Month, Time};

/// Reads a date with or without a time of day: RFC 3339 and ISO 8601, RFC 2822, `20 November 2026`, `Nov 20, 2026`,
/// `2026/11/20`, `20.11.2026`, `2026年11月20日`.
///
/// Without a time it is `2026-11-20`. A time without an offset counts as UTC. `05/11/2026` is two dates, so none; where
/// only one of the two can be a month it is read.
pub fn read(text: &str) -> Option<String> {
    let text = text.trim();
    PATTERNS.iter().find_map(|pattern| {
        let found = pattern.captures(text)?;
        let date = date(&found)?;
        match time_of_day(&found) {
            Ok(Some(time)) => Some(format!("{date}T{time}")),
            Ok(None) => Some(date),
            Err(Impossible) => None,
        }
    })
}

struct Impossible;

static PATTERNS: LazyLock<[Regex; 5]> = LazyLock::new(|| {
    const TIME: &str = r"(?:(?:[Tt]|,?\s*(?:at\s)?\s*)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,9})\d*)?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<offset>[Zz]|UTC|GMT|UT|[+-]\d{2}:?\d{2})?(?:\s*\([A-Z]+\))?)?";
    const WEEKDAY: &str = r"(?:[A-Za-z]{3,9},?\s+)?";
    [
        format!(r"^(?P<year>\d{{4}})(?:-|/|\.|年)(?P<month>\d{{1,2}})(?:-|/|\.|月)(?P<day>\d{{1,2}})日?{TIME}$"),
        format!(r"^{WEEKDAY}(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?(?:\s+of)?[\s-]+(?P<name>[A-Za-z]{{3,9}})\.?,?[\s-]+(?P<year>\d{{4}}){TIME}$"),
        format!(r"^{WEEKDAY}(?P<name>[A-Za-z]{{3,9}})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}}){TIME}$"),
        format!(r"^(?P<day>\d{{1,2}})\.\s?(?P<month>\d{{1,2}})\.\s?(?P<year>\d{{4}}){TIME}$"),
        format!(r"^(?P<either>\d{{1,2}})[/-](?P<other>\d{{1,2}})[/-](?P<year>\d{{4}}){TIME}$"),
    ]
    .map(|pattern| Regex::new(&pattern).expect("a tested expression"))
});

fn date(found: &Captures<'_>) -> Option<String> {
    let year: i32 = number(found, "year")?;
    let (month, day) = match (number(found, "either"), number(found, "other")) {
        (Some(day), Some(month)) if day > 12 || day == month => (month, day),
        (Some(month), Some(day)) if day > 12 => (month, day),
        (Some(_), _) => return None,
        _ => (month(found)?, number(found, "day")?),
    };
    let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
    Some(format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day()))
}

fn month(found: &Captures<'_>) -> Option<u8> {
    const NAMES: &str =
        "january february march april may june july august september october november december";
    let Some(name) = found.name("name") else { return number(found, "month") };
    let name = name.as_str().to_ascii_lowercase();
    let name = if name == "sept" { "sep" } else { &name };
    let at = NAMES.split(' ').position(|month| month.starts_with(name))?;
    u8::try_from(at + 1).ok()
}

fn time_of_day(found: &Captures<'_>) -> Result<Option<String>, Impossible> {
    let Some(hour) = number::<u8>(found, "hour") else { return Ok(None) };
    let hour = match found.name("half").map(|half| half.as_str().as_bytes()[0].to_ascii_lowercase()) {
        Some(_) if !(1..=12).contains(&hour) => return Err(Impossible),
        Some(b'p') => hour % 12 + 12,
        Some(_) => hour % 12,
        None => hour,
    };
    let (minute, second) = (number(found, "minute").unwrap_or(0), number(found, "second").unwrap_or(0));
    Time::from_hms(hour, minute, second).map_err(|_| Impossible)?;
    let part = found.name("part").map_or(String::new(), |part| format!(".{}", part.as_str()));
    Ok(Some(format!("{hour:02}:{minute:02}:{second:02}{part}{}", offset(found)?)))
}

fn offset(found: &Captures<'_>) -> Result<String, Impossible> {
    let text = found.name("offset").map_or("Z", |offset| offset.as_str());
    if !text.starts_with(['+', '-']) {
        return Ok("Z".to_owned());
    }
    let (hours, minutes) = (&text[..3], &text[text.len() - 2..]);
    let possible =
        hours[1..].parse::<u8>().is_ok_and(|h| h < 24) && minutes.parse::<u8>().is_ok_and(|m| m < 60);
    if possible { Ok(format!("{hours}:{minutes}")) } else { Err(Impossible) }
}

fn number<T: std::str::FromStr>(found: &Captures<'_>, name: &str) -> Option<T> {
    found.name(name)?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_in_its_usual_spellings() {
        for (text, date) in [
            ("2026-11-20T09:00:00Z", Some("2026-11-20T09:00:00Z")),
            ("2026-11-20T18:00:00.123+09:00", Some("2026-11-20T18:00:00.123+09:00")),
            ("2026-11-20 18:00:00 +0900", Some("2026-11-20T18:00:00+09:00")),
            ("2026-11-20T09:00", Some("2026-11-20T09:00:00Z")),
            ("2026-11-20", Some("2026-11-20")),
            (" 2026/11/2 ", Some("2026-11-02")),
            ("2026.11.20", Some("2026-11-20")),
            ("2026年11月20日", Some("2026-11-20")),
            ("2026年11月20日 9:05", Some("2026-11-20T09:05:00Z")),
            ("Fri, 20 Nov 2026 09:00:00 +0000", Some("2026-11-20T09:00:00+00:00")),
            ("Fri, 20 Nov 2026 09:00:00 GMT", Some("2026-11-20T09:00:00Z")),
            ("20 November 2026", Some("2026-11-20")),
            ("20th of November, 2026", Some("2026-11-20")),
            ("20-Nov-2026", Some("2026-11-20")),
            ("Nov 20, 2026", Some("2026-11-20")),
            ("Sept. 3, 2026", Some("2026-09-03")),
            ("Friday, November 20th, 2026 at 9:05 pm", Some("2026-11-20T21:05:00Z")),
            ("May 1, 2026 12:00 a.m.", Some("2026-05-01T00:00:00Z")),
            ("20.11.2026", Some("2026-11-20")),
            ("20/11/2026", Some("2026-11-20")),
            ("11/20/2026", Some("2026-11-20")),
            ("05/05/2026", Some("2026-05-05")),
            ("05/11/2026", None),
            ("2026-02-30", None),
            ("2026-13-01", None),
            ("2026-11-20T25:00:00Z", None),
            ("13:00 pm", None),
            ("20 Foo 2026", None),
            ("yesterday", None),
            ("2026", None),
            ("", None),
        ] {
            assert_eq!(read(text).as_deref(), date, "{text}");
        }
    }

    #[test]
    fn what_is_read_as_a_moment_is_rfc_3339() {
        for text in ["2026-11-20 9:05", "Nov 20, 2026 9:05 PM", "20 Nov 2026 21:05:01.5 -0330"] {
            let read = read(text).expect("a moment");
            assert!(read.parse::<crate::clock::Timestamp>().is_ok(), "{read}");
        }
    }
}
