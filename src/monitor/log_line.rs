//! What one log line looks like: a message that can be read alone, then its values, those of its visit last.

use std::fmt::{self, Debug};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::clock::Clock;
use crate::plain_text::{plain, plain_json};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Writes events as lines. Spans must keep their fields as JSON objects (`JsonFields`).
#[derive(Clone, Copy, Debug)]
pub(super) struct LogLine(pub(super) Format);

impl<S, N> FormatEvent<S, N> for LogLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut values = Values::default();
        event.record(&mut values);
        // The innermost span comes first; what the event says itself is not said twice.
        for span in context.event_scope().into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                values.add(&fields.fields);
            }
        }
        let (at, level) = (Clock::wall().now().to_string(), *event.metadata().level());
        match self.0 {
            Format::Text if writer.has_ansi_escapes() => {
                let color = color(level);
                writeln!(writer, "\x1b[2m{at}\x1b[0m \x1b[{color}m{level:>5}\x1b[0m {values}")
            }
            Format::Text => writeln!(writer, "{at} {level:>5} {values}"),
            Format::Json => writeln!(writer, "{}", plain_json(&values.object(at, level).to_string())),
        }
    }
}

fn color(level: Level) -> u8 {
    match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    }
}

/// The message of a line and its values, in their order.
#[derive(Debug, Default)]
struct Values {
    message: String,
    fields: Map<String, Value>,
}

impl Values {
    fn take(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(message)) => self.message = message,
            (name, value) => {
                self.fields.insert(name.to_owned(), value);
            }
        }
    }

    fn add(&mut self, span: &str) {
        let Ok(fields) = serde_json::from_str::<Map<String, Value>>(span) else { return };
        for (name, value) in fields {
            self.fields.entry(name).or_insert(value);
        }
    }

    fn object(self, at: String, level: Level) -> Value {
        let mut object = Map::new();
        object.insert("timestamp".to_owned(), at.into());
        object.insert("level".to_owned(), level.as_str().into());
        object.insert("message".to_owned(), self.message.into());
        object.extend(self.fields);
        Value::Object(object)
    }
}

/// `message name=value name="value with spaces"`. Nothing that a site sent steers the terminal.
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", plain(&self.message))?;
        for (name, value) in &self.fields {
            match value {
                Value::String(text) if !is_word(text) => write!(f, " {name}={text:?}")?,
                Value::String(text) => write!(f, " {name}={}", plain(text))?,
                other => write!(f, " {name}={other}")?,
            }
        }
        Ok(())
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"')
}

impl Visit for Values {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.take(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.take(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    use tracing_subscriber::fmt::format::JsonFields;

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Paper {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(text)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The line without its time.
    fn logged(format: Format, log: impl FnOnce()) -> String {
        let paper = Paper::default();
        let pen = paper.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .fmt_fields(JsonFields::new())
            .event_format(LogLine(format))
            .with_writer(move || pen.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        let text = paper.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        String::from_utf8(text).expect("text").trim_end().to_owned()
    }

    fn visited() {
        let span = tracing::info_span!("visit", site = "books", url = "http://a/", attempt = 2);
        let why = "HTTP 503";
        span.in_scope(|| tracing::warn!(site = "b\u{202e}", wait_s = 1, why, "left\nalone\x1b[2J\u{9b}"));
    }

    #[test]
    fn a_line_says_its_message_then_each_value_once() {
        let line = logged(Format::Text, visited);
        let (at, rest) = line.split_once(' ').expect("a time first");
        assert!(at.parse::<crate::clock::Timestamp>().is_ok(), "{line}");
        assert_eq!(
            rest,
            " WARN left\\u{a}alone\\u{1b}[2J\\u{9b} site=b\\u{202e} wait_s=1 why=\"HTTP 503\" attempt=2 url=http://a/"
        );
    }

    #[test]
    fn for_machines_every_value_stands_at_the_top_of_one_object() {
        let line = logged(Format::Json, visited);
        let object: Map<String, Value> = serde_json::from_str(&line).expect("one object");
        let names: Vec<&str> = object.keys().map(String::as_str).collect();
        assert_eq!(names, ["timestamp", "level", "message", "site", "wait_s", "why", "attempt", "url"]);
        assert!(!line.contains(['\u{202e}', '\u{9b}']) && object["site"] == "b\u{202e}", "{line}");
        assert_eq!((&object["level"], &object["attempt"]), (&"WARN".into(), &2.into()));
    }
}
