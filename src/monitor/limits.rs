//! Sites whose `parallel` keeps them from using every start. Said once, and once more when it is over.

use std::time::Duration;

use tracing::{info, warn};

use crate::forecast::Demand;
use crate::frontier::View;
use crate::quantity::{compact, spoken, spoken_rate};
use crate::recent::Recent;

/// Looks in a row that must agree: a single slow answer is none of them.
const LOOKS: u32 = 3;

/// The most sites whose limit is kept in mind.
const MOST_SITES: usize = 32_768;

/// What was seen of each site's limit.
#[derive(Debug, Default)]
pub(super) struct Limits(Recent<String, SiteLimit, MOST_SITES>);

#[derive(Clone, Copy, Debug, Default)]
struct SiteLimit {
    told: bool,
    /// Looks in a row that contradict what was told.
    against: u32,
}

/// What is to be told of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// `parallel` is the limit; so many would do.
    IsLimit(u32),
    /// It no longer is.
    IsOver,
}

impl Limits {
    /// Looks at a site that moves, and says what is new.
    pub(super) fn look(&mut self, view: &View) {
        let (Some(demand), true) = (demand(view), view.download.waiting > 0) else { return };
        let (site, parallel) = (&view.site, demand.parallel);
        match self.0.get_or(site.clone(), SiteLimit::default).judge(&demand) {
            Some(News::IsLimit(enough)) => {
                let rate = spoken_rate(demand.rate().unwrap_or_default());
                let (response, told) = (spoken(demand.response), compact(demand.response));
                warn!(
                    %site, parallel, enough, response = %told,
                    "parallel keeps the site at {rate}: answers take {response}; parallel = {enough} would use every start"
                );
            }
            Some(News::IsOver) => info!(%site, parallel, "parallel no longer keeps the site below its pace"),
            None => {}
        }
    }
}

impl SiteLimit {
    fn judge(&mut self, demand: &Demand) -> Option<News> {
        let short_of = demand.parallel_short_of();
        if short_of.is_some() == self.told {
            self.against = 0;
            return None;
        }
        self.against += 1;
        if self.against < LOOKS {
            return None;
        }
        *self = Self { told: short_of.is_some(), against: 0 };
        Some(short_of.map_or(News::IsOver, News::IsLimit))
    }
}

fn demand(view: &View) -> Option<Demand> {
    Some(Demand {
        interval: Duration::from_millis(view.interval.unsigned_abs()),
        parallel: view.parallel,
        response: Duration::from_millis(view.response?.unsigned_abs()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v15_a_limit_is_told_once_and_once_more_when_it_is_over() {
        let mut seen = SiteLimit::default();
        let history = [900, 9_000, 9_000, 700, 9_000, 9_000, 9_000, 9_500, 700, 9_000, 700, 700, 700, 700];
        let told: Vec<(usize, News)> = history
            .into_iter()
            .enumerate()
            .filter_map(|(at, response)| {
                let (interval, response) = (Duration::from_secs(1), Duration::from_millis(response));
                Some((at, seen.judge(&Demand { interval, parallel: 8, response })?))
            })
            .collect();
        assert_eq!(told, [(6, News::IsLimit(11)), (12, News::IsOver)]);
    }
}
