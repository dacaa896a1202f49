//! Pages read in one call, by rules as a site file would give them.

use regex::Regex;
use serde_json::{Value, json};

use super::*;
use crate::canonical_url::StripQuery;
use crate::clock::Timestamp;
use crate::page::Headers;
use crate::site::{Css, FetchRules, FieldKind, FieldRule, Follow, ItemKey, Pace, Scope, UrlPattern};

const PAGE: &str = r#"<title>x</title><link rel="Canonical" href="/p/1?utm_source=x"><h1>A book</h1>
    <p class="price">£51.77</p><p class="stock">In stock (22 available)</p><a href="/p/2">next</a>
    <script type="application/ld+json">{"@type": "Product", "name": "A book!", "brand": "ACME",
      "offers": {"price": "99", "priceCurrency": "EUR", "availability": "InStock"}}</script>"#;

fn site() -> Site {
    let seed = CanonicalUrl::parse("https://shop.example/").expect("a URL");
    Site {
        name: "shop".into(),
        scope: Scope {
            hosts: vec![seed.host()],
            deny: Vec::new(),
            max_depth: Scope::MAX_DEPTH,
            max_pages: None,
            strip_query: StripQuery::new(vec!["utm_*".into()]),
        },
        seeds: vec![seed],
        lane: None,
        tenant: None,
        group: None,
        pace: Pace::default(),
        fetch: FetchRules::default(),
        pages: Vec::new(),
        text: String::new(),
    }
}

fn rule(fields: Vec<FieldRule>) -> PageRule {
    PageRule {
        name: "product".into(),
        matches: vec![UrlPattern::whole("/p/**").expect("a pattern")],
        follow: Follow::Everything,
        max_pages: None,
        item: true,
        key: ItemKey::Canonical,
        recrawl: None,
        product: false,
        fields,
    }
}

fn field(name: &str, css: &str, kind: FieldKind) -> FieldRule {
    let (name, css) = (name.into(), Css::parse(css).expect("a selector"));
    FieldRule { name, css, attr: None, regex: None, kind, default: None, required: false, all: false }
}

fn read_at(url: &str, fields: &[(&str, &str)], page: &[u8], rule: &PageRule, site: &Site) -> Extract {
    let url = CanonicalUrl::parse(url).expect("a URL");
    let bytes = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
    let headers = Headers(fields.iter().map(bytes).collect());
    extract(
        &Fetched { url: &url, fetched_at: Timestamp::from_millis(5), headers: &headers, body: page },
        rule,
        site,
    )
    .expect("within its budget")
}

fn read(page: &[u8], rule: &PageRule) -> Extract {
    read_at("https://shop.example/p/9", &[], page, rule, &site())
}

#[test]
fn an_item_has_the_rules_fields_in_their_order_and_says_where_each_is_from() {
    let stock = FieldRule {
        regex: Regex::new(r"(\d+) available").ok(),
        default: Some(json!(0)),
        ..field("stock", ".stock", FieldKind::Integer)
    };
    let colour = FieldRule { default: Some(json!("grey")), ..field("colour", ".colour", FieldKind::Text) };
    let size = field("size", ".size", FieldKind::Text);
    let fields = vec![
        field("title", "h1", FieldKind::Text),
        field("price", ".price", FieldKind::Price),
        stock,
        colour,
        size,
    ];
    let read = read(PAGE.as_bytes(), &PageRule { product: true, ..rule(fields) });
    let item = read.item.expect("nothing is required");
    let shown: Vec<_> =
        item.fields.iter().map(|(name, value)| (name.as_str(), value.clone(), &*item.from[name])).collect();
    assert_eq!(
        shown,
        [
            ("title", json!("A book"), "css"),
            ("price", json!({"amount": "51.77", "currency": "GBP"}), "css"),
            ("stock", json!(22), "css"),
            ("colour", json!("grey"), "default"),
            ("name", json!("A book!"), "json-ld"),
            ("currency", json!("GBP"), "css"),
            ("availability", json!("InStock"), "json-ld"),
            ("brand", json!("ACME"), "json-ld"),
        ]
    );
    assert_eq!(
        (item.site.as_str(), item.page.as_str(), item.url.as_str()),
        ("shop", "product", "https://shop.example/p/9")
    );
    assert_eq!((item.fetched_at.as_millis(), item.noindex, read.encoding), (5, false, "UTF-8"));
}

#[test]
fn a_field_not_found_by_selector_comes_from_structured_data_before_its_default() {
    let price = FieldRule {
        default: Some(json!("none")),
        required: true,
        ..field("price", ".none", FieldKind::Price)
    };
    let from = |product| {
        let rule = PageRule { product, ..rule(vec![price.clone()]) };
        read(PAGE.as_bytes(), &rule).item.map(|item| item.from["price"].clone())
    };
    assert_eq!((from(true).as_deref(), from(false).as_deref()), (Some("json-ld"), Some("default")));
}

#[test]
fn a_page_without_a_required_field_is_no_item_but_keeps_its_links() {
    let required = |name: &str, css| FieldRule { required: true, ..field(name, css, FieldKind::Text) };
    let fields = vec![required("a", ".a"), required("title", "h1"), required("b", ".b")];
    let read = read(PAGE.as_bytes(), &rule(fields));
    assert_eq!((read.item, read.missing), (None, vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(read.links.iter().map(Url::as_str).collect::<Vec<_>>(), ["https://shop.example/p/2"]);
}

#[test]
fn a_rule_that_makes_no_item_misses_nothing() {
    let required = FieldRule { required: true, ..field("a", ".a", FieldKind::Text) };
    let read = read(PAGE.as_bytes(), &PageRule { item: false, ..rule(vec![required]) });
    assert_eq!((read.item, read.missing.len(), read.links.len()), (None, 0, 1));
}

#[test]
fn the_key_is_what_the_rule_says_and_left_out_where_it_is_the_url() {
    let fields =
        vec![field("stock", ".stock", FieldKind::Integer), field("price", ".price", FieldKind::Price)];
    let key = |key, url: &str, page: &str| {
        let rule = PageRule { key, ..rule(fields.clone()) };
        read_at(url, &[], page.as_bytes(), &rule, &site()).item.and_then(|item| item.key)
    };
    let (here, other) = ("https://shop.example/p/1", "https://shop.example/p/1?color=red");
    for (rule, url, page, expected) in [
        (ItemKey::Url, other, PAGE, None),
        (ItemKey::Canonical, other, PAGE, Some(here)),
        (ItemKey::Canonical, here, PAGE, None),
        (ItemKey::Canonical, other, "no canonical", None),
        (ItemKey::Canonical, other, "<link rel=canonical href='javascript:x'>", None),
        (ItemKey::Field("stock".into()), here, PAGE, Some("22")),
        (ItemKey::Field("price".into()), here, PAGE, Some("51.77")),
        (ItemKey::Field("none".into()), here, PAGE, None),
    ] {
        assert_eq!(key(rule.clone(), url, page).as_deref(), expected, "{rule:?} at {url}");
    }
}

#[test]
fn what_a_page_asks_of_robots_is_done_unless_the_site_says_ignore() {
    let page = format!("<meta name=robots content=noindex>{PAGE}<a href=/n rel=nofollow>n</a>");
    let seen = |header: &str, meta_robots| {
        let site = Site { pace: Pace { meta_robots, ..Pace::default() }, ..site() };
        let read = read_at(
            "https://shop.example/p/9",
            &[("x-robots-tag", header)],
            page.as_bytes(),
            &rule(Vec::new()),
            &site,
        );
        (read.links.len(), read.item.map(|item| (item.noindex, item.noarchive)))
    };
    assert_eq!(seen("all", MetaRobots::Obey), (1, Some((true, false))));
    assert_eq!(seen("nofollow, noarchive", MetaRobots::Obey), (0, Some((true, true))));
    assert_eq!(seen("nofollow, noarchive", MetaRobots::Ignore), (2, Some((false, false))));
}

#[test]
fn a_page_is_read_in_its_own_encoding() {
    let (body, ..) =
        encoding_rs::SHIFT_JIS.encode("<meta charset=shift_jis><h1>本</h1><a href='?q=本'>x</a>");
    let read = read(&body, &rule(vec![field("title", "h1", FieldKind::Text)]));
    assert_eq!(read.item.map(|item| Value::Object(item.fields)), Some(json!({"title": "本"})));
    assert_eq!((read.encoding, read.links[0].as_str()), ("Shift_JIS", "https://shop.example/p/9?q=%96{"));
}

#[test]
fn no_body_is_too_odd_to_be_read() {
    let binary: Vec<u8> = (0..300_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let rule = PageRule { product: true, ..rule(vec![field("title", "h1", FieldKind::Text)]) };
    let divs = format!("<h1>kept</h1>{}", "<div>".repeat(100_000));
    let quotes = format!("<h1>kept</h1>{}", "<a href='".repeat(20_000));
    let names = (0..20_000).map(|n| format!(" a{n}")).collect::<Vec<_>>().concat();
    let names = format!("<h1>kept</h1><a{names}>");
    let bodies: [(&[u8], bool, bool); 7] = [
        (b"", false, false),
        (b"\0", false, false),
        (b"\xff\xfe", false, false),
        (&binary, false, false),
        (divs.as_bytes(), true, true),
        (quotes.as_bytes(), false, true),
        (names.as_bytes(), true, true),
    ];
    for (body, cut, titled) in bodies {
        let read = read(body, &rule);
        assert_eq!(read.cut, cut, "{} bytes", body.len());
        assert_eq!(read.item.is_some_and(|item| item.fields.contains_key("title")), titled);
    }
}

#[test]
fn a_hundred_thousand_nested_elements_need_no_deep_stack() {
    let kinds = [FieldKind::Text, FieldKind::Html, FieldKind::Price];
    for tag in [
        "<div>",
        "<b>",
        "<table><td>",
        "<ul><li>",
        "<div itemscope itemprop=offers>",
        "<svg><g>",
        "<template>",
    ] {
        let page = format!("<h1>kept</h1><a href=/p/2>next</a>{}deep", tag.repeat(100_000));
        let read = move || {
            let fields = kinds.map(|kind| field(&format!("{kind:?}").to_lowercase(), "body", kind));
            let rule = PageRule { product: true, ..rule(fields.into()) };
            read_at("https://shop.example/p/1", &[], page.as_bytes(), &rule, &site())
        };
        let small = std::thread::Builder::new().stack_size(192 * 1024).spawn(read).expect("a thread");
        let read = small.join().expect("no overflow");
        assert!(read.cut, "{tag}");
        assert_eq!(read.links.len(), 1, "{tag}");
        assert!(read.item.is_some(), "{tag}");
    }
}
