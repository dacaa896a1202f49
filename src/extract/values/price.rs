//! Text to a price: `{"amount": "1234.50", "currency": "GBP"}`.

use iso_currency::Currency;
use serde_json::{Value, json};

use super::number::{self, OneMark};
use super::{cents, currency};
use crate::extract::html::text;

/// The price of a text is among its first numbers: each is compared with all signs of money.
const MOST_NUMBERS: usize = 1_000;

/// What something costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// A plain decimal such as `1234.50`: one decimal gets a second, nothing is rounded.
    pub amount: String,
    /// The ISO 4217 currency, where it is certain.
    pub currency: Option<Currency>,
}

impl Price {
    /// Reads a price as people write it. The first number with a currency beside it is taken, else the first number; a
    /// number past the first thousand is none.
    pub fn read(written: &str) -> Option<Self> {
        let text = number::ascii(&text::folded(written));
        let numbers: Vec<_> = number::find_all(&text).take(MOST_NUMBERS).collect();
        let sign = |at: &std::ops::Range<usize>| currency::beside(&text[..at.start], &text[at.end..]);
        let elsewhere = currency::anywhere(&text);
        let read = |at: &std::ops::Range<usize>| {
            let currency = sign(at).and_then(|s| s.currency).or(elsewhere);
            let mut amount = number::decimal(&text[at.clone()], one_mark(currency))?;
            let cents = cents::behind_sign(&text[..at.start], &text[at.end..]);
            if let Some(cents) = cents.filter(|_| !amount.contains('.')) {
                amount = format!("{amount}.{cents}");
            }
            Some(Self::new(amount, currency))
        };
        let priced = numbers.iter().filter(|at| sign(at).is_some()).find_map(read);
        priced.or_else(|| numbers.iter().find_map(read))
    }

    /// Reads a price as machines write it (schema.org `price` and `priceCurrency`): a point is the decimal mark.
    pub fn read_exact(amount: &str, code: Option<&str>) -> Option<Self> {
        let named = code.and_then(currency::named);
        let plain = amount.trim().trim_end_matches('.');
        let is_plain = !plain.is_empty() && plain.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if !is_plain {
            let read = Self::read(amount)?;
            return Some(Self { currency: named.or(read.currency), ..read });
        }
        // A currency without decimals can't have three of them.
        let whole = named.and_then(Currency::exponent) == Some(0);
        let one_mark = if whole { OneMark::Groups } else { OneMark::PointIsDecimal };
        let amount = number::decimal(plain, one_mark)?;
        Some(Self::new(amount, named))
    }

    fn new(mut amount: String, currency: Option<Currency>) -> Self {
        if amount.find('.').is_some_and(|point| point + 2 == amount.len()) {
            amount.push('0');
        }
        Self { amount, currency }
    }

    /// The price as it stands in an item.
    pub fn to_value(&self) -> Value {
        json!({ "amount": self.amount, "currency": self.currency.map(|c| c.code()) })
    }
}

/// Three decimals are likely only where a thousandth is a coin.
fn one_mark(currency: Option<Currency>) -> OneMark {
    if currency.and_then(Currency::exponent) == Some(3) { OneMark::Decimal } else { OneMark::Groups }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(price: Option<Price>) -> Option<String> {
        price.map(|p| format!("{} {}", p.amount, p.currency.map_or("-", |c| c.code())))
    }

    #[test]
    fn a_price_is_read_as_people_write_it() {
        for (text, price) in [
            ("£51.77", Some("51.77 GBP")),
            ("12.800 €", Some("12800 EUR")),
            ("1.234,50 EUR", Some("1234.50 EUR")),
            ("CHF 1'234.50", Some("1234.50 CHF")),
            ("1\u{a0}234,50 zł", Some("1234.50 PLN")),
            ("¥12,800", Some("12800 JPY")),
            ("１２，８００円（税込）", Some("12800 JPY")),
            ("$ 879.0", Some("879.00 USD")),
            ("12.500 KWD", Some("12.500 KWD")),
            ("3 pieces for only 14,85 EUR", Some("14.85 EUR")),
            ("-20% now €5", Some("5 EUR")),
            ("35€ 99", Some("35.99 EUR")),
            ("35€ 99 dont 0,02 € d'éco-part", Some("35.99 EUR")),
            ("12€99 au lieu de 19€99", Some("12.99 EUR")),
            ("1.250 €\u{a0}60", Some("1250.60 EUR")),
            ("12,50 € 10 l'unité", Some("12.50 EUR")),
            ("10 € - 20 €", Some("10 EUR")),
            ("3 € 24h", Some("3 EUR")),
            ("£5 £10", Some("5 GBP")),
            ("$5$10", Some("5 USD")),
            ("1.198,- Kr", Some("1198 -")),
            ("249 kr", Some("249 -")),
            ("1299", Some("1299 -")),
            ("40% OFF", None),
            ("sold out", None),
            ("15.08.2017", None),
            ("", None),
        ] {
            assert_eq!(shown(Price::read(text)).as_deref(), price, "{text}");
        }
    }

    #[test]
    fn a_machines_point_is_a_decimal_mark() {
        for (amount, code, price) in [
            ("1.299", Some("EUR"), Some("1.299 EUR")),
            ("12.990", Some("CLP"), Some("12990 CLP")),
            ("26", None, Some("26 -")),
            ("87.1", Some("usd"), Some("87.10 USD")),
            ("1,234.50", Some("GBP"), Some("1234.50 GBP")),
            ("£26.08", None, Some("26.08 GBP")),
            ("26,08 €", Some("nonsense"), Some("26.08 EUR")),
            ("free", Some("EUR"), None),
            (".", Some("EUR"), None),
        ] {
            assert_eq!(shown(Price::read_exact(amount, code)).as_deref(), price, "{amount} {code:?}");
        }
    }
}
