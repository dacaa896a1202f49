//! From an answer to the record of a `robots.txt` that every process shares. Redirects are the caller's matter.

use std::time::Duration;

use super::lines::at_most;
use super::pattern::push_encoded;
use super::{AGENT, MAX_BYTES, RobotsRules};
use crate::page::Headers;
use crate::quantity::spoken;
use crate::site::Pace;
use crate::task::{RobotsAccess, RobotsRecord};

/// How long an answer holds where it doesn't say; it is never used for longer (RFC 9309 section 2.4).
pub const HOLDS: Duration = Duration::from_hours(24);
/// The least that an answer holds, however short-lived it calls itself: each asking costs a start.
pub const HOLDS_AT_LEAST: Duration = Duration::from_hours(1);
/// How long the first unreachable record holds; each further one in a row twice as long.
pub const UNREACHABLE: Duration = Duration::from_secs(30);
/// The longest that an unreachable record holds.
pub const UNREACHABLE_AT_MOST: Duration = Duration::from_hours(6);

/// What came before an unreachable `robots.txt`, and chance.
#[derive(Clone, Copy, Debug)]
pub struct UnreachableRow {
    /// Unreachable records of this host before this one, in a row.
    pub failures: u32,
    /// From 0 to 1, so that many hosts of one broken network aren't asked in step.
    pub random: f64,
}

/// The record of an answer that isn't followed elsewhere (RFC 9309 section 2.3.1). `body` is decompressed.
///
/// 2xx brings rules; 4xx says that there are none; 429, 5xx and what means nothing here is unreachable.
pub fn record_of(
    status: u16,
    headers: &Headers,
    body: &[u8],
    pace: &Pace,
    row: UnreachableRow,
) -> RobotsRecord {
    match status {
        200..=299 => rules(headers, body, pace),
        429 => unreachable(&format!("HTTP {status}"), row),
        400..=499 => without_rules(RobotsAccess::Absent, holds_for(headers)),
        _ => unreachable(&format!("HTTP {status}"), row),
    }
}

/// The record of a `robots.txt` that could not be had, and why. Nothing but itself may be asked for meanwhile.
pub fn unreachable(why: &str, row: UnreachableRow) -> RobotsRecord {
    let doubled = UNREACHABLE.saturating_mul(2_u32.saturating_pow(row.failures)).min(UNREACHABLE_AT_MOST);
    let spread = doubled.mul_f64(0.75 + 0.25 * row.random.clamp(0.0, 1.0));
    without_rules(RobotsAccess::Unreachable(why.to_owned()), spread)
}

/// The rules that a record stands for.
pub fn rules_of(access: &RobotsAccess) -> RobotsRules {
    match access {
        RobotsAccess::Rules(text) => RobotsRules::parse_whole(text.as_bytes(), AGENT),
        RobotsAccess::Absent => RobotsRules::allow_all(),
        RobotsAccess::Unreachable(_) => RobotsRules::forbid_all(),
    }
}

fn rules(headers: &Headers, body: &[u8], pace: &Pace) -> RobotsRecord {
    let text = as_text(at_most(body, MAX_BYTES));
    let crawl_delay = RobotsRules::parse_whole(text.as_bytes(), AGENT).crawl_delay();
    let refuses = crawl_delay.filter(|delay| *delay > pace.max_crawl_delay).map(|delay| {
        let (asked, most) = (spoken(delay), spoken(pace.max_crawl_delay));
        format!("robots.txt asks for {asked} between requests, more than max_crawl_delay = {most}")
    });
    let holds_for = holds_for(headers);
    // Who is refused is blocked until the record ends, and asked again then: nonsense, or a slip that is mended, is to keep a site
    // away for no longer.
    let crawl_delay = crawl_delay.map(|delay| delay.min(pace.max_crawl_delay));
    RobotsRecord { access: RobotsAccess::Rules(text), holds_for, crawl_delay, refuses }
}

fn without_rules(access: RobotsAccess, holds_for: Duration) -> RobotsRecord {
    RobotsRecord { access, holds_for, crawl_delay: None, refuses: None }
}

/// What `Cache-Control: max-age` says, within reason.
fn holds_for(headers: &Headers) -> Duration {
    let directives = headers.all("cache-control").flat_map(|value| value.split(','));
    let max_age = directives.filter_map(|directive| {
        let (name, seconds) = directive.split_once('=')?;
        name.trim().eq_ignore_ascii_case("max-age").then(|| seconds.trim().trim_matches('"').parse().ok())?
    });
    max_age.map(Duration::from_secs).next().map_or(HOLDS, |age| age.clamp(HOLDS_AT_LEAST, HOLDS))
}

/// The text; octets that are no UTF-8 are percent-encoded, which is how paths are compared anyway.
fn as_text(body: &[u8]) -> String {
    let mut text = String::with_capacity(body.len());
    for chunk in body.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|octet| push_encoded(&mut text, *octet));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: UnreachableRow = UnreachableRow { failures: 0, random: 1.0 };

    fn headers(cache_control: &str) -> Headers {
        Headers(vec![("cache-control".to_owned(), cache_control.as_bytes().to_vec())])
    }

    fn record(status: u16, body: &[u8]) -> RobotsRecord {
        record_of(status, &Headers::default(), body, &Pace::default(), FIRST)
    }

    #[test]
    fn a_status_says_whether_there_are_rules() {
        for status in (400..=419).filter(|status| *status != 429) {
            assert_eq!(record(status, b"").access, RobotsAccess::Absent, "{status}");
        }
        for status in [429, 500, 503, 304, 100] {
            assert!(matches!(record(status, b"").access, RobotsAccess::Unreachable(_)), "{status}");
        }
        assert_eq!(record(200, b"Allow: /").access, RobotsAccess::Rules("Allow: /".to_owned()));
    }

    #[test]
    fn an_answer_holds_a_day_at_most_and_an_hour_at_least() {
        for (cache_control, seconds) in [
            ("no-store", 24 * 3600),
            ("public, max-age=7200", 7200),
            ("Max-Age=\"7200\"", 7200),
            ("max-age=0", 3600),
            ("max-age=999999999", 24 * 3600),
            ("max-age=-5", 24 * 3600),
        ] {
            let record = record_of(200, &headers(cache_control), b"", &Pace::default(), FIRST);
            assert_eq!(record.holds_for, Duration::from_secs(seconds), "{cache_control}");
        }
    }

    #[test]
    fn an_unreachable_file_is_asked_for_again_ever_later_up_to_six_hours() {
        let holds =
            |failures, random| unreachable("down", UnreachableRow { failures, random }).holds_for.as_secs();
        assert_eq!(
            [0, 1, 2, 6, 7, 40].map(|failures| holds(failures, 1.0)),
            [30, 60, 120, 1920, 3840, 21600]
        );
        assert_eq!(holds(2, 0.0), 90);
    }

    #[test]
    fn a_crawl_delay_above_the_sites_bound_refuses_with_both_figures() {
        let text = b"User-agent: *\nCrawl-delay: 60";
        let refused = record(200, text);
        assert_eq!(refused.crawl_delay, Some(Duration::from_secs(30)), "the block does the rest");
        let reason = "robots.txt asks for 1 min between requests, more than max_crawl_delay = 30 s";
        assert_eq!(refused.refuses.as_deref(), Some(reason));
        assert_eq!(record(200, b"User-agent: *\nCrawl-delay: 30").refuses, None);
        let endless = record(200, b"User-agent: *\nCrawl-delay: 100000000000000000");
        assert_eq!((endless.crawl_delay, endless.refuses.is_some()), (refused.crawl_delay, true));
        let huge = record(200, b"User-agent: *\nCrawl-delay: 1e308");
        assert_eq!((huge.crawl_delay, huge.refuses.is_some()), (refused.crawl_delay, true));
    }

    #[test]
    fn a_file_in_latin_1_keeps_its_meaning() {
        let record = record(200, b"User-agent: *\nDisallow: /caf\xe9");
        let url = url::Url::parse("https://shop.example/caf%E9").expect("a URL");
        assert!(!rules_of(&record.access).allows(&url));
    }
    #[test]
    fn a_mark_before_latin_1_is_still_a_mark_and_what_grows_is_not_cut_again() {
        let url = |path: &str| url::Url::parse(&format!("https://shop.example{path}")).expect("a URL");
        let marked = record(200, b"\xef\xbb\xbfUser-agent: *\nDisallow: /caf\xe9\nCrawl-delay: 3");
        assert_eq!(marked.crawl_delay, Some(Duration::from_secs(3)));
        assert!(!rules_of(&marked.access).allows(&url("/caf%E9")));
        let mut text = b"User-agent: *\n# ".to_vec();
        text.resize(MAX_BYTES - 20, 0xe9);
        text.extend_from_slice(b"\nDisallow: /shop");
        assert!(!rules_of(&record(200, &text).access).allows(&url("/shop")));
    }
}
