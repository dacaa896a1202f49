//! Pages that stay below each limit: none is passed, and all that it allows is made.

use super::pages::{Bomb, DEAR, ITEM, each, json_ld, page};

pub const BELOW: &[Bomb] = &[
    Bomb { name: "links of 8 KB", rule: "title", body: links_of_8_kb, says: &[ITEM] },
    Bomb { name: "3,000 links of 8 KB by a base", rule: "title", body: links_by_a_base, says: &[ITEM] },
    Bomb { name: "10,000 links of 800 bytes", rule: "title", body: ten_thousand_links, says: &[ITEM] },
    Bomb { name: "JSON-LD of 4 MiB", rule: "title", body: json_of_4_mib, says: &[ITEM] },
    Bomb { name: "as many values as JSON-LD may have", rule: "title", body: json_values, says: &[ITEM] },
    Bomb { name: "as many keys as JSON-LD may have", rule: "title", body: json_keys, says: &[ITEM] },
    Bomb { name: "nearly a million steps", rule: "title", body: json_steps, says: &[ITEM] },
    Bomb { name: "microdata of 15 MiB", rule: "title", body: microdata, says: &[ITEM] },
    Bomb { name: "microdata of many properties", rule: "title", body: microdata_names, says: &[ITEM] },
    Bomb { name: "values of 1 MiB", rule: "whole", body: values_of_1_mib, says: &[ITEM] },
    Bomb { name: "all values of a field, 15 MiB", rule: "all", body: all_values, says: &[ITEM] },
    Bomb { name: "250,000 nodes", rule: "title", body: nodes, says: &[ITEM] },
    Bomb { name: "texts that are copied", rule: "title", body: copied_texts, says: &[ITEM] },
    Bomb { name: "elements 500 deep", rule: "ancestors", body: deep, says: &[ITEM, DEAR] },
    Bomb { name: "all of it at once", rule: "whole", body: all_at_once, says: &[ITEM, DEAR] },
];

fn links_of_8_kb() -> Vec<u8> {
    page(&each(1_000, |n| format!("<a href='/{}{n}'>", "l".repeat(8_000))))
}

fn links_by_a_base() -> Vec<u8> {
    page(&format!("<base href='/{}/'>{}", "b".repeat(8_100), each(3_000, |n| format!("<a href={n}>"))))
}

fn ten_thousand_links() -> Vec<u8> {
    page(&each(10_000, |n| format!("<a href='/{}{n}'>", "l".repeat(780))))
}

fn product_beside(rest: &str) -> Vec<u8> {
    json_ld(&format!("{{\"@type\":\"Product\",\"name\":\"title\"}}{rest}"))
}

fn json_of_4_mib() -> Vec<u8> {
    product_beside(&format!("[\"{}\"]", "x".repeat((4 << 20) - 100)))
}

fn json_values() -> Vec<u8> {
    product_beside(&format!("[{}0]", "0,".repeat(249_000)))
}

fn json_keys() -> Vec<u8> {
    product_beside(&format!("{{{}\"z\":0}}", each(249_000, |n| format!("\"{n:x}\":0,"))))
}

fn json_steps() -> Vec<u8> {
    let ids = |kind: &str, count| each(count, |n| format!("{{\"@id\":\"{kind}{n}\"}},"));
    let products =
        each(90, |n| format!("{{\"@type\":\"Product\",\"@id\":\"p{n}\",\"offers\":[{}0]}},", ids("v", 90)));
    let variants = each(90, |n| format!("{{\"@id\":\"v{n}\",\"x\":1,\"offers\":[{}0]}},", ids("v", 30)));
    json_ld(&format!("[{products}{variants}0]"))
}

fn microdata() -> Vec<u8> {
    let text = "t".repeat(1 << 20);
    let property = |n| format!("<i itemprop=name{n}>{}</i>", if n < 5 { text.as_str() } else { "x" });
    let item = format!(
        "<div itemscope itemprop='offers isRelatedTo' itemtype='https://schema.org/Product'>{}</div>",
        each(200, property)
    );
    page(&format!(
        "<div itemscope itemtype='https://schema.org/Product'><b itemprop=name>title</b>{item}</div>"
    ))
}

fn microdata_names() -> Vec<u8> {
    let names = each(15_000, |n| format!("n{n} "));
    page(&format!(
        "<div itemscope itemtype='https://schema.org/Product'><i itemprop='offers' itemscope><u itemprop='{names}'>x</u></i></div>"
    ))
}

fn values_of_1_mib() -> Vec<u8> {
    page(&format!(
        "{}<p>{}",
        each(8, |n| format!("<b id={n}>{}</b>", "b".repeat(900_000))),
        "p".repeat(1 << 20)
    ))
}

fn all_values() -> Vec<u8> {
    page(&format!("{}{}", "<div>".repeat(15), "x".repeat(1_000_000)))
}

fn nodes() -> Vec<u8> {
    page(&"<b></b>x<i></i>".repeat(83_000))
}

fn copied_texts() -> Vec<u8> {
    page(&"<b>&amp;some more words</b>".repeat(125_000))
}

fn deep() -> Vec<u8> {
    let opened = each(490, |n| format!("<div class='a{n} b c d'>"));
    page(&format!("{opened}{}", "<b></b>".repeat(400_000)))
}

/// A tree, JSON-LD, links and values that are each as large as they may be.
fn all_at_once() -> Vec<u8> {
    let json = format!("<script type='application/ld+json'>[{}0]</script>", "0,".repeat(240_000));
    let links = each(9_000, |n| format!("<a href='/{}{n}'></a>", "l".repeat(200)));
    page(&format!("{json}{links}<p>{}</p>{}", "p".repeat(1 << 20), "<u></u>".repeat(235_000)))
}
