//! Which currency a price is in, by the code or sign beside its number.

use iso_currency::Currency;
use iso_currency::Currency::{
    AED, AUD, AZN, BAM, BBD, BGN, BOB, BRL, BZD, CAD, CHF, CNY, CRC, CZK, EUR, FJD, GBP, GEL, GHS, GYD, HKD,
    HUF, IDR, ILS, INR, JMD, JPY, KES, KRW, KZT, LAK, MNT, MOP, MXN, MYR, NGN, NZD, PEN, PHP, PLN, PYG, RON,
    RUB, SAR, SGD, THB, TRY, TTD, TWD, TZS, UAH, UGX, USD, UYU, VND, ZAR,
};

/// What stands beside a number and makes it a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// None where several countries share it, as `kr`.
    pub currency: Option<Currency>,
    strength: Strength,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Dollar,
    Symbol,
    Code,
}

/// The code or sign just before or just after a number; a code says more than a sign, and any sign more than `$`.
pub fn beside(before: &str, after: &str) -> Option<Sign> {
    let after = after.trim_start_matches([' ', ',', '.', '-', '–', '*', '/']);
    let (left, right) = (sign_before(before.trim_end()), sign_after(after));
    match (left, right) {
        (Some(left), Some(right)) if right.strength > left.strength => Some(right),
        (left, right) => left.or(right),
    }
}

/// Whether a code or sign begins the text.
pub fn begins(text: &str) -> bool {
    sign_after(text).is_some()
}

/// The one currency whose sign stands anywhere in the text.
pub fn anywhere(text: &str) -> Option<Currency> {
    let shown = GLYPHS.iter().filter(|(_, glyphs)| glyphs.iter().any(|glyph| text.contains(glyph)));
    let mut found = shown.filter_map(|(currency, _)| *currency);
    found.next().filter(|first| found.all(|other| other == *first))
}

/// The currency of an ISO 4217 code in any case, or of a sign alone.
pub fn named(text: &str) -> Option<Currency> {
    let text = text.trim();
    code(text).or_else(|| sign_after(text).and_then(|sign| sign.currency))
}

fn sign_before(text: &str) -> Option<Sign> {
    let word = |text: &str| text.len() - text.trim_end_matches(char::is_alphabetic).len();
    if let Some(front) = text.strip_suffix('$') {
        let front = front.trim_end();
        return Some(dollar(&front[front.len() - word(front)..]));
    }
    let last = &text[text.len() - word(text)..];
    if let Some(currency) = code(last).filter(|c| c.code() == last) {
        return Some(Sign { currency: Some(currency), strength: Strength::Code });
    }
    let parted = |sign: &str| !text[..text.len() - sign.len()].ends_with(char::is_alphabetic);
    let is_word =
        |sign: &str| ends_with_word(text, sign) && (parted(sign) || !sign.starts_with(char::is_alphabetic));
    first(GLYPHS, |sign| text.ends_with(sign)).or_else(|| first(WORDS, is_word))
}

fn sign_after(text: &str) -> Option<Sign> {
    let word = &text[..text.len() - text.trim_start_matches(char::is_alphabetic).len()];
    if let Some(rest) = text[word.len()..].strip_prefix('$') {
        return Some(if word.is_empty() { dollar_then(rest) } else { dollar(word) });
    }
    if let Some(currency) = code(word) {
        return Some(Sign { currency: Some(currency), strength: Strength::Code });
    }
    let is_word = |sign: &str| starts_with_word(text, sign);
    first(GLYPHS, |sign| text.starts_with(sign)).or_else(|| first(WORDS, is_word))
}

/// The first sign of a table that fits.
fn first(table: &[(Option<Currency>, &[&str])], fits: impl Fn(&str) -> bool) -> Option<Sign> {
    let (currency, _) = table.iter().find(|(_, signs)| signs.iter().any(|sign| fits(sign)))?;
    Some(Sign { currency: *currency, strength: Strength::Symbol })
}

fn code(word: &str) -> Option<Currency> {
    let plain = word.len() == 3 && word.bytes().all(|b| b.is_ascii_alphabetic());
    plain.then(|| Currency::from_code(&word.to_ascii_uppercase())).flatten().filter(|c| !c.is_special())
}

/// A dollar sign after the letters that say whose dollar it is.
fn dollar(country: &str) -> Sign {
    let known = DOLLARS.iter().find(|(_, names)| names.contains(&country)).map(|(currency, _)| *currency);
    match known.or_else(|| code(country)) {
        Some(currency) => Sign { currency: Some(currency), strength: Strength::Code },
        None => Sign { currency: Some(USD), strength: Strength::Dollar },
    }
}

fn dollar_then(rest: &str) -> Sign {
    let word = &rest[..rest.len() - rest.trim_start_matches(char::is_alphabetic).len()];
    match word {
        "U" => Sign { currency: Some(UYU), strength: Strength::Symbol },
        "b" => Sign { currency: Some(BOB), strength: Strength::Symbol },
        _ => Sign { currency: Some(USD), strength: Strength::Dollar },
    }
}

fn ends_with_word(text: &str, sign: &str) -> bool {
    let tail = text.char_indices().rev().nth(sign.chars().count() - 1).map_or("", |(at, _)| &text[at..]);
    same(tail, sign)
}

fn starts_with_word(text: &str, sign: &str) -> bool {
    let end = text.char_indices().nth(sign.chars().count()).map_or(text.len(), |(at, _)| at);
    let (head, rest) = text.split_at(end);
    same(head, sign) && (!sign.ends_with(char::is_alphabetic) || !rest.starts_with(char::is_alphabetic))
}

/// Signs of three letters and more are words, written in any case; shorter ones are written one way.
fn same(text: &str, sign: &str) -> bool {
    let is_word = sign.chars().count() > 2;
    let lower = || text.chars().flat_map(char::to_lowercase);
    text == sign || (is_word && lower().eq(sign.chars().flat_map(char::to_lowercase)))
}

const DOLLARS: &[(Currency, &[&str])] = &[
    (USD, &["US", "U"]),
    (AUD, &["AU", "A"]),
    (CAD, &["CA", "C", "CDN"]),
    (NZD, &["NZ"]),
    (HKD, &["HK"]),
    (TWD, &["NT", "TW"]),
    (SGD, &["S", "SG"]),
    (MXN, &["MX"]),
    (BRL, &["R"]),
    (JMD, &["J"]),
    (TTD, &["TT"]),
    (BZD, &["BZ"]),
    (MOP, &["MOP"]),
    (GYD, &["GY"]),
    (BBD, &["Bds"]),
    (FJD, &["FJ"]),
];

/// Signs that need no space around them, the longer before those they hold.
const GLYPHS: &[(Option<Currency>, &[&str])] = &[
    (Some(CNY), &["CN¥", "元"]),
    (Some(EUR), &["€"]),
    (Some(GBP), &["£", "￡"]),
    (Some(JPY), &["¥", "￥", "円"]),
    (Some(INR), &["₹"]),
    (Some(KRW), &["₩", "￦", "원"]),
    (Some(ILS), &["₪"]),
    (Some(VND), &["₫"]),
    (Some(UAH), &["₴"]),
    (Some(TRY), &["₺"]),
    (Some(RUB), &["₽"]),
    (Some(THB), &["฿"]),
    (Some(PHP), &["₱"]),
    (Some(NGN), &["₦"]),
    (Some(CRC), &["₡"]),
    (Some(PYG), &["₲"]),
    (Some(KZT), &["₸"]),
    (Some(AZN), &["₼"]),
    (Some(GEL), &["₾"]),
    (Some(LAK), &["₭"]),
    (Some(MNT), &["₮"]),
    (Some(GHS), &["₵"]),
    (None, &["₨", "﷼"]),
];

const WORDS: &[(Option<Currency>, &[&str])] = &[
    (Some(PLN), &["zł", "Zł", "ZŁ"]),
    (Some(CZK), &["Kč", "kč", "KČ"]),
    (Some(EUR), &["euro", "euros"]),
    (Some(HUF), &["Ft"]),
    (Some(RON), &["lei"]),
    (Some(BGN), &["лв"]),
    (Some(RUB), &["руб", "рублей", "рубль", "рубля", "р.", "р", "Р"]),
    (Some(UAH), &["грн"]),
    (Some(TRY), &["TL"]),
    (Some(IDR), &["Rp"]),
    (Some(MYR), &["RM"]),
    (Some(CNY), &["RMB"]),
    (Some(CHF), &["SFr.", "Fr."]),
    (None, &["FCFA", "CFA", "تومان", "ريال", "درهم", "جنيه", "kr", "Kr", "KR", "Rs", "Rs.", "kr."]),
    (Some(ZAR), &["R"]),
    (Some(BAM), &["KM"]),
    (Some(KES), &["KSh"]),
    (Some(TZS), &["TSh"]),
    (Some(UGX), &["USh"]),
    (Some(PEN), &["S/.", "S/"]),
    (Some(AED), &["د.إ"]),
    (Some(SAR), &["ر.س"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_or_sign_beside_the_number_names_the_currency() {
        for (before, after, currency) in [
            ("£", "", Some(GBP)),
            ("", " €", Some(EUR)),
            ("¥", "", Some(JPY)),
            ("", "円", Some(JPY)),
            ("", ",- Kč", Some(CZK)),
            ("", " руб. (шт)", Some(RUB)),
            ("", "zł", Some(PLN)),
            ("", " LEI", Some(RON)),
            ("$", "", Some(USD)),
            ("$", " AUD", Some(AUD)),
            ("SGD", " $", Some(SGD)),
            ("NZD $", "", Some(NZD)),
            ("R$ ", "", Some(BRL)),
            ("R", "", Some(ZAR)),
            ("Price: US $", "", Some(USD)),
            ("", " MOP$", Some(MOP)),
            ("", " $U", Some(UYU)),
            ("£", " GBP", Some(GBP)),
            ("", " pln", Some(PLN)),
            ("", " kr", None),
            ("", " leisure", None),
            ("for all ", "", None),
            ("", " XXX", None), // "no currency" in ISO 4217
            ("", "", None),
        ] {
            assert_eq!(beside(before, after).and_then(|s| s.currency), currency, "{before}5{after}");
        }
        assert!(beside("", " kr").is_some(), "a shared sign still makes a price");
    }

    #[test]
    fn a_name_alone_may_be_a_code_or_a_sign() {
        for (text, currency) in
            [("EUR", Some(EUR)), (" usd ", Some(USD)), ("€", Some(EUR)), ("R$", Some(BRL)), ("x", None)]
        {
            assert_eq!(named(text), currency, "{text}");
        }
        assert_eq!(anywhere("€ from 5"), Some(EUR));
        assert_eq!(anywhere("€ or £"), None);
    }
}
