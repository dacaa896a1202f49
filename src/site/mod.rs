//! One file of `sites/` as a checked value. Nothing here fetches.

mod css;
mod error;
mod keys;
mod load;
mod manual;
mod pace;
mod page_rule;
pub(crate) mod read;
mod refusal;
mod schema;
mod scope;

pub use css::Css;
pub use error::{SiteError, SiteErrors};
pub(crate) use load::{is_plain_name, plain_key, proxy_url};
pub use load::{load, most_pages, outlook, parse, two_sites_one_host, unknown_lanes, warnings};
pub use manual::keys_page;
pub use pace::{FetchRules, MetaRobots, Pace, ProxyRule, RobotsPolicy, SignatureRule};
pub use page_rule::{FieldKind, FieldRule, Follow, ItemKey, PRODUCT_FIELDS, PageRule};
pub use refusal::Refusal;
pub use schema::schema;
pub use scope::{PatternError, Scope, UrlPattern};

use std::path::Path;

use url::Url;

use crate::canonical_url::{CanonicalUrl, UrlError};
use crate::task::Put;

/// A shop to crawl: its seeds, its pace, its bounds and what is wanted of its pages.
#[derive(Clone, Debug)]
pub struct Site {
    /// The name: letters, digits, `-`, `_` and `.`; it names files and queues.
    pub name: String,
    /// Where a run starts.
    pub seeds: Vec<CanonicalUrl>,
    /// The lane that its tasks wait in, unless it is `general`.
    pub lane: Option<String>,
    /// Whom its tasks are for, as fairness rules count them.
    pub tenant: Option<String>,
    /// Sites of one group share one pace.
    pub group: Option<String>,
    /// How fast, and with what manners.
    pub pace: Pace,
    /// Which URLs belong to the crawl.
    pub scope: Scope,
    /// How one request is made.
    pub fetch: FetchRules,
    /// What to do with a page: the first rule that matches takes it.
    pub pages: Vec<PageRule>,
    /// The file's own text, which goes with the site to every process of a fleet.
    pub text: String,
}

/// What the pace unit of a group begins with.
const OF_A_GROUP: &str = "group:";

/// The pace unit of a group.
pub fn unit_of_group(group: &str) -> String {
    format!("{OF_A_GROUP}{group}")
}

/// The group of a pace unit, as site files name it.
pub fn group_of_unit(unit: &str) -> &str {
    unit.strip_prefix(OF_A_GROUP).unwrap_or(unit)
}

impl Site {
    /// Reads and checks a site file.
    ///
    /// Errors are all that is wrong with it, each with its place and what to do.
    pub fn load(path: &Path) -> Result<Self, SiteErrors> {
        load(path)
    }

    /// The pace unit that the site belongs to: `group:NAME`, or the site's own name, which has no colon.
    pub fn unit(&self) -> String {
        match &self.group {
            Some(group) => unit_of_group(group),
            None => self.name.clone(),
        }
    }

    /// The rule that takes this URL, if any does.
    pub fn rule_for(&self, url: &CanonicalUrl) -> Option<&PageRule> {
        self.pages.iter().find(|rule| rule.takes(url))
    }

    /// How many patterns a URL is compared with, at most.
    pub fn patterns(&self) -> usize {
        self.scope.strip_query.count()
            + self.scope.deny.len()
            + self.pages.iter().map(|rule| rule.matches.len()).sum::<usize>()
    }

    /// Whether the rule that takes a link follows links itself.
    pub fn leads_on(&self, link: &Put) -> bool {
        let leads_on = |rule: &PageRule| !matches!(rule.follow, Follow::Nothing);
        self.pages.iter().any(|rule| Some(&rule.name) == link.rule.as_ref() && leads_on(rule))
    }

    /// The spelling under which this site stores a URL.
    pub fn canonical(&self, url: Url) -> Result<CanonicalUrl, UrlError> {
        Ok(CanonicalUrl::from_url(url)?.stripped(&self.scope.strip_query))
    }
}
