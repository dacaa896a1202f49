//! `Look`: what a rule makes of a page, each value with where it came from, and each link with what becomes of it.

use std::sync::Arc;

use serde_json::Value;
use url::Url;

use super::try_page::Content;
use crate::canonical_url::CanonicalUrl;
use crate::extract::{Extract, Fetched, PageDirectives, extract};
use crate::item::Item;
use crate::robots::Verdicts;
use crate::run::RunError;
use crate::site::{Refusal, Site};
use crate::work::VisitError;

/// What is on a page.
#[derive(Clone, Debug)]
pub struct Look {
    /// WHATWG's name of the encoding that the page was read in.
    pub encoding: &'static str,
    /// The page went past a limit of the parser: what came after is missing.
    pub cut: bool,
    /// What the page asks of robots.
    pub directives: PageDirectives,
    /// The item that a crawl would write.
    pub item: Option<Item>,
    /// Required fields that were not found; the page is then no item.
    pub missing: Vec<String>,
    /// The fields of the rule, and those of its product, found or not.
    pub fields: Vec<Field>,
    /// Links that a crawl would put into the queue.
    pub followed: Vec<FollowedLink>,
    /// Links that the rule follows and a crawl would not put, each with the reason.
    pub refused: Vec<RefusedLink>,
}

/// One field of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its value and where that came from; none where it wasn't found.
    pub found: Option<(Value, String)>,
    /// Without it the page is no item.
    pub required: bool,
}

/// A link that a crawl would put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedLink {
    /// Where it leads, as the site stores it.
    pub url: CanonicalUrl,
    /// The rule that takes it.
    pub rule: String,
}

/// A link that a crawl would not put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLink {
    /// Where it leads.
    pub url: String,
    /// A word for the reason: `host`, `deny`, `depth`, `no-rule`, `robots`, `scheme`.
    pub reason: &'static str,
    /// The reason in words.
    pub why: String,
}

/// Looks at a page that is `depth` links away from a seed, by the rule of that number.
pub async fn look(
    site: &Arc<Site>,
    rule: usize,
    content: Content,
    depth: u32,
    verdicts: &Verdicts,
) -> Result<Look, RunError> {
    let read_by = Arc::clone(site);
    let reading = tokio::task::spawn_blocking(move || {
        let Content { url, fetched_at, headers, body, .. } = &content;
        let page = Fetched { url, fetched_at: *fetched_at, headers, body };
        extract(&page, &read_by.pages[rule], &read_by)
    });
    let extract = reading.await.map_err(|panic| VisitError::Parse(panic.to_string()))?;
    let (mut followed, mut refused) = (Vec::new(), Vec::new());
    for link in &extract.links {
        match judge_link(site, link, depth + 1, verdicts).await? {
            Ok(link) => followed.push(link),
            Err(link) => refused.push(link),
        }
    }
    let fields = fields(site, rule, &extract);
    let Extract { item, missing, directives, cut, encoding, .. } = extract;
    Ok(Look { encoding, cut, directives, item, missing, fields, followed, refused })
}

async fn judge_link(
    site: &Site,
    link: &Url,
    depth: u32,
    verdicts: &Verdicts,
) -> Result<Result<FollowedLink, RefusedLink>, RunError> {
    let refused = |reason: &'static str, why: String| Err(RefusedLink { url: link.to_string(), reason, why });
    let url = match site.canonical(link.clone()) {
        Ok(url) => url,
        Err(error) => return Ok(refused("scheme", error.to_string())),
    };
    let rule = match site.takes(&url, depth) {
        Ok(rule) => rule.name.clone(),
        Err(why) => return Ok(refused(why.name(), in_words(&why, &url))),
    };
    if verdicts.allows(site, &url, None).await? {
        return Ok(Ok(FollowedLink { url, rule }));
    }
    Ok(refused("robots", verdicts.explain(site, &url).await?.why))
}

/// The reason for a link; the host is named, as a site may lack one of its own.
fn in_words(why: &Refusal, url: &CanonicalUrl) -> String {
    match why {
        Refusal::Host => format!("{} is no host of the site", url.host()),
        other => other.to_string(),
    }
}

/// The rule's fields in the order of the file, then what else was found.
fn fields(site: &Site, rule: usize, extract: &Extract) -> Vec<Field> {
    let Some(item) = extract.item.as_ref().or(extract.incomplete.as_ref()) else { return Vec::new() };
    let rules = &site.pages[rule].fields;
    let own = rules.iter().map(|field| (&field.name, field.required));
    let others = item.fields.keys().filter(|name| !rules.iter().any(|field| field.name == **name));
    let field = |(name, required): (&String, bool)| {
        let value = item.fields.get(name).cloned();
        let found = value.map(|value| (value, item.from.get(name).cloned().unwrap_or_default()));
        Field { name: name.clone(), found, required }
    };
    own.chain(others.map(|name| (name, false))).map(field).collect()
}
