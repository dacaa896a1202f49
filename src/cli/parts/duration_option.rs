//! A duration as an option's value.

use std::time::Duration;

use crate::quantity::read_duration;

/// Reads a duration with its unit from the command line.
pub fn duration_option(text: &str) -> Result<Duration, String> {
    read_duration(text).ok_or_else(|| "write a number and a unit, such as 30s or 10m".to_owned())
}
