//! What is on a page: its item, its links, what it asks of robots. Pure; saving and scope are elsewhere.
//!
//! ```text
//! bytes ─ html::charset ─▶ text ─ html::tree ─▶ elements ─┬─ fields, structured ─▶ item
//!                                                         ├─ links ─▶ URLs
//!                                                         └─ directives ─▶ nofollow, noindex, noarchive
//! ```

mod directives;
mod fetched;
mod fields;
pub mod html;
mod item;
mod links;
mod structured;
pub mod values;

pub use directives::PageDirectives;
pub use fetched::Fetched;

use url::Url;

use crate::budget::{Budget, Spent};
use crate::canonical_url::CanonicalUrl;
use crate::item::Item;
use crate::site::{MetaRobots, PageRule, Site};
use html::{Base, Tree, charset};
use item::RuledPage;
pub use links::MOST_LINKS;
use links::{Links, links};

/// What was on a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Extract {
    /// The item, if the rule makes one and nothing required is missing.
    pub item: Option<Item>,
    /// Required fields that were not found; the page is then no item.
    pub missing: Vec<String>,
    /// What was found of an item that is none, as something required is missing.
    pub incomplete: Option<Item>,
    /// Links that the rule follows, each once, in the order of the page; none where the page asks for that.
    pub links: Vec<Url>,
    /// Links that were dropped, as a page has no more than so many, and URLs have a longest length.
    pub dropped: usize,
    /// What of the page was left out as it is too much, in words.
    pub left_out: Vec<&'static str>,
    /// What the page asks of robots; nothing where the site's file says to ignore it.
    pub directives: PageDirectives,
    /// The page went past a limit of the parser: what came after is missing.
    pub cut: bool,
    /// WHATWG's name of the encoding that the page was read in.
    pub encoding: &'static str,
}

impl Extract {
    /// Whether the page has any field of the rule; a default is none.
    pub fn has_fields(&self) -> bool {
        let item = self.item.as_ref().or(self.incomplete.as_ref());
        item.is_some_and(|item| item.from.values().any(|from| from != "default"))
    }
}

/// Reads a page by the rule of its site that takes it, within the site's `parse_budget`.
///
/// It may take a good part of a second for the largest pages, so it belongs in a blocking task, and runs in one go.
pub fn extract(page: &Fetched<'_>, rule: &PageRule, site: &Site) -> Result<Extract, Spent> {
    extract_within(&Budget::of_time(site.fetch.parse_budget), page, rule, site)
}

/// The same, within that budget. Where it is spent nothing is found: a part of a page is none.
pub fn extract_within(
    budget: &Budget,
    page: &Fetched<'_>,
    rule: &PageRule,
    site: &Site,
) -> Result<Extract, Spent> {
    let (text, encoding) =
        charset::text_within(budget, page.body, page.headers.get("content-type"), tld(page.url));
    let tree = Tree::parse(&text, budget);
    let base = Base::of(&tree, page.url.url(), encoding);
    let obey = site.pace.meta_robots;
    let directives = match obey {
        MetaRobots::Obey => PageDirectives::of(&tree, page.headers),
        MetaRobots::Ignore => PageDirectives::default(),
    };
    budget.begin("its links");
    let links = if directives.nofollow { Links::default() } else { links(&tree, &rule.follow, &base, obey) };
    let Links { kept: links, dropped } = links;
    budget.begin("its fields");
    let found = rule.item.then(|| item::item(&RuledPage { tree: &tree, base: &base, page, rule, site }));
    let PageDirectives { noindex, noarchive, .. } = directives;
    let found = found.map(|(item, missing)| (Item { noindex, noarchive, ..item }, missing));
    let (item, incomplete, missing) = match found {
        Some((item, missing)) if missing.is_empty() => (Some(item), None, missing),
        Some((item, missing)) => (None, Some(item), missing),
        None => (None, None, Vec::new()),
    };
    budget.whole(Extract {
        item,
        missing,
        incomplete,
        links,
        dropped,
        left_out: budget.left_out(),
        directives,
        cut: tree.cut,
        encoding: encoding.name(),
    })
}

fn tld(url: &CanonicalUrl) -> Option<&str> {
    url.url().domain()?.rsplit('.').next()
}

#[cfg(test)]
mod tests;
