//! Prices, content codings and structured products against public tables and real pages.

use std::collections::HashMap;
use std::fs;
use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use iso_currency::Currency;
use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::content_coding::{CodingError, decode};
use paced::internals::extract::values::Price;
use paced::internals::extract::{Extract, extract};
use paced::internals::page::Headers;
use serde_json::Value;

use super::rules::{fetched, product_rule, site};
use super::table::{Share, corpus, rows};

#[test]
fn prices_written_by_real_shops_are_read_as_amounts() {
    let Some(table) = corpus("html/price-parser/cases.public.jsonl") else { return };
    let mut share = Share::of("amounts of price-parser");
    for row in rows(&table).iter().filter(|row| row["xfail_upstream"] == Value::Bool(false)) {
        let written = row["price_raw"].as_str().unwrap_or_default();
        let read = Price::read(written).and_then(|price| price.amount.parse::<f64>().ok());
        let truth = row["amount"].as_str().and_then(|amount| amount.parse::<f64>().ok());
        share.count(read == truth, format!("{} {written:?}: {read:?}, not {truth:?}", row["id"]));
    }
    share.reaches(985, 500);
}

#[test]
fn codes_and_unambiguous_signs_name_the_currency() {
    let Some(table) = corpus("html/price-parser/cases.public.jsonl") else { return };
    let signs = [
        ("€", "EUR"),
        ("£", "GBP"),
        ("$", "USD"),
        ("zł", "PLN"),
        ("Kč", "CZK"),
        ("₹", "INR"),
        ("руб.", "RUB"),
    ];
    let mut share = Share::of("currencies of price-parser");
    for row in rows(&table) {
        let (written, sign) =
            (row["price_raw"].as_str().unwrap_or_default(), row["currency"].as_str().unwrap_or("-"));
        let code = || sign.len() == 3 && Currency::from_code(sign).is_some();
        let named = signs.iter().find(|(known, _)| *known == sign).map(|(_, code)| *code);
        let Some(truth) = named.or_else(|| code().then_some(sign)).filter(|_| written.contains(sign)) else {
            continue;
        };
        if Price::read(written).is_none() {
            continue;
        }
        let read = Price::read(written).and_then(|price| price.currency).map(|currency| currency.code());
        share.count(read == Some(truth), format!("{} {written:?}: {read:?}, not {truth}", row["id"]));
    }
    share.reaches(980, 200);
}

#[test]
fn coded_bodies_decode_and_bombs_stop_at_the_cap() {
    const CAP: u64 = 10 * 1024 * 1024;
    let Some(table) = corpus("http/compressed_expected.public.jsonl") else { return };
    let (mut same, mut decoded_whole) = (HashMap::new(), 0);
    for row in rows(&table) {
        let (file, coding) =
            (row["file"].as_str().expect("a file"), row["content_encoding"].as_str().expect("a coding"));
        let Some(path) = corpus(&format!("http/{file}")) else { return };
        let body = Bytes::from(fs::read(path).expect("a body"));
        let broken = coding.contains("truncated");
        let coding = coding.split(" (").next().unwrap_or(coding);
        let headers = Headers(vec![("content-encoding".to_owned(), coding.as_bytes().to_vec())]);
        let decoded = decode(&headers, &body, CAP);
        let length = row["decoded_len"].as_u64().expect("a length");
        match decoded {
            Ok(bytes) => {
                assert!(!broken && length <= CAP, "{file}");
                assert_eq!(bytes.len() as u64, length, "{file}");
                assert!(bytes.starts_with(row["head"].as_str().unwrap_or_default().as_bytes()), "{file}");
                let digest = row["decoded_sha256"].as_str().expect("a digest").to_owned();
                assert_eq!(same.entry(digest).or_insert_with(|| bytes.clone()), &bytes, "{file}");
                decoded_whole += 1;
            }
            Err(CodingError::TooLarge { limit }) => assert!(length > limit, "{file}"),
            Err(CodingError::Unknown(coding)) => assert_eq!(coding, "zstd", "{file}"),
            Err(CodingError::Broken(..)) => assert!(broken, "{file}"),
        }
    }
    assert!(decoded_whole >= 3, "{decoded_whole} bodies");
}

#[test]
fn real_product_pages_say_what_people_saw_on_them() {
    let Some(folder) = corpus("html/product-benchmark") else { return };
    let truth = fs::read_to_string(folder.join("ground-truth.public.json")).expect("a table");
    let truth: Value = serde_json::from_str(&truth).expect("a table");
    let fields = ["price", "availability", "sku", "brand", "gtin"];
    let mut right = fields.map(|field| (field, Share::of(field)));
    let mut found = fields.map(|field| (field, Share::of(field)));
    for (id, row) in truth.as_object().expect("a table") {
        let mut page = Vec::new();
        let file = fs::File::open(folder.join(format!("html/{id}.html.gz"))).expect("a page");
        GzDecoder::new(file).read_to_end(&mut page).expect("a page");
        let read = read_product(row["url"].as_str().unwrap_or("https://shop.example/"), &page);
        assert!(!read.cut, "{id} is an ordinary page");
        let item = read.item.expect("nothing is required");
        for ((field, right), (_, found)) in right.iter_mut().zip(&mut found) {
            let value = &item.fields.get(*field).map_or(Value::Null, |value| match value {
                Value::Object(price) => price["amount"].clone(),
                other => other.clone(),
            });
            let Some(expected) = row[*field].as_array() else { continue };
            let agrees = expected.iter().any(|one| same(one, value));
            let line = format!("{id} {field}: {value} from {:?}, not {expected:?}", item.from.get(*field));
            found.count(agrees, &line);
            if !value.is_null() {
                right.count(agrees, line);
            }
        }
    }
    println!("of the values given");
    for ((_, share), floor) in right.iter().zip([930, 880, 660, 850, 850]) {
        share.reaches(floor, 3);
    }
    println!("of all pages");
    for ((_, share), floor) in found.iter().zip([730, 580, 420, 570, 400]) {
        share.reaches(floor, 3);
    }
}

fn same(truth: &Value, read: &Value) -> bool {
    let (truth, read) = (truth.as_str().unwrap_or_default(), read.as_str().unwrap_or_default());
    match (truth.parse::<f64>(), read.parse::<f64>()) {
        (Ok(truth), Ok(read)) => (truth - read).abs() < 0.001,
        _ => truth.to_lowercase() == read.to_lowercase(),
    }
}

#[test]
fn prices_in_metascraper_snippets_are_found() {
    let Some(table) = corpus("html/metascraper-shopping/expected.public.jsonl") else { return };
    let mut share = Share::of("facts of metascraper-shopping");
    for row in rows(&table) {
        let page = match (&row["html"], &row["fixture"]) {
            (Value::String(html), _) => html.clone().into_bytes(),
            (_, Value::String(fixture)) => {
                let Some(path) = corpus(&format!("html/metascraper-shopping/{fixture}")) else { return };
                fs::read(path).expect("a page")
            }
            _ => continue,
        };
        let read = read_product(row["url"].as_str().unwrap_or("https://shop.example/"), &page);
        let fields = read.item.expect("nothing is required").fields;
        for (name, truth) in row["expected"].as_object().expect("facts") {
            let value = match name.as_str() {
                "price" => &fields.get("price").map_or(Value::Null, |price| price["amount"].clone()),
                "currency" => &fields.get("price").map_or(Value::Null, |price| price["currency"].clone()),
                other => &fields.get(other).cloned().unwrap_or(Value::Null),
            };
            let truth = truth.as_str().map_or_else(|| truth.to_string(), str::to_owned);
            let agrees = same(&Value::String(truth.clone()), value);
            share.count(agrees, format!("{} {name}: {value}, not {truth}", row["id"]));
        }
    }
    share.reaches(600, 9);
}

fn read_product(url: &str, page: &[u8]) -> Extract {
    let url = CanonicalUrl::parse(url).expect("a URL");
    extract(&fetched(&url, &Headers::default(), page), &product_rule(), &site(&url))
        .expect("within its budget")
}
