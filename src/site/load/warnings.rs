//! What a site file may say but had better not.

use crate::site::error::SiteError;
use crate::site::read::said_of;
use crate::site::{MetaRobots, ProxyRule, RobotsPolicy, Site};

/// Keys of a page rule that hardly are names of fields: below `[page.fields]` TOML makes them fields.
const KEYS_OF_A_PAGE: [&str; 5] = ["match", "follow", "max_pages", "key", "recrawl"];

/// Schemes of proxies that are told names, and not addresses.
const RESOLVING_PROXIES: [&str; 4] = ["http", "https", "socks4a", "socks5h"];

/// What is allowed in a site file and yet worth a second thought; `file` names it.
pub fn warnings(site: &Site, file: &str) -> Vec<SiteError> {
    let mut warnings = Vec::new();
    let mut warn = |keys: &[&str], what: String, what_to_do: &str| {
        warnings.push(said_of((file, &site.text), keys, what, what_to_do));
    };
    if site.pace.contact.is_none() {
        let what = "no `contact`: the site's owner can't ask you to slow down".to_owned();
        warn(&["pace", "contact"], what, "write contact = \"you@example.com\" in [pace]");
    }
    if site.pace.robots == RobotsPolicy::Ignore {
        let what = "robots.txt is ignored, so pages the owner closed to crawlers are asked for".to_owned();
        warn(&["pace", "robots"], what, "write robots = \"obey\" unless the owner agreed");
    }
    if site.pace.meta_robots == MetaRobots::Ignore {
        let what = "what pages say to robots (nofollow, noindex, noarchive) is ignored".to_owned();
        warn(&["pace", "meta_robots"], what, "write meta_robots = \"obey\" unless the owner agreed");
    }
    // Which proxy it is that a secret names is known only where that is set.
    let resolves = |proxy: &ProxyRule| match proxy {
        ProxyRule::Open(url) => RESOLVING_PROXIES.contains(&url.scheme()),
        ProxyRule::Secret(_) => true,
    };
    if site.fetch.proxy.as_ref().is_some_and(resolves) {
        let what = "the proxy resolves the names of hosts, so `allow_private` can't see to which addresses they lead";
        warn(
            &["fetch", "proxy"],
            what.to_owned(),
            "let the proxy refuse private addresses, or write socks5://",
        );
    }
    for rule in site.pages.iter().filter(|rule| rule.item && !rule.has_fields()) {
        let what = format!("the items of the page rule `{}` have no fields", rule.name);
        warn(&["page"], what, "write [page.fields], or product = true for structured data");
    }
    for rule in &site.pages {
        for field in rule.fields.iter().filter(|field| KEYS_OF_A_PAGE.contains(&&*field.name)) {
            let what =
                format!("`{}` below [page.fields] is a field of the page rule `{}`", field.name, rule.name);
            warn(&["page"], what, "if the key of [[page]] was meant, write it above [page.fields]");
        }
    }
    warnings
}
