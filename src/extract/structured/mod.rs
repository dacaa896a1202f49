//! What a page says of its product to machines: JSON-LD, microdata, `OpenGraph`, in this order of trust.

mod json_ld;
mod microdata;
mod open_graph;
mod product;

use serde_json::Value;
use url::Url;

use crate::extract::html::text::MOST_OF_A_VALUE;
use crate::extract::html::{Base, Tree};
use crate::site::PRODUCT_FIELDS;

/// One field of a product, and which kind of markup it was in.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// One of [`PRODUCT_FIELDS`].
    pub field: &'static str,
    /// Text; for `price` an amount and a currency; for `availability` schema.org's word, as `InStock`.
    pub value: Value,
    /// `json-ld`, `microdata` or `opengraph`.
    pub from: &'static str,
}

/// What is known of the page's product: each field once, from the first kind of markup that has it.
pub fn product(tree: &Tree, base: &Base, page: &Url) -> Vec<Fact> {
    let sources = [
        ("json-ld", json_ld::product(tree, base, page)),
        ("microdata", microdata::product(tree, base, page)),
        ("opengraph", open_graph::product(tree, base)),
    ];
    let fact = |field| {
        sources.iter().find_map(|(from, known)| {
            let value = match field {
                // That of the price, beside it.
                "currency" => known.get("price")?.get("currency").filter(|known| !known.is_null()),
                _ => known.get(field),
            };
            let value =
                value.filter(|value| value.as_str().is_none_or(|text| text.len() <= MOST_OF_A_VALUE))?;
            Some(Fact { field, value: value.clone(), from })
        })
    };
    PRODUCT_FIELDS.into_iter().filter_map(fact).collect()
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use serde_json::json;

    use super::*;
    use crate::budget::Budget;

    #[test]
    fn json_ld_goes_before_microdata_and_microdata_before_opengraph() {
        let page = r#"<meta property="og:title" content="OG"><meta property="og:image" content="/og.jpg">
            <meta property="product:brand" content="OG brand">
            <div itemscope itemtype="http://schema.org/Product"><b itemprop="name">Micro</b><i itemprop="brand">Micro brand</i></div>
            <meta property="product:price:amount" content="6"><meta property="product:price:currency" content="EUR">
            <script type="application/ld+json">{"@type": "Product", "name": "JSON", "offers": {"price": 5}}</script>"#;
        let tree = Tree::parse(page, &Budget::without_end());
        let url = Url::parse("https://shop.example/p").expect("a URL");
        let facts = product(&tree, &Base::of(&tree, &url, UTF_8), &url);
        let shown: Vec<_> = facts.iter().map(|fact| (fact.field, fact.value.clone(), fact.from)).collect();
        assert_eq!(
            shown,
            [
                ("name", json!("JSON"), "json-ld"),
                ("price", json!({"amount": "5", "currency": null}), "json-ld"),
                ("currency", json!("EUR"), "opengraph"),
                ("brand", json!("Micro brand"), "microdata"),
                ("image", json!("https://shop.example/og.jpg"), "opengraph"),
            ]
        );
    }
}
