//! What `robots.txt` allows and asks for (RFC 9309), and the record of it that processes share. Waiting is not here.

mod change;
mod index;
mod lines;
mod pattern;
mod record;
mod rules;
mod verdicts;

pub use change::change;
pub use record::{HOLDS, HOLDS_AT_LEAST, UnreachableRow, record_of, rules_of, unreachable};
pub use rules::{QuotedRules, RobotsRules, deciding_line};
pub use verdicts::{Verdict, Verdicts};

/// The name under which `robots.txt` files speak to this crawler (RFC 9309 section 2.2.1).
pub const AGENT: &str = "paced";

/// How much of a `robots.txt` is read, in bytes; what follows is ignored (RFC 9309 section 2.5).
pub const MAX_BYTES: usize = 500 * 1024;
