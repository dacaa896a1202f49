//! Prices, charsets and content codings against public tables.

use paced::extract::price::Price;
use serde_json::Value;

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
    share.reaches(970, 500);
}
