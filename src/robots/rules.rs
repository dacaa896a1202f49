//! `RobotsRules`: what one `robots.txt` says to this crawler. Fetching and keeping it is elsewhere.

use std::time::Duration;

use url::{Position, Url};

use super::index::RuleIndex;
use super::lines::{RobotsLine, at_most, lines};
use super::pattern::{Pattern, Spelling, spell_path};
use super::{AGENT, MAX_BYTES};
use crate::budget::Budget;

/// The rules of a `robots.txt` that are for us: those of our own groups taken together, else of everybody's
/// (RFC 9309 section 2.2.1).
#[derive(Clone, Debug, Default)]
pub struct RobotsRules {
    rules: Vec<Rule>,
    written: RuleIndex,
    decoded: RuleIndex,
    crawl_delay: Option<Duration>,
}

/// Letters of a path, each counted once a rule, that are compared in about a tenth of a millisecond. Many times as long, once a
/// page, took three quarters of a good site's starts.
const LONG: usize = 1 << 14;
/// What more seconds than a clock counts come to.
const ENDLESS: Duration = Duration::from_hours(24 * 36_500);

#[derive(Clone, Debug)]
struct Rule {
    /// The line it stands on, counted from 1.
    line: usize,
    allow: bool,
    pattern: Pattern,
}

impl RobotsRules {
    /// The rules for this crawler in the first 500 KiB (RFC 9309 section 2.5). Any bytes are a `robots.txt`: what
    /// means nothing is passed over.
    pub fn parse(text: &[u8]) -> Self {
        Self::parse_for(text, AGENT)
    }

    /// The rules for a crawler of another name.
    pub fn parse_for(text: &[u8], agent: &str) -> Self {
        Self::parse_whole(at_most(text, MAX_BYTES), agent)
    }

    /// The rules in a text that was cut before, and may have grown since.
    pub(super) fn parse_whole(text: &[u8], agent: &str) -> Self {
        let group = group_of(text, agent.as_bytes());
        let mut this = Self::default();
        let (mut applies, mut in_agents) = (false, false);
        for (number, line) in lines(text) {
            match line {
                RobotsLine::Agent(name) => {
                    applies = (in_agents && applies) || name.eq_ignore_ascii_case(group);
                    in_agents = true;
                }
                // It may stand between two agents of one group and doesn't end it (RFC 9309 section 2.2.4).
                RobotsLine::CrawlDelay(value) if applies => {
                    this.crawl_delay = this.crawl_delay.max(seconds(value));
                }
                RobotsLine::CrawlDelay(_) => {}
                RobotsLine::Allow(path) | RobotsLine::Disallow(path) => {
                    in_agents = false;
                    if applies {
                        this.add(number, matches!(line, RobotsLine::Allow(_)), path);
                    }
                }
            }
        }
        this.indexed()
    }

    /// Rules that allow everything: there is no `robots.txt` (RFC 9309 section 2.3.1.3).
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Rules that forbid everything: `robots.txt` can't be had (RFC 9309 section 2.3.1.4).
    pub fn forbid_all() -> Self {
        let mut this = Self::default();
        this.add(0, false, b"/");
        this.indexed()
    }

    fn indexed(mut self) -> Self {
        let rules = || self.rules.iter().map(|rule| (&rule.pattern, rule.allow));
        let of = |spelling| RuleIndex::of(rules(), spelling);
        (self.written, self.decoded) = (of(Spelling::Written), of(Spelling::Decoded));
        self
    }

    /// Whether the URL may be asked for. Only path and query count; the file must be that of the URL's origin.
    /// `robots.txt` itself always may (RFC 9309 section 2.2.2).
    pub fn allows(&self, url: &Url) -> bool {
        self.allows_path(path_of(url))
    }

    /// The same within a budget; where that is spent it is allowed, to be asked again before the fetch.
    pub fn allows_within(&self, url: &Url, budget: &Budget) -> bool {
        self.deciding_rule(path_of(url), budget).is_none_or(|rule| rule.allow) || is_robots(path_of(url))
    }

    /// Whether a path with its query may be asked for, compared octet by octet as it is given.
    pub fn allows_path(&self, path: &str) -> bool {
        is_robots(path) || self.deciding_rule(path, &Budget::without_end()).is_none_or(|rule| rule.allow)
    }

    /// The time between two requests that our groups ask for; the longest, where they ask more than once.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none, so that everything is allowed.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a look at all rules may take long enough to hold up a thread that keeps the pace.
    pub fn may_take_long(&self, url: &Url) -> bool {
        self.rules.len().saturating_mul(16 + path_of(url).len()) > LONG
    }

    /// The rule that decides: one that forbids in either spelling, before one that allows in both.
    fn deciding_rule(&self, path: &str, budget: &Budget) -> Option<&Rule> {
        let written = self.longest(path, Spelling::Written, budget);
        let decoded = self.longest(path, Spelling::Decoded, budget);
        written.filter(|rule| !rule.allow).or(decoded)
    }

    /// The rule with the most octets; of two as long, the one that allows (RFC 9309 section 2.2.2).
    fn longest(&self, path: &str, spelling: Spelling, budget: &Budget) -> Option<&Rule> {
        let path = spell_path(path, spelling);
        let index = match spelling {
            Spelling::Written => &self.written,
            Spelling::Decoded => &self.decoded,
        };
        let fits = |rule: usize| self.rules[rule].pattern.fits(&path, spelling);
        index.decides(&path, fits, budget).map(|(rule, _)| &self.rules[rule])
    }

    fn add(&mut self, line: usize, allow: bool, path: &[u8]) {
        let mut push = |path: &[u8]| {
            self.rules.extend(Pattern::parse(path).map(|pattern| Rule { line, allow, pattern }));
        };
        push(path);
        // Who allows a folder's index by its file name means the folder too, as the biggest search engine reads it.
        if let Some(folder) = index_of(path).filter(|_| allow) {
            push(&[folder, b"$"].concat());
        }
    }
}

/// A `robots.txt` that is read once for many URLs, to say of each which line decides.
#[derive(Debug)]
pub struct QuotedRules<'a> {
    rules: RobotsRules,
    lines: Vec<&'a [u8]>,
}

impl<'a> QuotedRules<'a> {
    /// The rules in a text that was cut before.
    pub fn of(text: &'a str) -> Self {
        Self {
            rules: RobotsRules::parse_whole(text.as_bytes(), AGENT),
            lines: super::lines::all(text.as_bytes()),
        }
    }

    /// Whether the URL may be asked for, and the line that decides, counted from 1; where the budget is spent it may, for now.
    pub fn verdict(&self, url: &Url, budget: &Budget) -> (bool, Option<(usize, String)>) {
        let deciding = self.rules.deciding_rule(path_of(url), budget);
        let allowed = deciding.is_none_or(|rule| rule.allow) || is_robots(path_of(url));
        let line = deciding.and_then(|rule| Some((rule.line, *self.lines.get(rule.line.checked_sub(1)?)?)));
        (allowed, line.map(|(number, line)| (number, String::from_utf8_lossy(line).trim().to_owned())))
    }
}

/// The line that decides about the URL, counted from 1, with its text; none where no line speaks of it. For people.
pub fn deciding_line(text: &[u8], url: &Url) -> Option<(usize, String)> {
    let rules = RobotsRules::parse(text);
    let number = rules.deciding_rule(path_of(url), &Budget::without_end())?.line;
    let line = super::lines::nth(text, number)?;
    Some((number, String::from_utf8_lossy(line).trim().to_owned()))
}

/// The group that is ours: that of our name where there is one, else everybody's.
fn group_of<'a>(text: &[u8], agent: &'a [u8]) -> &'a [u8] {
    let is_ours =
        |line: RobotsLine<'_>| matches!(line, RobotsLine::Agent(name) if name.eq_ignore_ascii_case(agent));
    let ours = !agent.is_empty() && lines(text).any(|(_, line)| is_ours(line));
    if ours { agent } else { b"*" }
}

/// `robots.txt` itself always may be asked for (RFC 9309 section 2.2.2).
fn is_robots(path: &str) -> bool {
    path == "/robots.txt"
}

fn path_of(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

/// The folder whose `index.htm` or `index.html` the path names.
fn index_of(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|b| *b == b'/')?;
    path[slash + 1..].starts_with(b"index.htm").then(|| &path[..=slash])
}

/// Seconds, whole or not, however many; what is negative or no number asks for nothing.
fn seconds(value: &[u8]) -> Option<Duration> {
    let seconds: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    (seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(ENDLESS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::parse(&format!("https://shop.example{path}")).expect("a URL")
    }

    proptest::proptest! {
        #[test]
        fn the_index_finds_the_rule_that_a_look_at_each_finds(
            lines in proptest::collection::vec(r"(Allow|Disallow): [/*][ab/*$%6]{0,6}", 0..12),
            paths in proptest::collection::vec(r"/[ab/%6?]{0,8}", 1..8),
        ) {
            let rules = RobotsRules::parse(format!("User-agent: *\n{}", lines.join("\n")).as_bytes());
            let longest = |path: &str, spelling| {
                let path = spell_path(path, spelling);
                let fits = rules.rules.iter().filter(|rule| rule.pattern.fits(&path, spelling));
                fits.max_by_key(|rule| (rule.pattern.text(spelling).len(), rule.allow)).map(|rule| rule.allow)
            };
            for path in paths {
                for spelling in [Spelling::Written, Spelling::Decoded] {
                    let found = rules.longest(&path, spelling, &Budget::without_end());
                    proptest::prop_assert_eq!(found.map(|rule| rule.allow), longest(&path, spelling), "{}", path);
                }
            }
        }
    }

    #[test]
    fn tens_of_thousands_of_rules_cost_a_link_no_more_than_it_may() {
        let lines =
            |of: &str| (0..40_000).map(|n| format!("Disallow: /{of}{n}\n")).collect::<Vec<_>>().concat();
        let of = |lines: &str| RobotsRules::parse(format!("User-agent: *\n{lines}").as_bytes());
        let budget = Budget::of_steps(1_000_000);
        let (plain, starred) = (of(&lines("p")), of(&lines("*p")));
        for n in 0..10_000 {
            let allowed = plain.allows_within(&url(&format!("/p{n}/x")), &budget);
            assert!(!allowed, "{n}: {} steps", budget.steps());
        }
        assert!(!starred.allows_within(&url("/x/p39999"), &budget));
        let spent = (0..10_000).take_while(|_| starred.allows_within(&url("/x"), &budget)).count();
        assert_eq!(spent, 10_000, "what isn't looked at is allowed for now");
        assert!(budget.is_spent() && budget.steps() < 1_200_000, "{}", budget.steps());
    }

    #[test]
    fn our_groups_are_taken_together_and_everybodys_only_without_them() {
        let text = b"User-agent: *\nDisallow: /every\nUser-agent: Paced/2\nDisallow: /a\n\nuser-agent: x\nuser-agent: PACED\nDisallow: /b";
        let rules = RobotsRules::parse(text);
        for (path, allowed) in [("/every", true), ("/a", false), ("/b", false), ("/c", true)] {
            assert_eq!(rules.allows(&url(path)), allowed, "{path}");
        }
        assert!(!RobotsRules::parse_for(text, "other").allows(&url("/every")));
    }

    #[test]
    fn crawl_delay_is_read_from_our_group_alone_and_nonsense_asks_for_nothing() {
        for (text, delay) in [
            ("user-agent: *\ncrawl-delay: 1.5", Some(1500)),
            ("user-agent: *\ncrawl-delay: 5\nuser-agent: paced\ncrawl-delay: 2", Some(2000)),
            ("user-agent: paced\ncrawl-delay: 2\nuser-agent: x\ndisallow: /", Some(2000)),
            ("user-agent: x\ncrawl-delay: 9\nuser-agent: paced\ndisallow: /", None),
            ("user-agent: *\ncrawl-delay: 2\ncrawl-delay: 4", Some(4000)),
            ("user-agent: *\ncrawl-delay: -1", None),
            ("user-agent: *\ncrawl-delay: nan", None),
            ("user-agent: *\ncrawl-delay: soon", None),
            ("crawl-delay: 3", None),
        ] {
            let read = RobotsRules::parse(text.as_bytes()).crawl_delay();
            assert_eq!(read, delay.map(Duration::from_millis), "{text}");
        }
        let digits = "9".repeat(400);
        for huge in ["inf", "1e308", "1e20", &digits] {
            let text = format!("user-agent: *\ncrawl-delay: {huge}");
            assert_eq!(RobotsRules::parse(text.as_bytes()).crawl_delay(), Some(ENDLESS), "{huge}");
        }
    }

    #[test]
    fn an_encoded_star_or_dollar_stands_for_itself_on_either_side() {
        let text = b"User-agent: *\nDisallow: /a-%2A.html\nDisallow: /b%24\nDisallow: /c$d\nDisallow: /e*f$";
        let rules = RobotsRules::parse(text);
        for (path, allowed) in [
            ("/a-*.html", false),
            ("/a-%2a.html", false),
            ("/a-x.html", true),
            ("/b$", false),
            ("/b%24x", false),
            ("/b", true),
            ("/c$d", false),
            ("/c%24d", false),
            ("/e*f", false),
            ("/exf", false),
            ("/ef$", true),
        ] {
            assert_eq!(rules.allows(&url(path)), allowed, "{path}");
        }
    }

    #[test]
    fn the_line_that_decides_is_named() {
        let text = b"# shop\r\nUser-agent: *\r\nDisallow: /a # not these\r\nAllow: /a/b\r\n";
        assert_eq!(deciding_line(text, &url("/a/x")), Some((3, "Disallow: /a # not these".to_owned())));
        assert_eq!(deciding_line(text, &url("/a/b")), Some((4, "Allow: /a/b".to_owned())));
        assert_eq!(deciding_line(text, &url("/c")), None);
    }

    #[test]
    fn a_path_is_forbidden_however_its_letters_are_encoded() {
        let rules = RobotsRules::parse(b"User-agent: *\nDisallow: /%7Ejoe\nDisallow: /caf\xc3\xa9");
        for path in ["/~joe/", "/%7ejoe/", "/%7Ejoe/", "/caf%c3%a9"] {
            assert!(!rules.allows(&url(path)), "{path}");
        }
    }

    #[test]
    fn without_a_file_all_is_allowed_and_with_an_unreachable_one_nothing_but_the_file() {
        assert!(RobotsRules::allow_all().allows(&url("/")));
        assert!(!RobotsRules::forbid_all().allows(&url("/")));
        assert!(RobotsRules::forbid_all().allows(&url("/robots.txt")));
    }

    #[test]
    fn a_rule_that_the_500_kib_cut_is_none() {
        let mut text = b"User-agent: *\nDisallow: /a\n".to_vec();
        text.resize(MAX_BYTES - 11, b'#');
        text.extend_from_slice(b"\nDisallow: /shop");
        let rules = RobotsRules::parse(&text);
        assert!(
            !rules.allows(&url("/a")) && rules.allows(&url("/b")),
            "`Disallow: /` is no line of the file"
        );
    }
}
