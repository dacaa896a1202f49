//! What was extracted: one product, as a line of `items/<site>.jsonl`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::Timestamp;

/// One item. Serialised it is the line that a sink writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The site's name.
    pub site: String,
    /// The page rule that took the page.
    pub page: String,
    /// The page's canonical URL.
    pub url: String,
    /// What makes two items one: the last line of a key wins. Left out where it is the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// When the page was fetched.
    pub fetched_at: Timestamp,
    /// The page asks not to be indexed (`noindex`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noindex: bool,
    /// The page asks that no copy of it be shown (`noarchive`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noarchive: bool,
    /// The values, in the order of the rule.
    pub fields: Map<String, Value>,
    /// Where each value came from: `css`, `json-ld`, `microdata`, `opengraph`, `default`.
    pub from: BTreeMap<String, String>,
}
