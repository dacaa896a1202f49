//! Which of the two lines a process walks.

use std::fmt;
use std::str::FromStr;

use crate::task::Stage;

/// `--role download | parse | both`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Asks sites and keeps their pages; others parse them.
    Download,
    /// Parses pages that others keep; it asks no site.
    Parse,
    /// Both, each page handed over in memory.
    #[default]
    Both,
}

/// Why a text names no role.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{0}` is no role; write download, parse or both")]
pub struct RoleError(String);

impl Role {
    const NAMES: [(Self, &str); 3] =
        [(Self::Download, "download"), (Self::Parse, "parse"), (Self::Both, "both")];

    /// Whether it walks the line of this stage.
    pub fn walks(self, stage: Stage) -> bool {
        match stage {
            Stage::Download => self != Self::Parse,
            Stage::Parse => self != Self::Download,
        }
    }
}

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        let named = Self::NAMES.iter().find(|(_, name)| *name == text);
        named.map(|(role, _)| *role).ok_or_else(|| RoleError(text.to_owned()))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Self::NAMES.iter().filter(|(role, _)| role == self).try_for_each(|(_, name)| f.write_str(name))
    }
}
