//! Consent to a change of many tasks: what it would change is shown first, and nothing is done that nobody agreed to.

use std::io;

use clap::Args;

use super::act::Why;
use super::ask::is_at_a_terminal;
use super::{Trouble, say};
use crate::frontier::Act;

/// Whether it is asked for first, and why it is done.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Consent {
    /// Without asking anything; where there is no terminal, nothing is changed without it
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    why: Why,
}

impl Consent {
    /// Whether what was found may be done: `--yes`, or the person at the terminal agrees.
    pub(in crate::cli) fn is_given(
        &self,
        found: &str,
        asks: impl FnOnce() -> io::Result<bool>,
    ) -> Result<bool, Trouble> {
        if self.yes {
            return Ok(true);
        }
        if !is_at_a_terminal() {
            return Err(Trouble::usage(format!("{found}; add --yes to do it")));
        }
        let wanted = asks()?;
        if !wanted {
            say("nothing was changed");
        }
        Ok(wanted)
    }

    /// What is kept of it.
    pub(in crate::cli) fn act(&self, did: &str) -> Act {
        if self.yes { self.why.act_unasked(did) } else { self.why.act(did) }
    }
}
