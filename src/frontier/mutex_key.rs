//! `MutexKey`: what a timed mutex is of, and the name under which every backend keeps it.

use std::fmt;

/// What the stored name of a unit's timed mutex begins with.
pub(super) const UNIT_MUTEX: &str = "site/";

/// What a timed mutex is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MutexKey {
    /// A pace unit: each of its starts takes this mutex.
    Unit(String),
    /// Anything else that programs agree on.
    Named {
        /// Keeps mutexes of different purposes apart.
        namespace: String,
        /// The name itself.
        name: String,
    },
}

impl MutexKey {
    /// The mutex of a pace unit.
    pub fn unit(unit: &str) -> Self {
        Self::Unit(unit.to_owned())
    }

    /// The mutex of that name, in no namespace.
    pub fn named(name: &str) -> Self {
        Self::Named { namespace: String::new(), name: name.to_owned() }
    }

    /// The name under which a backend keeps it: `site/UNIT` or `named/NAMESPACE/NAME` (V8). No namespace reads as part of a name.
    pub(super) fn stored(&self) -> String {
        match self {
            Self::Unit(unit) => format!("{UNIT_MUTEX}{unit}"),
            Self::Named { namespace, name } => {
                let namespace = namespace.replace('%', "%25").replace('/', "%2F");
                format!("named/{namespace}/{name}")
            }
        }
    }
}

/// As people say it.
impl fmt::Display for MutexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(unit) => write!(f, "pace unit {unit}"),
            Self::Named { namespace, name } if namespace.is_empty() => f.write_str(name),
            Self::Named { namespace, name } => write!(f, "{namespace}/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v8_no_two_mutexes_are_kept_under_one_name() {
        let named = |namespace: &str, name: &str| MutexKey::Named {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        for (key, stored) in [
            (MutexKey::unit("shop"), "site/shop"),
            (MutexKey::named("mail"), "named//mail"),
            (named("site", "shop"), "named/site/shop"),
            (named("a/b", "c"), "named/a%2Fb/c"),
            (named("a", "b/c"), "named/a/b/c"),
            (named("a%2Fb", "c"), "named/a%252Fb/c"),
        ] {
            assert_eq!(key.stored(), stored, "{key:?}");
        }
    }
}
