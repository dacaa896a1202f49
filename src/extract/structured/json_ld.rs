//! JSON-LD: the scripts of a page as JSON, mended where shops commonly break it.

use html5ever::local_name;
use scraper::Html;
use serde_json::{Deserializer, Value};
use url::Url;

use super::product::{Graph, ProductFields};
use crate::extract::html::Base;
use crate::extract::html::named;

/// What the page's JSON-LD says of its product.
pub fn product(html: &Html, base: &Base, page: &Url) -> ProductFields {
    Graph::of(&values(html)).product(base, page)
}

fn values(html: &Html) -> Vec<Value> {
    let scripts = named(html, local_name!("script")).filter(|script| {
        let kind = script.attr("type").unwrap_or_default().split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/ld+json")
    });
    scripts.flat_map(|script| read(&script.text().collect::<String>())).collect()
}

/// The values of one script, as many as can be read from its start.
fn read(script: &str) -> Vec<Value> {
    let start = script.find(['{', '[']).unwrap_or(script.len());
    let text = mended(script);
    let mended_start = text.find(['{', '[']).unwrap_or(text.len());
    let values =
        |text| Deserializer::from_str(text).into_iter::<Value>().map_while(Result::ok).collect::<Vec<_>>();
    match values(&script[start..]) {
        found if found.is_empty() => values(&text[mended_start..]),
        found => found,
    }
}

/// The script without comments and CDATA marks, without commas before a closing bracket, and with strings that hold
/// neither control characters nor escapes unknown to JSON.
fn mended(script: &str) -> String {
    let mut out = String::with_capacity(script.len());
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            rest = string(rest, &mut out);
            continue;
        }
        if let Some(skipped) = mark(rest) {
            rest = &rest[skipped..];
            continue;
        }
        if matches!(first, '}' | ']') && out.trim_end().ends_with(',') {
            out.truncate(out.trim_end().len() - 1);
        }
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// How long the comment or mark is that stands here.
fn mark(text: &str) -> Option<usize> {
    let until = |end: &str| text.find(end).map_or(text.len(), |at| at + end.len());
    for mark in ["<!--", "-->", "<![CDATA[", "//<![CDATA[", "]]>", "//]]>"] {
        if text.starts_with(mark) {
            return Some(mark.len());
        }
    }
    match text.get(..2)? {
        "//" => Some(until("\n")),
        "/*" => Some(until("*/")),
        _ => None,
    }
}

/// Copies the string that starts here and returns what follows it.
fn string<'a>(text: &'a str, out: &mut String) -> &'a str {
    out.push('"');
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                out.push('"');
                return &text[at + 1..];
            }
            '\\' => match chars.next() {
                Some((_, escape @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u'))) => {
                    out.extend(['\\', escape]);
                }
                Some((_, other)) if !other.is_control() => out.push(other),
                _ => out.push(' '),
            },
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use serde_json::json;

    use super::*;
    use crate::extract::html::Tree;

    fn found(scripts: &[&str]) -> Value {
        found_at("https://shop.example/p/1?x=2", scripts)
    }

    fn found_at(url: &str, scripts: &[&str]) -> Value {
        let page = scripts
            .iter()
            .map(|s| format!("<script type='application/ld+json'>{s}</script>"))
            .collect::<Vec<_>>()
            .concat();
        let html = Tree::parse(&page).html;
        let url = Url::parse(url).expect("a URL");
        json!(product(&html, &Base::of(&html, &url, UTF_8), &url))
    }

    #[test]
    fn a_product_is_found_in_all_the_shapes_shops_use() {
        let five = json!({"name": "A", "price": {"amount": "5.50", "currency": "EUR"}});
        for script in [
            r#"{"@type": "Product", "name": "A", "offers": {"price": 5.5, "priceCurrency": "EUR"}}"#,
            r#"[{"@type": "WebSite", "name": "x"}, {"@type": ["Thing", "Product"], "name": "A", "offers": [{"price": "5.50", "priceCurrency": "EUR"}]}]"#,
            r#"{"@graph": [{"@type": "http://schema.org/Product", "name": "A", "offers": {"@id": "/o"}}, {"@type": "Offer", "@id": "/o", "price": "5.5", "priceCurrency": "EUR"}]}"#,
            r#"{"@type": "ItemPage", "mainEntity": {"@type": "schema:Product", "name": " A ", "offers": {"@type": "AggregateOffer", "lowPrice": "5,50", "highPrice": "9", "priceCurrency": "EUR"}}}"#,
            r#"{"@type": "Product", "name": "A", "offers": {"@type": "AggregateOffer", "offers": [{"price": 5.5, "priceCurrency": "EUR"}]}}"#,
            r#"{"@type": "ProductGroup", "name": "A", "hasVariant": [{"@type": "Product", "name": "A red", "offers": {"price": 5.5, "priceCurrency": "EUR"}}, {"@type": "Product"}]}"#,
            r#"{"@type": "Product", "name": "A", "offers": {"priceSpecification": [{"priceType": "https://schema.org/ListPrice", "price": 9}, {"price": 5.5, "priceCurrency": "EUR"}]}}"#,
        ] {
            assert_eq!(found(&[script]), five, "{script}");
        }
    }

    #[test]
    fn of_several_offers_the_first_in_stock_counts() {
        let sold_out = r#"{"price": 9, "availability": "OutOfStock"}"#;
        let in_stock = r#"{"price": 5, "availability": "https://schema.org/InStock"}"#;
        for (offers, amount, availability) in [
            (format!("[{sold_out}, {in_stock}]"), "5", json!("InStock")),
            (format!("[{sold_out}]"), "9", json!("OutOfStock")),
            (format!(r#"[{{"price": 7}}, {sold_out}]"#), "7", json!("OutOfStock")),
            (r#"[{"price": 7}]"#.to_owned(), "7", json!(null)),
        ] {
            let got = found(&[&format!(r#"{{"@type": "Product", "offers": {offers}}}"#)]);
            assert_eq!(
                (&got["price"]["amount"], &got["availability"]),
                (&json!(amount), &availability),
                "{offers}"
            );
        }
    }

    #[test]
    fn broken_scripts_are_mended() {
        for script in [
            "<!-- {\"@type\": \"Product\", \"name\": \"A\"} -->",
            "//<![CDATA[\n{\"@type\": \"Product\", \"name\": \"A\"}\n//]]>",
            "/*<![CDATA[*/{\"@type\": \"Product\", \"name\": \"A\"}/*]]>*/",
            "{\"@type\": \"Product\", \"name\": \"A\"};",
            "{\"@type\": \"Product\", \"name\": \"A\", \"description\": \"line\nline\ttab\"}",
            "{\"@type\": \"Product\", // note\n \"name\": \"A\", /* more */ }",
            "{\"@type\": \"Product\", \"name\": \"A\", \"image\": [],} trailing",
            "{\"@type\": \"Product\", \"description\": \"it\\'s http://x.example/a\", \"name\": \"A\"}",
            "var x = {\"@type\": \"Product\", \"name\": \"A\"}",
        ] {
            assert_eq!(found(&[script]), json!({"name": "A"}), "{script}");
        }
        for script in ["", "null", "{", "[[[", "\"", "{\"@type\": \"Product", &"[".repeat(100_000)] {
            assert_eq!(found(&[script]), json!({}), "{script:.20}");
        }
    }

    #[test]
    fn the_pages_own_product_is_chosen() {
        let product = |name: &str, more: &str| format!(r#"{{"@type": "Product", "name": "{name}"{more}}}"#);
        let priced =
            |name: &str, url: &str| product(name, &format!(r#", "url": "{url}", "offers": {{"price": 1}}"#));
        for (scripts, name) in [
            ([product("A", ""), product("B", "")], "A"),
            ([product("A", ""), priced("B", "/other")], "B"),
            ([priced("A", "/other"), priced("B", "https://shop.example/p/1")], "B"),
            ([product("A", ""), product("B", r#", "@id": "/p/1#product""#)], "B"),
        ] {
            assert_eq!(found(&scripts.each_ref().map(String::as_str))["name"], name, "{scripts:?}");
        }
    }

    #[test]
    fn another_products_price_does_not_make_it_the_pages() {
        let other =
            r#"{"@type": "Product", "name": "B", "url": "/p/2", "sku": "B1", "offers": {"price": 5}}"#;
        for own in
            [r#""url": "/p/1""#, r#""url": ["/x", "/p/1"]"#, r#""url": {"@id": "/p/1"}"#, r#""@id": "/p/1""#]
        {
            let sold_out = format!(r#"{{"@type": "Product", "name": "A", {own}}}"#);
            assert_eq!(found(&[other, &sold_out]), json!({"name": "A"}), "{own}");
        }
    }

    #[test]
    fn the_query_tells_products_apart() {
        let product = |name: &str, url: &str, price| {
            format!(r#"{{"@type": "Product", "name": "{name}", "url": "{url}"{price}}}"#)
        };
        let (priced, sold_out) = (r#", "offers": {"price": 1}"#, "");
        let six = product("6", "product.php?id=6", priced);
        for (own, name) in [
            (product("7", "product.php?id=7", priced), "7"),
            (product("7", "http://shop.example/product.php?id=7#reviews", sold_out), "7"),
            (product("7", "/other.php?id=7", priced), "6"),
        ] {
            let found = found_at("https://shop.example/product.php?id=7", &[&six, &own]);
            assert_eq!(found["name"], name, "{own}");
        }
        let bare = product("7", "product.php", priced);
        assert_eq!(found_at("https://shop.example/product.php?from=a", &[&bare])["name"], "7");
    }

    #[test]
    fn a_product_id_is_a_gtin_where_its_prefix_says_so() {
        for (id, gtin, sku) in [
            ("sku:12345678", json!(null), json!("12345678")),
            ("mpn:12345678", json!(null), json!(null)),
            ("12345678", json!(null), json!("12345678")),
            ("gtin13:9781933624341", json!("9781933624341"), json!(null)),
            ("EAN: 9781933624341", json!("9781933624341"), json!(null)),
            ("urn:isbn:978-1-933624-34-1", json!("9781933624341"), json!(null)),
            ("isbn:none", json!(null), json!(null)),
        ] {
            let got = found(&[&format!(r#"{{"@type": "Product", "productID": "{id}"}}"#)]);
            assert_eq!((&got["gtin"], &got["sku"]), (&gtin, &sku), "{id}");
        }
    }

    #[test]
    fn a_part_of_the_pages_product_without_a_price_does_not_hide_the_rest() {
        let rating = r#"{"@type": "Product", "@id": "https://shop.example/p/1", "aggregateRating": {"ratingValue": 4}}"#;
        for whole in [
            r#"{"@type": "Product", "name": "A", "offers": {"price": 5}}"#,
            r#"{"@type": "Product", "name": "A", "url": "/p/1?variant=41", "offers": {"price": 5}}"#,
        ] {
            assert_eq!(found(&[rating, whole])["price"]["amount"], "5", "{whole}");
        }
    }

    #[test]
    fn every_common_field_is_read() {
        let script = r#"{"@type": "Product", "name": "Tom &amp; Jerry &lt;3", "sku": 12345, "gtin13": "978-1-933624-34-1",
            "brand": {"@type": "Brand", "name": "ACME"}, "image": [{"@type": "ImageObject", "url": "/i.jpg"}],
            "offers": {"price": 19.989999999999998, "priceCurrency": "USD", "availability": "https://schema.org/PreOrder"}}"#;
        let known = json!({
            "availability": "PreOrder", "brand": "ACME", "gtin": "9781933624341", "image": "https://shop.example/i.jpg",
            "name": "Tom & Jerry <3", "price": {"amount": "19.99", "currency": "USD"}, "sku": "12345",
        });
        assert_eq!(found(&[script]), known);
    }

    #[test]
    fn references_in_circles_end() {
        for script in [
            r#"{"@type": "Product", "@id": "/a", "name": [{"@id": "/a"}], "offers": [{"@id": "/a"}, {"price": 5}]}"#,
            r#"{"@type": "Product", "@id": "/a", "hasVariant": {"@id": "/a"}, "offers": {"@id": "/a"}, "price": 5}"#,
        ] {
            assert_eq!(found(&[script])["price"]["amount"], "5", "{script}");
        }
        let many = r#"{"@id": "/a"},"#.repeat(50_000);
        let script = format!(r#"{{"@type": "Product", "@id": "/a", "offers": [{many} {{"price": 5}}]}}"#);
        assert_eq!(found(&[&script]), json!({}));
    }
}
