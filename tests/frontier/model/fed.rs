//! Pages that are fetched or parsed again, booked: which are due, and what putting them does.

use std::collections::BTreeSet;
use std::time::Duration;

use paced::internals::canonical_url::CanonicalUrl;
use paced::internals::clock::Timestamp;
use paced::internals::frontier::{Feeding, Freshness};
use paced::internals::task::{Priority, Put, Stage};

use super::ledger::{Key, Ledger, Page, Task, differs};
use crate::world::{START, at};

impl Ledger {
    /// The newest fetch of a page stands.
    pub fn keep_page(&mut self, key: &Key, fence: i64, fetched_at: Timestamp, recrawl: Option<Duration>) {
        let place = (key.0.clone(), key.2.clone());
        if self.pages.get(&place).is_some_and(|page| page.fence > fence) {
            return;
        }
        let recrawl = recrawl.map(|period| i64::try_from(period.as_millis()).unwrap_or(0));
        let again_at = self.again_at(&place, recrawl);
        let fetched_at = fetched_at.as_millis() - START;
        self.pages.insert(place, Page { fence, fetched_at, recrawl, again_at });
        self.forget_periods();
    }

    /// A period from now, and later than any other page of the site that has this one.
    fn again_at(&mut self, place: &(String, String), recrawl: Option<i64>) -> Option<i64> {
        let period = recrawl?;
        let own = self.pages.get(place).filter(|page| page.recrawl == recrawl).and_then(|page| page.again_at);
        let last = self.recrawls.entry((place.0.clone(), period)).or_insert(i64::MIN);
        let free = if own == Some(*last) { *last } else { last.saturating_add(1) };
        *last = (self.now + period.max(1)).max(free);
        Some(*last)
    }

    /// Of periods that no page has any more nothing is known.
    pub fn forget_periods(&mut self) {
        let periods: BTreeSet<(&String, Option<i64>)> =
            self.pages.iter().map(|((site, _), page)| (site, page.recrawl)).collect();
        self.recrawls.retain(|(site, period), _| periods.contains(&(site, Some(*period))));
    }

    pub fn keep_no_recrawl(&mut self, key: &Key) {
        if let Some(page) = self.pages.get_mut(&(key.0.clone(), key.2.clone())) {
            (page.recrawl, page.again_at) = (None, None);
        }
        self.forget_periods();
    }

    /// No site of a history has a thousand pages: all have room.
    fn first_again(&self) -> Option<(i64, String, String)> {
        let pages = self.pages.iter();
        let again = pages.filter_map(|((site, url), page)| Some((page.again_at?, site, page.recrawl?, url)));
        again.min().map(|(at, site, _, url)| (at, site.clone(), url.clone()))
    }

    /// A dead letter of the parse stage whose page is kept is parsed again.
    pub fn parse_again(&mut self, site: &str, url: &CanonicalUrl, revived: bool) -> Result<(), String> {
        let key = (site.to_owned(), Stage::Parse, url.to_string());
        let expected = self.dead.contains_key(&key) && self.pages.contains_key(&(key.0, key.2));
        if expected {
            self.put(site, Stage::Parse, &Put::request(url.clone(), Priority::LINK));
        }
        if expected == revived { Ok(()) } else { differs("I13: parse again", expected, revived) }
    }

    /// A dead letter is put away; a page that died in this run is known from then on.
    pub fn drop_letter(
        &mut self,
        site: &str,
        stage: Stage,
        url: &CanonicalUrl,
        was: bool,
    ) -> Result<(), String> {
        let key = (site.to_owned(), stage, url.to_string());
        let held = self.held_by(&key);
        self.drop_dead_batches(&key);
        let died_in = self.dead.remove(&key);
        if let Some(held) = held {
            self.release(site, &held, false);
        }
        if let Some(known) = self.sites.get_mut(site)
            && stage == Stage::Download
            && died_in.as_ref().is_some_and(|(run, _)| *run == known.run)
        {
            known.known.insert(url.to_string());
        }
        if died_in.is_some() == was { Ok(()) } else { differs("I13: drop", died_in, was) }
    }

    pub fn feed(&mut self, most: u32, fed: Feeding) -> Result<(), String> {
        let mut put = 0;
        for _ in 0..most {
            let Some((_, site, url)) = self.first_again().filter(|(at, ..)| *at <= self.now) else { break };
            let again = CanonicalUrl::parse(&url).map_err(|e| e.to_string())?;
            let key = (site.clone(), Stage::Download, url.clone());
            if self.tasks.get(&key).is_none_or(Task::is_idle) && self.held_by(&key).is_none() {
                self.put(&site, Stage::Download, &Put::request(again, Priority::from_value(260)));
                put += 1;
            }
            let recrawl = self.pages.get(&(site.clone(), url.clone())).and_then(|page| page.recrawl);
            let place = (site, url);
            let again_at = self.again_at(&place, recrawl);
            if let Some(page) = self.pages.get_mut(&place) {
                page.again_at = again_at;
            }
        }
        let next_in = self.first_again().map(|(at, ..)| (at - self.now).max(0));
        let expected = Feeding { put, next_in };
        if expected == fed { Ok(()) } else { differs("V13: feed", expected, fed) }
    }

    pub fn check_freshness(&self, site: &str, told: Freshness) -> Result<(), String> {
        let pages = self.pages.iter().filter(|((owner, _), _)| owner == site);
        let ages: Vec<(i64, i64)> =
            pages.filter_map(|(_, page)| Some((page.slot(), page.slot() + page.recrawl?))).collect();
        let fresh = ages.iter().filter(|(_, end)| *end > self.now).count() as u64;
        let oldest = ages.iter().map(|(fetched_at, _)| at(*fetched_at)).min();
        let expected = Freshness { fresh, all: ages.len() as u64, oldest };
        if expected == told { Ok(()) } else { differs(&format!("V13: freshness of {site}"), expected, told) }
    }
}
