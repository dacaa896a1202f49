//! Being watched: counters of this process, the pulse lines, the log's form, the progress bars. No work is done here.

mod counts;
mod limits;
pub mod log;
mod log_line;
mod progress;
mod pulse;
mod why;
mod words;

pub use counts::{Load, Monitor, Tally};
pub use progress::Progress;
pub use pulse::Pulse;
pub use why::why;
pub use words::{duration, rate};
