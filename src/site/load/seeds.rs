//! The seeds: URLs that the scope covers and that a page rule takes.

use url::Host;

use crate::canonical_url::CanonicalUrl;
use crate::site::FetchRules;
use crate::site::read::{Entry, Section};

use super::pages::PageRules;
use super::scope::Bounds;

/// A seed and where it stands.
pub(super) struct Seed<'a> {
    pub entry: Entry<'a>,
    pub url: CanonicalUrl,
}

/// Reads `seeds`; at least one must be there.
pub(super) fn read<'a>(top: &Section<'a>) -> Vec<Seed<'a>> {
    let what_to_do = "write where the crawl starts, as in seeds = [\"https://shop.example/\"]";
    let none = "there are no seeds";
    let seeds = top.needed("seeds", none, what_to_do).map(|entry| entry.some_list(none, what_to_do));
    seeds.into_iter().flatten().filter_map(seed).collect()
}

fn seed(entry: Entry<'_>) -> Option<Seed<'_>> {
    let text = entry.text()?;
    let has_user = |url: url::Url| !url.username().is_empty() || url.password().is_some();
    // What is no URL may hold one all the same.
    if url::Url::parse(text).map_or_else(|_| text.contains('@'), has_user) {
        return entry.refuse(
            "a seed holds a user or a password",
            "take both out, and name a variable that holds them: auth_env in [fetch]",
        );
    }
    match CanonicalUrl::parse(text) {
        Ok(url) => Some(Seed { entry, url }),
        Err(_) => entry.refuse(
            format!("the seed `{text}` is no URL that can be crawled"),
            "write it whole, with http or https, as in \"https://shop.example/\"",
        ),
    }
}

/// The seeds as the site stores them, each once; those that a run couldn't fetch are reported.
pub(super) fn checked(
    seeds: Vec<Seed<'_>>,
    bounds: &Bounds,
    rules: &PageRules,
    fetch: &FetchRules,
) -> Vec<CanonicalUrl> {
    let mut urls = Vec::with_capacity(seeds.len());
    for Seed { entry, url } in seeds {
        let url = url.stripped(&bounds.scope.strip_query);
        check_scope(&entry, &url, bounds);
        check_rules(&entry, &url, rules);
        check_address(&entry, &url, fetch);
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

fn check_scope(entry: &Entry<'_>, url: &CanonicalUrl, bounds: &Bounds) {
    if bounds.hosts_known && !bounds.scope.owns(url) {
        entry.refuse::<()>(
            format!("the seed `{url}` is out of scope: its host is not among `hosts`"),
            format!("add \"{}\" to `hosts` in [scope]", url.host()),
        );
    }
    if let Some(deny) = bounds.scope.deny.iter().find(|pattern| pattern.matches(url)) {
        entry.refuse::<()>(
            format!("the seed `{url}` is denied by `{}`", deny.as_str()),
            "change the seed, or `deny` in [scope]",
        );
    }
}

fn check_rules(entry: &Entry<'_>, url: &CanonicalUrl, rules: &PageRules) {
    if rules.matches_known && !rules.rules.iter().any(|rule| rule.takes(url)) {
        let path = &url.url()[url::Position::BeforePath..url::Position::AfterQuery];
        entry.refuse::<()>(
            format!("no page rule takes the seed `{url}`"),
            format!("add \"{path}\" to the `match` of a [[page]]"),
        );
    }
}

fn check_address(entry: &Entry<'_>, url: &CanonicalUrl, fetch: &FetchRules) {
    if !fetch.allow_private && fetch.proxy.is_none() && is_private(url) {
        entry.refuse::<()>(
            format!("the seed `{url}` is on a private address"),
            "if it is meant, write allow_private = true in [fetch]",
        );
    }
}

/// Whether the host itself says that it is of this machine or network; what a name resolves to isn't known here.
fn is_private(url: &CanonicalUrl) -> bool {
    match url.url().host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => {
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
        }
        Some(Host::Ipv6(ip)) => {
            ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
        None => false,
    }
}
