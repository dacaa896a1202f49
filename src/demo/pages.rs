//! The HTML of a demo shop's pages. What they say is `truth`'s, where they are is `shop`'s.

use std::fmt::Write;

use serde_json::json;

use super::truth::Product;

/// A link's target and its text.
pub(super) struct Link {
    /// Where it leads, as a path.
    pub(super) to: String,
    /// What it says.
    pub(super) says: String,
}

/// A page of links to products, with one to the next listing where there is one, of `size` bytes or a little more.
pub(super) fn listing(shop: &str, products: &[(Link, Product)], next: Option<&str>, size: usize) -> String {
    let mut main = String::new();
    for (link, product) in products {
        let (to, title, price) = (escape(&link.to), escape(&link.says), escape(&product.price()));
        let card = format!(
            "<article class=\"card\"><h2><a href=\"{to}\">{title}</a></h2><p class=\"price\">{price}</p></article>\n"
        );
        main.push_str(&card);
    }
    if let Some(next) = next {
        let _ =
            writeln!(main, "<nav><a class=\"next\" rel=\"next\" href=\"{}\">Next</a></nav>", escape(next));
    }
    document(shop, shop, "", &main, size)
}

/// A product's page, with the same values for people and as JSON-LD, of `size` bytes or a little more.
pub(super) fn product(shop: &str, product: &Product, size: usize) -> String {
    let stock = match product.stock {
        0 => "Out of stock".to_owned(),
        left => format!("In stock ({left} available)"),
    };
    let main = format!(
        "<h1>{title}</h1>\n<p class=\"brand\">{brand}</p>\n<p class=\"price\">{price}</p>\n<p class=\"stock\">{stock}</p>\n",
        title = escape(&product.title),
        brand = escape(&product.brand),
        price = escape(&product.price()),
    );
    let data = format!("<script type=\"application/ld+json\">{}</script>\n", json_ld(product));
    document(shop, &product.title, &data, &main, size)
}

fn json_ld(product: &Product) -> String {
    let data = json!({
        "@context": "https://schema.org",
        "@type": "Product",
        "name": product.title,
        "sku": product.sku,
        "gtin13": product.gtin,
        "brand": { "@type": "Brand", "name": product.brand },
        "image": format!("/image/{}.jpg", product.number),
        "offers": {
            "@type": "Offer",
            "price": product.amount,
            "priceCurrency": product.currency.code(),
            "availability": format!("https://schema.org/{}", product.availability()),
        },
    });
    // A `<` could end the script element.
    data.to_string().replace('<', "\\u003c")
}

fn document(shop: &str, title: &str, head: &str, main: &str, size: usize) -> String {
    let (shop, title) = (escape(shop), escape(title));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n{head}</head>\n\
         <body>\n<header><a href=\"/\">{shop}</a></header>\n<main>\n{main}</main>\n<section class=\"reviews\">\n"
    );
    let end = "</section>\n</body>\n</html>\n";
    for review in REVIEWS.iter().cycle() {
        if page.len() + end.len() >= size {
            break;
        }
        let _ = writeln!(page, "<p class=\"review\">{review}</p>");
    }
    page + end
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const REVIEWS: &[&str] = &[
    "It came in two days, well packed, and has stood in the kitchen since.",
    "Smaller than I had thought from the picture, but as well made as the first one I bought years ago.",
    "The colour is warmer in daylight. My sister wants one too.",
    "One corner was scratched; a new one was sent without a question.",
    "After a month of use there is nothing to complain of, and that is more than I can say of the last one.",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::truth::Currency;

    fn sample() -> Product {
        Product { title: "A & B <c>".to_owned(), stock: 3, ..Product::of("x", 1, Currency::Gbp) }
    }

    #[test]
    fn a_page_reaches_its_size_and_hardly_exceeds_it() {
        for size in [5_000, 30_000] {
            let length = product("x", &sample(), size).len();
            assert!((size..size + 200).contains(&length), "{length} bytes for {size}");
        }
    }

    #[test]
    fn what_a_product_is_called_can_break_neither_the_html_nor_the_script() {
        let page = product("x", &sample(), 0);
        assert!(page.contains("<h1>A &amp; B &lt;c&gt;</h1>"), "{page}");
        assert!(page.contains(r#""name":"A & B \u003cc>""#), "{page}");
        assert!(page.contains("In stock (3 available)"), "{page}");
    }
}
