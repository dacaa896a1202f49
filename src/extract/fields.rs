//! `[page.fields]`: what a page's rule finds by selector, read as what the rule says it is.

use regex::Regex;
use scraper::{ElementRef, Html};
use serde_json::{Number, Value};

use super::html::{Base, text};
use super::values::number::{self, OneMark};
use super::values::{Price, date};
use crate::site::{FieldKind, FieldRule};

/// The field's value on this page; none where nothing is found that can be read as the rule's kind.
///
/// Without `all` the first element counts that the selector finds and whose text the regular expression matches.
/// With `all` the value is a list of every one that can be read. A `bool` is always found.
pub fn value(html: &Html, rule: &FieldRule, base: &Base) -> Option<Value> {
    let mut found = rule.css.select(html).filter_map(|element| written(element, rule));
    if rule.kind == FieldKind::Bool {
        return Some(Value::Bool(found.next().is_some()));
    }
    if rule.all {
        let values: Vec<Value> = found.filter_map(|text| read(&text, rule.kind, base)).collect();
        return (!values.is_empty()).then_some(Value::Array(values));
    }
    read(&found.next()?, rule.kind, base)
}

fn written(element: ElementRef<'_>, rule: &FieldRule) -> Option<String> {
    let whole = match (&rule.attr, rule.kind) {
        (Some(attr), _) => element.attr(attr)?.to_owned(),
        (None, FieldKind::Html) => element.inner_html().trim().to_owned(),
        (None, kind) => own_attribute(element, kind).map_or_else(|| text::visible(element), str::to_owned),
    };
    match &rule.regex {
        Some(regex) => matched(regex, &whole),
        None => Some(whole),
    }
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

fn matched(regex: &Regex, text: &str) -> Option<String> {
    let found = regex.captures(text)?;
    let group = if found.len() > 1 { found.get(1) } else { found.get(0) };
    Some(group?.as_str().to_owned())
}

fn read(written: &str, kind: FieldKind, base: &Base) -> Option<Value> {
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
    use crate::extract::html::Tree;
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
        let html = Tree::parse(PAGE).html;
        let page = Url::parse("https://shop.example/a/b").expect("a URL");
        value(&html, rule, &Base::of(&html, &page, UTF_8)).unwrap_or(Value::Null)
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
