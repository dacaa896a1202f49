//! The `[pace]` section.

use std::time::Duration;

use http::HeaderValue;

use crate::site::read::{Entry, Section};
use crate::site::{MetaRobots, Pace, RobotsPolicy};

/// The words of `robots`, the default first.
pub(in crate::site) const ROBOTS: [(&str, RobotsPolicy); 2] =
    [("obey", RobotsPolicy::Obey), ("ignore", RobotsPolicy::Ignore)];
/// The words of `meta_robots`, the default first.
pub(in crate::site) const META_ROBOTS: [(&str, MetaRobots); 2] =
    [("obey", MetaRobots::Obey), ("ignore", MetaRobots::Ignore)];

/// Reads `[pace]`; what is wrong is reported, and a default taken in its place.
pub(super) fn read(section: &Section<'_>, allow_private: bool) -> Pace {
    if let Some(entry) = section.get("window").filter(|entry| !entry.list().is_empty()) {
        entry.not_supported_but("[]");
    }
    let duration = |key, default| section.get(key).and_then(|entry| entry.duration()).unwrap_or(default);
    Pace {
        interval: section.get("interval").and_then(|e| interval(&e, allow_private)).unwrap_or(Pace::INTERVAL),
        parallel: section.get("parallel").and_then(|e| e.count(1)).unwrap_or(Pace::PARALLEL),
        robots: section.get("robots").and_then(|e| e.word(&ROBOTS)).unwrap_or(RobotsPolicy::Obey),
        meta_robots: section
            .get("meta_robots")
            .and_then(|e| e.word(&META_ROBOTS))
            .unwrap_or(MetaRobots::Obey),
        contact: section.get("contact").and_then(|e| contact(&e)),
        max_crawl_delay: duration("max_crawl_delay", Pace::MAX_CRAWL_DELAY),
        max_retry_after: duration("max_retry_after", Pace::MAX_RETRY_AFTER),
    }
}

fn interval(entry: &Entry<'_>, allow_private: bool) -> Option<Duration> {
    let interval = entry.duration()?;
    if interval.is_zero() && !allow_private {
        return entry.refuse(
            "`interval` can't be zero on a site that isn't yours",
            "write \"1s\"; zero is for your own machines, with allow_private = true in [fetch]",
        );
    }
    Some(interval)
}

fn contact(entry: &Entry<'_>) -> Option<String> {
    let text = entry.text()?.trim();
    if text.is_ascii() && HeaderValue::from_str(text).is_ok() {
        return Some(text.to_owned());
    }
    entry.refuse(
        format!("`contact` can't be `{}`, as it goes into the user agent", text.escape_debug()),
        "write a mail address or a URL in ASCII",
    )
}
