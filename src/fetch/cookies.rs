//! The cookies of a site: as many as a browser keeps, so that a site that sets new ones with every page fills nothing.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use reqwest::cookie::{CookieStore, Jar};
use reqwest::header::HeaderValue;
use url::Url;

/// Cookies kept of a site: what Chrome keeps of a domain; RFC 6265 section 6.1 asks for 50 at least.
const MOST: usize = 180;
/// Bytes of one, attributes included (RFC 6265 section 6.1).
const LONGEST: usize = 4096;

/// A site's cookies.
#[derive(Debug, Default)]
pub struct Cookies {
    jar: Jar,
    /// Name, domain and path of each, as far as the field says them, and where it says no path the folder it came from.
    known: Mutex<HashSet<[Vec<u8>; 3]>>,
}

impl Cookies {
    /// What goes with a request.
    pub fn of(&self, url: &Url) -> Option<HeaderValue> {
        self.jar.cookies(url)
    }

    /// Takes what an answer sets. Past the limit, cookies that are there may still change; new ones are not taken.
    pub fn take<'a>(&self, set: impl Iterator<Item = &'a HeaderValue>, url: &Url) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = set.filter(|field| {
            let fits = field.as_bytes().len() <= LONGEST;
            let cookie = identity(field.as_bytes(), url);
            fits && (known.contains(&cookie) || (known.len() < MOST && known.insert(cookie)))
        });
        self.jar.set_cookies(&mut taken, url);
    }
}

/// What makes two fields the same cookie (RFC 6265 section 5.3, step 11).
fn identity(field: &[u8], url: &Url) -> [Vec<u8>; 3] {
    let mut parts = field.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next().unwrap_or_default().split(|byte| *byte == b'=').next().unwrap_or_default();
    let folder = url.path().rsplit_once('/').map_or("", |(folder, _)| folder);
    let (mut domain, mut path) = (Vec::new(), folder.as_bytes().to_vec());
    for part in parts {
        let mut halves = part.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
        let (attribute, value) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
        match attribute {
            _ if attribute.eq_ignore_ascii_case(b"domain") => domain = value.to_ascii_lowercase(),
            _ if attribute.eq_ignore_ascii_case(b"path") && value.starts_with(b"/") => path = value.to_vec(),
            _ => {}
        }
    }
    [name.to_vec(), domain, path]
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

    #[test]
    fn nor_do_paths_without_end_fill_anything() {
        let cookies = Cookies::default();
        let session = HeaderValue::from_static("sid=1");
        for product in 0..1_000 {
            let url = Url::parse(&format!("http://shop.example/p/{product}/index.html")).expect("a URL");
            let paths = HeaderValue::try_from(format!("a=1; Path=/p/{product}; Secure")).expect("a field");
            cookies.take([&session, &paths].into_iter(), &url);
        }
        let folder = |product: u32| Url::parse(&format!("http://shop.example/p/{product}/x")).expect("a URL");
        let kept = (0..1_000).filter(|product| cookies.of(&folder(*product)).is_some()).count();
        assert_eq!((kept, cookies.known.lock().expect("whole").len()), (MOST / 2, MOST));
    }
}
