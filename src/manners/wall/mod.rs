//! Walls: how a site refuses without saying for how long (W1). Pure: an answer in, a mark or none out. What follows from one is
//! decided in `work/outcome` and in the frontier's steps.

mod errors;
mod record;
mod shapes;

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::page::Headers;

pub use errors::ServerErrors;
pub use record::{Met, RulePage, RuleRecord, Suspicion};

/// A vendor's page shows itself within so many bytes.
pub const LOOKED_AT: usize = 64 * 1024;
/// One body is told from another by its length, and by so many bytes of its beginning, its middle and its end.
const SAMPLE: usize = 2 * 1024;
/// A wall is probed for the first time after so long, in ms.
pub const FIRST_PROBE: i64 = 60_000;
/// The longest time between two probes, in ms.
pub const MOST_BETWEEN_PROBES: i64 = 6 * 3_600_000;
/// A wait for a probe is longer by up to one part in so many, so that sites that refused together aren't asked in step. It is
/// never shorter: six probes would fit into the first hour.
pub const SPREAD_PARTS: i64 = 10;

/// An answer as it is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its status.
    pub status: u16,
    /// Its header fields.
    pub headers: &'a Headers,
    /// Its body, decompressed.
    pub body: &'a [u8],
    /// A `Retry-After` says for how long the site is to be left alone: it is a block of just that time, and no wall.
    pub is_block: bool,
}

/// What shows that a site refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// In words.
    pub why: String,
    /// It is a refusal whatever is on the page. Else it is one where the page's rule finds nothing there: shops behind a vendor
    /// send that vendor's scripts, cookies and headers with every page.
    pub is_sure: bool,
}

/// The mark of an answer. One without is what it says, as far as a single answer tells.
pub fn mark(answer: &Answer<'_>) -> Option<Mark> {
    let Answer { status, headers, body, is_block } = *answer;
    if is_block || (300..=399).contains(&status) {
        return None;
    }
    let sure = |why: String| Some(Mark { why, is_sure: true });
    if headers.all("cf-mitigated").any(|value| value.trim().eq_ignore_ascii_case("challenge")) {
        return sure(format!("HTTP {status} with cf-mitigated: challenge"));
    }
    match status {
        429 => return sure("HTTP 429 without a Retry-After".to_owned()),
        430 => return sure("HTTP 430, a shop's own \"too many requests\"".to_owned()),
        999 => return sure("HTTP 999, a site's own \"request denied\"".to_owned()),
        _ => {}
    }
    let whose = shapes::mitigated(headers).or_else(|| shapes::of(&body[..body.len().min(LOOKED_AT)]))?;
    Some(Mark { why: format!("HTTP {status} with a page of {whose} in place of the shop's"), is_sure: false })
}

/// What an answer without a mark is to the record of its page's rule.
pub fn met(status: u16, body: &[u8]) -> Met {
    match status {
        401 | 402 | 403 | 404 | 451 => Met::Refusal(status),
        304 => Met::Unchanged,
        status if may_be_a_page(status) => {
            let mut hasher = DefaultHasher::new();
            body.len().hash(&mut hasher);
            let (long, part) = (body.len(), body.len().min(SAMPLE));
            for from in [0, (long - part) / 2, long - part] {
                body[from..from + part].hash(&mut hasher);
            }
            Met::Page(hasher.finish())
        }
        _ => Met::Other,
    }
}

/// What tells a refusal from a page of the site's own, where it has no mark: its status, or from 1,000 on its body; 0 where that
/// tells nothing.
pub fn looks(status: u16, body: &[u8]) -> u32 {
    const STATUSES: u32 = 1_000;
    match met(status, body) {
        Met::Refusal(status) => status.into(),
        Met::Page(body) => {
            STATUSES + u32::try_from(body % u64::from(u32::MAX - STATUSES)).unwrap_or_default()
        }
        Met::Unchanged | Met::Other => 0,
    }
}

/// Whether the answer to a probe refuses again, where it has no mark: by its status, or as it looks like the wall.
pub fn refuses_again(status: u16, body: &[u8], wall: u32) -> bool {
    matches!(status, 401 | 402 | 403 | 429 | 430 | 451 | 503 | 999)
        || wall != 0 && looks(status, body) == wall
}

/// Whether an answer with a status is a page, on which a rule may find something.
pub fn may_be_a_page(status: u16) -> bool {
    (200..=299).contains(&status) && !matches!(status, 204..=206)
}

/// Whether such a refusal is the site's own matter. One closed shop of a group doesn't wall the others.
pub fn is_of_site(status: u16) -> bool {
    matches!(status, 401 | 402 | 403 | 404 | 451)
}

/// How long after the probe before, or after the wall was found, the next one comes, in ms: doubled with each probe, and longer by
/// up to a tenth, as the dice have it.
pub fn probe_wait(first: i64, probes: u32, dice: u32) -> i64 {
    let doubled = first.saturating_mul(1_i64 << probes.min(30)).min(MOST_BETWEEN_PROBES);
    doubled + doubled * (i64::from(dice) % 1_001) / (1_000 * SPREAD_PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(status: u16, fields: &[(&str, &str)], body: &str) -> Option<bool> {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        let headers = Headers(fields.collect());
        let answer = Answer { status, headers: &headers, body: body.as_bytes(), is_block: false };
        mark(&answer).map(|mark| mark.is_sure)
    }

    #[test]
    fn w1_a_status_of_refusal_and_cloudflare_s_word_are_enough_a_vendor_s_header_is_not() {
        for (status, fields, told) in [
            (430, &[][..], Some(true)),
            (999, &[], Some(true)),
            (429, &[], Some(true)),
            (403, &[("cf-mitigated", "challenge")], Some(true)),
            (200, &[("CF-Mitigated", " Challenge")], Some(true)),
            (405, &[("x-amzn-waf-action", "captcha")], Some(false)),
            (403, &[("server", "cloudflare"), ("cf-ray", "8f"), ("set-cookie", "__cf_bm=x")], None),
            (200, &[("x-datadome", "protected"), ("set-cookie", "datadome=x")], None),
            (404, &[("server", "AkamaiGHost")], None),
            (401, &[], None),
            (503, &[], None),
            (302, &[("location", "https://geo.captcha-delivery.com/")], None),
        ] {
            assert_eq!(found(status, fields, ""), told, "{status} {fields:?}");
        }
    }

    #[test]
    fn w1_a_retry_after_is_a_block_of_just_that_time_and_no_wall() {
        let headers = Headers::default();
        let answer = Answer { status: 429, headers: &headers, body: b"", is_block: true };
        assert_eq!(mark(&answer), None);
    }

    #[test]
    fn w3_a_probe_is_refused_again_by_its_status_or_by_what_the_wall_looks_like() {
        let (gone, captcha) = (looks(404, b""), looks(200, b"are you human?"));
        for (status, body, wall, told) in [
            (403, "", gone, true),
            (404, "other words", gone, true),
            (404, "", captcha, false),
            (200, "are you human?", captcha, true),
            (200, "a page", captcha, false),
            (200, "a page", gone, false),
            (410, "", 0, false),
            (500, "", looks(500, b""), false),
        ] {
            assert_eq!(refuses_again(status, body.as_bytes(), wall), told, "{status} {body} {wall}");
        }
    }

    #[test]
    fn w3_probes_double_to_six_hours_and_five_at_most_fit_into_the_first_hour() {
        for dice in [0, 500, 1_000, u32::MAX] {
            let waits = (0..6).map(|probes| probe_wait(FIRST_PROBE, probes, dice));
            let times: Vec<i64> = waits
                .scan(0, |at, wait| {
                    *at += wait;
                    Some(*at)
                })
                .collect();
            assert!(times[0] >= 60_000 && times[5] >= 3_600_000, "{times:?}");
            assert!(times[0] <= 66_000, "{times:?}");
        }
        assert_eq!(probe_wait(FIRST_PROBE, 40, 0), MOST_BETWEEN_PROBES);
        assert_eq!([0, 1_000, 1_001].map(|dice| probe_wait(2_000, 1, dice)), [4_000, 4_400, 4_000]);
    }
}
