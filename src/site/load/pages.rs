//! The `[[page]]` sections: what each takes, follows and makes.

use crate::site::keys::KEYS;
use crate::site::read::{Entry, Section};
use crate::site::{Css, FieldRule, Follow, ItemKey, PRODUCT_FIELDS, PageRule, UrlPattern};

use super::fields;
use super::patterns::{pattern, selector};

/// The page rules as far as they can be read.
pub(super) struct PageRules {
    pub rules: Vec<PageRule>,
    /// Whether every pattern could be read, so that a page which none fits is taken by no rule.
    pub matches_known: bool,
}

/// Reads every `[[page]]`; what is wrong is reported.
pub(super) fn read(top: &Section<'_>) -> PageRules {
    let sections = sections(top);
    let before = top.report.count();
    let matches: Vec<Vec<UrlPattern>> = sections.iter().map(matches).collect();
    let matches_known = !sections.is_empty() && top.report.count() == before;
    for (index, section) in sections.iter().enumerate() {
        check_name_is_new(section, &sections[..index]);
    }
    let rules = sections.iter().zip(matches).map(|(section, matches)| rule(section, matches)).collect();
    PageRules { rules, matches_known }
}

fn sections<'a>(top: &Section<'a>) -> Vec<Section<'a>> {
    let what_to_do = "write a [[page]] for each kind of page, with `name`, `match` and `follow` or `item`";
    let none = "there are no page rules";
    let Some(entry) = top.needed("page", none, what_to_do) else { return Vec::new() };
    if !entry.value.is_array() {
        return entry.wrong_type("a list of sections", "write [[page]], in two brackets").unwrap_or_default();
    }
    let pages = entry.some_list(none, what_to_do);
    let section = |page: &Entry<'a>| page.section(KEYS, "page", "write [[page]] on a line of its own");
    pages.iter().filter_map(section).collect()
}

fn rule(section: &Section<'_>, matches: Vec<UrlPattern>) -> PageRule {
    let item = section.flag("item");
    let product = section.flag("product");
    let fields = section.get("fields").map(|e| fields::read(&e)).unwrap_or_default();
    if !item {
        check_no_item(section);
    }
    PageRule {
        name: name(section),
        matches,
        follow: section.get("follow").map_or(Follow::Nothing, |e| follow(&e)),
        max_pages: section.count("max_pages"),
        item,
        key: section.get("key").filter(|_| item).map_or(ItemKey::Canonical, |e| key(&e, &fields, product)),
        recrawl: section.duration("recrawl"),
        product,
        fields: fields.into_iter().filter_map(|(_, rule)| rule).collect(),
    }
}

fn name(section: &Section<'_>) -> String {
    let name = section.needed("name", "a [[page]] has no `name`", "write name = \"…\", as in \"product\"");
    name.and_then(|entry| entry.text()).unwrap_or_default().to_owned()
}

/// Reports what is of no use without `item = true`.
fn check_no_item(section: &Section<'_>) {
    if section.get("item").is_some_and(|entry| !entry.value.is_bool()) {
        return;
    }
    for key in ["fields", "key", "product"] {
        let Some(entry) = section.get(key).filter(|entry| entry.value.as_bool() != Some(false)) else {
            continue;
        };
        entry.refuse::<()>(
            format!("`{key}` is for items, and this page rule makes none"),
            format!("write item = true, or remove `{key}`"),
        );
    }
}

fn matches(section: &Section<'_>) -> Vec<UrlPattern> {
    let what_to_do = "write which pages it takes, as in match = \"/product/*\"";
    let Some(entry) = section.needed("match", "a [[page]] has no `match`", what_to_do) else {
        return Vec::new();
    };
    let patterns = entry.one_or_list();
    if patterns.is_empty() {
        entry.refuse::<()>("`match` is empty, so the rule takes no page", what_to_do);
    }
    patterns.iter().filter_map(|entry| pattern(entry, UrlPattern::whole)).collect()
}

fn follow(entry: &Entry<'_>) -> Follow {
    let entries = entry.one_or_list();
    if entries.iter().any(|entry| entry.value.as_str() == Some("*")) {
        return Follow::Everything;
    }
    let selectors: Vec<Css> = entries.iter().filter_map(selector).collect();
    if selectors.is_empty() { Follow::Nothing } else { Follow::Selected(selectors) }
}

fn key(entry: &Entry<'_>, fields: &[(&str, Option<FieldRule>)], product: bool) -> ItemKey {
    match entry.text() {
        None | Some("canonical") => ItemKey::Canonical,
        Some("url") => ItemKey::Url,
        Some(name) => {
            let known =
                fields.iter().any(|(field, _)| *field == name) || product && PRODUCT_FIELDS.contains(&name);
            if !known {
                entry.refuse::<()>(
                    format!("`key` names the field `{name}`, which this page rule doesn't have"),
                    "write \"url\", \"canonical\" or a name of [page.fields]",
                );
            }
            ItemKey::Field(name.to_owned())
        }
    }
}

fn check_name_is_new(section: &Section<'_>, earlier: &[Section<'_>]) {
    let Some((entry, name)) = name_of(section) else { return };
    if earlier.iter().filter_map(name_of).any(|(_, other)| other == name) {
        entry.refuse::<()>(format!("two page rules are called `{name}`"), "give each its own name");
    }
}

fn name_of<'a>(section: &Section<'a>) -> Option<(Entry<'a>, &'a str)> {
    let entry = section.get("name")?;
    let name = entry.value.as_str()?;
    Some((entry, name))
}
