//! A `robots.txt` and the links of a page, as many of both as there may be: two recipes, divided by a line of `--`.

use paced::internals::budget::Budget;
use paced::internals::extract::MOST_LINKS;
use paced::internals::robots::{MAX_BYTES, RobotsRules};
use url::Url;

use super::cost::Linear;
use super::recipe::grown;

const DIVIDER: &[u8] = b"\n--\n";
/// A little more than is read.
const MOST_RULES: usize = MAX_BYTES + (16 << 10);
const MOST_PATHS: usize = 512 << 10;
/// Links are judged within so many steps, a tenth of what those of a page have; those left are judged before their fetch.
const MOST_STEPS: u64 = 5_000_000;
/// A rule of eight bytes or more is compared with a link of up to 8 KiB, 16 letters a step, in two spellings.
const LINK: Linear = Linear { least: 1_000, each: 256 };
/// Rules without `*` and `$` are found by their letters, however many there are. A path may begin with a thousand of them, each
/// a letter longer, as 500 KiB have no more.
const PLAIN: Linear = Linear { least: 1_000, each: 512 };
/// Links whose verdict is looked up without a budget as well.
const ASKED_AGAIN: usize = 3;

/// Until the budget of a page's links is spent each gets its verdict; it is passed by no more than the work that was begun;
/// what is left is allowed for now; a link costs what the file's length allows, and with rules without signs what its own does.
pub fn hold(bytes: &[u8]) {
    let (file, urls) = split(bytes);
    let rules = RobotsRules::parse(&file);
    let budget = Budget::of_steps(MOST_STEPS);
    let mut judged = 0;
    for url in &urls {
        let before = budget.steps();
        let allowed = rules.allows_within(url, &budget);
        let took = usize::try_from(budget.steps() - before).expect("a number");
        LINK.holds(took, file.len() + url.as_str().len(), "steps of a link");
        if budget.is_spent() {
            assert!(budget.steps() <= MOST_STEPS + 2 * budget.most_at_once(), "{} steps", budget.steps());
            break;
        }
        assert!(judged >= ASKED_AGAIN || allowed == rules.allows(url), "{url}");
        judged += 1;
    }
    let unasked = urls.iter().skip(judged).take(ASKED_AGAIN);
    unasked.for_each(|url| assert!(rules.allows_within(url, &budget), "{url}"));
    if !file.iter().any(|byte| matches!(byte, b'*' | b'$' | b'%')) {
        let length = urls.iter().map(|url| url.as_str().len()).sum();
        PLAIN.holds(usize::try_from(budget.steps()).expect("a number"), length, "steps");
    }
}

/// The file, and the links.
fn split(bytes: &[u8]) -> (Vec<u8>, Vec<Url>) {
    let at = bytes.windows(DIVIDER.len()).position(|window| window == DIVIDER).unwrap_or(bytes.len());
    let rules = grown(&bytes[..at], MOST_RULES);
    let paths = grown(bytes.get(at + DIVIDER.len()..).unwrap_or_default(), MOST_PATHS);
    let paths = String::from_utf8_lossy(&paths);
    let urls = paths
        .lines()
        .take(MOST_LINKS)
        .filter_map(|path| Url::parse(&format!("https://shop.example/{path}")).ok());
    (rules, urls.filter(|url| url.as_str().len() <= 8 << 10).collect())
}
