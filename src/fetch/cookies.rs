//! The cookies of a site: as many as a browser keeps, so that a site that sets new ones with every page fills nothing.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use reqwest::cookie::{CookieStore, Jar};
use reqwest::header::HeaderValue;
use url::Url;

/// Names kept of a site: what Chrome keeps of a domain; RFC 6265 section 6.1 asks for 50 at least.
const MOST: usize = 180;
/// Bytes of one, attributes included (RFC 6265 section 6.1).
const LONGEST: usize = 4096;

/// A site's cookies.
#[derive(Debug, Default)]
pub struct Cookies {
    jar: Jar,
    names: Mutex<HashSet<Vec<u8>>>,
}

impl Cookies {
    /// What goes with a request.
    pub fn of(&self, url: &Url) -> Option<HeaderValue> {
        self.jar.cookies(url)
    }

    /// Takes what an answer sets. Past the limit, names that are there may still change; new ones are not taken.
    pub fn take<'a>(&self, set: impl Iterator<Item = &'a HeaderValue>, url: &Url) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = set.filter(|field| {
            let bytes = field.as_bytes();
            let name = bytes.split(|byte| *byte == b'=').next().unwrap_or_default();
            let fits = bytes.len() <= LONGEST;
            fits && (names.contains(name) || (names.len() < MOST && names.insert(name.to_vec())))
        });
        self.jar.set_cookies(&mut taken, url);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_ten_thousand_cookies_no_more_are_kept_than_a_browser_would() {
        let (cookies, url) = (Cookies::default(), Url::parse("http://shop.example/").expect("a URL"));
        for n in 0..10_000 {
            let field = HeaderValue::try_from(format!("c{n}={n}")).expect("a field");
            cookies.take([&field].into_iter(), &url);
        }
        let changed = HeaderValue::from_static("c0=changed");
        let long = HeaderValue::try_from(format!("c1={}", "a".repeat(5000))).expect("a field");
        cookies.take([&changed, &long].into_iter(), &url);
        let sent = cookies.of(&url).expect("cookies");
        let sent = sent.to_str().expect("text");
        let sent: HashSet<&str> = sent.split("; ").collect();
        assert_eq!(sent.len(), MOST);
        assert!(sent.contains("c0=changed") && sent.contains("c1=1"), "{sent:?}");
    }
}
