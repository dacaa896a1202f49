//! The pages, each of a few kilobytes to eight megabytes, and the rules that read them.

/// A page, the rule that takes it, and words of what may become of it: one of them is printed.
pub struct Bomb {
    pub name: &'static str,
    pub rule: &'static str,
    pub body: fn() -> Vec<u8>,
    pub says: &'static [&'static str],
}

/// Rules by the first part of the path.
pub const SITE: &str = r#"
seeds = ["https://shop.example/"]
[pace]
contact = "a@b.example"
[scope]
strip_query = ["a*b*c*d"]
[[page]]
name = "title"
match = ["/", "/title/**"]
item = true
product = true
follow = "*"
[page.fields]
title = "h1"
[[page]]
name = "siblings"
match = "/siblings/**"
item = true
[page.fields]
title = { css = "i ~ b" }
[[page]]
name = "ancestors"
match = "/ancestors/**"
item = true
[page.fields]
title = { css = ".x .y .z b" }
[[page]]
name = "has"
match = "/has/**"
item = true
[page.fields]
title = { css = "div:has(i) b:nth-last-child(3)" }
[[page]]
name = "all"
match = "/all/**"
item = true
[page.fields]
title = { css = "h1", default = "none" }
texts = { css = "div", all = true }
html = { css = "div", all = true, as = "html" }
[[page]]
name = "prices"
match = "/prices/**"
item = true
[page.fields]
title = { css = "h1", default = "none" }
price = { css = "p", as = "price" }
prices = { css = "p", as = "price", all = true }
number = { css = "p", as = "number" }
date = { css = "p", as = "date" }
[[page]]
name = "searched"
match = "/searched/**"
item = true
[page.fields]
title = { css = "h1", default = "none" }
code = { css = "p", regex = "(\\w+ )+code: (\\d+)", all = true }
long = { css = "p", regex = "([a-z]{1,40} ?){40}!" }
[[page]]
name = "whole"
match = "/whole/**"
item = true
product = true
follow = "*"
[page.fields]
title = { css = "h1", default = "none" }
html = { css = "body", as = "html" }
long = "p"
texts = { css = "p, b", all = true }
[[page]]
name = "lists"
match = "/lists/**"
follow = ["li"]
"#;

/// Of what is too dear.
pub const DEAR: &str = "the parse took more than";
/// Of an item.
pub const ITEM: &str = "title";

/// Past a limit, or of a cost that grows faster than the page.
pub const BOMBS: &[Bomb] = &[
    Bomb { name: "a base of 1 MB", rule: "title", body: long_base, says: &[ITEM] },
    Bomb { name: "a base of 8 KB", rule: "title", body: base, says: &[ITEM, DEAR] },
    Bomb { name: "links of 16 KB", rule: "title", body: long_links, says: &[ITEM] },
    Bomb { name: "250,000 links", rule: "title", body: many_links, says: &[ITEM] },
    Bomb { name: "links with parameters to be stripped", rule: "title", body: stripped, says: &[ITEM] },
    Bomb { name: "references that multiply", rule: "title", body: references, says: &[ITEM] },
    Bomb { name: "a list of zeros", rule: "title", body: zeros, says: &[ITEM] },
    Bomb { name: "empty objects", rule: "title", body: objects, says: &[ITEM] },
    Bomb { name: "a script to be mended", rule: "title", body: mended, says: &[ITEM, DEAR] },
    Bomb {
        name: "100,000 names of a blank value",
        rule: "title",
        body: names_of_nothing,
        says: &[ITEM, DEAR],
    },
    Bomb { name: "300,000 names of one property", rule: "title", body: names, says: &[ITEM, DEAR] },
    Bomb { name: "480 nested properties", rule: "title", body: nested_properties, says: &[ITEM, DEAR] },
    Bomb { name: "480 nested items", rule: "title", body: nested_items, says: &[ITEM, DEAR] },
    Bomb { name: "nested elements, all of them", rule: "all", body: nested, says: &[ITEM, DEAR] },
    Bomb { name: "nested lists, each with its link", rule: "lists", body: lists, says: &["lists", DEAR] },
    Bomb { name: "formatting elements", rule: "title", body: formatting, says: &[ITEM, DEAR] },
    Bomb { name: "closing tags in a deep tree", rule: "title", body: closing, says: &[ITEM, DEAR] },
    Bomb { name: "misnested tables", rule: "title", body: tables, says: &[ITEM, DEAR] },
    Bomb { name: "attributes of a million names", rule: "title", body: attributes, says: &[ITEM, DEAR] },
    Bomb { name: "attributes of long names", rule: "title", body: long_attributes, says: &[ITEM, DEAR] },
    Bomb { name: "490,000 siblings", rule: "siblings", body: siblings, says: &[ITEM, DEAR] },
    Bomb { name: "siblings behind comments", rule: "siblings", body: comments, says: &[ITEM, DEAR] },
    Bomb {
        name: "a class of 4 MB above each element",
        rule: "ancestors",
        body: long_class,
        says: &[ITEM, DEAR],
    },
    Bomb { name: "classes of a million names", rule: "ancestors", body: classes, says: &[ITEM, DEAR] },
    Bomb { name: "deep trees looked into and counted", rule: "has", body: looked_into, says: &[ITEM, DEAR] },
    Bomb { name: "zero bytes", rule: "title", body: || vec![0; 8 << 20], says: &[ITEM, DEAR] },
    Bomb {
        name: "words before a frame set",
        rule: "title",
        body: frames,
        says: &[ITEM, DEAR, "no item", "not found"],
    },
    Bomb { name: "blocks in formatting elements", rule: "title", body: adopted, says: &[ITEM, DEAR] },
    Bomb { name: "a text of numbers", rule: "prices", body: numbers, says: &[ITEM, DEAR] },
    Bomb { name: "many prices", rule: "prices", body: prices, says: &[ITEM, DEAR] },
    Bomb { name: "words for an expression", rule: "searched", body: words, says: &[ITEM, DEAR] },
    Bomb { name: "letters that HTML escapes", rule: "whole", body: escaped, says: &[ITEM, DEAR] },
    Bomb { name: "a name of escapes", rule: "title", body: name_of_escapes, says: &[ITEM, DEAR] },
    Bomb { name: "one long text that offers refer to", rule: "title", body: long_offer, says: &[ITEM, DEAR] },
    Bomb { name: "lists in place of texts", rule: "title", body: lists_of_names, says: &[ITEM, DEAR] },
    Bomb { name: "one value after the other", rule: "title", body: loose_values, says: &[ITEM] },
    Bomb { name: "types of one item, and names", rule: "title", body: types, says: &[ITEM, DEAR] },
    Bomb { name: "bytes of no known encoding", rule: "title", body: unknown_bytes, says: &[ITEM, DEAR] },
    Bomb { name: "bytes that grow as text", rule: "title", body: wide_bytes, says: &[ITEM, DEAR] },
    Bomb { name: "a tag of one name", rule: "title", body: long_tag, says: &[ITEM, DEAR] },
    Bomb { name: "meta tags", rule: "title", body: metas, says: &[ITEM, DEAR] },
];

pub fn page(body: &str) -> Vec<u8> {
    format!("<!doctype html><h1>x</h1>{body}").into_bytes()
}

pub fn each(count: usize, of: impl Fn(usize) -> String) -> String {
    (0..count).map(of).collect()
}

pub fn json_ld(script: &str) -> Vec<u8> {
    page(&format!("<script type='application/ld+json'>{script}</script>"))
}

fn long_base() -> Vec<u8> {
    page(&format!("<base href='/{}/'>{}", "b".repeat(1 << 20), each(4_000, |n| format!("<a href={n}>"))))
}

fn base() -> Vec<u8> {
    page(&format!("<base href='/{}/'>{}", "b".repeat(8_100), each(250_000, |n| format!("<a href={n}>"))))
}

fn long_links() -> Vec<u8> {
    page(&each(490, |n| format!("<a href='/{}{n}'>", "l".repeat(16 << 10))))
}

fn many_links() -> Vec<u8> {
    page(&each(250_000, |n| format!("<a href=/title/{n}>")))
}

fn stripped() -> Vec<u8> {
    page(&each(1_000, |n| format!("<a href='/title/{n}?{}'>", "abc".repeat(2_600))))
}

fn references() -> Vec<u8> {
    let ids = |kind: &str, count| each(count, |n| format!("{{\"@id\":\"{kind}{n}\"}},"));
    let nodes = |kind: &str, count, inner: &str| {
        each(count, |n| format!("{{\"@type\":\"Product\",\"@id\":\"{kind}{n}\",{inner}}},"))
    };
    let products = nodes("p", 100, &format!("\"hasVariant\":[{}0]", ids("v", 100)));
    let variants = nodes("v", 100, &format!("\"offers\":[{}0]", ids("o", 100)));
    let offers = nodes("o", 100, &format!("\"offers\":[{}0]", ids("o", 100)));
    json_ld(&format!("{{\"@graph\":[{products}{variants}{offers}0]}}"))
}

fn zeros() -> Vec<u8> {
    json_ld(&format!("[{}0]", "0,".repeat(4_190_000)))
}

fn objects() -> Vec<u8> {
    json_ld(&format!("[{}0]", "{\"a\":{}},".repeat(400_000)))
}

fn mended() -> Vec<u8> {
    json_ld(&format!("[{}", "/**/ ,]\u{1}\"\\x".repeat(340_000)))
}

fn names() -> Vec<u8> {
    page(&format!(
        "<div itemscope itemtype='http://schema.org/Product'><p itemprop='{}'>{}</p></div>",
        each(300_000, |n| format!("n{n} ")),
        "text ".repeat(100_000)
    ))
}

fn names_of_nothing() -> Vec<u8> {
    page(&format!(
        "<div itemscope itemtype='http://schema.org/Product'><meta itemprop='{}' content='{}'></div>",
        each(100_000, |n| format!("n{n} ")),
        " ".repeat(2_000_000)
    ))
}

fn nested_properties() -> Vec<u8> {
    page(&format!(
        "<div itemscope itemtype='http://schema.org/Product'>{}{}",
        "<div itemprop=name>".repeat(480),
        "text ".repeat(1_400_000)
    ))
}

fn nested_items() -> Vec<u8> {
    let item = "<div itemscope itemprop='offers name brand' itemtype='http://schema.org/Product'>";
    page(&format!("{}{}", item.repeat(480), "<b itemprop=price>5</b>".repeat(200_000)))
}

fn nested() -> Vec<u8> {
    page(&format!("{}{}", "<div>".repeat(480), "text ".repeat(1_400_000)))
}

fn lists() -> Vec<u8> {
    page(&format!("{}{}", "<ul><li>".repeat(240), "<i></i>".repeat(400_000)))
}

fn formatting() -> Vec<u8> {
    page(&format!("<p>{}{}", each(700, |n| format!("<b a={n}>")), "<p>x".repeat(1_000_000)))
}

fn closing() -> Vec<u8> {
    page(&format!("{}{}", "<span>".repeat(480), "</b>".repeat(1_900_000)))
}

fn tables() -> Vec<u8> {
    page(&"<table><b>x<tr><td></b></table>".repeat(250_000))
}

fn attributes() -> Vec<u8> {
    page(&each(2_400, |tag| format!("<p{}>", each(480, |n| format!(" {:x}", tag * 480 + n)))))
}

fn long_attributes() -> Vec<u8> {
    page(&each(900, |tag| format!("<p{}>", each(480, |n| format!(" long-name-{:x}", tag * 480 + n)))))
}

fn siblings() -> Vec<u8> {
    page(&"<b></b>".repeat(490_000))
}

fn comments() -> Vec<u8> {
    page(&"<b></b><!---->".repeat(240_000))
}

fn long_class() -> Vec<u8> {
    page(&format!("<div class='{}z'>{}", "x y ".repeat(1 << 20), "<b></b>".repeat(480_000)))
}

fn classes() -> Vec<u8> {
    page(&format!("<div class='{}z'>{}", each(900_000, |n| format!("{n:x} ")), "<b></b>".repeat(100_000)))
}

fn looked_into() -> Vec<u8> {
    page(&format!("{}{}", "<div>".repeat(480), "<b></b>".repeat(480_000)))
}

fn metas() -> Vec<u8> {
    page(&each(150_000, |n| format!("<meta property=p{n} content='{}'>", "c".repeat(20))))
}

fn frames() -> Vec<u8> {
    format!("<frameset>{}", "a ".repeat(4_000_000)).into_bytes()
}

fn adopted() -> Vec<u8> {
    let opened = each(250, |n| format!("<b a={n}>"));
    page(&format!("{opened}{}{}", "<div>".repeat(240), "</b><b><div></div>".repeat(400_000)))
}

fn numbers() -> Vec<u8> {
    page(&format!("<p>{}", "1a".repeat(500_000)))
}

fn prices() -> Vec<u8> {
    page(&format!("{}<p>{}", "<p>5".repeat(180_000), "5 € ".repeat(250_000)))
}

fn words() -> Vec<u8> {
    page(&each(7, |_| format!("<p>{}", "some words ".repeat(95_000))))
}

fn escaped() -> Vec<u8> {
    page(&format!("<p>{}", "&".repeat(8_000_000)))
}

fn name_of_escapes() -> Vec<u8> {
    json_ld(&format!("{{\"@type\":\"Product\",\"name\":\"{}\"}}", "&;".repeat(500_000)))
}

fn long_offer() -> Vec<u8> {
    let text = "5 € ".repeat(200_000);
    let ids = "{\"@id\":\"o\"},".repeat(99);
    let products = each(100, |n| format!("{{\"@type\":\"Product\",\"@id\":\"p{n}\",\"offers\":[{ids}0]}},"));
    let offer =
        format!("{{\"@id\":\"o\",\"price\":\"{text}\",\"availability\":\"{text}\",\"offers\":[{ids}0]}}");
    json_ld(&format!("[{products}{offer}]"))
}

fn lists_of_names() -> Vec<u8> {
    let ids = "{\"@id\":\"o\"},".repeat(99);
    let products = each(100, |n| format!("{{\"@type\":\"Product\",\"@id\":\"p{n}\",\"offers\":[{ids}0]}},"));
    let list = format!("[[{}0]]", "0,".repeat(100_000));
    let offer = format!(
        "{{\"@id\":\"o\",\"price\":5,\"availability\":{list},\"priceCurrency\":{list},\"offers\":[{ids}0]}}"
    );
    json_ld(&format!("[{products}{offer}]"))
}

fn loose_values() -> Vec<u8> {
    json_ld(&"\"\"".repeat(2_000_000))
}

fn types() -> Vec<u8> {
    let (names, types) =
        (each(20_000, |n| format!("n{n} ")), each(20_000, |n| format!("https://schema.org/T{n} ")));
    let item = format!("<i itemprop='{names}' itemscope itemtype='{types}'></i>");
    page(&format!("<div itemscope itemtype='https://schema.org/Product'>{}</div>", item.repeat(4)))
}

fn unknown_bytes() -> Vec<u8> {
    [b"<h1>x</h1>".as_slice(), &[0xe9, b' ', 0xfc, 0x83].repeat(2_000_000)].concat()
}

fn wide_bytes() -> Vec<u8> {
    [b"<meta charset=windows-1252><h1>x</h1><p>".as_slice(), &vec![0x80; 8_000_000]].concat()
}

fn long_tag() -> Vec<u8> {
    page(&format!("<{}>", "Aa".repeat(4_000_000)))
}
