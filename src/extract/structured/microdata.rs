//! Microdata (WHATWG HTML chapter 5): `itemscope` and `itemprop` as a tree of JSON in schema.org's words.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use ego_tree::NodeId;
use scraper::ElementRef;
use serde_json::{Map, Value, json};
use url::Url;

use super::product::{Graph, ProductFields, is_product, offered};
use crate::budget::Budget;
use crate::extract::html::{Base, Tree, text};

/// Items inside items past this are left out.
const MAX_NESTING: usize = 8;
/// The page's own product is among the first.
const MAX_PRODUCTS: usize = 100;
/// Types of an item past this are left out.
const MAX_TYPES: usize = 100;
/// What an item refers to past this is left out.
const MAX_REFERENCES: usize = 1_000;
/// Bytes that an item takes beside its properties.
const ITEM: usize = 512;
/// Bytes that a property takes beside its name and its values.
const PROPERTY: usize = 512;

/// Bytes of all values of a page, at most, each counted as often as it is given out: what holds another is counted with it.
const MOST_GIVEN: usize = 16 << 20;

/// What the page's microdata says of its product; nothing where there is too much of it. An offer beside its product is taken as
/// the product's.
pub fn product(tree: &Tree, base: &Base, page: &Url) -> ProductFields {
    let given = Cell::new(0);
    let items = items(tree, &given);
    if given.get() > MOST_GIVEN {
        tree.budget.leaves_out("microdata");
        return ProductFields::new();
    }
    if !tree.budget.takes(given.get()) {
        return ProductFields::new();
    }
    let known = Graph::of(&items, &tree.budget).product(base, page);
    tree.budget.frees(given.get());
    known
}

fn items(tree: &Tree, given: &Cell<usize>) -> Vec<Value> {
    let ids = ids(tree);
    let read = |scope: &ElementRef<'_>| {
        ItemReader { tree, ids: &ids, seen: HashSet::new(), nesting: 0, given }.item(*scope)
    };
    let products = outermost(tree, |element| is_scope(element) && is_product(&types(element)));
    let mut items: Vec<Value> = products.iter().take(MAX_PRODUCTS).map(read).collect();
    if !items.iter().any(|item| item.get("offers").is_some() || item.get("price").is_some()) {
        let offers = outermost(tree, |element| is_scope(element) && is_offer(&types(element)));
        if let Some(offer) = offers.first().map(read).or_else(|| loose(tree)) {
            let first = if items.is_empty() { Value::Null } else { items.remove(0) };
            items.insert(0, offered(first, offer));
        }
    }
    items
}

/// The elements that `wanted` names and that are not inside another such element.
fn outermost<'a>(tree: &'a Tree, wanted: impl Fn(ElementRef<'a>) -> bool) -> Vec<ElementRef<'a>> {
    let mut found = Vec::new();
    let mut open: Vec<ElementRef<'a>> =
        tree.html.tree.root().children().filter_map(ElementRef::wrap).collect();
    while let Some(element) = open.pop() {
        if wanted(element) {
            found.push(element);
        } else {
            open.extend(tree.children(element).collect::<Vec<_>>().into_iter().rev());
        }
    }
    found
}

fn is_scope(element: ElementRef<'_>) -> bool {
    element.attr("itemscope").is_some()
}

fn types(element: ElementRef<'_>) -> Vec<&str> {
    element.attr("itemtype").unwrap_or_default().split_ascii_whitespace().take(MAX_TYPES).collect()
}

fn is_offer(types: &[&str]) -> bool {
    types.iter().any(|name| name.ends_with("/Offer") || name.ends_with("/AggregateOffer"))
}

/// Properties of an offer that belong to no item, as some shops leave them.
fn loose(tree: &Tree) -> Option<Value> {
    const OFFER: [&str; 4] = ["price", "priceCurrency", "currency", "availability"];
    let is_property = |element: ElementRef<'_>| OFFER.contains(&element.attr("itemprop").unwrap_or_default());
    let mut offer = Map::new();
    for element in outermost(tree, |element| is_scope(element) || is_property(element)) {
        if !is_scope(element) {
            let name = element.attr("itemprop").unwrap_or_default();
            offer.entry(name).or_insert_with(|| Value::String(written(element, name, &tree.budget)));
        }
    }
    (!offer.is_empty()).then_some(Value::Object(offer))
}

/// The elements that `itemref` may count in.
fn ids(tree: &Tree) -> HashMap<&str, ElementRef<'_>> {
    let mut ids = HashMap::new();
    for element in tree.elements() {
        if let Some(id) = element.value().id() {
            ids.entry(id).or_insert(element);
        }
    }
    ids
}

/// One item being read. An element counts once: items may hold themselves by `itemref`.
struct ItemReader<'a, 'b> {
    tree: &'a Tree,
    ids: &'b HashMap<&'a str, ElementRef<'a>>,
    seen: HashSet<NodeId>,
    nesting: usize,
    /// Bytes given out so far.
    given: &'b Cell<usize>,
}

impl<'a> ItemReader<'a, '_> {
    fn item(&mut self, scope: ElementRef<'a>) -> Value {
        let (mut properties, types) = (Map::new(), types(scope));
        let named: usize = types.iter().map(|name| name.len() + size_of::<Value>()).sum();
        self.given.set(self.given.get() + ITEM + named);
        properties.insert("@type".to_owned(), json!(types));
        let references = scope.attr("itemref").unwrap_or_default().split_ascii_whitespace();
        let references = references.take(MAX_REFERENCES);
        let mut open: Vec<ElementRef<'a>> = references.filter_map(|id| self.ids.get(id).copied()).collect();
        open.extend(self.tree.children(scope).collect::<Vec<_>>().into_iter().rev());
        while let Some(element) = open.pop() {
            if self.given.get() > MOST_GIVEN {
                break;
            }
            if !self.seen.insert(element.id()) {
                continue;
            }
            let is_item = is_scope(element);
            if let Some(names) = element.attr("itemprop") {
                self.add(&mut properties, element, names, is_item);
            }
            if !is_item {
                open.extend(self.tree.children(element).collect::<Vec<_>>().into_iter().rev());
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
        let before = self.given.get();
        let nested = (is_item && self.nesting < MAX_NESTING).then(|| {
            self.nesting += 1;
            let item = self.item(element);
            self.nesting -= 1;
            item
        });
        let of_nested = self.given.get() - before;
        for name in names.split_ascii_whitespace() {
            let value = match &nested {
                Some(item) => item.clone(),
                None => Value::String(written(element, name, &self.tree.budget)),
            };
            let of_name = if properties.contains_key(name) { 0 } else { PROPERTY + name.len() };
            let bytes = value.as_str().map_or(of_nested, str::len) + of_name + size_of::<Value>();
            self.given.set(self.given.get() + bytes);
            if self.given.get() > MOST_GIVEN || !self.tree.budget.reads(bytes) {
                return;
            }
            match properties.entry(name).or_insert_with(|| json!([])) {
                Value::Array(values) => values.push(value),
                other => *other = value,
            }
        }
    }
}

/// A property's value: by the standard where the element has it, but `content` goes first on every element, and the
/// text of a link is its value unless the property is an address.
fn written(element: ElementRef<'_>, property: &str, budget: &Budget) -> String {
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
    // Each of an element's names reads them again.
    let is_paid = |text: &&str| budget.reads(4 * text.len());
    let content = element.attr("content").filter(is_paid).filter(|content| !content.trim().is_empty());
    let value = content.or(attribute.filter(is_paid));
    let of_attribute = |text| text::folded(text::as_long_as_a_value(text));
    value.map_or_else(|| text::visible(element, budget), of_attribute)
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;

    use super::*;

    fn found(page: &str) -> Value {
        let tree = Tree::parse(page, &Budget::without_end());
        let url = Url::parse("https://shop.example/p/1").expect("a URL");
        json!(product(&tree, &Base::of(&tree, &url, UTF_8), &url))
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
    fn too_much_microdata_is_none_however_little_of_it_is_written() {
        let long = "x".repeat(1 << 20);
        for (names, known) in [(15, json!({"name": "A"})), (16, json!({}))] {
            let names = (0..names).map(|n| format!("p{n}")).collect::<Vec<_>>().join(" ");
            let page = format!(
                r#"<div itemscope itemtype="http://schema.org/Product"><b itemprop="name">A</b><meta itemprop="{names}" content="{long}"></div>"#
            );
            assert_eq!(found(&page), known, "1 MiB given out under {names}");
        }
    }

    #[test]
    fn the_pages_own_product_is_chosen() {
        let product = |name: &str, url: &str, more: &str| {
            format!(
                r#"<div itemscope itemtype="http://schema.org/Product"><a itemprop="url" href="{url}"><b itemprop="name">{name}</b></a>{more}</div>"#
            )
        };
        let price = r#"<div itemprop="offers" itemscope><b itemprop="price">5</b></div>"#;
        for (own, known) in [
            (product("A", "/p/1", ""), json!({"name": "A"})),
            (product("A", "/p/3", ""), json!({"name": "B", "price": {"amount": "5", "currency": null}})),
        ] {
            assert_eq!(found(&format!("{}{own}", product("B", "/p/2", price))), known, "{own}");
        }
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
    fn an_item_counts_as_often_as_it_is_given_out_with_its_types() {
        let page = |names: usize, types: usize| {
            let (names, types) = ("n ".repeat(names), "https://schema.org/Thing ".repeat(types));
            format!(
                r#"<div itemscope itemtype="https://schema.org/Product"><b itemprop="name">A</b>
                <i itemprop="{names}" itemscope itemtype="{types}"></i></div>"#
            )
        };
        assert_eq!(found(&page(3_000, 1)), json!({"name": "A"}));
        assert_eq!(found(&page(3_000, 3_000)), json!({}));
        assert_eq!(found(&page(40_000, 0)), json!({}), "empty ones take memory as well");
        let parts = r#"<i itemprop="isRelatedTo" itemscope></i>"#;
        assert_eq!(found(&page(1, 1).replace("</b>", &format!("</b>{}", parts.repeat(40_000)))), json!({}));
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
