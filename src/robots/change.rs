//! What a `robots.txt` that was read changes, in words. Who says it, and to whom, is elsewhere.

use std::time::Duration;

use crate::quantity::spoken;
use crate::task::{RobotsAccess, RobotsRecord};

/// What is worth a line where `now` takes the place of the record `before`, as the end of a sentence that begins with the
/// file. Nothing where all is as it was. `interval` is the one in force between two starts.
///
/// A file that can't be had changes nothing, and what follows one is as new as the first one ever read: no change, though
/// the pace that it asks for counts.
pub fn change(before: Option<&RobotsRecord>, now: &RobotsRecord, interval: Duration) -> Option<String> {
    let before = before.filter(|before| !matches!(before.access, RobotsAccess::Unreachable(_)));
    let said = [before.and_then(|before| text(&before.access, &now.access)), pace(before, now, interval)];
    let said: Vec<String> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(" and "))
}

fn text(before: &RobotsAccess, now: &RobotsAccess) -> Option<String> {
    use RobotsAccess::{Absent, Rules};
    match (before, now) {
        (Rules(before), Rules(now)) if before != now => {
            Some(format!("changed ({} before, {} now)", lines(before), now.lines().count()))
        }
        (Rules(before), Absent) => Some(format!("is gone ({} before)", lines(before))),
        (Absent, Rules(now)) => Some(format!("is new ({}; there was none)", lines(now))),
        _ => None,
    }
}

/// That another pace is asked for. One that is more than the site's file allows is a block, which is said as one.
fn pace(before: Option<&RobotsRecord>, now: &RobotsRecord, interval: Duration) -> Option<String> {
    if now.refuses.is_some() || matches!(now.access, RobotsAccess::Unreachable(_)) {
        return None;
    }
    let asked = before.and_then(|before| before.crawl_delay);
    match (asked, now.crawl_delay) {
        (_, Some(delay)) if delay > interval => Some(format!(
            "raises the interval from {} to {} by its Crawl-delay",
            spoken(interval),
            spoken(delay)
        )),
        (Some(asked), Some(delay)) if delay != asked => {
            Some(format!("asks for a Crawl-delay of {} ({} before)", spoken(delay), spoken(asked)))
        }
        (Some(asked), None) => Some(format!("asks for no Crawl-delay any more ({} before)", spoken(asked))),
        _ => None,
    }
}

fn lines(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Headers;
    use crate::robots::{UnreachableRow, record_of};
    use crate::site::Pace;

    const SECOND: Duration = Duration::from_secs(1);

    /// The record of a text; of a 404 where there is none.
    fn record(text: Option<&str>) -> RobotsRecord {
        let status = if text.is_some() { 200 } else { 404 };
        let row = UnreachableRow { failures: 0, random: 0.0 };
        let body = text.unwrap_or_default().as_bytes();
        record_of(status, &Headers::default(), body, &Pace::default(), row)
    }

    fn told(before: Option<&str>, now: Option<&str>) -> Option<String> {
        change(Some(&record(before)), &record(now), SECOND)
    }

    #[test]
    fn a_text_that_differs_appears_or_goes_is_a_change() {
        let (open, shut) =
            (Some("User-agent: *\nAllow: /\n"), Some("User-agent: *\nDisallow: /\nDisallow: /a"));
        for (before, now, said) in [
            (open, shut, "changed (2 lines before, 3 now)"),
            (open, Some("# closed"), "changed (2 lines before, 1 now)"),
            (open, None, "is gone (2 lines before)"),
            (None, shut, "is new (3 lines; there was none)"),
        ] {
            assert_eq!(told(before, now).as_deref(), Some(said));
        }
        assert_eq!(told(open, open), None);
        assert_eq!(told(None, None), None);
    }

    #[test]
    fn the_first_one_is_no_change_unless_it_raises_the_interval() {
        let first = |text, interval| change(None, &record(Some(text)), interval);
        assert_eq!(first("User-agent: *\nDisallow: /", SECOND), None);
        let slow = "User-agent: *\nCrawl-delay: 5";
        let raised = "raises the interval from 1 s to 5 s by its Crawl-delay";
        assert_eq!(first(slow, SECOND).as_deref(), Some(raised));
        assert_eq!(first(slow, 5 * SECOND), None, "it is kept to already");
    }

    #[test]
    fn another_pace_is_told_with_what_it_was() {
        let delay = |seconds: u32| format!("User-agent: *\nCrawl-delay: {seconds}\n");
        let of = |before: u32, now: &str, interval| {
            change(Some(&record(Some(&delay(before)))), &record(Some(now)), interval).expect("a change")
        };
        let changed = "changed (2 lines before, 2 now) and ";
        let raised = "raises the interval from 2 s to 5 s by its Crawl-delay";
        assert_eq!(of(2, &delay(5), 2 * SECOND), format!("{changed}{raised}"));
        let lowered = "asks for a Crawl-delay of 2 s (5 s before)";
        assert_eq!(of(5, &delay(2), 5 * SECOND), format!("{changed}{lowered}"));
        let gone = "changed (2 lines before, 0 now) and asks for no Crawl-delay any more (5 s before)";
        assert_eq!(of(5, "", 5 * SECOND), gone);
    }

    #[test]
    fn what_blocks_the_site_is_left_to_the_word_on_the_block() {
        let refused = record(Some("User-agent: *\nCrawl-delay: 99"));
        assert!(refused.refuses.is_some());
        assert_eq!(change(None, &refused, SECOND), None);
        let before = record(Some(""));
        assert_eq!(
            change(Some(&before), &refused, SECOND).as_deref(),
            Some("changed (0 lines before, 2 now)")
        );
    }

    #[test]
    fn one_that_cannot_be_had_changes_nothing_and_neither_does_its_return() {
        let lost = crate::robots::unreachable("HTTP 503", UnreachableRow { failures: 0, random: 0.0 });
        let open = record(Some("User-agent: *\nAllow: /"));
        assert_eq!(change(Some(&open), &lost, SECOND), None);
        assert_eq!(change(Some(&lost), &open, SECOND), None);
    }
}
