//! The log: text for people or one JSON object a line for machines, on stderr. What a line looks like is in `log_line`.

use std::io::{self, Write};

use indicatif::MultiProgress;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::JsonFields;

pub use super::log_line::Format;
use super::log_line::LogLine;

/// What the client library says of a server that is away: we say it once ourselves.
const QUIET: &str = "redis=off";

/// Starts the log of this process: lines of `level` and above, as `RUST_LOG` refines them, written past the bars.
pub fn start(format: Format, level: &str, color: bool, bars: MultiProgress) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(format!("{level},{QUIET}")));
    // A second start in one process (a test's) keeps the first log.
    let _ = tracing_subscriber::fmt()
        .with_ansi(color)
        .with_env_filter(filter)
        .fmt_fields(JsonFields::new())
        .event_format(LogLine(format))
        .with_writer(move || BufferedLine { bars: bars.clone(), text: Vec::new() })
        .try_init();
}

/// One log line on its way to stderr; it is written whole while the progress bars stand aside.
struct BufferedLine {
    bars: MultiProgress,
    text: Vec<u8>,
}

impl Write for BufferedLine {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for BufferedLine {
    fn drop(&mut self) {
        let text = std::mem::take(&mut self.text);
        // Nobody is left to tell that stderr is closed.
        self.bars.suspend(|| drop(io::stderr().write_all(&text)));
    }
}
