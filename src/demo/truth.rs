//! What a demo shop sells: each product's true values, computed from the shop's name and the product's number alone.

use crate::canonical_url::fingerprint;
use crate::quantity::grouped;

/// One product as it truly is, against which a crawl's items can be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// 1, 2, … within the shop.
    pub number: u32,
    /// The name; another one for each number.
    pub title: String,
    /// The maker.
    pub brand: String,
    /// The shop's own number for it.
    pub sku: String,
    /// Its GTIN-13, with a valid check digit.
    pub gtin: String,
    /// The price as a decimal string: `"1234.50"`, `"12800"`.
    pub amount: String,
    /// The price's currency.
    pub currency: Currency,
    /// How many are left; zero is out of stock.
    pub stock: u32,
}

/// A currency that a shop sells in, and how it writes its prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Currency {
    /// `£1,234.50`
    #[default]
    Gbp,
    /// `1.234,50 €`
    Eur,
    /// `¥12,800`
    Jpy,
}

impl Currency {
    /// The ISO 4217 code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Gbp => "GBP",
            Self::Eur => "EUR",
            Self::Jpy => "JPY",
        }
    }

    fn amount(self, cents: u32) -> String {
        match self {
            Self::Gbp | Self::Eur => format!("{}.{:02}", cents / 100, cents % 100),
            Self::Jpy => cents.to_string(),
        }
    }

    fn written(self, amount: &str) -> String {
        let (whole, cents) = amount.split_once('.').unwrap_or((amount, ""));
        match self {
            Self::Gbp => format!("£{}.{cents}", grouped(whole, ",")),
            Self::Eur => format!("{},{cents} €", grouped(whole, ".")),
            Self::Jpy => format!("¥{}", grouped(whole, ",")),
        }
    }
}

impl Product {
    /// The product of that number in the shop of that name.
    pub fn of(shop: &str, number: u32, currency: Currency) -> Self {
        let mut draw = fastrand::Rng::with_seed(fingerprint(&format!("{shop}/{number}")).unsigned_abs());
        let title = format!(
            "{} {} No. {number}",
            LOOKS[draw.usize(..LOOKS.len())],
            THINGS[draw.usize(..THINGS.len())]
        );
        let cents = draw.u32(199..=250_000);
        Self {
            number,
            title,
            brand: BRANDS[draw.usize(..BRANDS.len())].to_owned(),
            sku: format!("{}-{number:05}", shop.to_uppercase()),
            gtin: gtin(draw.u64(400_000_000_000..=499_999_999_999)),
            amount: currency.amount(cents),
            currency,
            stock: if draw.u8(0..5) == 0 { 0 } else { draw.u32(1..=40) },
        }
    }

    /// The price as the page shows it.
    pub fn price(&self) -> String {
        self.currency.written(&self.amount)
    }

    /// schema.org's word for whether it can be had.
    pub fn availability(&self) -> &'static str {
        if self.stock > 0 { "InStock" } else { "OutOfStock" }
    }
}

/// Twelve digits and their check digit (GS1 General Specifications, section 7.9).
fn gtin(twelve: u64) -> String {
    let digits = format!("{twelve:012}");
    let sum: u32 =
        digits.bytes().zip([1, 3].into_iter().cycle()).map(|(d, weight)| u32::from(d - b'0') * weight).sum();
    format!("{digits}{}", (10 - sum % 10) % 10)
}

const LOOKS: [&str; 12] = [
    "Folding",
    "Oak",
    "Enamelled",
    "Black & white",
    "Hand-woven",
    "Small",
    "Café",
    "“Nordlys”",
    "Cast-iron",
    "Blue",
    "Linen",
    "Travelling",
];
const THINGS: [&str; 12] = [
    "stool",
    "teapot",
    "desk lamp",
    "salt & pepper mill",
    "blanket",
    "bookshelf",
    "bread knife",
    "mirror",
    "umbrella",
    "wall clock",
    "basket",
    "notebook <A5>",
];
const BRANDS: [&str; 5] = ["Hollow & Pine", "Atelier Brume", "Kanda Works", "Fjord", "Marlowe's"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_and_number_are_the_same_product_and_others_differ() {
        let product = |shop, number| Product::of(shop, number, Currency::Gbp);
        assert_eq!(product("fast", 7), product("fast", 7));
        assert_ne!(product("fast", 7).gtin, product("slow", 7).gtin);
        let mut titles: Vec<String> = (1..=200).map(|n| product("fast", n).title).collect();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), 200);
    }

    #[test]
    fn a_shop_has_things_in_stock_and_things_that_are_not() {
        let gone = (1..=100).filter(|n| Product::of("fast", *n, Currency::Gbp).stock == 0).count();
        assert!((5..=40).contains(&gone), "{gone} of 100 out of stock");
    }

    #[test]
    fn a_price_is_written_in_its_currencys_way() {
        for (currency, cents, amount, written) in [
            (Currency::Gbp, 5_177, "51.77", "£51.77"),
            (Currency::Gbp, 123_405, "1234.05", "£1,234.05"),
            (Currency::Eur, 123_450, "1234.50", "1.234,50 €"),
            (Currency::Eur, 7, "0.07", "0,07 €"),
            (Currency::Jpy, 12_800, "12800", "¥12,800"),
            (Currency::Jpy, 980, "980", "¥980"),
        ] {
            assert_eq!(currency.amount(cents), amount);
            assert_eq!(currency.written(amount), written);
        }
    }

    #[test]
    fn a_gtin_ends_in_its_check_digit() {
        assert_eq!(gtin(400_638_133_393), "4006381333931");
        assert_eq!(gtin(590_123_412_345), "5901234123457");
    }
}
