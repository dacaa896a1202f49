//! One item of a page: the rule's own fields, then what structured data says of the product, then defaults.

use std::collections::BTreeMap;

use html5ever::local_name;
use serde_json::{Map, Value};

use super::fetched::Fetched;
use super::html::{Base, Tree};
use super::links::has_rel;
use super::{fields, structured};
use crate::item::Item;
use crate::site::{ItemKey, PRODUCT_FIELDS, PageRule, Site};

/// A page, the rule that takes it, and its site.
pub struct RuledPage<'a> {
    pub tree: &'a Tree,
    pub base: &'a Base,
    pub page: &'a Fetched<'a>,
    pub rule: &'a PageRule,
    pub site: &'a Site,
}

type FieldValues = Map<String, Value>;

/// The item that the rule makes of the page, and the names of the required fields that aren't on it: with one missing it
/// is none.
pub fn item(page: &RuledPage<'_>) -> (Item, Vec<String>) {
    let RuledPage { page: fetched, rule, site, .. } = page;
    let (fields, from) = values(page);
    let missing = rule.fields.iter().filter(|field| field.required && !fields.contains_key(&field.name));
    let missing = missing.map(|field| field.name.clone()).collect();
    let item = Item {
        site: site.name.clone(),
        page: rule.name.clone(),
        url: fetched.url.to_string(),
        key: key(page, &fields),
        fetched_at: fetched.fetched_at,
        noindex: false,
        noarchive: false,
        fields,
        from,
    };
    (item, missing)
}

fn values(
    RuledPage { tree, base, page, rule, .. }: &RuledPage<'_>,
) -> (FieldValues, BTreeMap<String, String>) {
    let (mut values, mut from) = (FieldValues::new(), BTreeMap::new());
    tree.budget.begin("its structured data");
    let facts = if rule.product { structured::product(tree, base, page.url.url()) } else { Vec::new() };
    tree.budget.begin("its fields");
    for field in &rule.fields {
        let known = || facts.iter().find(|fact| fact.field == field.name);
        let found = fields::value(tree, field, base)
            .map(|value| (value, "css"))
            .or_else(|| known().map(|fact| (fact.value.clone(), fact.from)))
            .or_else(|| field.default.clone().map(|value| (value, "default")));
        if let Some((value, source)) = found {
            values.insert(field.name.clone(), value);
            from.insert(field.name.clone(), source.to_owned());
        }
    }
    for name in PRODUCT_FIELDS.into_iter().filter(|_| rule.product) {
        let known = || facts.iter().find(|fact| fact.field == name);
        let known = || known().map(|fact| (fact.value.clone(), fact.from.to_owned()));
        let found = if name == "currency" { of_the_price(&values, &from).or_else(known) } else { known() };
        if let Some((value, source)) = found.filter(|_| !values.contains_key(name)) {
            values.insert(name.to_owned(), value);
            from.insert(name.to_owned(), source);
        }
    }
    (values, from)
}

/// The currency of the item's own price, whoever named that: another one beside it would be wrong.
fn of_the_price(values: &FieldValues, from: &BTreeMap<String, String>) -> Option<(Value, String)> {
    let currency = values.get("price")?.get("currency").filter(|currency| currency.is_string())?;
    Some((currency.clone(), from.get("price")?.clone()))
}

fn key(page: &RuledPage<'_>, fields: &FieldValues) -> Option<String> {
    match &page.rule.key {
        ItemKey::Url => None,
        ItemKey::Canonical => canonical(page).filter(|url| url != page.page.url.as_str()),
        ItemKey::Field(name) => fields.get(name).and_then(as_text),
    }
}

fn canonical(page: &RuledPage<'_>) -> Option<String> {
    let mut links = page.tree.named(local_name!("link")).filter(|link| has_rel(*link, "canonical"));
    let href = links.find_map(|link| link.attr("href"))?.trim();
    let url = page.base.resolve(Some(href).filter(|href| !href.is_empty())?)?;
    Some(page.site.canonical(url).ok()?.to_string())
}

/// A value as a key: a price by its amount.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(price) => price.get("amount").and_then(as_text),
        other => Some(other.to_string()),
    }
}
