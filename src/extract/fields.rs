//! `[page.fields]`: what a page's rule finds by selector, read as what the rule says it is.

use std::io;

use html5ever::serialize::{SerializeOpts, serialize};
use regex::Regex;
use scraper::ElementRef;
use serde_json::{Number, Value};

use super::html::text::{self, MOST_OF_A_VALUE};
use super::html::{Base, Tree};
use super::values::number::{self, OneMark};
use super::values::{Price, date};
use crate::budget::Budget;
use crate::site::{FieldKind, FieldRule};

/// Bytes of all values of one field, at most, as found: what holds another such element is counted with it.
const MOST_OF_ALL: usize = 16 << 20;
/// Bytes that an object of two short values takes.
const OBJECT: usize = 512;
/// Steps of a piece of HTML that is written: for each escaped letter the rest of its text may be looked through.
const A_WRITE: usize = 512;
/// What is left out, in words.
const LONG: &str = "a value over 1 MiB";
const MANY: &str = "values of a field over 16 MiB together";

/// The field's value on this page; none where nothing is found that can be read as the rule's kind.
///
/// Without `all` the first element counts that the selector finds and whose text the regular expression matches.
/// With `all` the value is a list of every one that can be read. A `bool` is always found.
///
/// A value that is longer than an item's may be is none, and so are the values of `all` that are so together. The memory of what is
/// found is paid for.
pub fn value(tree: &Tree, rule: &FieldRule, base: &Base) -> Option<Value> {
    let mut found = tree.select(&rule.css).filter_map(|element| written(element, rule, &tree.budget));
    if rule.kind == FieldKind::Bool {
        return Some(Value::Bool(found.next().is_some()));
    }
    if rule.all {
        return every(found, rule.kind, base, &tree.budget);
    }
    let text = found.next()?;
    if text.len() > MOST_OF_A_VALUE {
        tree.budget.leaves_out(LONG);
    }
    tree.budget.takes(memory(&text, rule.kind)).then(|| read(&text, rule.kind, base)).flatten()
}

/// Every value that can be read; none where they are too much together.
fn every(
    found: impl Iterator<Item = String>,
    kind: FieldKind,
    base: &Base,
    budget: &Budget,
) -> Option<Value> {
    let (mut values, mut given) = (Vec::new(), 0);
    for text in found {
        given += memory(&text, kind);
        if given > MOST_OF_ALL {
            budget.leaves_out(MANY);
            return None;
        }
        values.extend(read(&text, kind, base));
    }
    (budget.takes(given) && !values.is_empty()).then_some(Value::Array(values))
}

/// About what the value of a text takes in memory.
fn memory(text: &str, kind: FieldKind) -> usize {
    text.len() + if kind == FieldKind::Price { OBJECT } else { size_of::<Value>() }
}

fn written(element: ElementRef<'_>, rule: &FieldRule, budget: &Budget) -> Option<String> {
    let attribute = |text| text::as_long_as_a_value(text).to_owned();
    let whole = match (&rule.attr, rule.kind) {
        (Some(attr), _) => attribute(element.attr(attr)?),
        (None, FieldKind::Html) => inner_html(element, budget),
        (None, kind) => {
            own_attribute(element, kind).map_or_else(|| text::visible(element, budget), attribute)
        }
    };
    if !budget.reads(4 * whole.len()) {
        return None;
    }
    match &rule.regex {
        Some(regex) => matched(regex, &whole),
        None => Some(whole),
    }
}

/// The element's inner HTML, up to where it is longer than a value may be.
fn inner_html(element: ElementRef<'_>, budget: &Budget) -> String {
    struct UpToAValue<'a>(Vec<u8>, &'a Budget);
    impl io::Write for UpToAValue<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let Self(html, budget) = self;
            let end = bytes.len().min((MOST_OF_A_VALUE + 1).saturating_sub(html.len()));
            if end == 0 || !budget.pays(A_WRITE + end / 16) {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            html.extend_from_slice(&bytes[..end]);
            Ok(end)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut html = UpToAValue(Vec::new(), budget);
    let inside = SerializeOpts { scripting_enabled: false, ..SerializeOpts::default() };
    // What ends it early is its length.
    let _ = serialize(&mut html, &element, inside);
    let text = String::from_utf8_lossy(&html.0);
    // One that was cut stays too long.
    if html.0.len() > MOST_OF_A_VALUE { text.into_owned() } else { text.trim().to_owned() }
}

/// Where an element has its value in an attribute by its nature, as a link its address.
fn own_attribute(element: ElementRef<'_>, kind: FieldKind) -> Option<&str> {
    match (element.value().name(), kind) {
        ("meta", _) => element.attr("content"),
        ("time", FieldKind::Date) => element.attr("datetime"),
        (_, FieldKind::Url) => element.attr("href").or_else(|| element.attr("src")),
        _ => None,
    }
}

/// What the regular expression finds in the first MiB of a text.
fn matched(regex: &Regex, text: &str) -> Option<String> {
    let found = regex.captures(&text[..text.floor_char_boundary(MOST_OF_A_VALUE)])?;
    let group = if found.len() > 1 { found.get(1) } else { found.get(0) };
    Some(group?.as_str().to_owned())
}

fn read(written: &str, kind: FieldKind, base: &Base) -> Option<Value> {
    if written.len() > MOST_OF_A_VALUE {
        return None;
    }
    match kind {
        FieldKind::Text => Some(text::folded(written)).filter(|text| !text.is_empty()).map(Value::String),
        FieldKind::Html => (!written.is_empty()).then(|| Value::String(written.to_owned())),
        FieldKind::Integer => integer(written).map(Value::from),
        FieldKind::Number => decimal(written).map(Value::Number),
        FieldKind::Price => Price::read(written).map(|price| price.to_value()),
        FieldKind::Date => date::read(&text::folded(written)).map(Value::String),
        FieldKind::Url => {
            let address = Some(written.trim()).filter(|address| !address.is_empty());
            address.and_then(|address| base.resolve(address)).map(|url| Value::String(url.into()))
        }
        FieldKind::Bool => Some(Value::Bool(true)),
    }
}

fn integer(written: &str) -> Option<i64> {
    let number = number::only(&text::folded(written), OneMark::Groups)?;
    let (whole, decimals) = number.split_once('.').unwrap_or((&number, ""));
    decimals.bytes().all(|b| b == b'0').then(|| whole.parse().ok()).flatten()
}

fn decimal(written: &str) -> Option<Number> {
    number::only(&text::folded(written), OneMark::PointIsDecimal)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use serde_json::json;
    use url::Url;

    use super::*;
    use crate::site::Css;

    const PAGE: &str = r#"<base href="/shop/">
        <h1> The  <b>Book</b><br>of Rust </h1>
        <p class="price">Price: £1,051.77</p><p class="price">£9</p>
        <p class="stock"> In stock (22 available) </p>
        <span class="rating">4.5</span><span class="weight">1.234</span>
        <time datetime="2026-11-20T09:00:00Z">today</time><i class="date">Nov 20, 2026</i>
        <ul><li>a</li><li></li><li>c</li></ul>
        <img src="../img/1.jpg" alt=" A  picture "><a href="x?y#z">x</a>
        <meta itemprop="sku" content="SKU-1"><div id="raw"> <em>x</em> &amp; y </div><p class="empty"> </p>"#;

    fn rule(css: &str, kind: FieldKind) -> FieldRule {
        let css = Css::parse(css).expect("a selector");
        FieldRule {
            name: "f".into(),
            css,
            attr: None,
            regex: None,
            kind,
            default: None,
            required: false,
            all: false,
        }
    }

    fn found(rule: &FieldRule) -> Value {
        found_on(PAGE, rule)
    }

    fn found_on(page: &str, rule: &FieldRule) -> Value {
        let tree = Tree::parse(page, &Budget::without_end());
        let page = Url::parse("https://shop.example/a/b").expect("a URL");
        value(&tree, rule, &Base::of(&tree, &page, UTF_8)).unwrap_or(Value::Null)
    }

    #[test]
    fn a_fields_text_is_read_as_its_kind() {
        use FieldKind::{Bool, Date, Html, Integer, Number, Price, Text, Url};
        for (css, kind, value) in [
            ("h1", Text, json!("The Book of Rust")),
            (".empty", Text, json!(null)),
            (".none", Text, json!(null)),
            ("meta[itemprop=sku]", Text, json!("SKU-1")),
            ("#raw", Html, json!("<em>x</em> &amp; y")),
            (".price", Price, json!({"amount": "1051.77", "currency": "GBP"})),
            (".stock", Price, json!({"amount": "22", "currency": null})),
            ("h1", Price, json!(null)),
            (".stock", Integer, json!(22)),
            (".weight", Integer, json!(1234)),
            (".rating", Integer, json!(null)),
            (".rating", Number, json!(4.5)),
            (".weight", Number, json!(1.234)),
            ("h1", Number, json!(null)),
            ("time", Date, json!("2026-11-20T09:00:00Z")),
            (".date", Date, json!("2026-11-20")),
            ("h1", Date, json!(null)),
            ("a", Url, json!("https://shop.example/shop/x?y#z")),
            ("img", Url, json!("https://shop.example/img/1.jpg")),
            (".empty", Url, json!(null)),
            (".stock", Bool, json!(true)),
            (".none", Bool, json!(false)),
        ] {
            assert_eq!(found(&rule(css, kind)), value, "{css} as {kind:?}");
        }
    }

    #[test]
    fn a_value_that_is_too_long_is_absent_and_so_are_values_that_are_too_much_together() {
        let text = rule("p", FieldKind::Text);
        assert_eq!(found_on(&format!("<p>{}", "x".repeat(1 << 20)), &text), json!("x".repeat(1 << 20)));
        let long = format!("<p>price: 5 {}", "x".repeat(1 << 20));
        assert_eq!(found_on(&long, &text), json!(null));
        let regex = Regex::new(r"price: (\d+)").ok();
        assert_eq!(found_on(&long, &FieldRule { regex, ..rule("p", FieldKind::Text) }), json!("5"));
        let nested = |times: usize| format!("{}{}", "<div>".repeat(times), "x".repeat(100_000));
        let all = FieldRule { all: true, ..rule("div", FieldKind::Text) };
        assert_eq!(found_on(&nested(100), &all).as_array().map(Vec::len), Some(100));
        assert_eq!(found_on(&nested(200), &all), json!(null));
    }

    #[test]
    fn an_attribute_an_expression_and_all_narrow_or_widen_what_is_read() {
        use FieldKind::{Bool, Integer, Price, Text};
        let regex = |text: &str| Some(Regex::new(text).expect("an expression"));
        let attr = |name: &str| Some(name.to_owned());
        for (rule, value) in [
            (FieldRule { attr: attr("alt"), ..rule("img", Text) }, json!("A picture")),
            (FieldRule { attr: attr("none"), ..rule("img", Text) }, json!(null)),
            (FieldRule { attr: attr("alt"), ..rule("img", Bool) }, json!(true)),
            (FieldRule { attr: attr("none"), ..rule("img", Bool) }, json!(false)),
            (FieldRule { regex: regex(r"(\d+) available"), ..rule(".stock", Integer) }, json!(22)),
            (FieldRule { regex: regex(r"\w+ stock"), ..rule(".stock", Text) }, json!("In stock")),
            (FieldRule { regex: regex(r"In stock"), ..rule("p", Bool) }, json!(true)),
            (FieldRule { regex: regex(r"sold out"), ..rule("p", Bool) }, json!(false)),
            (
                FieldRule { regex: regex(r"^£\d$"), ..rule(".price", Price) },
                json!({"amount": "9", "currency": "GBP"}),
            ),
            (FieldRule { all: true, ..rule("li", Text) }, json!(["a", "c"])),
            (FieldRule { all: true, ..rule(".none", Text) }, json!(null)),
        ] {
            assert_eq!(found(&rule), value, "{rule:?}");
        }
    }
}
