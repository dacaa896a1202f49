//! How urgent a task is, as a number and as the words of the command line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How urgent a task is: the smaller number goes first (C1-C3). 118 to 362, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u16")]
pub struct Priority(u16);

impl Priority {
    /// `operator:high-2`.
    const MOST_URGENT: u16 = 118;
    /// `system:low+2`.
    pub(crate) const LEAST_URGENT: u16 = 362;
    /// Before everything else: a host's `robots.txt`.
    pub const ROBOTS: Self = Self(0);
    /// An operator's request at the usual level.
    pub const OPERATOR: Self = Self(220);
    /// A discovered link.
    pub const LINK: Self = Self(240);
    /// A page that is to be fetched again: `system:middle`.
    pub const RECRAWL: Self = Self(260);
    /// A seed.
    pub const SEED: Self = Self(240);

    /// The number that is compared.
    pub const fn value(self) -> u16 {
        self.0
    }

    /// Whether an operator asks, at a level above `low`: that goes before all others.
    pub const fn is_urgent(self) -> bool {
        matches!(self.0, 118..=122 | 218..=222)
    }

    /// How long after its put it is to go at the latest where tasks go by deadline, in ms: at once where it is high or an
    /// operator's, in an hour where it is middle, in a day where it is low (C5).
    pub const fn allowance(self) -> i64 {
        match self.0 {
            0..200 | 218..=222 | 318..=322 => 0,
            200..300 => 3_600_000,
            _ => 86_400_000,
        }
    }

    /// The actor's level that it belongs to, fine steps aside.
    #[must_use]
    pub const fn level(self) -> Self {
        let (level, rest) = (self.0 / 100, self.0 % 100);
        match rest {
            _ if level == 0 => self,
            0..30 => Self(100 * level + 20),
            30..50 => Self(100 * level + 40),
            _ => Self(100 * level + 60),
        }
    }

    /// The priority of a number: one outside the table is the nearest in it, but for 0, which is a `robots.txt`'s.
    pub const fn from_value(value: u16) -> Self {
        match value {
            0 => Self::ROBOTS,
            1..Self::MOST_URGENT => Self(Self::MOST_URGENT),
            Self::MOST_URGENT..=Self::LEAST_URGENT => Self(value),
            _ => Self(Self::LEAST_URGENT),
        }
    }
}

impl From<u16> for Priority {
    fn from(value: u16) -> Self {
        Self::from_value(value)
    }
}

/// Why a text names no priority.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no priority; write operator, user or system, then :high, :middle or :low if wanted, then -2 to +2"
)]
pub struct PriorityError(String);

/// Reads `operator|user|system[:high|middle|low][±2]`.
impl FromStr for Priority {
    type Err = PriorityError;

    fn from_str(text: &str) -> Result<Self, PriorityError> {
        let bad = || PriorityError(text.to_owned());
        let (name, fine) = match text.find(['+', '-']) {
            Some(at) => (&text[..at], text[at..].parse::<i16>().map_err(|_| bad())?),
            None => (text, 0),
        };
        let (actor, level) = name.split_once(':').unwrap_or((name, "middle"));
        let actor = ["operator", "user", "system"].iter().position(|a| *a == actor).ok_or_else(bad)?;
        let level = ["high", "middle", "low"].iter().position(|l| *l == level).ok_or_else(bad)?;
        if !(-2..=2).contains(&fine) {
            return Err(bad());
        }
        let cell = 120
            + 20 * u16::try_from(actor).map_err(|_| bad())?
            + 100 * u16::try_from(level).map_err(|_| bad())?;
        Ok(Self::from_value(cell.saturating_add_signed(fine)))
    }
}

/// `user:middle+1`, as it is read; a number where it is none of the table's.
impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = ["high", "middle", "low"].iter().zip(0_u16..);
        for (level, row) in cells {
            for (actor, column) in ["operator", "user", "system"].iter().zip(0_u16..) {
                let cell = 120 + 20 * column + 100 * row;
                match i32::from(self.0) - i32::from(cell) {
                    0 => return write!(f, "{actor}:{level}"),
                    fine @ -2..=2 => return write!(f, "{actor}:{level}{fine:+}"),
                    _ => {}
                }
            }
        }
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c1_c2_c3_the_nine_cells_stand_in_table_order() {
        let value = |text: &str| text.parse::<Priority>().map(Priority::value);
        let cells = ["high", "middle", "low"].iter().flat_map(|level| {
            ["operator", "user", "system"].iter().map(move |actor| format!("{actor}:{level}"))
        });
        let values: Vec<_> = cells.map(|cell| value(&cell)).collect();
        let table = [120, 140, 160, 220, 240, 260, 320, 340, 360];
        assert_eq!(values, table.map(Ok).to_vec());
        assert_eq!(value("operator"), Ok(220));
        for text in ["operator:high", "user:middle+2", "system:low-1"] {
            assert_eq!(text.parse::<Priority>().map(|priority| priority.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(Priority::ROBOTS.to_string(), "0");
        assert_eq!(value("system:low+2"), Ok(362));
        assert_eq!(value("user:high-1"), Ok(139));
    }

    #[test]
    fn c1_a_number_outside_the_table_is_the_nearest_in_it_however_it_is_read() {
        let table =
            [(0, 0), (1, 118), (117, 118), (118, 118), (239, 239), (362, 362), (363, 362), (u16::MAX, 362)];
        for (number, priority) in table {
            assert_eq!(Priority::from_value(number).value(), priority);
            let read: Priority = serde_json::from_str(&number.to_string()).expect("a number");
            assert_eq!(read.value(), priority);
        }
        for (text, end) in [("operator:high-2", 118), ("system:low+2", 362)] {
            assert_eq!(text.parse::<Priority>().map(Priority::value), Ok(end));
        }
    }

    #[test]
    fn fine_steps_belong_to_their_level() {
        for (value, level) in [(0, 0), (118, 120), (138, 140), (162, 160), (200, 220), (239, 240), (362, 360)]
        {
            assert_eq!(Priority::from_value(value).level().value(), level, "{value}");
        }
    }

    #[test]
    fn an_operator_s_priority_is_urgent_but_for_the_lowest_level() {
        for level in ["high", "middle", "low"] {
            for fine in ["-2", "-1", "", "+1", "+2"] {
                for (actor, is_operators) in
                    [("operator", level != "low"), ("user", false), ("system", false)]
                {
                    let text = format!("{actor}:{level}{fine}");
                    let priority: Priority = text.parse().expect("a priority");
                    assert_eq!(priority.is_urgent(), is_operators, "{text}");
                }
            }
        }
        assert!(!Priority::ROBOTS.is_urgent());
    }

    #[test]
    fn c5_a_level_allows_so_long_and_an_operator_is_never_asked_to_wait() {
        let allowance = |text: &str| text.parse::<Priority>().map(Priority::allowance);
        let (hour, day) = (3_600_000, 86_400_000);
        for fine in ["-2", "", "+2"] {
            for (level, allowed) in [("high", 0), ("middle", hour), ("low", day)] {
                assert_eq!(allowance(&format!("operator:{level}{fine}")), Ok(0));
                assert_eq!(allowance(&format!("user:{level}{fine}")), Ok(allowed));
                assert_eq!(allowance(&format!("system:{level}{fine}")), Ok(allowed));
            }
        }
        assert_eq!(Priority::ROBOTS.allowance(), 0);
    }

    #[test]
    fn a_priority_outside_the_table_is_refused() {
        for text in ["", "boss", "user:soon", "user+3", "user:high+x"] {
            assert!(text.parse::<Priority>().is_err(), "{text}");
        }
    }
}
