//! Where a redirect leads, and how many are followed in a row. Whether one is followed is decided in `work/outcome`.

use url::Url;

use crate::canonical_url::{CanonicalUrl, reference};
use crate::page::Headers;

/// Redirects of a page that are followed one after the other.
pub const MOST_REDIRECTS: u32 = 10;
/// Redirects that a `robots.txt` may take (RFC 9309 section 2.3.1.2).
pub const MOST_ROBOTS_REDIRECTS: u32 = 5;

/// The target of a `Location`, resolved against the URL that was asked for (RFC 9110 section 10.2.2); none where there
/// is no such field. Octets that are no ASCII are percent-encoded one by one, as browsers do. What resolves to no URL is
/// given back as text.
pub fn location(asked: &CanonicalUrl, headers: &Headers) -> Option<Result<Url, String>> {
    let (_, value) = headers.0.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"))?;
    let text = ascii(value.trim_ascii());
    let target = asked.url().join(&reference(&text)).map_err(|_| text.clone());
    Some(target.and_then(|url| if url.has_host() { Ok(url) } else { Err(text) }))
}

fn ascii(value: &[u8]) -> String {
    let encode = |octet: &u8| {
        if octet.is_ascii() { char::from(*octet).to_string() } else { format!("%{octet:02X}") }
    };
    value.iter().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_read_as_octets_and_resolved() {
        let asked = CanonicalUrl::parse("https://shop.example/a/b?c").expect("a URL");
        for (value, target) in [
            (&b"/x"[..], Ok("https://shop.example/x")),
            (b"x?y", Ok("https://shop.example/a/x?y")),
            (b"//other.example/x#y", Ok("https://other.example/x#y")),
            (b"///other.example/x", Ok("https://other.example/x")),
            (b" http://other.example ", Ok("http://other.example/")),
            (b"/caf\xe9", Ok("https://shop.example/caf%E9")),
            ("/café".as_bytes(), Ok("https://shop.example/caf%C3%A9")),
            (b"", Ok("https://shop.example/a/b?c")),
            (b"http://[", Err("http://[")),
            (b"mailto:a@b.example", Err("mailto:a@b.example")),
        ] {
            let headers = Headers(vec![("location".to_owned(), value.to_vec())]);
            let found = location(&asked, &headers).expect("a location");
            assert_eq!(found.map(String::from), target.map(str::to_owned).map_err(str::to_owned));
        }
        assert_eq!(location(&asked, &Headers::default()), None);
    }
}
