//! What is wrong with a file that a person wrote, and where. Finding it is done elsewhere.

use serde::Serialize;

/// One thing that is wrong, at its place: `file:line:column: what; what to do`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{file}:{line}:{column}: {what}; {what_to_do}")]
pub struct SiteError {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The character within the line, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub what_to_do: String,
}

/// Everything that is wrong with one file, in the order of the file; never empty. It is shown as one error a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct SiteErrors {
    /// The errors, first line first.
    pub errors: Vec<SiteError>,
}

impl SiteErrors {
    /// The one error of a whole file.
    pub(crate) fn of_file(file: &str, what: impl Into<String>, what_to_do: impl Into<String>) -> Self {
        let (file, what, what_to_do) = (file.to_owned(), what.into(), what_to_do.into());
        Self { errors: vec![SiteError { file, line: 1, column: 1, what, what_to_do }] }
    }

    /// The one error of a file that can't be read at all.
    pub(crate) fn unreadable(file: &str, why: &std::io::Error) -> Self {
        let reason = match why.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            std::io::ErrorKind::PermissionDenied => "you may not read it".to_owned(),
            std::io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
            std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            _ => why.to_string(),
        };
        let what = format!("can't read the file: {reason}");
        Self::of_file(file, what, "name a TOML file that can be read")
    }
}
