//! The log: text for people or one JSON object a line for machines, on stderr.

use std::io::{self, Write};

use indicatif::MultiProgress;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::{MakeWriter, time::FormatTime};

use crate::clock::Clock;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the log of this process: lines of `level` and above, as `RUST_LOG` refines them, written past the bars.
pub fn start(format: Format, level: &str, color: bool, bars: MultiProgress) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_timer(Stamp).with_writer(PastBars(bars));
    // A second start in one process (a test's) keeps the first log.
    let _ = match format {
        Format::Text => log.with_ansi(color).with_target(false).try_init(),
        Format::Json => {
            log.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init()
        }
    };
}

/// The wall clock's time, as `2026-11-20T09:00:00.123Z`.
struct Stamp;

impl FormatTime for Stamp {
    fn format_time(&self, w: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        write!(w, "{}", Clock::wall().now())
    }
}

/// Writes whole lines to stderr while the progress bars stand aside.
struct PastBars(MultiProgress);

impl<'a> MakeWriter<'a> for PastBars {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { bars: self.0.clone(), text: Vec::new() }
    }
}

/// One log line on its way.
struct Line {
    bars: MultiProgress,
    text: Vec<u8>,
}

impl Write for Line {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let text = std::mem::take(&mut self.text);
        // Nobody is left to tell that stderr is closed.
        self.bars.suspend(|| drop(io::stderr().write_all(&text)));
    }
}
