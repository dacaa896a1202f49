//! The frontier as variables name it: by its URL, or by a file that has the URL, as secrets are handed to services.

use std::env;
use std::fs;
use std::path::PathBuf;

use super::Trouble;

const URL: &str = "PACED_FRONTIER";
const FILE: &str = "PACED_FRONTIER_FILE";
/// What some programs write before a text in UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The URL of the one variable that is set. No error shows it, as it may have a password.
pub(super) fn of_variables() -> Result<Option<String>, Trouble> {
    match (env::var_os(URL), env::var_os(FILE)) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            Err(Trouble::usage(format!("{URL} and {FILE} both name the frontier; unset one of them")))
        }
        (Some(url), None) => {
            let url = url.into_string();
            url.map(Some).map_err(|_| Trouble::usage(format!("{URL} is no text in UTF-8")))
        }
        (None, Some(file)) => of_file(&PathBuf::from(file)).map(Some),
    }
}

fn of_file(file: &PathBuf) -> Result<String, Trouble> {
    let wrong = |why: &str| Trouble::usage(format!("{FILE} {}: {why}", file.display()));
    let text = fs::read(file).map_err(|error| wrong(&error.to_string()))?;
    let text = String::from_utf8(text).map_err(|_| wrong("it is no text in UTF-8"))?;
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    match (lines.next(), lines.next()) {
        (Some(url), None) => Ok(url.to_owned()),
        (None, _) => Err(wrong("it is empty; write the frontier's URL into it")),
        (Some(_), Some(_)) => {
            Err(wrong("it has more than one line; write the frontier's URL into it, alone"))
        }
    }
}
