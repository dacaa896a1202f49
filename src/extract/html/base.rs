//! How the addresses on a page are read: against its `<base>`, in its encoding.

use encoding_rs::Encoding;
use html5ever::local_name;
use scraper::Html;
use url::Url;

use super::tree::named;
use crate::canonical_url::reference;

/// What a page's relative URLs start from (WHATWG HTML section 2.4.2).
#[derive(Clone, Debug)]
pub struct Base {
    url: Url,
    encoding: &'static Encoding,
}

impl Base {
    /// The page's `<base href>`, or else its own URL.
    pub fn of(html: &Html, page: &Url, encoding: &'static Encoding) -> Self {
        let own = Self { url: page.clone(), encoding };
        let named = named(html, local_name!("base")).find_map(|base| base.attr("href"));
        let named = named.and_then(|href| own.resolve(href));
        Self { url: named.unwrap_or(own.url), encoding }
    }

    /// The `http` or `https` URL that `href` means here. Its query is written in the page's encoding, as browsers do.
    pub fn resolve(&self, href: &str) -> Option<Url> {
        let url = Url::options()
            .base_url(Some(&self.url))
            .encoding_override(Some(&|query| self.encoding.encode(query).0))
            .parse(&reference(href))
            .ok()?;
        (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
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
            Base::of(&Tree::parse(html).html, &page, encoding).resolve(href).map(String::from)
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
        ] {
            assert_eq!(resolved(html, encoding, href).as_deref(), url, "{href} with {html}");
        }
    }
}
