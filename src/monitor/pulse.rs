//! The pulse: how the process stands, and the sites that stand out, every few seconds: as lines of the log, or as bars.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use indicatif::MultiProgress;
use tracing::info;

use super::bars::Bars;
use super::counts::{Counted, Monitor, Tally};
use super::limits::Limits;
use super::standing_out::{SitePulse, Total, standing_out};
use crate::frontier::View;
use crate::quantity::{compact, compact_rate};

/// How the pulse is shown.
#[derive(Clone, Debug, Default)]
pub enum Shown {
    /// A line for the process, and one for each site that stands out.
    #[default]
    Lines,
    /// A line for the process, and one for each site that moves.
    AllLines,
    /// Bars on a terminal, for the process and the sites that stand out. The log must write through them as well.
    Bars(MultiProgress),
}

/// Tells how the process and its sites stand. Dropped, it takes the bars away.
#[derive(Debug)]
pub struct Pulse {
    monitor: Monitor,
    looks: Looks,
    limits: Limits,
    bars: Option<Bars>,
    /// Lines tell of every site that moves.
    all: bool,
}

impl Pulse {
    /// The time between two pulses.
    pub const EVERY: Duration = Duration::from_secs(5);

    /// A pulse of these counters.
    pub fn new(monitor: Monitor, shown: Shown) -> Self {
        let all = matches!(shown, Shown::AllLines);
        let bars = if let Shown::Bars(drawn) = shown { Some(Bars::new(drawn)) } else { None };
        Self { monitor, looks: Looks::new(), limits: Limits::default(), bars, all }
    }

    /// Tells how everything stands, and chooses anew which sites the bars show. `views` are of the sites that are looked at, in
    /// the order of their names.
    pub fn beat(&mut self, views: &[View]) {
        let (sites, workers) = (self.look(views), self.monitor.worker_count());
        sites.iter().filter(|site| !site.is_idle()).for_each(|site| self.limits.look(&site.counted.view));
        match &mut self.bars {
            None => lines(&sites, self.all, workers),
            Some(bars) => {
                bars.choose(&sites);
                bars.draw(&sites, workers);
            }
        }
    }

    /// Draws the bars, if there are any.
    pub fn draw(&mut self, views: &[View]) {
        if self.bars.is_some() {
            let (sites, workers) = (self.look(views), self.monitor.worker_count());
            self.bars.iter_mut().for_each(|bars| bars.draw(&sites, workers));
        }
    }

    fn look(&mut self, views: &[View]) -> Vec<SitePulse> {
        self.looks.take(Instant::now(), self.monitor.counted(views))
    }
}

/// What had been done for the sites that were looked at, at each look of the last few seconds and at the last one before them.
#[derive(Debug)]
struct Looks(VecDeque<(Instant, BTreeMap<String, Tally>)>, BTreeMap<String, Tally>);

impl Looks {
    fn new() -> Self {
        Self([(Instant::now(), BTreeMap::new())].into(), BTreeMap::new())
    }

    /// How sites that are looked at now have done since the oldest look. One that is looked at again after a while has done nothing
    /// in between.
    fn take(&mut self, now: Instant, sites: Vec<Counted>) -> Vec<SitePulse> {
        let Self(looks, past) = self;
        looks.push_back((now, sites.iter().map(|site| (site.view.site.clone(), site.tally)).collect()));
        while looks.get(1).is_some_and(|(at, _)| now - *at >= Pulse::EVERY) {
            past.extend(looks.pop_front().into_iter().flat_map(|(_, tallies)| tallies));
        }
        let oldest = looks.front();
        let seconds = oldest.map_or(0.0, |(at, _)| (now - *at).as_secs_f64()).max(0.001);
        let pulse = |counted: Counted| {
            let site = &counted.view.site;
            let before = oldest.and_then(|(_, before)| before.get(site)).or_else(|| past.get(site)).copied();
            SitePulse { counted, before: before.unwrap_or_default(), seconds }
        };
        sites.into_iter().map(pulse).collect()
    }
}

fn lines(sites: &[SitePulse], all: bool, workers: usize) {
    let told = if all { sites.iter().collect() } else { standing_out(sites) };
    told.iter().filter(|site| !site.is_idle()).for_each(|site| line(site, workers));
    let Total { sites, rate: reached, running, waiting } =
        Total::of(sites.iter().filter(|site| !site.is_idle()));
    if sites > 0 {
        info!(sites, rate = %compact_rate(reached), running, workers, waiting, "pulse");
    }
}

fn line(site: &SitePulse, workers: usize) {
    let Counted { view, tally, freshness, .. } = &site.counted;
    let shown = view.allowed().map_or("unlimited".to_owned(), compact_rate);
    let oldest = view.oldest.map_or("-".to_owned(), |put| compact(view.at.since(put)));
    let response = view.response.map_or("-".to_owned(), |ms| ms.to_string());
    let eta = view.eta().map_or("-".to_owned(), compact);
    let fresh = freshness.percent().map_or("-".to_owned(), |percent| format!("{percent}%"));
    info!(
        site = %view.site,
        rate = %compact_rate(site.rate()),
        allowed = %shown,
        used = %format_args!("{:.0}%", 100.0 * site.used()),
        waiting = view.download.waiting,
        oldest = %oldest,
        running = view.in_flight,
        workers,
        response_ms = %response,
        eta = %eta,
        fresh = %fresh,
        items = tally.items,
        delayed = view.download.delayed,
        dead = view.download.letters + view.parse.letters,
        early = tally.early,
        why = site.why(),
        "pulse"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::standing_out::Attention;
    use crate::monitor::standing_out::tests::site;

    #[test]
    fn a_rate_is_that_of_the_last_seconds() {
        let mut looks = Looks::new();
        let start = looks.0[0].0;
        let mut rate = |seconds: u64, starts: u64| {
            let mut counted = site("shop").counted;
            counted.tally.starts = starts;
            looks.take(start + Duration::from_secs(seconds), vec![counted])[0].rate()
        };
        for (seconds, starts, expected) in [(2, 10, 5.0), (5, 10, 2.0), (9, 14, 4.0 / 7.0), (20, 14, 0.0)] {
            let rate = rate(seconds, starts);
            assert!((rate - expected).abs() < 0.001, "{rate} at {seconds} s");
        }
        assert_eq!(looks.0.len(), 2);
    }

    #[test]
    fn a_site_that_is_looked_at_again_after_a_while_did_in_these_seconds_what_came_since() {
        let mut looks = Looks::new();
        let start = looks.0[0].0;
        let mut counted = site("shop").counted;
        (counted.tally.starts, counted.tally.dead) = (1_000, 7);
        looks.take(start + Duration::from_secs(5), vec![counted.clone()]);
        for seconds in (10..=70).step_by(5) {
            looks.take(start + Duration::from_secs(seconds), Vec::new());
        }
        counted.tally.starts += 1;
        let back = &looks.take(start + Duration::from_secs(75), vec![counted])[0];
        assert!((back.rate() - 0.2).abs() < 0.001, "{} starts a second", back.rate());
        assert!(matches!(back.attention(), Attention::Works(_)), "{:?}", back.attention());
        let new = &looks.take(start + Duration::from_secs(80), vec![site("new").counted])[0];
        assert!((new.rate() - 2.0).abs() < 0.001, "{} starts a second", new.rate());
    }
}
