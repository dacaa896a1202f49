//! A product in schema.org's words, read from a tree of JSON: what JSON-LD is, and what microdata is turned into.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ptr;

use scraper::Html;
use serde_json::{Map, Value, json};
use url::Url;

use crate::budget::Budget;
use crate::extract::html::Base;
use crate::extract::html::text::{self, MOST_OF_A_VALUE};
use crate::extract::values::Price;

/// The fields that were found, by name.
pub type ProductFields = BTreeMap<&'static str, Value>;

/// Nested nodes past this are left alone.
const MAX_DEPTH: usize = 32;
/// Products of a page, or values of a property, past this are left alone: references make many out of few.
const MAX_VALUES: usize = 100;
/// Values of all properties that are looked at, at most: past it the page has no product.
const MAX_STEPS: usize = 1_000_000;
/// Addresses longer than this are not compared with the page's, and prices, codes and numbers are none.
const MAX_ADDRESS: usize = 4096;

/// The nodes of one page: those that stand for a product, and those that others name by `@id`.
pub struct Graph<'a> {
    products: Vec<&'a Value>,
    by_id: HashMap<&'a str, &'a Value>,
    budget: &'a Budget,
    steps: Cell<usize>,
    /// The offer that counts and its price, of each node that was asked.
    offers: RefCell<HashMap<*const Value, Option<(&'a Value, Price)>>>,
}

impl<'a> Graph<'a> {
    /// Walks through everything that may hold a product; what is related to a product is not looked at.
    pub fn of(roots: &'a [Value], budget: &'a Budget) -> Self {
        let (products, by_id) = (Vec::new(), HashMap::new());
        let mut graph = Self { products, by_id, budget, steps: Cell::new(0), offers: RefCell::default() };
        for root in roots {
            graph.add(root, 0);
        }
        graph
    }

    fn add(&mut self, value: &'a Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        if let Value::Array(values) = value {
            return values.iter().for_each(|value| self.add(value, depth + 1));
        }
        let Value::Object(node) = value else { return };
        if let Some(id) = node.get("@id").and_then(Value::as_str).filter(|_| node.len() > 1) {
            self.by_id.entry(id).or_insert(value);
        }
        let types = types(node);
        if self.budget.pays(1 + types.len()) && is_product(&types) && self.products.len() < MAX_VALUES {
            self.products.push(value);
        }
        for key in ["@graph", "mainEntity", "mainEntityOfPage"] {
            node.get(key).into_iter().for_each(|inner| self.add(inner, depth + 1));
        }
    }

    /// The page's product: the first with the page's URL that has a price, else, as pages name one product in several places, the
    /// first with a price that names no URL, else the first with the page's URL; where none has it, the first with a price, else
    /// the first.
    pub fn product(&self, base: &Base, page: &Url) -> ProductFields {
        let priced = |nodes: &[&'a Value]| nodes.iter().copied().find(|node| self.price(node).is_some());
        let (whole, path_only) = self.with_url_of(page, base);
        // On a page whose query names the product, another query is another product.
        let own = match page.query() {
            Some(_) if !whole.is_empty() => whole,
            _ => [whole, path_only].concat(),
        };
        let unaddressed =
            || self.products.iter().copied().filter(|node| self.addresses(node).next().is_none());
        let chosen = priced(&own)
            .or_else(|| priced(&unaddressed().collect::<Vec<_>>()).filter(|_| !own.is_empty()))
            .or_else(|| own.first().copied())
            .or_else(|| priced(&self.products))
            .or_else(|| self.products.first().copied());
        let known = chosen.map(|node| self.known(node, base)).unwrap_or_default();
        if self.steps.get() > MAX_STEPS {
            self.budget.leaves_out("structured data of more than 1 M steps");
            return ProductFields::new();
        }
        known
    }

    /// Takes a step; false once there were too many.
    fn steps(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        self.steps.get() <= MAX_STEPS && self.budget.pays(1)
    }

    /// The products with the page's URL, and those with its host and path alone. Fragments don't count, and `http` is as good
    /// as `https`.
    fn with_url_of(&self, page: &Url, base: &Base) -> (Vec<&'a Value>, Vec<&'a Value>) {
        let (mut whole, mut path_only) = (Vec::new(), Vec::new());
        for node in self.products.iter().copied() {
            let urls: Vec<Url> = self.addresses(node).filter_map(|url| base.resolve(url)).collect();
            let mut same = urls.iter().filter(|url| url.path() == page.path() && url.host() == page.host());
            if same.clone().any(|url| url.query() == page.query()) {
                whole.push(node);
            } else if same.next().is_some() {
                path_only.push(node);
            }
        }
        (whole, path_only)
    }

    /// The addresses that a node gives itself.
    fn addresses(&self, node: &'a Value) -> impl Iterator<Item = &'a str> {
        let inner =
            |value: &'a Value| ["@id", "url", "@value"].iter().find_map(|key| value.get(key)?.as_str());
        let values = ["url", "@id"].into_iter().flat_map(|key| self.each(node.get(key)));
        let addresses = values.filter_map(move |value| value.as_str().or_else(|| inner(value)));
        addresses.filter(|address| address.len() <= MAX_ADDRESS)
    }

    fn known(&self, node: &'a Value, base: &Base) -> ProductFields {
        // A group has what its variants share; the first variant has the rest.
        let variant = self.each(node.get("hasVariant")).next();
        let mut known = variant.map(|variant| self.own(variant, base)).unwrap_or_default();
        known.extend(self.own(node, base));
        known
    }

    fn own(&self, node: &'a Value, base: &Base) -> ProductFields {
        let first = |keys: &[&str]| keys.iter().find_map(|key| self.text(node.get(key)?));
        let fields = [
            ("name", first(&["name"]).map(|name| Value::String(self.decoded(name)))),
            ("price", self.price(node).map(|price| price.to_value())),
            ("availability", self.availability(node).map(Value::from)),
            ("sku", first(&["sku"]).or_else(|| product_id(&first(&["productID"])?)).map(Value::String)),
            ("gtin", self.gtin(node).map(Value::String)),
            ("brand", first(&["brand"]).map(|brand| Value::String(self.decoded(brand)))),
            ("image", self.image(node, base).map(Value::String)),
        ];
        fields.into_iter().filter_map(|(field, value)| Some((field, value?))).collect()
    }

    fn gtin(&self, node: &'a Value) -> Option<String> {
        let named = GTINS.iter().find_map(|key| gtin(&self.text(node.get(key)?)?));
        named.or_else(|| gtin_of_id(&self.text(node.get("productID")?)?))
    }

    fn price(&self, node: &'a Value) -> Option<Price> {
        let variants = || self.each(node.get("hasVariant"));
        let own = self.offer(node).map(|(_, price)| price);
        own.or_else(|| variants().find_map(|variant| self.offer(variant)).map(|(_, price)| price))
    }

    fn availability(&self, node: &'a Value) -> Option<&'static str> {
        let chosen = self.offer(node).and_then(|(offer, _)| self.offer_availability(offer));
        let mut offers = self.offers(node).into_iter();
        chosen.or_else(|| offers.find_map(|offer| self.offer_availability(offer)))
    }

    /// The offer that counts, and its price: the first with a price that is in stock, else the first with a price. It is looked
    /// for once, as many nodes may refer to one.
    fn offer(&self, node: &'a Value) -> Option<(&'a Value, Price)> {
        if let Some(known) = self.offers.borrow().get(&ptr::from_ref(node)) {
            return known.clone();
        }
        let mut chosen = None;
        for offer in self.offers(node) {
            let Some(price) = self.offer_price(offer) else { continue };
            if self.offer_availability(offer) == Some("InStock") {
                chosen = Some((offer, price));
                break;
            }
            chosen.get_or_insert((offer, price));
        }
        self.offers.borrow_mut().insert(ptr::from_ref(node), chosen.clone());
        chosen
    }

    /// Offers, those inside an aggregate after it, and the product itself, as some give it the price.
    fn offers(&self, node: &'a Value) -> Vec<&'a Value> {
        let mut offers = Vec::new();
        for offer in self.each(node.get("offers")) {
            offers.push(offer);
            offers.extend(self.each(offer.get("offers")));
        }
        offers.push(node);
        offers
    }

    fn offer_price(&self, offer: &'a Value) -> Option<Price> {
        let code = |node: &'a Value| self.text(node.get("priceCurrency").or_else(|| node.get("currency"))?);
        let amount = |node: &'a Value| {
            let amount = |key| amount(self.each(node.get(key)).next()?);
            ["price", "lowPrice", "minPrice"].into_iter().find_map(amount)
        };
        let specification = || {
            let all = self.each(offer.get("priceSpecification"));
            all.filter(|spec| !self.is_list_price(spec)).find(|spec| amount(spec).is_some())
        };
        let (node, amount) = match amount(offer) {
            Some(amount) => (offer, amount),
            None => specification().and_then(|spec| Some((spec, amount(spec)?)))?,
        };
        let code = code(node).or_else(|| code(offer)).or_else(|| specification().and_then(code));
        Price::read_exact(&amount, code.as_deref())
    }

    fn is_list_price(&self, specification: &'a Value) -> bool {
        let kind = specification.get("priceType").and_then(|kind| self.text(kind)).unwrap_or_default();
        ["StrikethroughPrice", "ListPrice", "MSRP", "SRP"].iter().any(|list| kind.ends_with(list))
    }

    fn offer_availability(&self, offer: &'a Value) -> Option<&'static str> {
        availability(&self.text(offer.get("availability")?)?)
    }

    fn image(&self, node: &'a Value, base: &Base) -> Option<String> {
        let image = self.each(node.get("image")).next()?;
        let url = ["contentUrl", "url", "@id"].iter().find_map(|key| self.text(image.get(key)?));
        base.resolve(url.or_else(|| self.text(image))?.trim()).map(Url::into)
    }

    /// A property's text; of a thing, its name. References may run in circles, so it is one step and no more.
    fn text(&self, value: &'a Value) -> Option<String> {
        let first = self.each(Some(value)).next()?;
        let named = || ["name", "@value", "@id"].iter().find_map(|key| self.scalar(first.get(key)?));
        self.scalar(first).or_else(named)
    }

    /// A value that is a text or a number, or the first text of a list; none where it is longer than a value may be.
    fn scalar(&self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => {
                let is_read = text.len() <= MOST_OF_A_VALUE && self.budget.reads(4 * text.len());
                is_read.then(|| text::folded(text)).filter(|text| !text.is_empty())
            }
            Value::Number(number) => Some(number.to_string()),
            Value::Array(values) => {
                let mut values = values.iter().take(MAX_VALUES).take_while(|_| self.steps());
                values.find(|value| value.is_string()).and_then(|text| self.scalar(text))
            }
            _ => None,
        }
    }

    /// Shops often escape a name for HTML before it goes into JSON.
    fn decoded(&self, name: String) -> String {
        if !(name.contains('&') && name.contains(';') && self.budget.reads(8 * name.len())) {
            return name;
        }
        let html = Html::parse_fragment(&name.replace('<', "&lt;"));
        text::folded(&html.root_element().text().collect::<String>())
    }

    /// The values of a property, one or many, with references followed.
    fn each(&self, value: Option<&'a Value>) -> impl Iterator<Item = &'a Value> + use<'a, '_> {
        let values = match value {
            Some(Value::Array(values)) => values.as_slice(),
            Some(Value::Null) | None => &[],
            Some(one) => std::slice::from_ref(one),
        };
        values.iter().take(MAX_VALUES).take_while(|_| self.steps()).map(|value| {
            let id =
                value.as_object().filter(|node| node.len() == 1).and_then(|node| node.get("@id")?.as_str());
            id.and_then(|id| self.by_id.get(id).copied()).unwrap_or(value)
        })
    }
}

const GTINS: [&str; 7] = ["gtin", "gtin13", "gtin14", "gtin12", "gtin8", "ean", "isbn"];

fn types(node: &Map<String, Value>) -> Vec<&str> {
    match node.get("@type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(kind)) => vec![kind],
        _ => Vec::new(),
    }
}

/// Whether one of these types, with or without schema.org's address, is something that is sold.
pub fn is_product(types: &[&str]) -> bool {
    const PRODUCTS: &str = "Product ProductGroup ProductModel IndividualProduct SomeProducts \
        Vehicle Car Book SoftwareApplication";
    types.iter().any(|kind| {
        let name = kind.rsplit(['/', '#', ':']).next().unwrap_or(kind);
        PRODUCTS.split_whitespace().any(|product| product.eq_ignore_ascii_case(name.trim()))
    })
}

/// A number in JSON may carry the noise of binary fractions: `19.989999999999998`.
fn amount(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => (text.len() <= MAX_ADDRESS && !text.trim().is_empty()).then(|| text.clone()),
        Value::Number(number) => {
            let text = number.to_string();
            let noisy = text.split_once('.').is_some_and(|(_, decimals)| decimals.len() > 6);
            Some(if noisy { format!("{:.2}", number.as_f64()?) } else { text })
        }
        _ => None,
    }
}

/// schema.org's word (`ItemAvailability`) for what shops write.
pub fn availability(text: &str) -> Option<&'static str> {
    const WORDS: &str = "InStock OutOfStock PreOrder PreSale BackOrder Discontinued InStoreOnly \
        LimitedAvailability OnlineOnly SoldOut MadeToOrder Reserved";
    const OTHERS: [(&str, &[&str]); 3] = [
        ("InStock", &["available", "availablefororder", "onstock", "yes", "true"]),
        ("OutOfStock", &["oos", "unavailable", "notavailable", "notinstock", "outstock", "no", "false"]),
        ("LimitedAvailability", &["lowstock"]),
    ];
    let word = text.trim().trim_end_matches('/').rsplit(['/', '#', ':']).next()?;
    let plain: String = word.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    let other = || OTHERS.iter().find(|(_, names)| names.contains(&&*plain)).map(|(word, _)| *word);
    WORDS.split_whitespace().find(|word| word.eq_ignore_ascii_case(&plain)).or_else(other)
}

/// A GTIN of 8, 12, 13 or 14 digits, or an ISBN of 10, without spaces and hyphens.
pub fn gtin(text: &str) -> Option<String> {
    let number = text.rsplit(':').next()?;
    let plain: String = number.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    let digits = plain.bytes().filter(u8::is_ascii_digit).count();
    let isbn = plain.len() == 10 && (digits == 10 || digits == 9 && plain.ends_with(['X', 'x']));
    let gtin = digits == plain.len() && matches!(digits, 8 | 12 | 13 | 14);
    ((isbn || gtin) && plain.bytes().any(|b| b != b'0')).then_some(plain)
}

/// The number of a `productID` whose prefix says that it is one, as in `gtin13:9781933624341`; digits alone may be
/// anything.
fn gtin_of_id(id: &str) -> Option<String> {
    let (prefix, number) = id.rsplit_once(':')?;
    let kind = prefix.rsplit(':').next()?;
    let kind: String = kind.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect();
    ["gtin", "ean", "upc", "isbn"].contains(&kind.as_str()).then(|| gtin(number)).flatten()
}

fn product_id(text: &str) -> Option<String> {
    match text.split_once(':') {
        Some((kind, id)) => kind.eq_ignore_ascii_case("sku").then(|| id.trim().to_owned()),
        None => Some(text.to_owned()),
    }
}

/// A node for microdata's loose ends.
pub fn offered(node: Value, offer: Value) -> Value {
    match node {
        Value::Object(mut node) => {
            node.insert("offers".to_owned(), offer);
            Value::Object(node)
        }
        _ => json!({ "@type": "Product", "offers": offer }),
    }
}
