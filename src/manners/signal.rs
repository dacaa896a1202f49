//! `Signal`: how a site took a request, read from status and header. What follows from it is done elsewhere.

use std::time::Duration;

use http::StatusCode;
use url::Url;

use super::{location, retry_after};
use crate::clock::Timestamp;
use crate::page::Page;
use crate::site::Pace;
use crate::task::{Failure, short_reason};

/// What an answer means to the page that was asked for, and to the site's pace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// 2xx with a page: here it is.
    Fine,
    /// 304: what is stored is still right.
    NotModified,
    /// 3xx with a `Location`: ask there.
    Redirect(Url),
    /// 5xx, 408, 425, 429: it may work later.
    Retry {
        /// The status in words.
        why: Failure,
        /// The site asks to be left alone for so long: the whole unit is blocked.
        block: Option<(Duration, String)>,
    },
    /// Everything else: asking again is no use.
    Dead(Failure),
}

impl Signal {
    /// Reads an answer that came at `now`. A `Retry-After` counts with 429 and 503, up to the site's `max_retry_after`.
    pub fn of(page: &Page, pace: &Pace, now: Timestamp) -> Self {
        match page.status {
            // Nothing, or a part that wasn't asked for: neither is the page.
            204..=206 => Self::Dead(no_page(page)),
            200..=299 => Self::Fine,
            304 => Self::NotModified,
            300..=399 => redirect(page),
            408 | 425 | 429 | 500..=599 => Self::Retry { why: failure(page), block: block(page, pace, now) },
            _ => Self::Dead(failure(page)),
        }
    }
}

fn redirect(page: &Page) -> Signal {
    let says = in_words(page.status);
    let dead = |reason: String| Signal::Dead(Failure::status(page.status, reason));
    match location(&page.url, &page.headers) {
        Some(Ok(target)) => Signal::Redirect(target),
        Some(Err(text)) => dead(format!("{says} leads to `{text}`, which is no page")),
        None => dead(format!("{says} leads nowhere: it has no Location")),
    }
}

fn failure(page: &Page) -> Failure {
    Failure::status(page.status, in_words(page.status))
}

fn no_page(page: &Page) -> Failure {
    Failure::status(page.status, format!("{} is no whole page", in_words(page.status)))
}

fn block(page: &Page, pace: &Pace, now: Timestamp) -> Option<(Duration, String)> {
    let value = matches!(page.status, 429 | 503).then(|| page.header("retry-after"))??;
    let asked = retry_after(value, now)?;
    let reason = format!("{} with Retry-After: {}", in_words(page.status), value.trim());
    (!asked.is_zero()).then(|| (asked.min(pace.max_retry_after), short_reason(reason)))
}

/// `HTTP 404 Not Found`.
fn in_words(status: u16) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    reason.map_or_else(|| format!("HTTP {status}"), |reason| format!("HTTP {status} {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical_url::CanonicalUrl;
    use crate::page::Headers;

    const NOW: Timestamp = Timestamp::from_millis(784_111_767_000);

    fn signal(status: u16, headers: &[(&str, &str)]) -> Signal {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        let page = Page {
            url: CanonicalUrl::parse("https://shop.example/a").expect("a URL"),
            sent_at: NOW,
            version: http::Version::HTTP_11,
            status,
            headers: Headers(headers.collect()),
            body: bytes::Bytes::new(),
            response: Duration::ZERO,
            remote: None,
        };
        Signal::of(&page, &Pace::default(), NOW)
    }

    fn retry(status: u16, reason: &str, block: Option<(u64, &str)>) -> Signal {
        let block = block.map(|(seconds, why)| (Duration::from_secs(seconds), why.to_owned()));
        Signal::Retry { why: Failure::status(status, reason), block }
    }

    #[test]
    fn a_status_says_what_becomes_of_the_page() {
        for (status, meant) in [
            (200, Signal::Fine),
            (203, Signal::Fine),
            (204, Signal::Dead(Failure::status(204, "HTTP 204 No Content is no whole page"))),
            (206, Signal::Dead(Failure::status(206, "HTTP 206 Partial Content is no whole page"))),
            (304, Signal::NotModified),
            (404, Signal::Dead(Failure::status(404, "HTTP 404 Not Found"))),
            (403, Signal::Dead(Failure::status(403, "HTTP 403 Forbidden"))),
            (499, Signal::Dead(Failure::status(499, "HTTP 499"))),
            (408, retry(408, "HTTP 408 Request Timeout", None)),
            (425, retry(425, "HTTP 425 Too Early", None)),
            (429, retry(429, "HTTP 429 Too Many Requests", None)),
            (500, retry(500, "HTTP 500 Internal Server Error", None)),
            (599, retry(599, "HTTP 599", None)),
        ] {
            assert_eq!(signal(status, &[]), meant);
        }
    }

    #[test]
    fn a_retry_after_blocks_the_unit_with_429_and_503_alone_and_within_bounds() {
        for (status, value, blocked) in [
            (429, "120", Some(120)),
            (503, "Sun, 06 Nov 1994 08:49:37 GMT", Some(10)),
            (503, "9999999", Some(24 * 3600)),
            (503, "0", None),
            (503, "-5", None),
            (503, "soon", None),
            (500, "120", None),
        ] {
            let Signal::Retry { block, .. } = signal(status, &[("retry-after", value)]) else {
                panic!("{status} is no retry");
            };
            assert_eq!(block.map(|(wait, _)| wait.as_secs()), blocked, "{status} {value}");
        }
        let why = "HTTP 429 Too Many Requests with Retry-After: 7";
        assert_eq!(
            signal(429, &[("Retry-After", "7")]),
            retry(429, "HTTP 429 Too Many Requests", Some((7, why)))
        );
    }

    #[test]
    fn a_redirect_needs_a_page_to_lead_to() {
        let target = Url::parse("https://shop.example/b").expect("a URL");
        assert_eq!(signal(302, &[("location", "/b")]), Signal::Redirect(target));
        for headers in [&[][..], &[("location", "mailto:a@b.example")]] {
            assert!(matches!(signal(301, headers), Signal::Dead(_)));
        }
    }
}
