//! The `[pace]` section.

use std::time::Duration;

use http::HeaderValue;

use crate::site::read::{Entry, Section};
use crate::site::{MetaRobots, Pace, RobotsPolicy};

/// Reads `[pace]`; what is wrong is reported, and a default taken in its place.
pub(super) fn read(section: &Section<'_>, allow_private: bool) -> Pace {
    let interval = interval(section, allow_private);
    let parallel = section.count("parallel").unwrap_or_default();
    Pace {
        interval,
        parallel,
        min_interval: min_interval(section, interval),
        max_parallel: max_parallel(section, parallel),
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

/// A live hand makes a site faster only as far as its file allows.
fn min_interval(section: &Section<'_>, interval: Duration) -> Option<Duration> {
    let least = section.duration("min_interval")?;
    if least > interval
        && let Some(entry) = section.get("min_interval")
    {
        entry.refuse::<()>(
            "`min_interval` is longer than `interval`",
            "write one that is shorter, or leave it out: then `paced tune` may only slow the site down",
        );
    }
    Some(least)
}

fn max_parallel(section: &Section<'_>, parallel: u32) -> Option<u32> {
    let most = section.count("max_parallel")?;
    if most < parallel
        && let Some(entry) = section.get("max_parallel")
    {
        entry.refuse::<()>("`max_parallel` is less than `parallel`", "write one that isn't, or leave it out");
    }
    Some(most)
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
