//! JSON-LD: the scripts of a page as JSON, mended where shops commonly break it.

use html5ever::local_name;
use serde_json::{Deserializer, Value};
use url::Url;

use super::product::{Graph, ProductFields};
use crate::extract::html::{Base, Tree};

/// Bytes of a page's JSON-LD, at most: the largest real ones have a tenth of it.
const MOST_BYTES: usize = 4 << 20;
/// Values of a page's JSON-LD, at most, nested ones counted too.
const MOST_VALUES: usize = 250_000;
/// About how many bytes each takes.
const A_VALUE: usize = 150;
/// An object takes as much as so many values.
const OBJECT: usize = 4;

/// What the page's JSON-LD says of its product; nothing where there is too much of it.
pub fn product(tree: &Tree, base: &Base, page: &Url) -> ProductFields {
    let Some(Scripts { values, memory }) = Scripts::of(tree) else {
        tree.budget.leaves_out("JSON-LD");
        return ProductFields::new();
    };
    let known = Graph::of(&values, &tree.budget).product(base, page);
    tree.budget.frees(memory);
    known
}

/// The values of a page's scripts, and about how much memory they take.
struct Scripts {
    values: Vec<Value>,
    memory: usize,
}

impl Scripts {
    /// Those of all scripts; none where they are too long or too many.
    fn of(tree: &Tree) -> Option<Self> {
        let scripts = tree.named(local_name!("script")).filter(|script| {
            let kind = script.attr("type").unwrap_or_default().split(';').next().unwrap_or_default();
            kind.trim().eq_ignore_ascii_case("application/ld+json")
        });
        let (mut values, mut bytes, mut nested, mut memory) = (Vec::new(), 0, 0, 0);
        for script in scripts {
            let parts = || script.text().take_while(|_| tree.budget.pays(1));
            bytes += parts().map(str::len).sum::<usize>();
            if bytes > MOST_BYTES {
                return None;
            }
            let text: String = parts().collect();
            let weight = text.bytes().map(weight).sum::<usize>();
            nested += weight;
            let needed = weight * A_VALUE + 2 * text.len();
            // It is looked at several times, letter by letter.
            if nested > MOST_VALUES || !(tree.budget.reads(2 * text.len()) && tree.budget.takes(needed)) {
                return None;
            }
            memory += needed;
            values.extend(read(&text, (MOST_VALUES + 1).saturating_sub(values.len())));
        }
        (values.len() <= MOST_VALUES).then_some(Self { values, memory })
    }
}

/// How many values begin here, or may.
fn weight(byte: u8) -> usize {
    match byte {
        b',' | b'[' => 1,
        b'{' => OBJECT,
        _ => 0,
    }
}

/// The values of one script, as many as can be read from its start, and no more than so many.
fn read(script: &str, most: usize) -> Vec<Value> {
    let start = script.find(['{', '[']).unwrap_or(script.len());
    let text = mended(script);
    let mended_start = text.find(['{', '[']).unwrap_or(text.len());
    let values = |text| {
        let values = Deserializer::from_str(text).into_iter::<Value>().map_while(Result::ok);
        values.take(most).collect::<Vec<_>>()
    };
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
    use crate::budget::Budget;

    fn found(scripts: &[&str]) -> Value {
        found_at("https://shop.example/p/1?x=2", scripts)
    }

    fn found_at(url: &str, scripts: &[&str]) -> Value {
        let page = scripts
            .iter()
            .map(|s| format!("<script type='application/ld+json'>{s}</script>"))
            .collect::<Vec<_>>()
            .concat();
        let tree = Tree::parse(&page, &Budget::without_end());
        let url = Url::parse(url).expect("a URL");
        json!(product(&tree, &Base::of(&tree, &url, UTF_8), &url))
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
    fn too_much_json_ld_is_none() {
        let product = r#"{"@type": "Product", "name": "A"}"#;
        let beside = |more: &str| found(&[product, more]);
        assert_eq!(beside(&format!("[{}0]", "0,".repeat(200_000))), json!({"name": "A"}));
        assert_eq!(beside(&format!("[{}0]", "0,".repeat(250_001))), json!({}));
        assert_eq!(beside(&format!("{{}} {}", "0 ".repeat(249_000))), json!({"name": "A"}));
        assert_eq!(beside(&format!("{{}} {}", "0 ".repeat(250_001))), json!({}), "one after the other");
        assert_eq!(beside(&format!("[{}0]", r#"{"a":0},"#.repeat(40_000))), json!({"name": "A"}));
        assert_eq!(beside(&format!("[{}0]", r#"{"a":0},"#.repeat(60_000))), json!({}), "objects take more");
        assert_eq!(beside(&format!("\"{}\"", "x".repeat(3 << 20))), json!({"name": "A"}));
        assert_eq!(beside(&format!("\"{}\"", "x".repeat(5 << 20))), json!({}));
    }

    #[test]
    fn references_that_multiply_are_followed_once_each() {
        let ids = |kind: &str| {
            (0..100).map(|n| format!("{{\"@id\": \"{kind}{n}\"}}")).collect::<Vec<_>>().join(",")
        };
        let nodes = |kind: &str, inner: &str| {
            let node = |n| format!("{{\"@type\": \"Product\", \"@id\": \"{kind}{n}\", {inner}}}");
            (0..100).map(node).collect::<Vec<_>>().join(",")
        };
        let page = format!(
            "{{\"@graph\": [{}, {}, {}]}}",
            nodes("p", &format!("\"hasVariant\": [{}]", ids("v"))),
            nodes("v", &format!("\"offers\": [{}]", ids("o"))),
            nodes("o", &format!("\"offers\": [{}]", ids("o"))),
        );
        let page = format!("<script type='application/ld+json'>{page}</script>");
        let budget = Budget::without_end();
        let (tree, url) = (Tree::parse(&page, &budget), Url::parse("https://shop.example/p").expect("a URL"));
        let parsed = budget.steps();
        assert_eq!(product(&tree, &Base::of(&tree, &url, UTF_8), &url), ProductFields::new());
        assert!(budget.steps() - parsed < 3_000_000, "{}", budget.steps() - parsed);
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
