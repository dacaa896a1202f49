//! The `[scope]` section.

use crate::canonical_url::{Host, StripQuery};
use crate::site::read::{Entry, Section};
use crate::site::{Scope, UrlPattern};

use super::patterns::pattern;
use super::seeds::Seed;

/// The scope as far as it can be read.
pub(super) struct Bounds {
    pub scope: Scope,
    /// Whether every host could be read, so that one which isn't there is out of scope.
    pub hosts_known: bool,
}

/// Reads `[scope]`; what is wrong is reported.
pub(super) fn read(section: &Section<'_>, seeds: &[Seed<'_>]) -> Bounds {
    let before = section.report.count();
    let hosts = section.get("hosts").map_or_else(|| default_hosts(seeds), |entry| hosts(&entry));
    let hosts_known = section.report.count() == before;
    let deny = section.get("deny").map(|entry| entry.list()).unwrap_or_default();
    let strip_query = section.get("strip_query").map_or_else(default_strip_query, |e| strip_query(&e));
    let scope = Scope {
        hosts,
        deny: deny.iter().filter_map(|entry| pattern(entry, UrlPattern::and_below)).collect(),
        max_depth: section.count("max_depth").unwrap_or(Scope::MAX_DEPTH),
        max_pages: section.count("max_pages"),
        strip_query: StripQuery::new(strip_query),
    };
    Bounds { scope, hosts_known }
}

/// The seeds' hosts, each with and without `www.`.
fn default_hosts(seeds: &[Seed<'_>]) -> Vec<Host> {
    let mut hosts = Vec::new();
    for seed in seeds {
        let host = seed.url.host();
        let twin = match host.as_str().strip_prefix("www.") {
            Some(bare) => bare.to_owned(),
            None => format!("www.{host}"),
        };
        hosts.push(host);
        if seed.url.url().domain().is_some_and(|name| name.contains('.')) {
            hosts.extend(Host::parse(&twin));
        }
    }
    without_repeats(hosts)
}

fn hosts(entry: &Entry<'_>) -> Vec<Host> {
    let hosts = entry.list();
    if hosts.is_empty() && entry.value.is_array() {
        entry.refuse::<()>("`hosts` is empty, so nothing is in scope", "name a host or remove the line");
    }
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

fn without_repeats(hosts: Vec<Host>) -> Vec<Host> {
    let mut once: Vec<Host> = Vec::with_capacity(hosts.len());
    for host in hosts {
        if !once.contains(&host) {
            once.push(host);
        }
    }
    once
}

fn default_strip_query() -> Vec<String> {
    Scope::STRIP_QUERY.iter().map(ToString::to_string).collect()
}

fn strip_query(entry: &Entry<'_>) -> Vec<String> {
    entry.list().iter().filter_map(|name| name.text().map(str::to_owned)).collect()
}
