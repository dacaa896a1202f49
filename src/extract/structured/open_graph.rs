//! `OpenGraph` and the product tags that shops put beside it, in `<meta property>`.

use std::collections::HashMap;

use html5ever::local_name;
use serde_json::Value;
use url::Url;

use super::product::{ProductFields, availability, gtin};
use crate::extract::html::{Base, Tree, text};
use crate::extract::values::Price;

/// What the page's `<meta>` tags say of its product.
pub fn product(tree: &Tree, base: &Base) -> ProductFields {
    let tags = Tags::of(tree);
    let text = |names: &[&str]| tags.first(names).map(Value::String);
    let fields = [
        ("name", text(&["og:title", "twitter:title"])),
        ("price", tags.price().map(|price| price.to_value())),
        ("availability", tags.first(&AVAILABILITIES).and_then(|a| availability(&a)).map(Value::from)),
        ("sku", text(&["product:retailer_item_id", "product:sku", "og:sku"])),
        ("gtin", GTINS.iter().find_map(|name| gtin(&tags.first(&[name])?)).map(Value::String)),
        ("brand", text(&["product:brand", "og:brand"])),
        (
            "image",
            tags.first(&IMAGES)
                .and_then(|image| base.resolve(&image))
                .map(|url| Value::String(Url::into(url))),
        ),
    ];
    fields.into_iter().filter_map(|(field, value)| Some((field, value?))).collect()
}

const AVAILABILITIES: [&str; 3] = ["product:availability", "og:availability", "availability"];
const GTINS: [&str; 5] = ["product:gtin", "product:ean", "product:upc", "product:isbn", "og:upc"];
const IMAGES: [&str; 4] = ["og:image", "og:image:url", "og:image:secure_url", "twitter:image"];

struct Tags(HashMap<String, String>);

impl Tags {
    /// The first of each name that isn't empty.
    fn of(tree: &Tree) -> Self {
        let mut tags = HashMap::new();
        for meta in tree.named(local_name!("meta")) {
            let name = meta.attr("property").or_else(|| meta.attr("name")).unwrap_or_default();
            let written = meta.attr("content").unwrap_or_default();
            let bytes = name.len() + written.len();
            if !(tree.budget.reads(bytes) && tree.budget.takes(bytes)) {
                break;
            }
            let content = text::folded(written);
            if !content.is_empty() {
                tags.entry(name.trim().to_ascii_lowercase()).or_insert(content);
            }
        }
        Self(tags)
    }

    fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.0.get(*name)).cloned()
    }

    fn price(&self) -> Option<Price> {
        ["product:sale_price", "product:price", "og:price"].iter().find_map(|name| {
            let amount = self.first(&[&format!("{name}:amount"), name])?;
            let code =
                self.first(&[&format!("{name}:currency"), "product:price:currency", "og:price:currency"]);
            Price::read_exact(&amount, code.as_deref())
        })
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use serde_json::json;

    use super::*;
    use crate::budget::Budget;

    #[test]
    fn product_tags_are_read() {
        let page = r#"<meta property="og:title" content=" A "><meta name="og:image" content="//cdn.example/i.jpg">
            <meta property="og:price:amount" content="9.90"><meta property="product:price:amount" content="1,234.5">
            <meta property="product:price:currency" content="jpy"><meta property="og:availability" content="oos">
            <meta property="product:brand" content=""><meta property="product:brand" content="ACME">
            <meta property="product:retailer_item_id" content="S1"><meta property="product:ean" content="4054278533728">"#;
        let tree = Tree::parse(page, &Budget::without_end());
        let url = Url::parse("https://shop.example/p").expect("a URL");
        let known = json!({
            "availability": "OutOfStock", "brand": "ACME", "gtin": "4054278533728", "image": "https://cdn.example/i.jpg",
            "name": "A", "price": {"amount": "1234.50", "currency": "JPY"}, "sku": "S1",
        });
        assert_eq!(json!(product(&tree, &Base::of(&tree, &url, UTF_8))), known);
    }
}
