//! How the addresses on a page are read: against its `<base>`, in its encoding.

use encoding_rs::Encoding;
use html5ever::local_name;
use url::Url;

use super::tree::Tree;
use crate::budget::Budget;
use crate::canonical_url::{MOST_BYTES, reference};

/// What a page's relative URLs start from (WHATWG HTML section 2.4.2).
#[derive(Clone, Debug)]
pub struct Base {
    url: Url,
    encoding: &'static Encoding,
    budget: Budget,
}

impl Base {
    /// The page's `<base href>`, or else its own URL, also where the base is longer than a URL may be.
    pub fn of(tree: &Tree, page: &Url, encoding: &'static Encoding) -> Self {
        let own = Self { url: page.clone(), encoding, budget: tree.budget.clone() };
        let named = tree.named(local_name!("base")).find_map(|base| base.attr("href"));
        let named = named.and_then(|href| own.resolve(href));
        Self { url: named.unwrap_or(own.url), ..own }
    }

    /// The `http` or `https` URL that `href` means here, unless it is longer than a URL may be. Its query is written in the page's
    /// encoding, as browsers do.
    pub fn resolve(&self, href: &str) -> Option<Url> {
        // A letter costs about a step, as each is looked at.
        if href.len() > MOST_BYTES || !self.budget.pays(href.len() + self.url.as_str().len()) {
            return None;
        }
        let url = Url::options()
            .base_url(Some(&self.url))
            .encoding_override(Some(&|query| self.encoding.encode(query).0))
            .parse(&reference(href))
            .ok()?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        (is_web && url.as_str().len() <= MOST_BYTES).then_some(url)
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{SHIFT_JIS, UTF_8};

    use super::super::Tree;
    use super::*;

    #[test]
    fn an_address_is_read_against_the_base_in_the_pages_encoding() {
        let resolved = |html: &str, encoding, href: &str| {
            let page = Url::parse("https://shop.example/a/b?c").expect("a URL");
            Base::of(&Tree::parse(html, &Budget::without_end()), &page, encoding)
                .resolve(href)
                .map(String::from)
        };
        for (html, encoding, href, url) in [
            ("", UTF_8, "x", Some("https://shop.example/a/x")),
            ("", UTF_8, " //cdn.example/x\n", Some("https://cdn.example/x")),
            ("", UTF_8, "///cdn.example/x", Some("https://cdn.example/x")),
            ("", UTF_8, "?q=é", Some("https://shop.example/a/b?q=%C3%A9")),
            ("", SHIFT_JIS, "/é?q=本", Some("https://shop.example/%C3%A9?q=%96{")),
            ("<base href='/z/'><base href='/y/'>", UTF_8, "x", Some("https://shop.example/z/x")),
            ("<base href='mailto:a@b'>", UTF_8, "x", Some("https://shop.example/a/x")),
            ("", UTF_8, "javascript:void(0)", None),
            ("", UTF_8, "mailto:a@b.example", None),
            ("", UTF_8, "data:text/html,x", None),
            ("", UTF_8, "http://", None),
            ("", UTF_8, &format!("/{}", "x".repeat(8_192)), None),
            ("", UTF_8, &"é".repeat(3_000), None),
            (&format!("<base href='/{}/'>", "x".repeat(9_000)), UTF_8, "x", Some("https://shop.example/a/x")),
        ] {
            assert_eq!(resolved(html, encoding, href).as_deref(), url, "{href} with {html}");
        }
    }
}
