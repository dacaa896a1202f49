//! `Look`: what a rule makes of a page, each value with where it came from, and each link with what becomes of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem::take;
use std::sync::Arc;

use serde_json::Value;
use url::Url;

use super::try_page::Content;
use crate::budget::Budget;
use crate::canonical_url::CanonicalUrl;
use crate::extract::{Extract, Fetched, PageDirectives, extract};
use crate::item::Item;
use crate::robots::{QuotedRules, Verdict, Verdicts};
use crate::run::RunError;
use crate::site::{Refusal, RobotsPolicy, Site};
use crate::task::{RobotsAccess, RobotsRecord};
use crate::work::{LinkBudget, VisitError};

/// What is on a page.
#[derive(Clone, Debug)]
pub struct Look {
    /// WHATWG's name of the encoding that the page was read in.
    pub encoding: &'static str,
    /// The page went past a limit of the parser: what came after is missing.
    pub cut: bool,
    /// What of the page was left out as it is too much, in words.
    pub left_out: Vec<&'static str>,
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
    /// Links that were dropped, as they are too many or too long.
    pub dropped: usize,
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
    let mut extract = reading.await.map_err(|panic| VisitError::Parse(panic.to_string()))??;
    let links = take(&mut extract.links);
    let records = records(site, verdicts, &links).await?;
    let judged_by = Arc::clone(site);
    let judging = tokio::task::spawn_blocking(move || judge_links(&judged_by, &links, depth + 1, &records));
    let JudgedLinks { followed, refused, dropped } =
        judging.await.map_err(|panic| VisitError::Parse(panic.to_string()))?;
    let fields = fields(site, rule, &extract);
    let dropped = dropped + extract.dropped;
    let Extract { item, missing, left_out, directives, cut, encoding, .. } = extract;
    Ok(Look { encoding, cut, left_out, directives, item, missing, fields, followed, refused, dropped })
}

/// By origin, what its robots.txt says; none where that says nothing of links.
type RobotsByOrigin = HashMap<String, Option<RobotsRecord>>;

async fn records(site: &Site, verdicts: &Verdicts, links: &[Url]) -> Result<RobotsByOrigin, RunError> {
    let mut records = RobotsByOrigin::new();
    if site.pace.robots == RobotsPolicy::Ignore {
        return Ok(records);
    }
    for link in links {
        let Ok(url) = site.canonical(link.clone()) else { continue };
        if site.scope.owns(&url)
            && let Entry::Vacant(unknown) = records.entry(url.origin())
        {
            unknown.insert(verdicts.record(&url.origin()).await?);
        }
    }
    Ok(records)
}

/// What becomes of the links of a page.
#[derive(Debug, Default)]
struct JudgedLinks {
    followed: Vec<FollowedLink>,
    refused: Vec<RefusedLink>,
    dropped: usize,
}

fn judge_links(site: &Site, links: &[Url], depth: u32, records: &RobotsByOrigin) -> JudgedLinks {
    let (mut judged, budget) = (JudgedLinks::default(), LinkBudget::of(site.fetch.parse_budget));
    let rules: HashMap<&String, _> =
        records.iter().filter_map(|(origin, record)| Some((origin, quoted(record.as_ref()?)?))).collect();
    for link in links {
        if !budget.pays(site, link) {
            judged.dropped += 1;
            continue;
        }
        match judge_link(site, link, depth, &rules, &budget.robots) {
            Ok(link) => judged.followed.push(link),
            Err(link) => judged.refused.push(link),
        }
    }
    judged
}

/// The rules of a record; none where it has none, or can't be had: then it is asked again before the fetch.
fn quoted(record: &RobotsRecord) -> Option<QuotedRules<'_>> {
    match &record.access {
        RobotsAccess::Rules(text) => Some(QuotedRules::of(text)),
        RobotsAccess::Absent | RobotsAccess::Unreachable(_) => None,
    }
}

fn judge_link(
    site: &Site,
    link: &Url,
    depth: u32,
    rules: &HashMap<&String, QuotedRules<'_>>,
    budget: &Budget,
) -> Result<FollowedLink, RefusedLink> {
    let refused = |reason: &'static str, why: String| RefusedLink { url: link.to_string(), reason, why };
    let url = site.canonical(link.clone()).map_err(|error| refused("scheme", error.to_string()))?;
    let rule = site.takes(&url, depth).map_err(|why| refused(why.name(), in_words(&why, &url)))?;
    let verdict = rules.get(&url.origin()).map(|rules| Verdict::by_rules(rules, url.url(), budget));
    match verdict.filter(|verdict| !verdict.allowed) {
        Some(verdict) => Err(refused("robots", verdict.why)),
        None => Ok(FollowedLink { rule: rule.name.clone(), url }),
    }
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
