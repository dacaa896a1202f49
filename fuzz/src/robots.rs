//! Bytes as a `robots.txt`.

use std::time::Duration;

use paced::internals::page::Headers;
use paced::internals::robots::{
    HOLDS, HOLDS_AT_LEAST, RobotsRules, UnreachableRow, deciding_line, record_of, rules_of,
};
use paced::internals::site::Pace;
use paced::internals::task::RobotsAccess;
use url::Url;

use super::cost::Linear;

/// A rule of twelve bytes or more is compared with a path, which has up to 16 KiB here, 16 letters a step, in two spellings.
const STEPS: Linear = Linear { least: 1_000, each: 256 };
/// A byte that is no UTF-8 is written as three.
const GIVEN: Linear = Linear { least: 1_000, each: 3 };

/// A file gives the same verdicts when it is read again, and from the record that processes share; a verdict against a
/// page names its line and takes as many steps as the file's length allows; `robots.txt` itself may always be asked for.
pub fn hold(bytes: &[u8]) {
    let pace = Pace::default();
    let rules = RobotsRules::parse(bytes);
    let record =
        record_of(200, &Headers::default(), bytes, &pace, UnreachableRow { failures: 0, random: 0.5 });
    assert!((HOLDS_AT_LEAST..=HOLDS).contains(&record.holds_for));
    let asked = rules.crawl_delay();
    assert_eq!(record.crawl_delay, asked.map(|delay: Duration| delay.min(pace.max_crawl_delay)));
    assert_eq!(record.refuses.is_some(), asked.is_some_and(|delay| delay > pace.max_crawl_delay));
    if let RobotsAccess::Rules(text) = &record.access {
        GIVEN.holds(text.len(), bytes.len(), "bytes of a record");
    }
    let (again, shared) = (RobotsRules::parse(bytes), rules_of(&record.access));
    assert_eq!((again.len(), shared.len()), (rules.len(), rules.len()));
    for url in pages(bytes) {
        let allowed = rules.allows(&url);
        let budget = STEPS.budget(bytes.len() + url.as_str().len());
        assert_eq!(rules.allows_within(&url, &budget), allowed, "{url}");
        assert_eq!(budget.spent(), None, "{url}");
        assert_eq!((again.allows(&url), shared.allows(&url)), (allowed, allowed), "{url}");
        let line = deciding_line(bytes, &url);
        assert!(allowed || line.is_some(), "{url} is forbidden by no line");
        let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).count();
        assert!(line.is_none_or(|(number, _)| (1..=lines).contains(&number)), "{url}");
    }
    assert!(rules.allows(&page("/robots.txt").expect("a URL")));
}

/// The paths that the file speaks of, and two that it probably doesn't.
fn pages(bytes: &[u8]) -> Vec<Url> {
    let text = String::from_utf8_lossy(bytes);
    let named = text.lines().filter_map(|line| Some(line.split_once(':')?.1.trim()));
    let paths = named.filter(|path| path.starts_with('/')).take(20);
    paths.chain(["/", "/a%2Fb/%7ec.html?x=y"]).filter_map(page).collect()
}

fn page(path: &str) -> Option<Url> {
    Url::parse(&format!("https://shop.example{path}")).ok()
}
