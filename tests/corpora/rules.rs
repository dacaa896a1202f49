//! Sites and rules as a file would give them.

use paced::internals::canonical_url::{CanonicalUrl, StripQuery};
use paced::internals::clock::Timestamp;
use paced::internals::extract::Fetched;
use paced::internals::page::Headers;
use paced::internals::site::{
    Css, FetchRules, FieldKind, FieldRule, Follow, ItemKey, Pace, PageRule, Scope, Site, UrlPattern,
};
use regex::Regex;

/// A site around one URL, with every default.
pub fn site(seed: &CanonicalUrl) -> Site {
    Site {
        name: "shop".to_owned(),
        seeds: vec![seed.clone()],
        lane: None,
        tenant: None,
        group: None,
        pace: Pace::default(),
        scope: Scope {
            hosts: vec![seed.host()],
            deny: Vec::new(),
            max_depth: Scope::MAX_DEPTH,
            max_pages: None,
            strip_query: StripQuery::new(Scope::STRIP_QUERY.map(str::to_owned).to_vec()),
        },
        fetch: FetchRules::default(),
        pages: Vec::new(),
        text: String::new(),
    }
}

/// A page rule that makes an item of everything.
pub fn item_rule(fields: Vec<FieldRule>, follow: Follow) -> PageRule {
    PageRule {
        name: "product".to_owned(),
        matches: vec![UrlPattern::whole("/**").expect("a pattern")],
        fields,
        follow,
        item: true,
        product: false,
        key: ItemKey::Canonical,
        max_pages: None,
        recrawl: None,
    }
}

/// A page rule of `product = true` and nothing else.
pub fn product_rule() -> PageRule {
    PageRule { product: true, ..item_rule(Vec::new(), Follow::Everything) }
}

/// A required field.
pub fn field(name: &str, css: &str, regex: Option<&str>, kind: FieldKind) -> FieldRule {
    FieldRule {
        name: name.to_owned(),
        css: Css::parse(css).expect("a selector"),
        attr: None,
        regex: regex.map(|regex| Regex::new(regex).expect("an expression")),
        kind,
        default: None,
        required: true,
        all: false,
    }
}

/// A page as it comes from the archive.
pub fn fetched<'a>(url: &'a CanonicalUrl, headers: &'a Headers, body: &'a [u8]) -> Fetched<'a> {
    Fetched { url, fetched_at: Timestamp::from_millis(0), headers, body }
}
