//! The `[scope]` section.

use std::collections::HashSet;

use crate::canonical_url::{CanonicalUrl, Host, StripQuery};
use crate::site::read::{Entry, Section};
use crate::site::{Scope, UrlPattern};

use super::patterns::pattern;

/// The scope as far as it can be read.
pub(super) struct Bounds {
    pub scope: Scope,
    /// Whether every host could be read, so that one which isn't there is out of scope.
    pub hosts_known: bool,
}

/// Reads `[scope]`; what is wrong is reported.
pub(super) fn read<'a>(section: &Section<'_>, seeds: impl Iterator<Item = &'a CanonicalUrl>) -> Bounds {
    let before = section.report.count();
    let hosts = section.get("hosts").map_or_else(|| default_hosts(seeds), |entry| hosts(&entry));
    let hosts_known = section.report.count() == before;
    let deny = section.get("deny").map(|entry| entry.list()).unwrap_or_default();
    let scope = Scope {
        hosts,
        deny: deny.iter().filter_map(|entry| pattern(entry, UrlPattern::and_below)).collect(),
        max_depth: section.count("max_depth").unwrap_or_default(),
        max_pages: section.count("max_pages"),
        strip_query: StripQuery::new(section.texts("strip_query")),
    };
    Bounds { scope, hosts_known }
}

/// The seeds' hosts, each with and without `www.`.
fn default_hosts<'a>(seeds: impl Iterator<Item = &'a CanonicalUrl>) -> Vec<Host> {
    let mut hosts = Vec::new();
    for url in seeds {
        let host = url.host();
        let twin = match host.as_str().strip_prefix("www.") {
            Some(bare) => Host::parse(bare),
            None => Host::parse(&format!("www.{host}")),
        };
        hosts.push(host);
        hosts.extend(twin.ok().filter(|_| url.url().domain().is_some_and(|name| name.contains('.'))));
    }
    without_repeats(hosts)
}

fn hosts(entry: &Entry<'_>) -> Vec<Host> {
    let hosts = entry.some_list("`hosts` is empty, so nothing is in scope", "name a host or remove the line");
    without_repeats(hosts.iter().filter_map(host).collect())
}

fn host(entry: &Entry<'_>) -> Option<Host> {
    let text = entry.text()?;
    let what_to_do = if text.contains('*') {
        "write each host by its name; there are no wildcards here"
    } else if text.ends_with(":443") {
        "leave the port out: http and https are both in scope"
    } else {
        "write its name alone, as in \"shop.example\" or \"shop.example:8080\""
    };
    let odd = text.ends_with(":443") || text.contains(['*', '?', '#', '\\', ' ']);
    match Host::parse(text).ok().filter(|_| !odd) {
        None => entry.refuse(format!("`{text}` is no host"), what_to_do),
        host => host,
    }
}

fn without_repeats(mut hosts: Vec<Host>) -> Vec<Host> {
    let mut seen = HashSet::new();
    hosts.retain(|host| seen.insert(host.clone()));
    hosts
}
