//! The `[pace]` section.

use std::time::Duration;

use http::HeaderValue;

use crate::site::read::{Entry, Section};
use crate::site::{MetaRobots, Pace, RobotsPolicy};

/// Reads `[pace]`; what is wrong is reported, and a default taken in its place.
pub(super) fn read(section: &Section<'_>, allow_private: bool) -> Pace {
    Pace {
        interval: interval(section, allow_private),
        parallel: section.count("parallel").unwrap_or_default(),
        robots: section.word("robots", &RobotsPolicy::WORDS),
        meta_robots: section.word("meta_robots", &MetaRobots::WORDS),
        contact: section.get("contact").and_then(|e| contact(&e)),
        max_crawl_delay: section.duration("max_crawl_delay").unwrap_or_default(),
        max_retry_after: section.duration("max_retry_after").unwrap_or_default(),
    }
}

fn interval(section: &Section<'_>, allow_private: bool) -> Duration {
    let interval = section.duration("interval").unwrap_or_default();
    if interval.is_zero()
        && !allow_private
        && let Some(entry) = section.get("interval")
    {
        entry.refuse::<()>(
            "`interval` can't be zero on a site that isn't yours",
            "write \"1s\"; zero is for your own machines, with allow_private = true in [fetch]",
        );
    }
    interval
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
