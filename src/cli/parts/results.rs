//! Results on stdout. A reader that went away (`| head`) is no failure.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use super::Trouble;

/// Stdout, for as long as somebody reads it.
#[derive(Debug, Default)]
pub(in crate::cli) struct Results {
    closed: bool,
}

impl Results {
    /// Writes a line; nothing where nobody reads any more.
    pub(in crate::cli) fn line(&mut self, text: impl Display) -> Result<(), Trouble> {
        self.write(&format!("{text}\n"))
    }

    /// Writes text as it is.
    pub(in crate::cli) fn write(&mut self, text: &str) -> Result<(), Trouble> {
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

    /// Whether the reader went away.
    pub(in crate::cli) fn is_closed(&self) -> bool {
        self.closed
    }
}
