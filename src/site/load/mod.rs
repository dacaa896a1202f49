//! A site file read into a [`Site`], with everything that is wrong with it at once. The meaning of the values is not here.

mod fetch;
mod fields;
mod names;
mod outlook;
mod pace;
mod pages;
mod patterns;
mod scope;
mod seeds;
mod together;
mod warnings;

pub(crate) use fetch::proxy_url;
pub(crate) use names::{is_plain as is_plain_name, plain_key};
pub use outlook::{most_pages, outlook};
pub use together::{two_sites_one_host, unknown_lanes};
pub use warnings::warnings;

use std::path::Path;

use toml::de::DeTable;

use super::Site;
use super::error::SiteErrors;
use super::keys::KEYS;
use super::read::{Report, Section};

/// Reads and checks a site file.
///
/// Errors are all that is wrong with it, each with its place and what to do.
pub fn load(path: &Path) -> Result<Site, SiteErrors> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| SiteErrors::unreadable(&file, &e))?;
    parse(&text, &file)
}

/// Checks the text of a site file; `file` names it in errors, and the site where the text has no `name`.
pub fn parse(text: &str, file: &str) -> Result<Site, SiteErrors> {
    let report = Report::new(file, text);
    let document = report.document();
    let site = document.as_ref().map(|table| read(&report, table, text, file));
    report.finish(site)
}

/// The site as far as it can be read: what is wrong is reported, and something harmless taken in its place.
fn read<'a>(report: &'a Report<'a>, table: &'a DeTable<'a>, text: &str, file: &str) -> Site {
    let top = Section::top(report, KEYS, table);
    let name = names::site_name(&top, file);
    let [group, tenant] = ["group", "tenant"].map(|key| top.get(key).and_then(|entry| names::plain(&entry)));
    let lane = top.get("lane").and_then(|entry| names::lane(&entry));
    let owners: Vec<&str> = [Some(&name), group.as_ref()].into_iter().flatten().map(String::as_str).collect();
    let fetch = fetch::read(&top.section("fetch"), &owners);
    let pace = pace::read(&top.section("pace"), fetch.allow_private);
    let seeds = seeds::read(&top);
    let bounds = scope::read(&top.section("scope"), seeds.iter().map(|seed| &seed.url));
    let rules = pages::read(&top);
    let seeds = seeds::checked(seeds, &bounds, &rules, &fetch);
    let (scope, pages) = (bounds.scope, rules.rules);
    Site { name, seeds, lane, tenant, group, pace, scope, fetch, pages, text: text.to_owned() }
}
