//! The log: text for people or one JSON object a line for machines, on stderr. What a line looks like is in `log_line`.

use std::io::{self, Write};

use indicatif::MultiProgress;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::JsonFields;

pub use super::log_line::Format;
use super::log_line::LogLine;

/// What the client library says of a server that is away: we say it once ourselves.
const QUIET: &str = "redis=off";

/// Who is never heard: the first tells each cookie with its value, the others a line for a tag, as often as a page likes.
const NEVER: [&str; 3] = ["cookie_store=off", "html5ever=off", "selectors=off"];

/// Starts the log of this process: lines of `level` and above, as `RUST_LOG` refines them, written past the bars.
pub fn start(format: Format, level: &str, color: bool, bars: MultiProgress) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(format!("{level},{QUIET}")));
    let never = NEVER.iter().filter_map(|never| never.parse().ok());
    let filter = never.fold(filter, EnvFilter::add_directive);
    // A second start in one process (a test's) keeps the first log.
    let _ = tracing_subscriber::fmt()
        .with_ansi(color)
        .with_env_filter(filter)
        .fmt_fields(JsonFields::new())
        .event_format(LogLine(format))
        .with_writer(move || PastBars(bars.clone()))
        .try_init();
}

/// Writes to stderr while the progress bars stand aside; a line comes whole.
struct PastBars(MultiProgress);

impl Write for PastBars {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Nobody is left to tell that stderr is closed.
        self.0.suspend(|| drop(io::stderr().write_all(line)));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
