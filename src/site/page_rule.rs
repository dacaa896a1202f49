//! What is wanted of a page: one `[[page]]` of a site file, its selectors and expressions compiled once.

use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use super::css::Css;
use super::scope::UrlPattern;
use crate::canonical_url::CanonicalUrl;

/// The common fields of a product, which `product = true` fills, in the order of an item.
pub const PRODUCT_FIELDS: [&str; 8] =
    ["name", "price", "currency", "availability", "sku", "gtin", "brand", "image"];

/// One `[[page]]`: which pages it takes, which links it follows, what makes an item.
#[derive(Clone, Debug)]
pub struct PageRule {
    /// The rule's name, unique within the site.
    pub name: String,
    /// Patterns of the pages it takes.
    pub matches: Vec<UrlPattern>,
    /// Which links are put into the queue.
    pub follow: Follow,
    /// The most pages this rule takes in one run.
    pub max_pages: Option<u64>,
    /// Whether the page is an item.
    pub item: bool,
    /// What makes two items one.
    pub key: ItemKey,
    /// How old the page may grow.
    pub recrawl: Option<Duration>,
    /// Whether the [`PRODUCT_FIELDS`] are filled from structured data.
    pub product: bool,
    /// The fields of the item, in the order of the file.
    pub fields: Vec<FieldRule>,
}

impl PageRule {
    /// Whether this rule takes the URL.
    pub fn takes(&self, url: &CanonicalUrl) -> bool {
        self.matches.iter().any(|pattern| pattern.matches(url))
    }

    /// Whether it looks for fields.
    pub fn has_fields(&self) -> bool {
        self.product || !self.fields.is_empty()
    }
}

/// `follow = […]`.
#[derive(Clone, Debug)]
pub enum Follow {
    /// No link.
    Nothing,
    /// `"*"`: every link of the page.
    Everything,
    /// The links that these selectors find.
    Selected(Vec<Css>),
}

/// `key = …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemKey {
    /// The page's canonical URL as crawled.
    Url,
    /// What `<link rel="canonical">` names, else the URL.
    Canonical,
    /// The value of a field.
    Field(String),
}

/// One entry of `[page.fields]`.
#[derive(Clone, Debug)]
pub struct FieldRule {
    /// The field's name.
    pub name: String,
    /// Where on the page.
    pub css: Css,
    /// This attribute's value instead of the element's text.
    pub attr: Option<String>,
    /// The first group of this expression, or the whole match where it has none.
    pub regex: Option<Regex>,
    /// What the text is read as.
    pub kind: FieldKind,
    /// The value where nothing is found.
    pub default: Option<Value>,
    /// Whether an item without it is none.
    pub required: bool,
    /// Every match, as a list, instead of the first.
    pub all: bool,
}

/// `as = …`: what a field's text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Text, white space folded.
    Text,
    /// The element's inner HTML.
    Html,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `{"amount": "1234.50", "currency": "EUR"}`: a decimal string, and an ISO 4217 code or null.
    Price,
    /// A date, as RFC 3339.
    Date,
    /// An absolute URL.
    Url,
    /// Whether the element is there; with `regex`, whether that matches.
    Bool,
}

impl FieldKind {
    /// The words of `as`, the default first.
    pub(super) const WORDS: [(&str, Self); 8] = [
        ("text", Self::Text),
        ("html", Self::Html),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("price", Self::Price),
        ("date", Self::Date),
        ("url", Self::Url),
        ("bool", Self::Bool),
    ];
}
