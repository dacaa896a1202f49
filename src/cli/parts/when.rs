//! Times as people write them on a command line: a date with its time, a time of the day, or how long from now.

use std::time::Duration;

use time::macros::format_description;
use time::{OffsetDateTime, Time, UtcOffset};

use crate::clock::{Timestamp, millis};
use crate::quantity::read_duration;

/// A time that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum When {
    /// That moment.
    At(Timestamp),
    /// So long from now.
    In(Duration),
}

impl When {
    /// Reads `2026-11-20T09:00:00Z`, the next `14:05` of this machine, or `2h`.
    pub(in crate::cli) fn read(text: &str) -> Result<Self, String> {
        if let Ok(at) = text.parse() {
            return Ok(Self::At(at));
        }
        if let Some(wait) = read_duration(text).filter(|wait| !wait.is_zero()) {
            return Ok(Self::In(wait));
        }
        let of_day = Time::parse(text, format_description!("[hour]:[minute]")).map_err(|_| {
            format!(
                "`{text}` is no time; write it as 2026-11-20T09:00:00Z, as 14:05, or as a duration like 2h"
            )
        })?;
        let now = OffsetDateTime::now_local()
            .map_err(|_| "this machine's time zone isn't known; write a duration like 2h".to_owned())?;
        let offset = |then: OffsetDateTime| UtcOffset::local_offset_at(then).unwrap_or(then.offset());
        Ok(Self::At(Timestamp::from_millis(next(of_day, now, offset).unix_timestamp() * 1_000)))
    }

    /// The moment, where it is `now` by the clock that all processes share: a date is one of that clock's (I12).
    pub(in crate::cli) fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::In(wait) => now.plus(wait),
        }
    }

    /// The same, where a duration counts backwards.
    pub(in crate::cli) fn since(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::In(wait) => Timestamp::from_millis(now.as_millis().saturating_sub(millis(wait))),
        }
    }
}

/// The next such time of the day, by what the clocks are set to then.
fn next(of_day: Time, now: OffsetDateTime, offset: impl Fn(OffsetDateTime) -> UtcOffset) -> OffsetDateTime {
    let on = |day: OffsetDateTime| {
        let then = day.replace_time(of_day);
        then.replace_offset(offset(then))
    };
    let today = on(now);
    if today > now { today } else { on(now + time::Duration::DAY) }
}

#[cfg(test)]
mod tests {
    use time::macros::{datetime, offset, time};

    use super::*;

    #[test]
    fn a_time_of_the_day_is_the_next_one() {
        let next = |of_day| next(of_day, datetime!(2026-11-20 13:05:30 +9), |_| offset!(+9));
        assert_eq!(next(time!(14:05)), datetime!(2026-11-20 14:05 +9));
        assert_eq!(next(time!(13:05)), datetime!(2026-11-21 13:05 +9));
    }

    #[test]
    fn a_time_of_the_day_is_by_the_clocks_of_that_day() {
        let change = datetime!(2026-10-25 01:00 UTC);
        let berlin = |then: OffsetDateTime| if then < change { offset!(+2) } else { offset!(+1) };
        let next = next(time!(06:00), datetime!(2026-10-24 22:00 +2), berlin);
        assert_eq!(next, datetime!(2026-10-25 06:00 +1));
    }

    #[test]
    fn what_is_no_time_is_told_how_to_write_one() {
        for text in ["soon", "25:00", "0s", "-1h", ""] {
            let told = When::read(text).expect_err(text);
            assert!(told.contains("2026-11-20T09:00:00Z") && told.contains("2h"), "{told}");
        }
        let now = Timestamp::from_millis(1_000_000_000);
        let hours = |by: i64| Timestamp::from_millis(now.as_millis() + by * 3_600_000);
        let read = |text: &str| When::read(text).expect("a time");
        assert_eq!((read("2h").at(now), read("2h").since(now)), (hours(2), hours(-2)));
        let date = "2026-11-20T09:00:00Z";
        let moment = date.parse().expect("a time");
        assert_eq!((read(date).at(now), read(date).since(now)), (moment, moment));
    }
}
