//! Secrets: a site's file names them, the environment holds them, and nothing shows them.

use std::env;

/// What the name of every secret begins with, before its owner's name.
const BEGINNING: &str = "PACED_SECRET_";

/// The name of an environment variable that holds a secret of a site or its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName(String);

/// A secret. It can be neither shown nor stored, but is revealed where a request's header is made.
pub struct Secret(String);

impl SecretName {
    /// The name, if it is one of these owners': no site's file may send another one's secrets away.
    pub fn of(name: &str, owners: &[&str]) -> Option<Self> {
        let is_plain = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let is_its = |owner: &&str| {
            name.strip_prefix(&Self::first(owner))
                .is_some_and(|more| more.is_empty() || more.starts_with('_'))
        };
        (is_plain && owners.iter().any(is_its)).then(|| Self(name.to_owned()))
    }

    /// The shortest name of an owner's secrets; longer ones have `_` and more behind it.
    pub fn first(owner: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        BEGINNING.chars().chain(owner.chars().map(plain)).collect()
    }

    /// The variable's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The secret; none where the variable isn't set, or is empty.
    pub fn read(&self) -> Option<Secret> {
        env::var(&self.0).ok().filter(|value| !value.is_empty()).map(Secret)
    }
}

impl Secret {
    /// What it is.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_s_name_begins_with_that_of_its_site_or_group() {
        for (name, is_its) in [
            ("PACED_SECRET_SHOP_A", true),
            ("PACED_SECRET_SHOP_A_KEY", true),
            ("PACED_SECRET_PARTNERS", true),
            ("PACED_SECRET_SHOP_AB", false),
            ("PACED_SECRET_SHOP", false),
            ("PACED_SECRET_", false),
            ("paced_secret_shop_a", false),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("PACED_SECRET_SHOP_A_key", false),
            ("PACED_SECRET_SHOP_A_\n", false),
        ] {
            assert_eq!(SecretName::of(name, &["shop-a", "partners"]).is_some(), is_its, "{name}");
        }
    }
}
