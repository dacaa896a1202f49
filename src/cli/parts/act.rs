//! Who did what, and why: kept in the frontier beside what was done, for those who wonder later.

use clap::Args;

use super::ask::{ask, is_at_a_terminal};
use crate::frontier::Act;

/// Who is named instead of `user@host`.
const OPERATOR: &str = "PACED_OPERATOR";
/// Where nobody says why.
const NO_REASON: &str = "no reason was given";
/// Bytes that are kept of a reason, and of what was done.
const LONGEST: usize = 500;
/// Bytes that are kept of who did it.
const LONGEST_NAME: usize = 100;

/// Why something is done.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct Why {
    /// Why, for the log; on a terminal it is asked for
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

impl Why {
    /// What is kept of it, by whoever runs this.
    pub(in crate::cli) fn act(&self, did: &str) -> Act {
        self.act_told(did, asked)
    }

    /// The same where nobody is asked.
    pub(in crate::cli) fn act_unasked(&self, did: &str) -> Act {
        self.act_told(did, || None)
    }

    fn act_told(&self, did: &str, otherwise: impl FnOnce() -> Option<String>) -> Act {
        let why = self.why.clone().or_else(otherwise).map(|why| why.trim().to_owned());
        let why = why.filter(|why| !why.is_empty()).unwrap_or_else(|| NO_REASON.to_owned());
        act(did, &why)
    }
}

fn act(did: &str, why: &str) -> Act {
    let cut = |text: &str, most: usize| text[..text.floor_char_boundary(most)].to_owned();
    Act { who: cut(&who(), LONGEST_NAME), did: cut(did, LONGEST), why: cut(why, LONGEST) }
}

/// The same where no reason is asked for.
pub(in crate::cli) fn act_of(did: &str) -> Act {
    act(did, NO_REASON)
}

fn asked() -> Option<String> {
    if !is_at_a_terminal() {
        return None;
    }
    ask("why? (for the log; Enter gives no reason)").ok()
}

fn who() -> String {
    let named = |variable: &str| std::env::var(variable).ok().filter(|name| !name.trim().is_empty());
    named(OPERATOR).unwrap_or_else(|| {
        let user = named("USER").or_else(|| named("LOGNAME"));
        let user = user.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()));
        format!("{user}@{}", rustix::system::uname().nodename().to_string_lossy())
    })
}
