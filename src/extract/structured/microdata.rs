//! Microdata (WHATWG HTML chapter 5): `itemscope` and `itemprop` as a tree of JSON in schema.org's words.

use std::collections::HashSet;
use std::sync::LazyLock;

use ego_tree::NodeId;
use scraper::{ElementRef, Html, Selector};
use serde_json::{Map, Value, json};
use url::Url;

use super::product::{Graph, Known, is_product, offered};
use crate::extract::base::{Base, selector};
use crate::extract::text;

/// Items inside items past this are left out.
const MAX_NESTING: usize = 8;

/// What the page's microdata says of its product. An offer beside its product is taken as the product's.
pub fn product(html: &Html, base: &Base, page: &Url) -> Known {
    let mut items: Vec<Value> =
        outermost(html, "product").into_iter().map(|item| Item::read(html, item)).collect();
    if !items.iter().any(|item| item.get("offers").is_some() || item.get("price").is_some()) {
        let offer = outermost(html, "offer").first().map(|offer| Item::read(html, *offer));
        if let Some(offer) = offer.or_else(|| loose(html)) {
            let first = if items.is_empty() { Value::Null } else { items.remove(0) };
            items.insert(0, offered(first, offer));
        }
    }
    Graph::of(&items).product(base, page)
}

/// Items of that kind that are not inside another such item.
fn outermost<'a>(html: &'a Html, kind: &str) -> Vec<ElementRef<'a>> {
    static SCOPE: LazyLock<Selector> = LazyLock::new(|| selector("[itemscope][itemtype]"));
    let is_kind = |element: ElementRef<'_>| match kind {
        "product" => is_product(&json!({ "@type": types(element) })),
        _ => types(element).iter().any(|name| name.ends_with("/Offer") || name.ends_with("/AggregateOffer")),
    };
    let inner = |element: &ElementRef<'_>| element.ancestors().filter_map(ElementRef::wrap).any(is_kind);
    html.select(&SCOPE).filter(|element| is_kind(*element) && !inner(element)).collect()
}

fn types(element: ElementRef<'_>) -> Vec<&str> {
    element.attr("itemtype").unwrap_or_default().split_ascii_whitespace().collect()
}

/// Properties of an offer that belong to no item, as some shops leave them.
fn loose(html: &Html) -> Option<Value> {
    static PROP: LazyLock<Selector> = LazyLock::new(|| {
        selector("[itemprop=price], [itemprop=priceCurrency], [itemprop=currency], [itemprop=availability]")
    });
    let in_item = |element: &ElementRef<'_>| {
        element.ancestors().filter_map(ElementRef::wrap).any(|outer| outer.attr("itemscope").is_some())
    };
    let mut offer = Map::new();
    for element in html.select(&PROP).filter(|element| !in_item(element)) {
        let name = element.attr("itemprop").unwrap_or_default();
        offer.entry(name).or_insert_with(|| Value::String(written(element, name)));
    }
    (!offer.is_empty()).then_some(Value::Object(offer))
}

struct Item<'a> {
    html: &'a Html,
    seen: HashSet<NodeId>,
    nesting: usize,
}

impl<'a> Item<'a> {
    fn read(html: &'a Html, scope: ElementRef<'a>) -> Value {
        Self { html, seen: HashSet::new(), nesting: 0 }.item(scope)
    }

    fn item(&mut self, scope: ElementRef<'a>) -> Value {
        let mut properties = Map::new();
        properties.insert("@type".to_owned(), json!(types(scope)));
        let mut open: Vec<ElementRef<'a>> = self.referenced(scope);
        open.extend(scope.child_elements().collect::<Vec<_>>().into_iter().rev());
        while let Some(element) = open.pop() {
            if !self.seen.insert(element.id()) {
                continue;
            }
            let is_item = element.attr("itemscope").is_some();
            if let Some(names) = element.attr("itemprop") {
                self.add(&mut properties, element, names, is_item);
            }
            if !is_item {
                open.extend(element.child_elements().collect::<Vec<_>>().into_iter().rev());
            }
        }
        Value::Object(properties)
    }

    fn add(
        &mut self,
        properties: &mut Map<String, Value>,
        element: ElementRef<'a>,
        names: &str,
        is_item: bool,
    ) {
        let nested = (is_item && self.nesting < MAX_NESTING).then(|| {
            self.nesting += 1;
            let item = self.item(element);
            self.nesting -= 1;
            item
        });
        for name in names.split_ascii_whitespace() {
            let value = nested.clone().unwrap_or_else(|| Value::String(written(element, name)));
            match properties.entry(name).or_insert_with(|| json!([])) {
                Value::Array(values) => values.push(value),
                other => *other = value,
            }
        }
    }

    /// The elements elsewhere that `itemref` counts in.
    fn referenced(&self, scope: ElementRef<'a>) -> Vec<ElementRef<'a>> {
        let ids: Vec<&str> = scope.attr("itemref").unwrap_or_default().split_ascii_whitespace().collect();
        if ids.is_empty() {
            return Vec::new();
        }
        let elements = self.html.tree.root().descendants().filter_map(ElementRef::wrap);
        elements.filter(|element| element.value().id().is_some_and(|id| ids.contains(&id))).collect()
    }
}

/// A property's value: by the standard where the element has it, but `content` goes first on every element, and the
/// text of a link is its value unless the property is an address.
fn written(element: ElementRef<'_>, property: &str) -> String {
    let is_address = matches!(property, "url" | "image" | "availability" | "itemCondition" | "sameAs");
    let attribute = match element.value().name() {
        "a" | "area" if !is_address => None,
        "a" | "area" | "link" => element.attr("href"),
        "audio" | "embed" | "iframe" | "img" | "source" | "track" | "video" => {
            element.attr(if is_address { "src" } else { "alt" })
        }
        "object" => element.attr("data"),
        "data" | "meter" | "input" => element.attr("value"),
        "time" => element.attr("datetime"),
        _ => None,
    };
    let value = element.attr("content").filter(|content| !content.trim().is_empty()).or(attribute);
    value.map_or_else(|| text::visible(element), text::folded)
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;

    use super::*;
    use crate::extract::tree::Tree;

    fn found(page: &str) -> Value {
        let html = Tree::parse(page).html;
        let url = Url::parse("https://shop.example/p/1").expect("a URL");
        json!(product(&html, &Base::of(&html, &url, UTF_8), &url))
    }

    #[test]
    fn a_product_and_its_offer_are_read() {
        let page = r#"<div itemscope itemtype="https://schema.org/Product"><h1 itemprop="name"> A <b>B</b></h1>
            <img itemprop="image" src="/i.jpg"><a itemprop="brand" href="/acme">ACME</a><meta itemprop="sku" content="S1">
            <span itemprop="gtin13">9781625441775</span>
            <div itemprop="isRelatedTo" itemscope itemtype="https://schema.org/Product"><b itemprop="name">Other</b></div>
            <div itemprop="offers" itemscope itemtype="https://schema.org/Offer"><span itemprop="price" content="12.5">ab 12,50</span>
              <meta itemprop="priceCurrency" content="EUR"><link itemprop="availability" href="http://schema.org/InStock"></div></div>"#;
        let known = json!({
            "availability": "InStock", "brand": "ACME", "gtin": "9781625441775", "image": "https://shop.example/i.jpg",
            "name": "A B", "price": {"amount": "12.50", "currency": "EUR"}, "sku": "S1",
        });
        assert_eq!(found(page), known);
    }

    #[test]
    fn an_offer_beside_its_product_counts() {
        let product = r#"<div itemscope itemtype="http://schema.org/Product" itemref="more"><b itemprop="name">A</b></div>
            <p id="more"><i itemprop="sku">S1</i></p>"#;
        let known = json!({"name": "A", "sku": "S1", "price": {"amount": "5", "currency": "GBP"}});
        for offer in [
            r#"<div itemscope itemtype="http://schema.org/Offer"><b itemprop="price">£5</b></div>"#,
            r#"<meta itemprop="price" content="5"><meta itemprop="priceCurrency" content="GBP">"#,
        ] {
            assert_eq!(found(&format!("{product}{offer}")), known, "{offer}");
        }
    }

    #[test]
    fn items_that_hold_themselves_end() {
        let page = r#"<div id="x" itemscope itemtype="http://schema.org/Product" itemref="x y"><b itemprop="name">A</b>
            <div id="y" itemprop="offers" itemscope itemref="x y"><b itemprop="price">5</b></div></div>"#;
        assert_eq!(found(page)["name"], "A");
        let deep = r#"<div itemprop="offers" itemscope itemtype="http://schema.org/Product">"#.repeat(200);
        assert_eq!(found(&deep), json!({}));
    }
}
