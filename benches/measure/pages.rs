//! Pages of a shop as shops have them: about 500 elements on 30 KB, menus, a table, cards of other products, words that differ
//! from page to page.

use std::fmt::Write;

/// A shop with `/`, `/page/N` and `/product/N`.
#[derive(Clone, Debug)]
pub struct Shop {
    pub name: String,
    pub products: u32,
    /// The size of a product's page, in bytes.
    pub bytes: usize,
}

const PER_PAGE: u32 = 20;

impl Shop {
    pub fn listings(&self) -> u32 {
        self.products.div_ceil(PER_PAGE).max(1)
    }

    /// The paths of all its pages.
    pub fn paths(&self) -> Vec<String> {
        let listings = (2..=self.listings()).map(|n| format!("/page/{n}"));
        let products = (1..=self.products).map(|n| format!("/product/{n}"));
        std::iter::once("/".to_owned()).chain(listings).chain(products).collect()
    }

    /// What is at a path.
    pub fn page(&self, path: &str) -> Option<String> {
        let (listing, product) = (path.strip_prefix("/page/"), path.strip_prefix("/product/"));
        let number = |text: Option<&str>, most: u32| text?.parse().ok().filter(|n| (1..=most).contains(n));
        if let Some(product) = number(product, self.products) {
            return Some(self.product(product));
        }
        let listing = if path == "/" { Some(1) } else { number(listing, self.listings()) };
        listing.map(|n| self.listing(n))
    }

    /// The fields of a product: title, price, stock, brand.
    pub fn truth(&self, number: u32) -> [String; 4] {
        let mut chance = self.chance(number);
        let title = sentence(&mut chance, 5);
        let price = format!("£{}.{:02}", chance.u32(1..900), chance.u32(0..100));
        [title, price, format!("In stock ({} available)", chance.u32(1..90)), sentence(&mut chance, 1)]
    }

    fn chance(&self, number: u32) -> fastrand::Rng {
        let seed = self.name.bytes().fold(u64::from(number), |seed, byte| seed * 31 + u64::from(byte));
        fastrand::Rng::with_seed(seed)
    }

    fn product(&self, number: u32) -> String {
        let [title, price, stock, brand] = self.truth(number);
        let mut chance = self.chance(number + 1_000_000);
        let mut page = self.beginning(&title, &mut chance);
        let _ = write!(
            page,
            "<main id=\"content\" class=\"page product-page\"><article class=\"product\" data-id=\"{number}\"><div \
             class=\"gallery\"><img src=\"/media/{number}-1.jpg\" alt=\"{title}\" width=\"600\" height=\"600\"></div>\n\
             <h1 class=\"title\">{title}</h1>\n<p class=\"brand\">{brand}</p><p class=\"price\">{price}</p><p \
             class=\"stock available\">{stock}</p>\n<table class=\"facts\">"
        );
        for _ in 0..10 {
            let (name, value) = (sentence(&mut chance, 2), sentence(&mut chance, 3));
            let _ = writeln!(page, "<tr class=\"fact\"><th scope=\"row\">{name}</th><td>{value}</td></tr>");
        }
        page.push_str("</table></article><section class=\"related\"><h2>Others also bought</h2><ul>\n");
        for _ in 0..12 {
            self.card(&mut page, chance.u32(1..=self.products));
        }
        page.push_str("</ul></section><section class=\"reviews\"><h2>Reviews</h2>\n");
        while page.len() + 2_000 < self.bytes {
            let (stars, words) = (chance.u8(1..=5), chance.usize(20..50));
            let (who, says) = (sentence(&mut chance, 2), sentence(&mut chance, words));
            let _ = writeln!(
                page,
                "<div class=\"review\"><span class=\"stars stars-{stars}\" title=\"{stars} of 5\"></span><b>{who}</b>\
                 <p class=\"review-text\">{says}</p></div>"
            );
        }
        page.push_str("</section></main>");
        end(page)
    }

    fn listing(&self, n: u32) -> String {
        let mut chance = self.chance(n + 2_000_000);
        let mut page = self.beginning(&format!("{}, page {n}", self.name), &mut chance);
        page.push_str(
            "<main id=\"content\" class=\"page listing-page\"><h1>All products</h1><ul class=\"products\">\n",
        );
        let first = (n - 1) * PER_PAGE + 1;
        for number in first..(first + PER_PAGE).min(self.products + 1) {
            self.card(&mut page, number);
        }
        page.push_str("</ul>");
        if n < self.listings() {
            let _ =
                write!(page, "<nav><a class=\"next\" rel=\"next\" href=\"/page/{}\">Next</a></nav>", n + 1);
        }
        page.push_str("</main>");
        end(page)
    }

    fn card(&self, page: &mut String, number: u32) {
        let [title, price, ..] = self.truth(number);
        let _ = writeln!(
            page,
            "<li class=\"card grid-item\"><a class=\"card-link\" href=\"/product/{number}\"><img class=\"thumb lazy\" \
             src=\"/media/{number}-t.jpg\" alt=\"{title}\"><span class=\"card-title\">{title}</span></a><span \
             class=\"card-price\">{price}</span><button type=\"button\" class=\"btn btn-cart\" data-id=\"{number}\">Add to \
             cart</button></li>"
        );
    }

    fn beginning(&self, title: &str, chance: &mut fastrand::Rng) -> String {
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<meta \
             name=\"viewport\" content=\"width=device-width, initial-scale=1\"><link rel=\"stylesheet\" \
             href=\"/static/css/main.css?v=831\">\n<script>window.dataLayer = window.dataLayer || [];</script></head>\n\
             <body class=\"no-js\"><header class=\"site-header\"><a class=\"logo\" href=\"/\">{}</a>\n<nav><ul>",
            self.name
        );
        for entry in 0..45 {
            let words = sentence(chance, 2);
            let _ = writeln!(
                page,
                "<li class=\"menu-item level-{}\"><a href=\"/c/{entry}\">{words}</a></li>",
                entry % 3
            );
        }
        page.push_str("</ul></nav></header>");
        page
    }
}

fn end(mut page: String) -> String {
    page.push_str("<footer class=\"site-footer\"><ul>");
    for entry in 0..20 {
        let _ = write!(page, "<li><a href=\"/about/{entry}\" rel=\"nofollow\">About us {entry}</a></li>");
    }
    page.push_str("</ul><p>&copy; 2026 the shop. All prices with tax.</p></footer></body></html>\n");
    page
}

fn sentence(chance: &mut fastrand::Rng, words: usize) -> String {
    let mut text = String::new();
    for word in 0..words {
        if word > 0 {
            text.push(' ');
        }
        // Short words are common, long ones rare.
        for _ in 0..chance.usize(1..=chance.clone().usize(1..=4)) {
            text.push_str(SYLLABLES[chance.usize(..SYLLABLES.len())]);
        }
    }
    text
}

const SYLLABLES: &[&str] = &[
    "an", "ber", "ca", "de", "el", "for", "ge", "hu", "in", "ja", "ker", "lo", "ma", "ne", "or", "pa", "qui",
    "ro", "sen", "ta", "un", "ver", "wi", "xa", "yo", "zu", "chi", "tion", "est", "ing",
];
