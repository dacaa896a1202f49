//! Parses `--workers` (`auto`, `8`, `4..32`).

use std::str::FromStr;

/// As many as a process has at most where it isn't told.
pub const MOST_WORKERS: u32 = 1_000;

/// `--workers auto | N | MIN..MAX`: how many downloads at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// As many as response times ask for, within these bounds.
    Auto {
        /// At least.
        least: usize,
        /// At most.
        most: usize,
    },
    /// Always so many.
    Fixed(usize),
}

impl Default for Workers {
    fn default() -> Self {
        Self::Auto { least: 1, most: MOST_WORKERS as usize }
    }
}

/// Why a text names no number of workers.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{0}` is no number of workers; write auto, a number from 1 to 10000, or MIN..MAX")]
pub struct WorkersError(String);

impl FromStr for Workers {
    type Err = WorkersError;

    fn from_str(text: &str) -> Result<Self, WorkersError> {
        let number = |text: &str| text.parse().ok().filter(|n| (1..=10_000).contains(n));
        let bounds = text.split_once("..").and_then(|(least, most)| number(least).zip(number(most)));
        match (text, number(text), bounds) {
            ("auto", _, _) => Ok(Self::default()),
            (_, Some(fixed), _) => Ok(Self::Fixed(fixed)),
            (_, _, Some((least, most))) if least <= most => Ok(Self::Auto { least, most }),
            _ => Err(WorkersError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_auto_a_number_or_bounds() {
        for (text, workers) in [
            ("auto", Some(Workers::Auto { least: 1, most: 1_000 })),
            ("12", Some(Workers::Fixed(12))),
            ("5..60", Some(Workers::Auto { least: 5, most: 60 })),
            ("60..5", None),
            ("0", None),
            ("many", None),
        ] {
            assert_eq!(text.parse::<Workers>().ok(), workers, "{text}");
        }
    }
}
