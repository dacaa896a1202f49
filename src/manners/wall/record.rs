//! What a page rule met lately, by which refusals without a mark are suspected (W2): several different pages in a row.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::canonical_url::CanonicalUrl;

/// So many different pages in a row are suspicious; after each suspicion that came to nothing, twice as many.
const PAGES: usize = 5;
/// That is never more.
const MOST_PAGES: usize = 640;
/// After so long, it is the first number again.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(24);
/// Good pages that are remembered.
const GOOD: usize = 4;
/// Pages of a row that are remembered, to be asked for again.
const LETTERS: usize = 64;
/// A suspicion waits for its probe for so long; then the row goes on, as another process may have had the answer.
const TRIED_FOR: Duration = Duration::from_mins(2);

/// What an answer to a page of the rule was, as far as no mark told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// 401, 402, 403, 404 or 451.
    Refusal(u16),
    /// A page, by what tells its body from others.
    Page(u64),
    /// 304: the page is as it was.
    Unchanged,
    /// None of these says anything of the rule's pages.
    Other,
}

/// A page of the rule: asked for again, it is as deep as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePage {
    /// Its address.
    pub url: CanonicalUrl,
    /// Links away from a seed.
    pub depth: u32,
}

/// Several refusals in a row, or one body for several pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// What was met each time; the last status where they differ.
    pub met: Met,
    /// How many pages.
    pub pages: usize,
    /// The page that was good lately and is to be asked for again.
    pub probe: RulePage,
    /// The pages in question, the last ones of many.
    pub letters: Vec<RulePage>,
}

/// The record of one rule. Times are since any one moment.
#[derive(Clone, Debug, Default)]
pub struct RuleRecord {
    /// The last good pages, the newest last.
    good: VecDeque<RulePage>,
    /// What the row is of.
    met: Option<Met>,
    /// The row: its pages, and the last ones of them.
    row: BTreeSet<CanonicalUrl>,
    letters: VecDeque<RulePage>,
    /// What is being tried, and since when.
    open: Option<(Suspicion, Duration)>,
    /// The last pages on which the rule found nothing, with their bodies, and whether that was told.
    barren: VecDeque<(CanonicalUrl, Met)>,
    is_barren_told: bool,
    /// How often a suspicion came to nothing, and when the last one did.
    cleared: Option<(u32, Duration)>,
}

impl RuleRecord {
    /// A page of the rule gave what the rule wants.
    pub fn worked(&mut self, page: &RulePage) {
        self.barren.clear();
        self.is_barren_told = false;
        self.good.retain(|good| good.url != page.url);
        self.good.push_back(page.clone());
        if self.good.len() > GOOD {
            self.good.pop_front();
        }
    }

    /// The rule found nothing on a page: whether that is worth a word, as several in a row gave nothing, and not one body for all.
    /// It is, once until the rule works again.
    pub fn found_nothing(&mut self, page: &CanonicalUrl, met: Met) -> bool {
        if self.is_barren_told || self.barren.iter().any(|(other, _)| other == page) {
            return false;
        }
        self.barren.push_back((page.clone(), met));
        if self.barren.len() > PAGES {
            self.barren.pop_front();
        }
        let differs = self.barren.iter().any(|(_, other)| *other != met);
        self.is_barren_told = differs && self.barren.len() == PAGES;
        self.is_barren_told
    }

    /// An answer came: whether the row is suspicious now. A suspicion that is open is waited for, and what is refused meanwhile
    /// is one of its pages.
    pub fn hear(&mut self, page: &RulePage, met: Met, now: Duration) -> Option<Suspicion> {
        if met == Met::Other {
            return None;
        }
        self.open.take_if(|(_, since)| now.saturating_sub(*since) >= TRIED_FOR);
        if let Some((open, _)) = &mut self.open {
            open.hear(page, met);
            return None;
        }
        if met == Met::Unchanged {
            self.met = None;
            self.row.clear();
            self.letters.clear();
            return None;
        }
        if !self.met.is_some_and(|before| before.goes_on(met)) {
            self.row.clear();
            self.letters.clear();
        }
        self.met = Some(met);
        if self.row.insert(page.url.clone()) {
            self.letters.push_back(page.clone());
        }
        if self.letters.len() > LETTERS {
            self.letters.pop_front();
        }
        // No more than what is needed is remembered.
        if self.row.len() > MOST_PAGES {
            self.row.pop_first();
        }
        if self.row.len() < self.needed(now) {
            return None;
        }
        let probe = self.good.iter().rev().find(|good| !self.row.contains(&good.url))?.clone();
        let letters = self.letters.iter().cloned().collect();
        let open = Suspicion { met, pages: self.row.len(), probe, letters };
        self.open = Some((open.clone(), now));
        Some(open)
    }

    /// What is suspected, where this is the page that tries it.
    pub fn tried_by(&self, page: &CanonicalUrl) -> Option<&Suspicion> {
        self.open.as_ref().map(|(open, _)| open).filter(|open| open.probe.url == *page)
    }

    /// The suspicion was right, or can't be tried.
    pub fn confirmed(&mut self) {
        *self = Self { good: std::mem::take(&mut self.good), ..Self::default() };
    }

    /// The page that was good still is: the others are what they say.
    pub fn cleared(&mut self, now: Duration) {
        let times = self.times_cleared(now) + 1;
        self.confirmed();
        self.cleared = Some((times, now));
    }

    fn times_cleared(&self, now: Duration) -> u32 {
        let last = self.cleared.filter(|(_, at)| now.saturating_sub(*at) < FORGOTTEN_AFTER);
        last.map_or(0, |(times, _)| times)
    }

    fn needed(&self, now: Duration) -> usize {
        (PAGES << self.times_cleared(now).min(16)).min(MOST_PAGES)
    }
}

impl Met {
    /// Whether another page of a row met the same.
    fn goes_on(self, other: Self) -> bool {
        match (self, other) {
            (Self::Refusal(_), Self::Refusal(_)) => true,
            (Self::Page(one), Self::Page(other)) => one == other,
            _ => false,
        }
    }
}

impl Suspicion {
    /// Another answer came while it is tried.
    fn hear(&mut self, page: &RulePage, met: Met) {
        let is_new = self.letters.iter().all(|letter| letter.url != page.url);
        if self.met.goes_on(met) && self.letters.len() < LETTERS && is_new {
            self.letters.push(page.clone());
        }
    }

    /// Whether the probe's answer refuses as well.
    pub fn is_confirmed_by(&self, met: Met) -> bool {
        matches!(met, Met::Refusal(_)) || matches!(self.met, Met::Page(_)) && self.met == met
    }

    /// In words, of a rule of that name.
    pub fn told(&self, rule: &str) -> String {
        let pages = self.pages;
        match self.met {
            Met::Refusal(status) => format!("HTTP {status} for {pages} pages of rule `{rule}` in a row"),
            _ => format!("one and the same body, with nothing of rule `{rule}`, for {pages} pages in a row"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(n: u32) -> RulePage {
        let url = CanonicalUrl::parse(&format!("https://shop.example/{n}")).expect("a URL");
        RulePage { url, depth: n % 3 }
    }

    fn worked() -> RuleRecord {
        let mut record = RuleRecord::default();
        (100..110).for_each(|n| record.worked(&page(n)));
        record
    }

    /// After how many of these it was suspicious.
    fn suspected(record: &mut RuleRecord, met: impl IntoIterator<Item = (u32, Met)>) -> Option<usize> {
        met.into_iter().position(|(n, met)| record.hear(&page(n), met, Duration::ZERO).is_some())
    }

    #[test]
    fn w2_five_different_pages_in_a_row_are_suspicious_where_the_rule_worked() {
        let refusals = || (0..5).map(|n| (n, Met::Refusal(404)));
        assert_eq!(suspected(&mut worked(), refusals()), Some(4));
        assert_eq!(suspected(&mut RuleRecord::default(), refusals()), None, "it never worked");
        assert_eq!(suspected(&mut worked(), (0..50).map(|_| (1, Met::Refusal(403)))), None, "one page");
        let broken =
            (0..50).map(|n| (n, if n % 5 == 4 { Met::Page(u64::from(n)) } else { Met::Refusal(404) }));
        assert_eq!(suspected(&mut worked(), broken), None, "others are good");
        let mixed = (0..8).map(|n| (n, if n % 2 == 0 { Met::Refusal(403) } else { Met::Other }));
        assert_eq!(suspected(&mut worked(), mixed.chain([(9, Met::Refusal(404))])), Some(8));
    }

    #[test]
    fn w2_a_page_that_is_as_it_was_ends_a_row() {
        let met = |n| if n % 5 == 4 { Met::Unchanged } else { Met::Refusal(404) };
        assert_eq!(suspected(&mut worked(), (0..50).map(|n| (n, met(n)))), None);
    }

    #[test]
    fn w2_what_is_refused_while_a_suspicion_is_tried_is_one_of_its_pages() {
        let mut record = worked();
        assert_eq!(suspected(&mut record, (0..100).map(|n| (n, Met::Refusal(404)))), Some(4));
        assert_eq!(suspected(&mut record, (3..200).map(|n| (n, Met::Refusal(403)))), None);
        let open = record.tried_by(&page(109).url).expect("it is open");
        assert_eq!(open.letters, (0..64).map(page).collect::<Vec<_>>());
    }

    #[test]
    fn w2_a_suspicion_whose_probe_nobody_answered_is_tried_anew_two_minutes_later() {
        let mut record = worked();
        assert_eq!(suspected(&mut record, (0..5).map(|n| (n, Met::Refusal(404)))), Some(4));
        let hear = |record: &mut RuleRecord, n, now| record.hear(&page(n), Met::Refusal(404), now).is_some();
        assert!(!hear(&mut record, 5, Duration::from_secs(119)));
        assert!(hear(&mut record, 6, TRIED_FOR));
        assert!(!hear(&mut record, 7, TRIED_FOR));
    }

    #[test]
    fn w2_one_body_for_five_pages_is_suspicious_and_a_body_each_is_a_rebuilt_shop() {
        assert_eq!(suspected(&mut worked(), (0..5).map(|n| (n, Met::Page(7)))), Some(4));
        assert_eq!(suspected(&mut worked(), (0..50).map(|n| (n, Met::Page(u64::from(n))))), None);
    }

    #[test]
    fn w2_five_pages_without_a_field_are_worth_a_word_once_and_one_body_for_all_is_none() {
        let told = |record: &mut RuleRecord, pages: std::ops::Range<u32>, bodies: u64| {
            let heard =
                pages.filter(|n| record.found_nothing(&page(*n).url, Met::Page(u64::from(*n) % bodies)));
            heard.collect::<Vec<_>>()
        };
        let mut record = RuleRecord::default();
        assert_eq!(told(&mut record, 0..4, 99), [0_u32; 0]);
        record.worked(&page(50));
        assert_eq!(told(&mut record, 0..4, 99), [0_u32; 0], "others are good");
        assert_eq!(told(&mut record, 3..20, 99), [4], "and once");
        record.worked(&page(50));
        assert_eq!(told(&mut record, 0..20, 1), [0_u32; 0], "that may be a wall");
        assert_eq!(told(&mut record, 20..21, 99), [20], "it was a page after all");
    }

    #[test]
    fn w2_after_a_good_probe_it_takes_twice_as_many_pages_and_a_day_later_five() {
        let mut record = worked();
        for pages in [5, 10, 20, 40, 80, 160, 320, 640, 640] {
            let refusals = (1_000..9_000).map(|n| (n, Met::Refusal(404)));
            assert_eq!(suspected(&mut record, refusals), Some(pages - 1));
            let open = record.tried_by(&page(109).url).expect("the newest good page").clone();
            assert!(open.is_confirmed_by(Met::Refusal(403)) && !open.is_confirmed_by(Met::Page(1)));
            assert!(open.letters.len() <= 64);
            record.cleared(Duration::ZERO);
        }
        let later = FORGOTTEN_AFTER;
        let heard = (0..5).filter_map(|n| record.hear(&page(n), Met::Refusal(404), later));
        assert_eq!(heard.count(), 1);
    }
}
