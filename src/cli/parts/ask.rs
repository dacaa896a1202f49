//! Questions to the person at the terminal.

use std::fmt::Display;
use std::io::{self, IsTerminal};

use super::say;

/// Whether there is somebody to ask.
pub(in crate::cli) fn is_at_a_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Asks, and returns the line that is typed.
pub(in crate::cli) fn ask(question: impl Display) -> io::Result<String> {
    say(question);
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line)
}

/// Asks whether to do something: only a yes is one.
pub(in crate::cli) fn is_wanted(question: impl Display) -> io::Result<bool> {
    let answer = ask(format_args!("{question} [y/N]"))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
