//! What a verb tells of one thing: a headline and lines under it.

use serde_json::{Map, Value};

use super::results::Results;
use super::{Exit, Trouble};

/// What is told: as lines for people, as an object for scripts.
pub(in crate::cli) struct Account {
    headline: String,
    lines: Vec<(&'static str, String)>,
    object: Map<String, Value>,
}

impl Account {
    pub(in crate::cli) fn new(headline: String) -> Self {
        Self { headline, lines: Vec::new(), object: Map::new() }
    }

    pub(in crate::cli) fn tell(&mut self, what: &'static str, text: impl Into<String>) {
        self.lines.push((what, text.into()));
    }

    /// Adds the members of an object to that for scripts.
    pub(in crate::cli) fn keep(&mut self, members: Value) {
        if let Value::Object(members) = members {
            self.object.extend(members);
        }
    }

    pub(in crate::cli) fn print(self, as_json: bool) -> Result<Exit, Trouble> {
        let mut results = Results::default();
        if as_json {
            results.json(Value::Object(self.object))?;
        } else {
            results.line(self.headline)?;
            self.lines
                .iter()
                .try_for_each(|(what, text)| results.line(format_args!("  {what:<10}  {text}")))?;
        }
        Ok(Exit::Done)
    }
}

/// A count of things: `1 attempt`, `2 attempts`.
pub(in crate::cli) fn counted(count: impl Into<u64>, thing: &str) -> String {
    match count.into() {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}
