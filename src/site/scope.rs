//! Which URLs belong to a site's crawl: hosts, forbidden paths, depth, and the patterns that say so.

use regex::Regex;

use crate::canonical_url::{CanonicalUrl, Host, StripQuery};

/// The `[scope]` table of a site file.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The hosts of the site.
    pub hosts: Vec<Host>,
    /// What is never asked for.
    pub deny: Vec<UrlPattern>,
    /// How many links away from a seed a page may be.
    pub max_depth: u32,
    /// The most pages of one run.
    pub max_pages: Option<u64>,
    /// Query parameters that don't make a page another one.
    pub strip_query: StripQuery,
}

impl Scope {
    /// `max_depth` where the file names none.
    pub const MAX_DEPTH: u32 = 50;
    /// `strip_query` where the file names none.
    pub const STRIP_QUERY: [&'static str; 3] = ["utm_*", "gclid", "fbclid"];

    /// Whether the URL is on a host of the site and nothing denies it.
    pub fn covers(&self, url: &CanonicalUrl) -> bool {
        self.owns(url) && !self.deny.iter().any(|pattern| pattern.matches(url))
    }

    /// Whether the URL is on a host of the site.
    pub fn owns(&self, url: &CanonicalUrl) -> bool {
        self.hosts.contains(&url.host())
    }
}

/// Any run of characters, and one without `/` and `?`: path and query are ASCII, and to say so makes an automaton a fraction as large.
const ANY: &str = r"[\x00-\x7F]*";
const ANY_IN_A_SEGMENT: &str = r"[\x00-\x7F&&[^/?]]*";

/// A pattern on path and query, as written in a site file.
///
/// A glob is anchored at both ends: `*` stands for any run of characters but `/` and `?`, `**` for any run at all,
/// everything else for itself. After `re:` comes a regular expression, found anywhere in path and query.
#[derive(Clone, Debug)]
pub struct UrlPattern {
    text: String,
    regex: Regex,
}

/// Why a pattern can't be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("bad pattern `{pattern}`: {why}")]
pub struct PatternError {
    /// The pattern as written.
    pub pattern: String,
    /// What is wrong with it.
    pub why: String,
}

impl UrlPattern {
    /// A pattern that must fit the whole of path and query.
    pub fn whole(text: &str) -> Result<Self, PatternError> {
        Self::compile(text, r"\z")
    }

    /// A pattern that also covers everything below what it fits: `/cart` takes `/cart/1` and `/cart?x`, not `/cartoon`.
    pub fn and_below(text: &str) -> Result<Self, PatternError> {
        Self::compile(text, if text.ends_with('/') { "" } else { r"(?:[/?]|\z)" })
    }

    fn compile(text: &str, end: &str) -> Result<Self, PatternError> {
        let bad = |why: String| PatternError { pattern: text.to_owned(), why };
        let pattern = match text.strip_prefix("re:") {
            Some(regex) => regex.to_owned(),
            None if fits_nothing(text) => {
                return Err(
                    bad("it fits nothing, as `*` stops at `/`: begin it with `**` or `/`".to_owned()),
                );
            }
            None if text.starts_with(['/', '*']) => format!(r"\A{}{end}", glob_to_regex(text)),
            None => return Err(bad("start it with `/`, or with `re:` for a regular expression".to_owned())),
        };
        let regex = Regex::new(&pattern).map_err(|e| bad(reason(&e)))?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// Whether the URL's path and query fit.
    pub fn matches(&self, url: &CanonicalUrl) -> bool {
        self.regex.is_match(path_and_query(url))
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn path_and_query(url: &CanonicalUrl) -> &str {
    &url.as_str()[url.url()[..url::Position::BeforePath].len()..]
}

/// Every path begins with `/`, where a `*` is at its end.
fn fits_nothing(glob: &str) -> bool {
    glob.strip_prefix('*').is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '*']))
}

fn glob_to_regex(glob: &str) -> String {
    let literal = |text| regex::escape(&as_stored(text));
    let parts = glob.split("**").map(|part| part.split('*').map(literal).collect::<Vec<_>>());
    parts.map(|texts| texts.join(ANY_IN_A_SEGMENT)).collect::<Vec<_>>().join(ANY)
}

/// The text as URLs spell it: what isn't ASCII, and spaces, percent-encoded (WHATWG URL, path percent-encode set).
fn as_stored(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii() && byte != b' ';
    let spelled = |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(spelled).collect()
}

/// Why a regular expression doesn't compile, in one line.
pub(super) fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or(&text).trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> CanonicalUrl {
        CanonicalUrl::parse(&format!("https://shop.example{path}")).expect("a URL")
    }

    #[test]
    fn a_glob_fits_path_and_query_from_end_to_end() {
        for (glob, path, fits) in [
            ("/", "/", true),
            ("/", "/a", false),
            ("/p/*", "/p/1", true),
            ("/p/*", "/p/1/2", false),
            ("/p/*", "/p/1?x=1", false),
            ("/p/**", "/p/1/2?x=1", true),
            ("/list?page=*", "/list?page=3", true),
            ("/list?page=*", "/listXpage=3", false),
            ("/c/page-*.html", "/c/page-12.html", true),
            ("/本/*", "/本/1", true),
            ("/本/*", "/%E6%9C%AC/1", true),
            ("/a b/*", "/a b/1", true),
            (r"re:^/item/\d+$", "/item/12", true),
            (r"re:^/item/\d+$", "/item/x", false),
        ] {
            let pattern = UrlPattern::whole(glob).expect("a pattern");
            assert_eq!(pattern.matches(&url(path)), fits, "{glob} on {path}");
        }
    }

    #[test]
    fn deny_covers_what_lies_below() {
        for (glob, path, fits) in [
            ("/cart", "/cart", true),
            ("/cart", "/cart/1", true),
            ("/cart", "/cart?x=1", true),
            ("/cart", "/cartoon", false),
            ("/my/", "/my/orders", true),
        ] {
            let pattern = UrlPattern::and_below(glob).expect("a pattern");
            assert_eq!(pattern.matches(&url(path)), fits, "{glob} on {path}");
        }
    }

    #[test]
    fn a_pattern_without_a_slash_is_refused() {
        assert!(UrlPattern::whole("cart").is_err());
        assert!(UrlPattern::whole("*.pdf").is_err(), "it would fit nothing");
        assert!(["**.pdf", "*/cart", "*"].iter().all(|glob| UrlPattern::and_below(glob).is_ok()));
        assert!(UrlPattern::whole("re:(").is_err());
    }
}
