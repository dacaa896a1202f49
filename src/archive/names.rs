//! What segments are called: when they began, who writes them, and a number.

use std::fs;

use uuid::Uuid;

use crate::clock::{Clock, Timestamp};

/// How a segment's name ends.
pub(super) const ENDING: &str = ".warc.gz";

const MAX_WRITER: usize = 64;

/// A writer's name that no other process has: host, process id and some letters drawn at random.
pub fn writer_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = safe(host.trim().split('.').next().unwrap_or_default());
    let random = Uuid::new_v4().simple().to_string();
    format!("{host}-{}-{}", std::process::id(), &random[..6])
}

/// The names of one writer's segments.
#[derive(Debug)]
pub(super) struct SegmentNames {
    writer: String,
    clock: Clock,
    given: u32,
}

impl SegmentNames {
    pub(super) fn new(writer: &str, clock: Clock) -> Self {
        Self { writer: safe(writer), clock, given: 0 }
    }

    /// The next one, and the time in it.
    pub(super) fn next(&mut self) -> (String, Timestamp) {
        self.given += 1;
        let now = self.clock.now();
        (format!("{}-{}-{:05}{ENDING}", file_stamp(now), self.writer, self.given), now)
    }
}

/// `20261120T090000Z`.
fn file_stamp(now: Timestamp) -> String {
    let text = now.to_string();
    let second = text.split('.').next().unwrap_or(&text);
    format!("{}Z", second.replace(['-', ':'], ""))
}

fn safe(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.chars().take(MAX_WRITER).map(safe).collect();
    if name.is_empty() { "paced".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writers_name_is_safe_in_a_file_name() {
        for (given, safe_name) in
            [("host-1", "host-1"), ("a/b:c d", "a-b-c-d"), ("", "paced"), ("日本", "--")]
        {
            assert_eq!(safe(given), safe_name);
        }
        assert_eq!(safe(&"x".repeat(99)).len(), MAX_WRITER);
    }

    #[test]
    fn a_segments_name_begins_with_its_start() {
        assert_eq!(file_stamp(Timestamp::from_millis(1_795_165_200_123)), "20261120T090000Z");
    }
}
