//! What a verb tells of one thing: a headline and lines under it.

use serde_json::{Map, Value};

use super::results::Results;
use super::{Exit, Trouble};

/// What is told: as lines for people, as an object for scripts.
pub(in crate::cli) struct Account {
    headline: String,
    lines: Vec<(&'static str, String)>,
    pub(in crate::cli) object: Map<String, Value>,
}

impl Account {
    pub(in crate::cli) fn new(headline: String) -> Self {
        Self { headline, lines: Vec::new(), object: Map::new() }
    }

    pub(in crate::cli) fn tell(&mut self, what: &'static str, text: impl Into<String>) {
        self.lines.push((what, text.into()));
    }

    pub(in crate::cli) fn keep(&mut self, name: &str, value: impl Into<Value>) {
        self.object.insert(name.to_owned(), value.into());
    }

    pub(in crate::cli) fn print(self, as_json: bool) -> Result<Exit, Trouble> {
        let mut results = Results::default();
        if as_json {
            results.line(Value::Object(self.object))?;
        } else {
            results.write(&self.text())?;
        }
        Ok(Exit::Done)
    }

    fn text(&self) -> String {
        let lines = self.lines.iter().map(|(what, text)| format!("  {what:<10}  {text}\n"));
        std::iter::once(format!("{}\n", self.headline)).chain(lines).collect()
    }
}

pub(in crate::cli) fn attempts(count: u32) -> String {
    if count == 1 { "1 attempt".to_owned() } else { format!("{count} attempts") }
}
