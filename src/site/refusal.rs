//! Whether a URL is for a site's crawl, by its file alone. What `robots.txt` says of it is found elsewhere.

use std::fmt;

use super::{PageRule, Site};
use crate::canonical_url::CanonicalUrl;

/// Why a URL is not for a site's crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is on no host of the site.
    Host,
    /// This pattern of `deny` covers it.
    Denied(String),
    /// It is more than so many links away from a seed.
    Depth(u32),
    /// No page rule takes it.
    NoRule,
}

impl Site {
    /// The rule that takes a URL which is `depth` links away from a seed, or why it isn't asked for.
    pub fn takes(&self, url: &CanonicalUrl, depth: u32) -> Result<&PageRule, Refusal> {
        if !self.scope.owns(url) {
            return Err(Refusal::Host);
        }
        if let Some(pattern) = self.scope.deny.iter().find(|pattern| pattern.matches(url)) {
            return Err(Refusal::Denied(pattern.as_str().to_owned()));
        }
        if depth > self.scope.max_depth {
            return Err(Refusal::Depth(self.scope.max_depth));
        }
        self.rule_for(url).ok_or(Refusal::NoRule)
    }
}

impl Refusal {
    /// A word for it, for scripts.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Denied(_) => "deny",
            Self::Depth(_) => "depth",
            Self::NoRule => "no-rule",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("on no host of the site (scope.hosts)"),
            Self::Denied(pattern) => write!(f, "scope.deny has `{pattern}`"),
            Self::Depth(most) => write!(f, "deeper than scope.max_depth = {most}"),
            Self::NoRule => f.write_str("no page rule takes it"),
        }
    }
}
