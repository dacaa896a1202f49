//! What site files ask for and their pace can't give: pages that take days, pages that grow old, starts that go unused.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::forecast::{Demand, rate_of};
use crate::quantity::{spoken, spoken_count, spoken_rate};
use crate::site::read::said_of;
use crate::site::{PageRule, Site, SiteError};

/// A run that takes longer is worth a word.
const LONG: Duration = Duration::from_hours(24);

/// What of these files won't be done as fast as they ask. `groups` are the intervals that `paced.toml` gives to groups,
/// `measured` the response times that are known, by site. Sites of one group share one pace.
pub fn outlook(
    sites: &[(String, Site)],
    groups: &BTreeMap<String, Duration>,
    measured: &BTreeMap<String, Duration>,
) -> Vec<SiteError> {
    let mut units: BTreeMap<String, Vec<&(String, Site)>> = BTreeMap::new();
    for site in sites {
        units.entry(site.1.unit()).or_default().push(site);
    }
    units.values().flat_map(|sites| SharedPace::of(sites, groups, measured).warnings()).collect()
}

/// The most pages that a run of this site asks for, where its file bounds them.
pub fn most_pages(site: &Site) -> Option<u64> {
    let by_rules: Option<u64> = site.pages.iter().map(|rule| rule.max_pages).sum();
    site.scope.max_pages.into_iter().chain(by_rules).min()
}

/// Sites with one pace.
struct SharedPace<'a> {
    sites: &'a [&'a (String, Site)],
    demand: Demand,
    is_measured: bool,
}

impl<'a> SharedPace<'a> {
    fn of(
        sites: &'a [&'a (String, Site)],
        groups: &BTreeMap<String, Duration>,
        measured: &BTreeMap<String, Duration>,
    ) -> Self {
        let of_group = sites[0].1.group.as_ref().and_then(|group| groups.get(group).copied());
        let longest = sites.iter().map(|(_, site)| site.pace.interval).max().unwrap_or_default();
        let response = sites.iter().filter_map(|(_, site)| measured.get(&site.name).copied()).max();
        let demand = Demand {
            interval: longest.max(of_group.unwrap_or_default()),
            parallel: sites.iter().map(|(_, site)| site.pace.parallel).sum(),
            response: response.unwrap_or(Demand::ASSUMED),
        };
        Self { sites, demand, is_measured: response.is_some() }
    }

    fn warnings(&self) -> Vec<SiteError> {
        [self.takes_long(), self.grows_old(), self.leaves_starts()].into_iter().flatten().collect()
    }

    fn takes_long(&self) -> Option<SiteError> {
        let pages: u64 = self.sites.iter().filter_map(|(_, site)| most_pages(site)).sum();
        let time = self.demand.time_for(pages).filter(|time| *time > LONG)?;
        let (pages, pace) = (spoken_count(pages), self.pace());
        let what = format!("{}{pages} pages at {pace} = {}", self.together(), spoken(time));
        Some(self.warning(&["scope", "max_pages"], what, LONG_TO_DO.to_owned()))
    }

    fn grows_old(&self) -> Option<SiteError> {
        let wishes: Vec<(u64, Duration)> = self.sites.iter().flat_map(|(_, site)| recrawls(site)).collect();
        let needed: f64 = wishes.iter().filter_map(|(pages, period)| rate_of(*pages, *period)).sum();
        let allowed = self.demand.rate().filter(|allowed| needed > *allowed)?;
        let said: Vec<String> = wishes
            .iter()
            .map(|(pages, period)| format!("{} pages every {}", spoken_count(*pages), spoken(*period)))
            .collect();
        let (needed, allowed) = (spoken_rate(needed), spoken_rate(allowed));
        let what = format!("{}{} need {needed}, allowed {allowed}", self.together(), said.join(" and "));
        let todo = "write a longer `recrawl`, or a shorter `interval` if the owner agrees".to_owned();
        Some(self.warning(&["page"], what, todo))
    }

    fn leaves_starts(&self) -> Option<SiteError> {
        let enough = self.demand.parallel_short_of()?;
        let (of, reached) = (rate_of(1, self.demand.interval)?, self.demand.rate()?);
        let what = format!(
            "{}{}, parallel = {} makes {} of the {} that `interval` allows",
            self.together(),
            self.answers(),
            self.demand.parallel,
            spoken_rate(reached),
            spoken_rate(of),
        );
        Some(self.warning(&["pace", "parallel"], what, format!("write parallel = {enough} in [pace]")))
    }

    /// The interval, or what `parallel` makes of it.
    fn pace(&self) -> String {
        match self.demand.rate().filter(|_| self.demand.is_narrow()) {
            Some(reached) => {
                format!("{} ({}, parallel = {})", spoken_rate(reached), self.answers(), self.demand.parallel)
            }
            None => spoken(self.demand.interval),
        }
    }

    fn answers(&self) -> String {
        let response = spoken(self.demand.response);
        if self.is_measured {
            format!("answers take {response}")
        } else {
            format!("if answers take {response}")
        }
    }

    fn together(&self) -> String {
        match &self.sites[0].1.group {
            Some(group) if self.sites.len() > 1 => format!("the sites of group `{group}` together: "),
            _ => String::new(),
        }
    }

    fn warning(&self, keys: &[&str], what: String, what_to_do: String) -> SiteError {
        let (file, site) = self.sites[0];
        said_of((file, &site.text), keys, what, what_to_do)
    }
}

const LONG_TO_DO: &str =
    "nothing, if that is soon enough; else fewer pages, or a shorter `interval` if the owner agrees";

/// How many pages are wanted again after which time, as far as the file bounds them.
fn recrawls(site: &Site) -> Vec<(u64, Duration)> {
    let periodic: Vec<&PageRule> = site.pages.iter().filter(|rule| rule.recrawl.is_some()).collect();
    // What bounds the whole site bounds its only rule.
    let of_site = site.scope.max_pages.filter(|_| periodic.len() == 1);
    periodic.iter().filter_map(|rule| Some((rule.max_pages.or(of_site)?, rule.recrawl?))).collect()
}
