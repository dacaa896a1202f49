//! Results on stdout, where nothing from outside steers a terminal. A reader that went away (`| head`) is no failure.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

use super::Trouble;
use crate::plain_text::{plain, plain_json};

/// Stdout, for as long as somebody reads it.
#[derive(Debug, Default)]
pub(in crate::cli) struct Results {
    closed: bool,
}

impl Results {
    /// Writes one line for people; nothing where nobody reads any more. What steers a terminal is escaped.
    pub(in crate::cli) fn line(&mut self, text: impl Display) -> Result<(), Trouble> {
        self.ours(&(plain(text) + "\n"))
    }

    /// Writes each as a line for people.
    pub(in crate::cli) fn lines<T: Display>(
        &mut self,
        lines: impl IntoIterator<Item = T>,
    ) -> Result<(), Trouble> {
        let text: String = lines.into_iter().map(|line| plain(line) + "\n").collect();
        self.ours(&text)
    }

    /// Writes one line of JSON.
    pub(in crate::cli) fn json(&mut self, value: impl Display) -> Result<(), Trouble> {
        self.ours(&format!("{}\n", plain_json(&value.to_string())))
    }

    /// Writes text that is the program's own as it is.
    pub(in crate::cli) fn ours(&mut self, text: &str) -> Result<(), Trouble> {
        if self.closed {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.closed = true,
            Err(error) => return Err(Trouble::failed(format!("stdout can't be written to: {error}"))),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Clears the screen, where stdout is one.
    pub(in crate::cli) fn clear(&mut self) -> Result<(), Trouble> {
        if io::stdout().is_terminal() { self.ours("\x1b[2J\x1b[H") } else { Ok(()) }
    }

    /// Whether the reader went away.
    pub(in crate::cli) fn is_closed(&self) -> bool {
        self.closed
    }
}
