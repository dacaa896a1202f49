//! A worker's name: in the frontier, where it is the owner of its leases, and in the names of its files.

use std::fmt;
use std::fs;
use std::str::FromStr;

/// The longest name.
const MOST_LETTERS: usize = 64;

/// A name of letters, digits, `.`, `_` and `-`. Started again under the same one, a worker gets back what it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerName(String);

/// Why a text is no name.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{0}` is no name; write letters and digits")]
pub struct WorkerNameError(String);

impl WorkerName {
    /// The name of one that wasn't given any: host and process id.
    pub fn of_this_process() -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim().split('.').next().filter(|host| !host.is_empty()).unwrap_or("worker");
        Self(safe(&format!("{host}-{}", std::process::id())))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WorkerName {
    type Err = WorkerNameError;

    fn from_str(text: &str) -> Result<Self, WorkerNameError> {
        if text.chars().any(char::is_alphanumeric) {
            Ok(Self(safe(text)))
        } else {
            Err(WorkerNameError(text.to_owned()))
        }
    }
}

impl fmt::Display for WorkerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Safe in the name of a file.
fn safe(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    name.chars().take(MOST_LETTERS).map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_safe_for_a_file_name() {
        for (given, name) in
            [("dl-1", Some("dl-1")), ("a/b c", Some("a-b-c")), ("..", None), ("", None), ("///", None)]
        {
            assert_eq!(given.parse::<WorkerName>().ok().as_ref().map(WorkerName::as_str), name, "{given}");
        }
        assert_eq!("x".repeat(99).parse::<WorkerName>().expect("a name").as_str().len(), MOST_LETTERS);
        let own = WorkerName::of_this_process();
        assert!(own.as_str().ends_with(&format!("-{}", std::process::id())), "{own}");
    }
}
