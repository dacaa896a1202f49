//! A text as the URL of a page: stored once, it is spelled the same ever after.

use paced::internals::canonical_url::{CanonicalUrl, Host, StripQuery};

use super::cost::Linear;

/// A byte that is no UTF-8 is read as a sign of three, each of which is written as three. A letter of three bytes in a host may
/// stand for eighteen, which Punycode writes in up to twice as many bytes.
pub const SPELLED: Linear = Linear { least: 64, each: 16 };

/// A canonical URL is one again, unchanged, with or without parameters taken out, and its host is one too; none of them is
/// longer than the text allows.
pub fn hold(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(url) = CanonicalUrl::parse(&text) else { return };
    SPELLED.holds(url.as_str().len(), bytes.len(), "bytes of a URL");
    same_again(&url);
    let strip = StripQuery::new(["utm_*", "*id", "a*b*c"].map(str::to_owned).to_vec());
    let stripped = url.clone().stripped(&strip);
    assert_eq!(stripped.clone().stripped(&strip), stripped, "{text:?}");
    assert!(stripped.as_str().len() <= url.as_str().len(), "{stripped} is longer than {url}");
    same_again(&stripped);
}

/// Panics where the URL isn't spelled the same when it is read again, or its host isn't.
pub fn same_again(url: &CanonicalUrl) {
    let again = CanonicalUrl::parse(url.as_str());
    assert_eq!(again.as_ref().map(CanonicalUrl::as_str), Ok(url.as_str()));
    assert_eq!(again.as_ref(), Ok(url), "the same text means something else");
    let inner = url.url();
    assert!(matches!(inner.scheme(), "http" | "https") && inner.has_host(), "{url}");
    assert!(inner.fragment().is_none() && inner.username().is_empty() && inner.password().is_none(), "{url}");
    assert_eq!(Host::parse(url.host().as_str()).map(|host| host.to_string()), Ok(host_as_http(url)), "{url}");
    let robots = url.robots_txt();
    assert_eq!(CanonicalUrl::parse(robots.as_str()), Ok(robots.clone()), "{url}");
    assert_eq!(robots.origin(), url.origin(), "{url}");
}

/// A host read by itself is one of `http`, whose own port is 80.
fn host_as_http(url: &CanonicalUrl) -> String {
    let host = url.host().to_string();
    host.strip_suffix(":80").map(str::to_owned).unwrap_or(host)
}
