//! Selectors, globs and regular expressions, with hints for those who come from other crawlers.

use regex::Regex;
use scraper::error::SelectorErrorKind;

use crate::site::read::Entry;
use crate::site::scope::reason;
use crate::site::{Css, PatternError, UrlPattern};

/// A CSS selector.
pub(super) fn selector(entry: &Entry<'_>) -> Option<Css> {
    let text = entry.text()?;
    match Css::parse(text) {
        Ok(css) => Some(css),
        Err(why) => entry
            .refuse(format!("`{text}` is no CSS selector ({})", selector_reason(&why)), selector_hint(text)),
    }
}

fn selector_hint(text: &str) -> &'static str {
    if text.contains("::attr(") {
        "leave `::attr(…)` out and name the attribute, as in { css = \"img\", attr = \"src\" }"
    } else if text.contains("::text") {
        "leave `::text` out: the element's text is taken unless `attr` or `as` says otherwise"
    } else if text.starts_with(['/', '(']) || text.starts_with("./") {
        "write a CSS selector instead of XPath, as in \"h1\""
    } else {
        "write what a browser's querySelector takes, as in \"article h3 a\""
    }
}

fn selector_reason(why: &SelectorErrorKind) -> String {
    let SelectorErrorKind::UnexpectedSelectorParseError(kind) = why else {
        return match why {
            SelectorErrorKind::EndOfLine => "it ends too early".to_owned(),
            SelectorErrorKind::UnexpectedToken => "a character is out of place".to_owned(),
            other => other.to_string().to_lowercase(),
        };
    };
    // Its name in words: `DanglingCombinator` is a dangling combinator.
    let name = format!("{kind:?}");
    let letters = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().chars();
    let blank = |c: char| Some(' ').filter(|_| c.is_ascii_uppercase());
    let words: String = letters.flat_map(|c| blank(c).into_iter().chain([c.to_ascii_lowercase()])).collect();
    words.trim_start().to_owned()
}

/// A pattern on URLs, compiled by `compile`.
pub(super) fn pattern(
    entry: &Entry<'_>,
    compile: impl FnOnce(&str) -> Result<UrlPattern, PatternError>,
) -> Option<UrlPattern> {
    let text = entry.text()?;
    let why = match compile(text) {
        Ok(pattern) => return Some(pattern),
        Err(error) => error.why,
    };
    if text.starts_with("re:") {
        return bad_regex(entry, text, &why);
    }
    if text.contains("://") {
        return entry.refuse(
            format!("bad pattern `{text}`: it has a scheme and a host"),
            "write path and query alone, as in \"/product/*\"",
        );
    }
    entry.refuse(format!("bad pattern `{text}`"), why)
}

/// A regular expression.
pub(super) fn regex(entry: &Entry<'_>) -> Option<Regex> {
    let text = entry.text()?;
    match Regex::new(text) {
        Ok(regex) => Some(regex),
        Err(why) => bad_regex(entry, text, &reason(&why)),
    }
}

fn bad_regex<T>(entry: &Entry<'_>, text: &str, why: &str) -> Option<T> {
    entry.refuse(
        format!("bad regular expression `{text}` ({why})"),
        "mend it, best in 'single quotes', where a backslash stands for itself",
    )
}
